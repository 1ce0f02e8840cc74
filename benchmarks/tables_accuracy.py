"""Errors at equal privacy: this library, Qrlew and OpenDP, all truly (1, 1e-6)-DP per question.

The error of an answer is the mean over its groups of the distance to the truth about the raw rows:
what bounding drops counts as much as noise. Keys that are not shown count as answers of 0.

This library answers each question with limits declared and with limits that it infers privately.
Its engine's sums are a function of the limits alone (units are bounded by norm, which involves no
chance), so repetitions reuse them; limits and noise are drawn anew each time. Answers of many
groups are asked for through the public interface; answers of one number vary so much that they are
repeated thousands of times, by the step that comes after the charge. Of a peer the bounded sums are
computed once by the peer itself, nearly without noise, and its noise is then drawn with the law and
scale that it states (items: five real answers). Everybody's limits are the best of several, by
looking at the truth, except where ours are inferred.
"""

import math
import statistics
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tables_data import LARGEST, visits
from tables_peers import (
    Truncation,
    draws,
    multiplier,
    opendp_noise,
    opendp_query,
    qrlew_epsilon,
    qrlew_noise,
    qrlew_sql,
)

from discreet.noise import SYSTEM
from discreet.tables import Norm, Protected, Totals
from discreet.tables.algorithms.estimates import estimate
from discreet.tables.model.bounds import AskedBounding
from discreet.tables.model.statements import Statement
from discreet.tables.pricing.offer import Offer
from discreet.tables.pricing.prepared import Prepared
from discreet.tables.protected import _prepare
from discreet.tables.release.execution.run import run
from tables import DELTA, ITEM, ask, connected, protected

Floats = npt.NDArray[np.float64]
Answer = dict[Any, float]

EXACT = 1e7  # an epsilon at which peers' noise does not matter
REPETITIONS = 50  # of questions with many groups
REPETITIONS_OF_ONE = 4000  # of questions whose answer is one number
SIMULATED = 50_000  # numbers drawn of a peer
WIDTH = 1.96  # standard errors of the confidence limit
BY_ROWS = tuple(Norm(limit=limit, order=1) for limit in (20, 30, 40, 50, 60, 80, 100))
BY_NORM = tuple(Norm(limit=limit, order=2) for limit in (2, 3, 4, 6, 8, 10, 12, 16, 20))
# Of a person's whole sum, as many times the largest value as Qrlew may choose from.
BY_TOTAL = tuple(Totals(limit=LARGEST * limit, order=1) for limit in (8, 10, 12, 16, 20, 30))
LIMITS = (2, 4, 6, 8, 10, 12, 16, 20, 30, 40, 60, 80, 100)  # Qrlew's
CUTS = (20, 40, 60, 80, 100)


@dataclass(frozen=True)
class Case:
    """One question: as SQL, as OpenDP's kind, and the limits that ours may declare."""

    name: str
    sql: str
    kind: str
    boundings: tuple[AskedBounding, ...]
    truncations: tuple[Truncation, ...]

    @property
    def is_mean(self) -> bool:
        return "AVG" in self.sql

    @property
    def by(self) -> str | None:
        return "region" if "GROUP BY region" in self.sql else None

    @property
    def parts(self) -> str:
        """Ask for what a mean is made of."""
        return self.sql.replace("AVG(income) AS v", "COUNT(income) AS n, SUM(income) AS s")


CASES = (
    Case(
        "region counts",
        "SELECT region, COUNT(*) AS v FROM visits GROUP BY region",
        "regions",
        (*BY_NORM, *BY_ROWS),
        (*map(Truncation, CUTS), Truncation(40, 8), Truncation(60, 10)),
    ),
    Case(
        "region means",
        "SELECT region, AVG(income) AS v FROM visits GROUP BY region",
        "region means",
        (*BY_NORM, *BY_ROWS),
        (
            Truncation(3),
            Truncation(6),
            Truncation(10),
            Truncation(20),
            Truncation(40),
            Truncation(20, 3),
        ),
    ),
    Case("count", "SELECT COUNT(*) AS v FROM visits", "count", BY_ROWS, (*map(Truncation, CUTS),)),
    Case("sum", "SELECT SUM(income) AS v FROM visits", "sum", BY_TOTAL, (*map(Truncation, CUTS),)),
    Case(
        "mean",
        "SELECT AVG(income) AS v FROM visits",
        "mean",
        (Norm(limit=1, order=1), Norm(limit=5, order=1), Norm(limit=10, order=1), *BY_ROWS),
        (Truncation(5), Truncation(10), *map(Truncation, CUTS)),
    ),
)


class Remembering:
    """An engine that computes each statement once, whatever its salt."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._known: dict[Statement, Any] = {}

    def sql(self, statement: Statement, /) -> str:
        return str(self._inner.sql(statement))

    def aggregate(self, statement: Statement, /) -> Any:
        plain = replace(statement, salt="")
        if plain not in self._known:
            self._known[plain] = self._inner.aggregate(plain)
        return self._known[plain]

    def rows(self, *arguments: Any, **options: Any) -> Any:
        return self._inner.rows(*arguments, **options)

    def holding(self) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        self._inner.close()


def accuracy(folder: Path, rows: int, only: str | None = None) -> dict[str, Any]:
    """Compare on all questions, or one; print and return what was found."""
    path = visits(folder, rows)
    plain = connected(path)
    found: dict[str, Any] = {}
    with protected(path) as table:
        engine = Remembering(table._opened.connection)
        table._opened = table._opened._replace(connection=engine)
        for case in CASES:
            if only in (None, case.name):
                found[case.name] = _compared(case, path, rows, plain, table)
        if only in (None, "items"):
            found["items"] = _items(path, rows, plain, table)
    return found


def _compared(case: Case, path: Path, rows: int, plain: Any, table: Protected) -> dict[str, Any]:
    truth = _values(plain.sql(case.sql).to_arrow_table(), case.by)

    def errors(bounding: AskedBounding | None) -> list[float]:
        if case.by is None:
            return _drawn(table, case, truth, bounding, REPETITIONS_OF_ONE)
        answers = (ask(table, case.sql, bounding=bounding) for _ in range(REPETITIONS))
        return [_error(_values(answer, case.by), truth) for answer in answers]

    best = _best({b: _drawn(table, case, truth, b, 20 if case.by else 400) for b in case.boundings})
    ours = {f"declared, {_words(best[0])}": errors(best[0]), "inferred": errors(None)}
    peers = [
        _best({f"Qrlew, {c}": _qrlew(case, rows, plain, truth, c) for c in LIMITS}),
        _best({f"OpenDP, {c}": _opendp(case, path, rows, truth, c) for c in case.truncations}),
    ]
    scale = statistics.mean(abs(v) for v in truth.values())
    return _report(case.name, ours, dict(peers), scale=scale)


def _drawn(
    table: Protected, case: Case, truth: Answer, bounding: AskedBounding | None, times: int
) -> list[float]:
    """Repeat only what comes after the charge: limits, sums, noise, and the estimate made of it."""
    asker = table._asker(Offer(epsilon=1, delta=DELTA, bounding=bounding), SYSTEM)
    prepared = _prepare(case.sql, asker)
    assert isinstance(prepared, Prepared)
    place = prepared.layout.sources[0]
    assert place is not None
    found = []
    for _ in range(times):
        released = run(
            prepared,
            connection=table._opened.connection,
            catalog=table.catalog,
            confidence=asker.confidence,
            source=SYSTEM,
        )
        values = estimate(prepared.query.aggregates[0], released.families[place]).value
        keys = [group[0] if group else None for group in released.shown.groups]
        found.append(_error(dict(zip(keys, values.tolist(), strict=True)), truth))
    return found


def _best(candidates: dict[Any, list[float]]) -> tuple[Any, list[float]]:
    return min(candidates.items(), key=lambda item: statistics.mean(item[1]))


def _values(answer: Any, by: str | None, name: str = "v") -> Answer:
    """Return the values of an Arrow or Polars table by key."""
    keys = answer[by].to_pylist() if by and hasattr(answer[by], "to_pylist") else None
    if keys is None:
        keys = answer[by].to_list() if by else [None]
    column = answer[name]
    values = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
    return dict(zip(keys, (0.0 if v is None else float(v) for v in values), strict=True))


def _error(answer: Answer, truth: Answer) -> float:
    """Return the mean absolute error, in which missing keys are zeros."""
    both = answer.keys() | truth.keys()
    total = sum(abs(answer.get(key, 0.0) - truth.get(key, 0.0)) for key in both)
    return total / len(truth)


def _words(bounding: Any) -> str:
    what = "sum" if isinstance(bounding, Totals) else "norm"
    return f"L{bounding.order} {what} {bounding.limit}"


# --- peers ----------------------------------------------------------------------------------------


def _qrlew(case: Case, rows: int, plain: Any, truth: Answer, limit: int) -> list[float]:
    terms: dict[str, Any] = {"rows": rows, "most": DELTA, "limit": limit, "groups": 5}
    noise = qrlew_noise(case.sql, epsilon=qrlew_epsilon(case.sql, **terms), **terms)
    exact = plain.sql(qrlew_sql(case.parts, epsilon=EXACT, **terms)).to_arrow_table()
    columns = {"_COUNT_": "n", "_SUM_": "s"} if case.is_mean else dict.fromkeys(_KINDS, "v")
    scales = {columns[kind]: ("gaussian", deviation) for kind, deviation in noise}
    sums = {name: _values(exact, case.by, name) for name in scales}
    return _simulated(case, truth, sums, scales)


_KINDS = ("_COUNT_", "_SUM_")


def _opendp(case: Case, path: Path, rows: int, truth: Answer, bound: Truncation) -> list[float]:
    nearly = opendp_query(path, rows, case.kind, bound, rho=EXACT).release().collect()
    columns = {"len": "n", "income": "s"} if case.is_mean else dict.fromkeys(("len", "income"), "v")
    names = [name for name in ("len", "income") if name in nearly.columns]
    sums = {columns[name]: _values(nearly, case.by, name) for name in names}
    candidates = []
    for loss in ({"rho": 1 / (2 * multiplier(1.0, DELTA) ** 2)}, {"epsilon": 1.0}):
        noise = opendp_noise(opendp_query(path, rows, case.kind, bound, **loss))
        scales = {columns[name]: (law, scale) for name, law, scale in noise}
        candidates.append(_simulated(case, truth, sums, scales))
    return min(candidates, key=statistics.mean)


def _simulated(
    case: Case, truth: Answer, sums: dict[str, Answer], scales: dict[str, tuple[str, float]]
) -> list[float]:
    """Add a peer's noise to its bounded sums many times; return the errors of its answers."""
    rng = np.random.default_rng()
    keys = list(truth)
    shape = (SIMULATED // len(keys), len(keys))
    noisy: dict[str, Floats] = {}
    for name, (law, scale) in scales.items():
        centre = np.array([sums[name].get(key, 0.0) for key in keys])
        noisy[name] = centre + draws(rng, law, scale, shape)
    answer = noisy["s"] / np.maximum(noisy["n"], 1) if case.is_mean else noisy["v"]
    true = np.array([truth[key] for key in keys])
    return [float(e) for e in np.abs(answer - true).mean(axis=1)]


# --- a million keys -------------------------------------------------------------------------------


def _items(path: Path, rows: int, plain: Any, table: Protected) -> dict[str, Any]:
    """Compare counts of items: errors over all keys, and how many keys are shown."""
    truth = _values(plain.sql(ITEM).to_arrow_table(), "item", "n")
    shown: dict[str, int] = {}

    def errors(name: str, answer: Callable[[], Any], times: int, column: str = "n") -> list[float]:
        answers = [_values(answer(), "item", column) for _ in range(times)]
        shown[name] = round(statistics.mean(len(one) for one in answers))
        return [_error(one, truth) for one in answers]

    def ours(bounding: Any, times: int) -> list[float]:
        name = f"declared, {_words(bounding)}"
        return errors(name, lambda: ask(table, ITEM, bounding=bounding), times)

    def qrlew(limit: int, groups: int) -> list[float]:
        terms: dict[str, Any] = {"rows": rows, "most": DELTA, "limit": limit, "groups": groups}
        text = qrlew_sql(ITEM, epsilon=qrlew_epsilon(ITEM, **terms), **terms)
        run = lambda: plain.sql(text).to_arrow_table()  # noqa: E731
        return errors(f"Qrlew, norm {limit}, {groups} keys", run, 5)

    def opendp(bound: Truncation) -> list[float]:
        rho = 1 / (2 * multiplier(1.0, DELTA / 2) ** 2)

        def answer() -> Any:
            query = opendp_query(path, rows, "items", bound, rho=rho, delta=DELTA / 2)
            return query.release().collect()

        return errors(f"OpenDP, {bound}", answer, 5, "len")

    limits = [Norm(limit=limit, order=2) for limit in (2, 3, 4, 5, 6, 8, 10)]
    tried = {f"declared, {_words(b)}": ours(b, 5) for b in limits}
    best = _best(tried)[0]
    chosen = next(b for b in limits if f"declared, {_words(b)}" == best)
    mine = {best: ours(chosen, REPETITIONS)}
    most = max(tried, key=lambda name: shown[name])
    mine[most] = mine.get(most) or tried[most]
    mine["inferred"] = errors("inferred", lambda: ask(table, ITEM), REPETITIONS)
    theirs = {
        f"Qrlew, norm {limit}, {groups} keys": qrlew(limit, groups)
        for limit, groups in ((4, 20), (6, 20), (6, 40), (8, 20), (10, 20))
    }
    theirs |= {
        f"OpenDP, {bound}": opendp(bound)
        for bound in [Truncation(rows, 1) for rows in (15, 20, 25, 35, 50)]
    }
    scale = statistics.mean(truth.values())
    report = _report("items", mine, theirs, scale=scale)
    print(f"  keys shown, of {len(truth):,}: {shown}")
    report["shown"] = shown
    return report


# --- comparing ------------------------------------------------------------------------------------


def _report(
    name: str, ours: dict[str, list[float]], peers: dict[str, list[float]], *, scale: float
) -> dict[str, Any]:
    rival, theirs = _best(peers)
    found: dict[str, Any] = {"best_peer": rival}
    print(f"{name}: mean absolute error (relative to the mean size of the truth)")
    for who, errors in {**peers, **ours}.items():
        mean = statistics.mean(errors)
        line = {"error": mean, "relative": mean / scale}
        if who in ours:
            line |= _ratio(errors, theirs)
        found[who] = line
        compared = f"{line['ratio']:8.3f}, at most {line['upper']:.3f}" if who in ours else ""
        print(f"  {who:40}{mean:16,.4g}{mean / scale:10.3%}{compared}", flush=True)
    return found


def _ratio(ours: Iterable[float], theirs: Iterable[float]) -> dict[str, float]:
    """Return the ratio of two mean errors and its upper confidence limit."""
    logs, spread = 0.0, 0.0
    for sign, errors in ((1, list(ours)), (-1, list(theirs))):
        mean = statistics.mean(errors)
        logs += sign * math.log(mean)
        spread += statistics.variance(errors) / len(errors) / mean**2
    return {"ratio": math.exp(logs), "upper": math.exp(logs + WIDTH * math.sqrt(spread))}
