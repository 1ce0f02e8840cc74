"""Our own query path, audited from outside: through protect, quote, sql and the ledger."""

from fractions import Fraction

import pytest

from discreet import audit
from discreet.audit.query_paths import KINDS
from discreet.audit.query_paths.observation import observe
from discreet.audit.query_paths.protected_path import ProtectedPath
from discreet.noise import SYSTEM
from discreet.privacy import Neighbours
from discreet.tables.algorithms.noise import Noise
from discreet.tables.release.execution import sums

FALSE_ALARM = 1e-6  # chance that an honest path fails one audit below

PEOPLE = {
    "person": list(range(40)),
    "key": [f"k{i % 2}" for i in range(40)],
    "x": [float(i % 10) for i in range(40)],
}
QUESTIONS = {
    "count": "SELECT COUNT(*) AS n FROM data",
    "sum": "SELECT SUM(CLAMP(x, 0, 10)) AS s FROM data",
    "mean": "SELECT AVG(CLAMP(x, 0, 10)) AS m FROM data",
    "distinct": "SELECT COUNT(DISTINCT key) AS n FROM data",
    "median": "SELECT MEDIAN(CLAMP(x, 0, 10)) AS q FROM data",
    "private keys": "SELECT key, COUNT(*) AS n FROM data GROUP BY key",
}
OF_KEYS = ("typical unit", "alone in a key", "many keys", "only unit")
OF_RANKS = ("many rows", "largest values", "smallest values", "nulls", "not finite", "only unit")


def audited(question, kinds, *, samples=120, **more):
    delta = 1e-3 if question == "private keys" else 0
    return audit.table(
        PEOPLE, QUESTIONS[question], unit="person", epsilon=1, delta=delta, kinds=kinds,
        samples=samples, confidence=1 - FALSE_ALARM, rows=3, groups=2, **more,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
def test_our_path_passes_with_every_kind_of_unit(question):
    chosen = {"private keys": OF_KEYS, "median": OF_RANKS}.get(question, KINDS)
    found = audited(question, chosen)
    assert found.passed, found
    assert {one.verdict for one in found.findings} == {"passed"}


@pytest.mark.lengthy
def test_our_path_passes_in_short():
    found = audited("sum", ["not finite"])
    assert found.passed, found
    assert found.power < 10  # it could have failed


@pytest.mark.lengthy
def test_too_little_noise_in_our_path_is_found(monkeypatch):
    real = Noise.add

    def add(self, values, *, sensitivity, source=SYSTEM):
        return real(self, values, sensitivity=Fraction(sensitivity) / 50, source=source)

    monkeypatch.setattr(Noise, "add", add)
    found = audited("count", ["many rows"])
    assert [one.channel for one in found.failures][:1] == ["answer"], str(found)


@pytest.mark.slow
def test_keys_without_a_threshold_in_our_path_are_found(monkeypatch):
    monkeypatch.setattr(sums, "threshold", lambda *given, **named: Fraction(-(10**6)))
    found = audited("private keys", ["alone in a key"])
    assert "keys" in {one.channel for one in found.failures}, str(found)


def path(question, **settings):
    return ProtectedPath(
        question, like=PEOPLE, unit="person", neighbours=Neighbours.add_remove,
        epsilon=1.0, delta=0.0, settings=settings,
    )  # fmt: skip


@pytest.mark.lengthy
def test_no_sample_is_recalled_and_all_cost_the_same():
    with path(QUESTIONS["sum"], rows=3) as ask:
        seen = [ask(PEOPLE) for _ in range(8)]
    assert not any(one.answer.is_recalled for one in seen)
    assert len({one.left for one in seen}) == 1
    assert float(seen[0].left) > 0
    assert len({one.answer.value for one in seen}) > 1  # of noise this large, all the same: 1e-13


@pytest.mark.lengthy
def test_what_was_told_before_does_not_show_in_later_samples():
    # A count tells how few people there are, and then inferring a limit from them is refused: with
    # one handle the first sample would decide all others.
    with path(QUESTIONS["count"]) as ask:
        seen = [observe(ask, PEOPLE) for _ in range(4)]
    assert len({one["fails"] for one in seen}) == 1
    assert len({one["price"] for one in seen}) == 1


def test_a_question_that_is_refused_is_seen_and_costs_nothing():
    with path("SELECT x FROM data") as ask:
        seen = observe(ask, PEOPLE)
    assert seen["fails"] == "Refused"
    assert float(seen["left"]) == 0
    assert "fails" in seen["price"]
