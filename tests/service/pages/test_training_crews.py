"""Processes that train: few, stopped when nobody watches, and never the gateway itself."""

import asyncio
import sys

import pytest
from gateway_sites import make_site

from discreet.errors import TryLater
from discreet.service.pages.areas.training import crews
from discreet.service.pages.areas.training.crews import Crew
from discreet.service.pages.areas.training.picture import boundary
from discreet.service.pages.areas.training.plan import planned
from discreet.service.pages.areas.training.trainer import run

SHORT = planned("noise", clip=1.0, batch=40, rate=1.0, steps=10, noise=2.0, epsilon=0.0)
LONG = planned("noise", clip=1.0, batch=40, rate=1.0, steps=300, noise=2.0, epsilon=0.0)


def test_a_run_tells_each_step_and_what_it_cost():
    events = list(run(SHORT))
    assert [one["step"] for one in events if one["kind"] == "step"] == list(range(11))
    assert events[-1]["kind"] == "finished"
    assert events[-1]["epsilon"] == SHORT.epsilon
    assert events[-2]["private"]["epsilon"] == SHORT.epsilon
    assert events[-2]["plain"]["loss"] < events[0]["plain"]["loss"]


def test_a_run_that_nobody_wants_ends():
    events = list(run(LONG, is_over=lambda: True))
    assert len(events) == 2


def test_the_gateway_does_not_load_torch(tmp_path):
    code = (
        "import sys; from discreet.service import create_app, Gateway, GatewaySettings; "
        f"app = create_app(Gateway.open(GatewaySettings(ledger={str(tmp_path / 'b.db')!r}, "
        "explorer=True))); print('torch' in sys.modules)"
    )
    import subprocess

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout.strip() == "False", found.stderr


def test_without_torch_the_page_says_which_command_installs_it(tmp_path, monkeypatch):
    monkeypatch.setattr("discreet.service.pages.areas.training.views.find_spec", lambda name: None)
    with make_site(tmp_path, explorer=True).served() as client:
        assert "pip install &#39;discreet[learn]&#39;" in client.get("/training").text
        assert client.get("/training.json").json()["plan"]["steps"] == 150


async def _taken(crew, plan, most):
    """Watch a run, and leave after so many events."""
    seen = []
    events = crew.run(plan, is_paced=True)
    async for event in events:
        seen.append(event)
        if len(seen) == most:
            break
    await events.aclose()
    return seen


@pytest.mark.lengthy
def test_whoever_leaves_early_frees_the_trainer(tmp_path):
    async def visits():
        crew = Crew(tmp_path)
        assert len(await _taken(crew, LONG, 5)) == 5
        seen = await _taken(crew, SHORT, 10**6)
        assert seen[-1]["kind"] == "finished"
        await asyncio.gather(*crew._settling)
        for trainer in crew._resting:
            trainer.kill()
            await trainer._process.wait()

    asyncio.run(visits())


@pytest.fixture
def all_taken(tmp_path):
    """All places of a host, taken."""
    taken = [crews._taken(tmp_path) for _ in range(crews._PLACES)]
    yield taken
    for place in taken:
        place.close()


def test_places_are_few_and_come_back(tmp_path, all_taken):
    assert None not in all_taken
    assert crews._taken(tmp_path) is None
    all_taken[0].close()
    all_taken[0] = crews._taken(tmp_path)
    assert all_taken[0] is not None


@pytest.mark.usefixtures("all_taken")
def test_who_waits_too_long_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(crews, "_PATIENCE", 0.3)

    async def visit():
        async for event in Crew(tmp_path).run(SHORT, is_paced=False):
            assert event == {"kind": "waiting"}

    with pytest.raises(TryLater, match="others are training"):
        asyncio.run(visit())


@pytest.mark.lengthy
def test_a_process_knows_nothing_of_the_gateways_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("DISCREET_SERVE_LEDGER", "postgresql://ana:secret@host/db")

    async def visit():
        trainer = await crews.Trainer.start(crews._taken(tmp_path))
        found = f"/proc/{trainer._process.pid}/environ"
        with open(found, "rb") as file:
            told = file.read()
        trainer.kill()
        await trainer._process.wait()
        return told

    assert b"secret" not in asyncio.run(visit())


@pytest.mark.parametrize(
    ("weights", "ends"),
    [
        ((1, 0, 2), [-2, 5, -2, -5]),
        ((0, 1, 0), [-5, 0, 5, 0]),
        ((1, 1, 0), [-5, -5, 5, 5]),
        ((1, 0, 9), None),
        ((0, 0, 0), None),
    ],
)
def test_where_the_boundary_is(weights, ends):
    assert boundary(*weights) == ends
