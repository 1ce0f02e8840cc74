"""From released cells to the columns of an answer: post-processing, which is free."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import numpy as np
import numpy.typing as npt

from discreet.tables.algorithms.propagation import Array
from discreet.tables.engines.post_processing import PostProcessor
from discreet.tables.model.query import Query
from discreet.tables.pricing.prepared import Prepared
from discreet.tables.release.estimated import Estimates
from discreet.tables.release.execution.run import Released

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Columns", "columns_of"]

Integers = npt.NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns of an answer; ``plain`` are those that show an aggregate as it is.

    ``deviations`` are those of the noise of aggregates, the least and the greatest of all groups.
    """

    plain: dict[str, int]
    deviations: dict[int, list[float]]
    values: dict[str, Any]
    errors: dict[str, Array]
    lows: dict[str, Array]
    highs: dict[str, Array]
    reliable: dict[str, npt.NDArray[np.bool_]]


def columns_of(prepared: Prepared, released: Released, *, confidence: Fraction) -> Columns:
    """Return keys, values and error bars in the order and selection that the question asks for."""
    query = prepared.query
    estimates = Estimates(prepared=prepared, released=released, confidence=confidence)
    shown = estimates.with_intervals()
    with closing(_Evaluation(query, released)) as evaluate:
        answer, order = evaluate([one.value for one in shown], is_shown=True)
        plain = query.output.plain
        deviations = estimates.deviations()
        columns = Columns(
            plain=plain, deviations=deviations, values={}, errors={}, lows={}, highs={}, reliable={}
        )
        for name in query.names:
            columns.values[name] = answer[name]
            if name in query.key_names:
                continue
            if name in plain:
                one = shown[plain[name]]
            else:
                centre = evaluate.numbers(name, estimates.free_values(shown))
                moves = [evaluate.numbers(name, each) for each in estimates.moved_values(shown)]
                one = estimates.derived(centre, moves, shown)
            columns.errors[name] = one.error[order]
            columns.lows[name], columns.highs[name] = one.low[order], one.high[order]
            columns.reliable[name] = one.reliable[order]
    return columns


@final
class _Evaluation:
    """The question's output over values of its aggregates."""

    def __init__(self, query: Query, released: Released) -> None:
        self.query, self.released = query, released
        self._evaluate = PostProcessor(query.output, query.keys)
        self.close = self._evaluate.close

    def __call__(self, values: Sequence[Array], *, is_shown: bool) -> "tuple[pa.Table, Integers]":
        """Return the output's columns, and which of the groups these are."""
        import pyarrow as pa

        output = self.query.output
        is_plain = set(output.plain) == set(self.query.names)
        if not self.query.keys and output.is_whole and is_plain:  # one row, as it is
            shown = {
                name: pa.array(values[i], from_pandas=True) for name, i in output.plain.items()
            }
            return pa.table(shown), np.zeros(1, dtype=np.int64)
        return self._evaluate(self._table(values), is_shown=is_shown)

    def numbers(self, name: str, values: Sequence[Array]) -> Array:
        """Return one column of the output as numbers; what is no number has no error bar."""
        everything, _ = self(values, is_shown=False)
        listed = everything[name].to_pylist()
        return np.array([_number(value) for value in listed], dtype=np.float64)

    def _table(self, values: Sequence[Array]) -> "pa.Table":
        import pyarrow as pa

        shown = self.released.shown
        columns = {f"key_{i}": shown.column(i) for i, _ in enumerate(self.query.keys)}
        for i, value in enumerate(values):
            columns[f"aggregate_{i}"] = pa.array(value, from_pandas=True)
        return pa.table(columns)


def _number(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return float("nan")
