"""Sums and counts of all groups with noise on them, and which groups are shown."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, final

import numpy as np
import numpy.typing as npt

from discreet.tables.algorithms.key_threshold import default_least, threshold
from discreet.tables.algorithms.noise import in_rows
from discreet.tables.algorithms.propagation import Noisy
from discreet.tables.model.bounds import WEIGHT_STEPS, Bounding, Groups, Norm
from discreet.tables.model.statements import Cells, Distinct, Statement, Sums
from discreet.tables.pricing.cell_layout import Family
from discreet.tables.release.execution.context import RunContext
from discreet.tables.release.execution.group_index import GroupIndex, cells_of
from discreet.tables.release.execution.limits import Limits

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Added", "Selection", "add_up", "add_up_distinct", "count_distinct"]

Integers = npt.NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The groups that are shown: public ones, or those that reached a ``threshold``, in rows."""

    shown: GroupIndex
    threshold: Fraction | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """Noisy families of cells, and noisy numbers of units where they were counted."""

    selection: Selection
    families: tuple[Noisy, ...]
    units: Noisy | None


def add_up(limits: Limits, known: Selection | None) -> Added:
    """Add up all families, and units; show the groups that are known, or select them.

    Groups are selected by the first cells: units, or rows where every unit has one.
    """
    context, bounding = limits.context, limits.of_sums()
    families = tuple(_cells(limits, family) for family in context.prepared.layout.families)
    units = (limits.units(),) if context.prepared.layout.with_units else ()
    batches = [((*units, *families), bounding)]
    if isinstance(bounding, Groups) and units:  # which are not dropped with the groups
        batches = [(units, None), (families, bounding)]
    found: list[Noisy] = []
    for cells, bound in batches:
        if not cells:
            continue
        first = cells[0].own or bound
        statement = Sums(
            query=context.query,
            cells=cells,
            bounding=bound,
            salt=context.salt,
            groups=context.groups,
            least=_least(first) if known is None else None,
        )
        if known is None:
            known, counted, steps = _selected(context, statement, first)
            found += [counted, *_noisy(context, cells[1:], steps[:, 1:], bound)]
        else:
            found += _noisy(context, cells, _aligned(context, statement, known.shown), bound)
    assert known is not None
    split = len(units)
    return Added(selection=known, families=tuple(found[split:]), units=found[0] if units else None)


def _cells(limits: Limits, family: Family) -> Cells:
    if family.kind == "total":
        return limits.total(family.values[0])
    bounds = tuple(limits.bounds[v] for v in family.values) if family.needs_bounds else ()
    return Cells(
        kind=family.kind, values=family.values, bounds=bounds, with_absent=family.with_absent
    )


def count_distinct(limits: Limits, value: int, shown: GroupIndex) -> Noisy:
    """Count distinct values; a unit names so many, which may all be in one group."""
    context, most = limits.context, int(limits.of("pairs", value))
    statement = Distinct(
        query=context.query, value=value, most=most, salt=context.salt, groups=context.groups
    )
    steps = _aligned(context, statement, shown) * WEIGHT_STEPS
    reach = context.sensitivity(Norm(limit=most, order=1))
    return _noised(context, Cells(kind="rows"), steps, reach)


def add_up_distinct(limits: Limits, value: int, shown: GroupIndex) -> Noisy:
    """Add up distinct values; a unit names so many, each at most the largest value.

    Claim: the noise is that of a sum of as many rows, and so is the guarantee.

    Why: see :class:`Distinct`. Where a unit takes the place of another, pairs go and others come:
    of values of one sign the two pull apart, as for sums of rows.
    """
    context, most = limits.context, int(limits.of("pairs", value))
    bounds = limits.bounds[value]
    statement = Distinct(
        query=context.query, value=value, most=most, salt=context.salt, bounds=bounds,
        groups=context.groups,
    )  # fmt: skip
    cells = Cells(kind="sum", values=(value,), bounds=(bounds,))
    steps = _aligned(context, statement, shown)
    reach = context.sensitivity(Norm(limit=most, order=1), is_signed=cells.is_signed)
    return _noised(context, cells, steps, reach)


def _aligned(context: RunContext, statement: Statement, shown: GroupIndex) -> Integers:
    return shown.aligned(context.aggregate(statement, shown.keep))


def _selected(
    context: RunContext, statement: Sums, bounding: Bounding | None
) -> tuple[Selection, Noisy, Integers]:
    """Show the keys whose noisy first cell reaches a threshold, sorted; see key_threshold.

    Claim: the law of what is shown is the same whatever parts the keys come in, and in whatever
    order: only those that are shown stay in memory.

    Why: the noise of every key is drawn for it alone, and decides for it alone, so given the counts
    all keys are independent. Which part a key came in is forgotten by sorting.
    """
    import pyarrow as pa

    keys = [f"key_{i}" for i in range(len(context.query.keys))]
    noise, reach = context.price.noise, context.sensitivity(bounding)
    least = threshold(
        noise,
        sensitivity=reach,
        bounding=bounding,
        least=_least(bounding),
        delta=context.price.key_delta,
        neighbours=context.catalog.neighbours,
        group_size=context.catalog.unit.size,
    )

    def keep(part: "pa.Table") -> "pa.Table":
        counts = part["cell_0"].to_numpy().astype(np.int64, copy=False)
        noisy = noise.add(counts, sensitivity=reach, source=context.source)
        is_shown = noisy >= math.ceil(least * WEIGHT_STEPS)
        kept = part.filter(pa.array(is_shown))
        return kept.append_column("noisy", pa.array(noisy[is_shown], type=pa.int64()))

    # In an order of their own: that of the engine would tell who came first.
    kept = context.aggregate(statement, keep).sort_by([(key, "ascending") for key in keys])
    counted = Noisy(
        cells=Cells(kind="rows"),
        noisy=in_rows(kept["noisy"].to_numpy())[:, None],
        deviation=noise.deviation(sensitivity=reach),
    )
    steps = cells_of(kept.drop_columns(["noisy"]), keys=len(keys))
    return Selection(shown=GroupIndex(kept.select(keys)), threshold=least), counted, steps


def _noisy(
    context: RunContext, cells: Sequence[Cells], steps: Integers, bounding: Bounding | None
) -> Iterator[Noisy]:
    start = 0
    for one in cells:
        reach = context.sensitivity(one.own or bounding, is_signed=one.is_signed)
        yield _noised(context, one, steps[:, start : start + one.count], reach)
        start += one.count


def _noised(context: RunContext, cells: Cells, steps: Integers, reach: Fraction) -> Noisy:
    noise = context.price.noise
    noisy = noise.add(steps, sensitivity=reach, source=context.source)
    return Noisy(cells=cells, noisy=in_rows(noisy), deviation=noise.deviation(sensitivity=reach))


def _least(bounding: Bounding | None) -> Fraction | None:
    """Return the smallest contribution to a group that counts where groups are selected."""
    return default_least(bounding) if isinstance(bounding, Norm) else None
