"""Query paths that leak in one way each, and honest ones beside them."""

import math
from collections import Counter

import numpy as np
import pytest

from discreet import audit
from discreet.audit import Observation
from discreet.audit.query_paths import KINDS, timing

FALSE_ALARM = 1e-9  # chance that an honest path fails one audit below
EPSILON, DELTA = 1, 1e-3
MOST = 3  # rows that count of one person
LOW, HIGH = 0.0, 10.0

rng = np.random.default_rng()  # insecure noise is good enough to test an auditor with

PEOPLE = {
    "person": list(range(80)),
    "key": [f"k{i % 2}" for i in range(80)],
    "x": [1.0 + i % 9 for i in range(80)],
}


def laplace(scale):
    return float(rng.laplace(scale=scale))


class Path:
    """An honest path: a few rows of each person, clipped, summed and noised."""

    def __call__(self, table):
        rows = self.bounded(zip(table["person"], table["key"], table["x"], strict=True))
        return Observation(
            answer=self.answer(rows), price=self.quoted(rows), left=self.rest(rows),
            notes=self.told(rows), receipt=self.kept(rows), error_bars=self.bars(rows),
        )  # fmt: skip

    def bounded(self, rows):
        seen, kept = Counter(), []
        for person, key, x in rows:
            seen[person] += 1
            if seen[person] <= MOST:
                kept.append((key, x))
        return kept

    def clipped(self, x):
        return LOW if x is None or math.isnan(x) else min(max(x, LOW), HIGH)

    def answer(self, rows):
        return sum(self.clipped(x) for _, x in rows) + laplace(MOST * HIGH / EPSILON)

    def quoted(self, rows):
        return "epsilon=1"

    def rest(self, rows):
        return 0.9

    def told(self, rows):
        return ""

    def kept(self, rows):
        return "charge"

    def bars(self, rows):
        return MOST * HIGH


class ByKey(Path):
    """Counts by key, of keys that enough people have."""

    # A key of one person has at most MOST rows, and a person has at most MOST keys: each shows
    # with probability at most DELTA / MOST.
    threshold = MOST + MOST / EPSILON * math.log(MOST / (2 * DELTA))

    def answer(self, rows):
        counts = Counter(str(key) for key, _ in rows)
        noisy = {key: n + laplace(MOST / EPSILON) for key, n in counts.items()}
        return {key: n for key, n in noisy.items() if n > self.threshold}


class NoNoiseForSmallGroups(ByKey):
    threshold = 0

    def answer(self, rows):
        counts = Counter(str(key) for key, _ in rows)
        return {k: float(n) if n < 5 else n + laplace(MOST / EPSILON) for k, n in counts.items()}


class KeysUnthresholded(ByKey):
    threshold = -math.inf


class PriceOfData(Path):
    def quoted(self, rows):
        return f"epsilon={len(rows) / 100}"


class FailsOnNaN(Path):
    def clipped(self, x):
        if x is not None and math.isnan(x):
            raise ValueError("not a number")
        return super().clipped(x)


class TellsAValue(Path):
    def answer(self, rows):
        raise ValueError(f"at most {max((self.clipped(x) for _, x in rows), default=0)} allowed")


class SizeLeaks(Path):
    def answer(self, rows):
        noisy = super().answer(rows)
        return [{"n": noisy}] * (1 + (len(rows) > len(PEOPLE["x"])))


class BudgetOfData(Path):
    def rest(self, rows):
        return 1 - len(rows) / 1000


class TrueRange(Path):
    """Noise scaled to the range that the data has, which one person can make as small or large."""

    def clipped(self, x):
        return 0.0 if x is None or math.isnan(x) else max(min(x, 1e6), -1e6)

    def answer(self, rows):
        values = [self.clipped(x) for _, x in rows] or [0.0]
        return sum(values) + laplace((max(values) - min(values)) / 10 + 1e-3)


class NoClipping(Path):
    def clipped(self, x):
        return 0.0 if x is None or math.isnan(x) else max(min(x, 1e300), -1e300)


class NoRowLimit(Path):
    def bounded(self, rows):
        return [(key, x) for _, key, x in rows]


class Cached(Path):
    kept_answer = None

    def answer(self, rows):
        if self.kept_answer is None:
            self.kept_answer = super().answer(rows)
        return self.kept_answer


class NoteOfData(Path):
    def told(self, rows):
        return "some values are missing" if any(x is None for _, x in rows) else ""


class ReceiptOfData(Path):
    def kept(self, rows):
        return str(hash(tuple(sorted(str(key) for key, _ in rows))))


class BarsOfData(Path):
    def bars(self, rows):
        return float(np.std([self.clipped(x) for _, x in rows] or [0.0]))


class RepeatsKeys(ByKey):
    """The honest counts, but each key that was suppressed is listed in a note."""

    def told(self, rows):
        return [key for key, n in Counter(str(k) for k, _ in rows).items() if n < self.threshold]


def audited(path, kinds=KINDS, *, samples=200, **more):
    return audit.table(
        PEOPLE, path, unit="person", epsilon=EPSILON, delta=DELTA, kinds=kinds, samples=samples,
        confidence=1 - FALSE_ALARM, **more,
    )  # fmt: skip


@pytest.mark.lengthy
@pytest.mark.parametrize("path", [Path, ByKey])
def test_honest_paths_pass_with_every_kind_of_unit(path):
    found = audited(path())
    assert found.passed, found
    assert {one.verdict for one in found.findings} == {"passed"}  # all could have failed
    assert len(found.findings) == len(KINDS) * len(audit.query_paths.CHANNELS)


@pytest.mark.lengthy
def test_an_honest_path_passes_where_units_are_replaced():
    # Somebody's rows move a sum by no more than all of it when values are all of one sign.
    found = audited(Path(), neighbours="replace_one")
    assert found.passed, found


TWINS = {
    NoNoiseForSmallGroups: ("alone in a key", {"answer", "keys", "rows", "bytes"}),
    KeysUnthresholded: ("alone in a key", {"keys"}),
    PriceOfData: ("typical unit", {"price"}),
    FailsOnNaN: ("not finite", {"fails", "error"}),
    TellsAValue: ("largest values", {"error"}),
    SizeLeaks: ("only value", {"rows"}),
    BudgetOfData: ("typical unit", {"left"}),
    TrueRange: ("largest values", {"answer"}),
    NoClipping: ("largest values", {"answer"}),
    NoRowLimit: ("many rows", {"answer"}),
    Cached: ("another table", {"answer"}),
    NoteOfData: ("nulls", {"notes"}),
    ReceiptOfData: ("malformed text", {"receipt"}),
    BarsOfData: ("largest values", {"error bars"}),
    RepeatsKeys: ("alone in a key", {"notes"}),
}


@pytest.mark.parametrize("twin", TWINS)
def test_a_broken_twin_is_found_where_it_leaks(twin):
    kind, channels = TWINS[twin]
    found = audited(twin(), [kind] if kind in KINDS else ["typical unit"])
    assert not found.passed
    failed = {one.channel for one in found.failures if one.kind == kind}
    assert failed & channels, found
    assert kind == "another table" or found.epsilon_lower > EPSILON


class Clock:
    """A clock that only the path under audit moves, now and then by much: a busy machine."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(timing, "time", self)

    def perf_counter(self):
        return self.now

    def spend(self, seconds):
        load = 10.0 if rng.random() < 0.005 else 1.0
        self.now += load * (seconds + rng.exponential(1e-4))
        return laplace(100)


def time_told(ask, kind="many rows"):
    found = audited(ask, [kind], time=True)
    (told,) = (one for one in found.findings if one.channel == "time")
    assert {one.channel for one in found.failures} <= {"time"}
    return told


def test_time_that_one_person_costs_is_found_and_other_time_is_not(monkeypatch):
    clock = Clock(monkeypatch)
    assert time_told(lambda table: clock.spend(1e-3)).verdict == "passed"
    slow = time_told(lambda table: clock.spend(2e-3 if len(table["x"]) > 500 else 1e-3))
    assert slow.verdict == "FAILED"
    assert slow.epsilon_lower > EPSILON
    # What one more row costs is within what machines do by themselves.
    little = time_told(lambda table: clock.spend(1e-3 + 1e-6 * len(table["x"])), "only unit")
    assert little.verdict == "passed"


def test_where_a_copy_of_the_same_table_differs_nothing_is_said_about_time(monkeypatch):
    clock, tables = Clock(monkeypatch), []

    def by_identity(table):
        if not any(table is one for one in tables):
            tables.append(table)  # the pair comes first, and then the copy
        return clock.spend(5e-3 if any(table is one for one in tables[2:]) else 1e-3)

    assert time_told(by_identity).verdict == "could not be measured"
