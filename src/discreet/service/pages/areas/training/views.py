"""The page of the training: what the sliders mean, the run as it goes, and a finished one."""

from collections.abc import AsyncIterator, Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any, Final
from weakref import WeakKeyDictionary

from discreet.errors import DiscreetError, MissingExtra, ParameterError, TryLater
from discreet.service.desk.gateway import Gateway
from discreet.service.desk.queue import FairQueue
from discreet.service.pages.areas.training.crews import crew_of
from discreet.service.pages.areas.training.picture import REACH, clouds
from discreet.service.pages.areas.training.plan import (
    DELTA,
    POINTS,
    SLIDERS,
    TrainingPlan,
    checked,
    planned,
)
from discreet.service.pages.page import PageCall
from discreet.service.web.problems import problem_of

__all__ = ["steps", "training"]

_MOST_WAITING: Final = 60
_QUEUES: WeakKeyDictionary[Gateway, FairQueue] = WeakKeyDictionary()


async def training(call: PageCall) -> Mapping[str, Any]:
    """Say what the sliders come to; with ``run`` in the address also what a run came to."""
    plan, problem, finished = None, None, None
    try:
        plan = await _plan(call)
        if "run" in call.query:
            finished = await _finished(call, plan)
    except DiscreetError as error:
        problem = problem_of(error).document
    return {
        "sliders": {name: dict(one._asdict()) for name, one in SLIDERS.items()},
        "chosen": _chosen(call, plan),
        "by": "noise" if call.query.get("by") == "noise" else "epsilon",
        "plan": None if plan is None else plan.document,
        "points": POINTS,
        "delta": DELTA,
        "reach": REACH,
        "clouds": clouds(),
        "missing": None if _has_torch() else str(_missing()),
        "problem": problem,
        "run": finished,
    }


async def steps(call: PageCall) -> AsyncIterator[Mapping[str, Any]]:
    """Train, and tell each step as it is made."""
    if not _has_torch():
        raise _missing()
    plan = await _plan(call)
    async for event in crew_of(call.gateway).run(plan, is_paced=True):
        yield event


async def _plan(call: PageCall) -> TrainingPlan:
    """Read the sliders; let the accountant say what follows from them."""
    by = checked(call.query.get("by", "epsilon"))
    told = {
        name: float(call.number(name, one.usual, least=one.least, most=one.most))
        for name, one in SLIDERS.items()
    }
    for name in ("batch", "steps"):
        if not told[name].is_integer():
            raise ParameterError(f"{name} must be a whole number.", parameter=name)
    told["noise" if by == "epsilon" else "epsilon"] = 0.0  # it follows, and is not looked at
    whole = {name: int(told.pop(name)) for name in ("batch", "steps")}
    gateway = call.gateway
    queue = _QUEUES.setdefault(gateway, FairQueue(slots=1, waiting=8))
    if queue.length > _MOST_WAITING:
        raise TryLater("many are choosing at the moment. Try again in a moment.", seconds=5)
    async with queue.turn(call.visitor):
        return await gateway.beside(partial(planned, by, **told, **whole))


async def _finished(call: PageCall, plan: TrainingPlan) -> dict[str, Any]:
    """Return a run that has ended: its last step, and its curves."""
    if not _has_torch():
        raise _missing()
    events = crew_of(call.gateway).run(plan, is_paced=False)
    told = [event async for event in events]
    taken = [event for event in told if event["kind"] == "step"]
    ends = [event for event in told if event["kind"] == "finished"]
    if not ends:
        raise TryLater("the run took too long, and was stopped. Try fewer steps.")
    at = [event["step"] for event in taken]
    paid = [event for event in taken if event["private"]["epsilon"] is not None]
    return {
        "plain": taken[-1]["plain"],
        "private": {**taken[-1]["private"], "epsilon": ends[0]["epsilon"]},
        "told": ends[0]["told"],
        "loss": _curves(at, taken, "loss"),
        "accuracy": _curves(at, taken, "accuracy"),
        "epsilon": {
            "x": [event["step"] for event in paid],
            "series": [{"label": "epsilon", "y": [one["private"]["epsilon"] for one in paid]}],
            "x_label": "steps", "y_label": "epsilon", "height": 190,
        },
    }  # fmt: skip


def _curves(at: list[int], taken: list[dict[str, Any]], name: str) -> dict[str, Any]:
    series = [("SGD", "plain"), ("DP-SGD", "private")]
    return {
        "x": at,
        "series": [
            {"label": label, "y": [event[kind][name] for event in taken]} for label, kind in series
        ],
        "x_label": "steps", "y_label": name, "height": 190,
    }  # fmt: skip


def _chosen(call: PageCall, plan: TrainingPlan | None) -> dict[str, float]:
    """Return where the sliders stand."""
    found = {name: one.usual for name, one in SLIDERS.items()}
    if plan is not None:
        found |= {name: float(plan.document[name]) for name in found}
    if call.query.get("by") != "noise" and "epsilon" in call.query and plan is not None:
        found["epsilon"] = float(call.query["epsilon"])
    return found


def _has_torch() -> bool:
    return find_spec("torch") is not None


def _missing() -> MissingExtra:
    return MissingExtra(room="discreet.learn", needs="torch", extra="learn")
