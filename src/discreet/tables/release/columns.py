"""From released cells to the columns of an answer: post-processing, which is free."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import numpy as np
import numpy.typing as npt

from discreet.tables.algorithms.estimates import (
    Estimate,
    Noisy,
    estimate,
    interval_factor,
    moved,
    spread,
)
from discreet.tables.engines.post_processing import ROW, PostProcessor
from discreet.tables.model.query import Aggregate, Query
from discreet.tables.pricing.cell_layout import CellLayout
from discreet.tables.pricing.price import NoiseKind
from discreet.tables.release.run import Released

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Columns", "columns_of"]

Array = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns of an answer; ``plain`` are those that show an aggregate as it is."""

    plain: dict[str, int]
    values: dict[str, Any]
    errors: dict[str, Array]
    lows: dict[str, Array]
    highs: dict[str, Array]
    reliable: dict[str, npt.NDArray[np.bool_]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Estimated:
    """One aggregate in all groups, with its interval."""

    value: Array
    error: Array
    low: Array
    high: Array
    reliable: npt.NDArray[np.bool_]


def columns_of(
    query: Query, layout: CellLayout, released: Released, *, kind: NoiseKind, confidence: Fraction
) -> Columns:
    """Return keys, values and error bars in the order and selection that the question asks for."""
    estimates = [
        _with_interval(i, layout, released, query, kind=kind, confidence=confidence)
        for i in range(len(query.aggregates))
    ]
    with closing(_Output(query, released)) as evaluate:
        return _columns(query, layout, released, estimates, evaluate, kind, confidence)


def _columns(
    query: Query,
    layout: CellLayout,
    released: Released,
    estimates: Sequence[_Estimated],
    evaluate: "_Output",
    kind: NoiseKind,
    confidence: Fraction,
) -> Columns:
    answer = evaluate(estimates, is_shown=True)
    order = answer[ROW].to_numpy().astype(np.int64)
    plain = evaluate.plain
    columns = Columns(plain=plain, values={}, errors={}, lows={}, highs={}, reliable={})
    for name in query.names:
        columns.values[name] = answer[name]
        if name in query.key_names:
            continue
        if name in plain:
            one = estimates[plain[name]]
        else:
            one = _derived(name, estimates, layout, released, query, evaluate, kind, confidence)
        columns.errors[name] = one.error[order]
        columns.lows[name], columns.highs[name] = one.low[order], one.high[order]
        columns.reliable[name] = one.reliable[order]
    return columns


def _source(
    index: int, layout: CellLayout, released: Released, query: Query
) -> tuple[Aggregate, Noisy]:
    """Return the cells that an aggregate follows from, and what it is there."""
    aggregate, family = query.aggregates[index], layout.sources[index]
    if family is not None:
        return aggregate, released.families[family]
    if aggregate.spec.counts == "distinct":
        return aggregate, released.distinct[aggregate.values[0]]
    assert released.units is not None  # also for rows that nobody asked to see
    return aggregate, released.units


def _with_interval(
    index: int,
    layout: CellLayout,
    released: Released,
    query: Query,
    *,
    kind: NoiseKind,
    confidence: Fraction,
) -> _Estimated:
    if index in released.ranked:
        found = released.ranked[index]
        width = (found.high - found.low) / 2
        error = width / interval_factor("gaussian", confidence=confidence)
        reliable = np.isfinite(found.value) & (np.isfinite(found.low) | np.isfinite(found.high))
        return _Estimated(
            value=found.value, error=error, low=found.low, high=found.high, reliable=reliable
        )
    aggregate, noisy = _source(index, layout, released, query)
    made = estimate(aggregate, noisy)
    factor = interval_factor(kind, confidence=confidence, cells=noisy.cells.count)
    return _around(made, factor)


def _around(made: Estimate, factor: float) -> _Estimated:
    half = factor * made.error
    return _Estimated(
        value=made.value,
        error=made.error,
        low=made.value - half,
        high=made.value + half,
        reliable=made.reliable,
    )


class _Output:
    """The question's output over estimates of its aggregates."""

    def __init__(self, query: Query, released: Released) -> None:
        self.query, self.released = query, released
        self.plain = query.output.plain
        self._evaluate = PostProcessor(query.output, query.keys)
        self.close = self._evaluate.close

    def __call__(self, estimates: Sequence[_Estimated], *, is_shown: bool) -> "pa.Table":
        """Return the output's columns: what is shown, or of all groups as they were released."""
        import pyarrow as pa

        if self._is_bare:  # one row of aggregates as they are: nothing to evaluate
            shown = {name: estimates[i].value for name, i in self.plain.items()}
            columns = {name: pa.array(value, from_pandas=True) for name, value in shown.items()}
            return pa.table({**columns, ROW: pa.array([0])})
        return self._evaluate(self._table(estimates), is_shown=is_shown)

    @property
    def _is_bare(self) -> bool:
        is_plain = set(self.plain) == set(self.query.names)
        return not self.query.keys and self.query.output.is_whole and is_plain

    def _table(self, estimates: Sequence[_Estimated]) -> "pa.Table":
        import pyarrow as pa

        shown, columns = self.released.shown, {}
        for i, _ in enumerate(self.query.keys):
            if shown.table is not None:
                columns[f"key_{i}"] = shown.table.column(i)
            else:
                columns[f"key_{i}"] = pa.array([group[i] for group in shown.groups])
        for i, one in enumerate(estimates):
            columns[f"aggregate_{i}"] = pa.array(one.value, from_pandas=True)
        return pa.table(columns)


def _derived(
    name: str,
    estimates: Sequence[_Estimated],
    layout: CellLayout,
    released: Released,
    query: Query,
    evaluate: _Output,
    kind: NoiseKind,
    confidence: Fraction,
) -> _Estimated:
    """Carry the noise of every cell through an expression over aggregates."""
    # Without clamping, or an aggregate at the end of its range would seem to have no error.
    free = _free_estimates(estimates, layout, released, query)
    centre = _numbers(evaluate(free, is_shown=False), name)
    moves = [
        _numbers(evaluate(changed, is_shown=False), name)
        for changed in _moved_estimates(free, layout, released, query)
    ]
    error = spread(centre, moves)
    factor = interval_factor(kind, confidence=confidence, cells=2)
    made = Estimate(value=centre, error=error, reliable=np.isfinite(centre) & np.isfinite(error))
    reliable = made.reliable & np.logical_and.reduce([e.reliable for e in estimates])
    if np.isnan(centre).all():  # a text, say: it has no error bar, and is as it is
        reliable = np.ones_like(made.reliable)
    return _around(replace(made, reliable=reliable), factor)


def _numbers(table: "pa.Table", name: str) -> Array:
    """Return an output as numbers; what is no number has no error bar."""
    values = [_number(v) for v in table[name].to_pylist()]
    return np.array(values, dtype=np.float64)


def _number(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return float("nan")


def _free_estimates(
    estimates: Sequence[_Estimated], layout: CellLayout, released: Released, query: Query
) -> list[_Estimated]:
    """Return all aggregates as they follow from their cells, also beyond their ranges."""
    free = list(estimates)
    for i in _summed(released, query):
        aggregate, noisy = _source(i, layout, released, query)
        free[i] = replace(free[i], value=estimate(aggregate, noisy, is_clamped=False).value)
    return free


def _moved_estimates(
    estimates: Sequence[_Estimated], layout: CellLayout, released: Released, query: Query
) -> list[list[_Estimated]]:
    """Return all aggregates anew for each noisy cell moved by its deviation."""
    changed = []
    sources = {i: _source(i, layout, released, query) for i in _summed(released, query)}
    for noisy in {id(noisy): noisy for _, noisy in sources.values()}.values():
        for other in moved(noisy):
            changed.append(
                [
                    replace(one, value=estimate(sources[i][0], other, is_clamped=False).value)
                    if i in sources and sources[i][1] is noisy
                    else one
                    for i, one in enumerate(estimates)
                ]
            )
    for i in released.ranked:
        step = np.nan_to_num(estimates[i].error)
        changed.append(
            [
                replace(one, value=one.value + step) if j == i else one
                for j, one in enumerate(estimates)
            ]
        )
    return changed


def _summed(released: Released, query: Query) -> list[int]:
    return [i for i in range(len(query.aggregates)) if i not in released.ranked]
