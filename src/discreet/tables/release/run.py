"""Carry out a priced question: choose limits, aggregate, add noise. The charge comes before."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from fractions import Fraction
from secrets import token_hex
from typing import TYPE_CHECKING, Final, Literal, final

import numpy as np
import numpy.typing as npt

from discreet.noise import Source
from discreet.tables.algorithms import limit_choice as limits
from discreet.tables.algorithms.estimates import Noisy
from discreet.tables.algorithms.key_threshold import default_least, threshold
from discreet.tables.algorithms.noise import in_rows
from discreet.tables.engines.protocol import Engine
from discreet.tables.model.bounds import WEIGHT_STEPS, Bounding, Groups, Norm, root_up, sensitivity
from discreet.tables.model.catalog import Catalog
from discreet.tables.model.query import Query
from discreet.tables.model.statements import (
    Cells,
    Distinct,
    Place,
    Profile,
    Statement,
    Sums,
)
from discreet.tables.pricing.cell_layout import Family
from discreet.tables.pricing.prepared import Prepared
from discreet.tables.pricing.price import (
    Inference,
    LimitKind,
    declared_limit,
)
from discreet.tables.release.group_index import Group, Shown, cells_of
from discreet.tables.release.run_quantiles import Drawing, Ranked, place_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Released", "known_groups", "run"]

NOMINAL_GROUPS: Final = 20  # in the choice of limits, where the number of groups is secret

Integers = npt.NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """Everything that left the data: post-processing alone comes after it.

    ``shown`` are the groups, known or selected. ``families``, ``units`` and ``distinct``
    hold noisy cells, ``ranked`` the quantiles by aggregate. ``limits`` and ``bounds`` say what was
    used; where they were inferred, they are released, too.
    """

    shown: Shown
    families: tuple[Noisy, ...]
    units: Noisy | None
    distinct: dict[int, Noisy]
    ranked: dict[int, Ranked]
    limits: dict[str, Fraction]
    bounds: dict[int, tuple[Fraction, Fraction]]
    threshold: Fraction | None
    bounding: Bounding | None
    statements: tuple[str, ...] = field(default=())


def known_groups(query: Query) -> tuple[Group, ...] | None:
    """Return all combinations of public keys, None where some are secret.

    >>> from discreet.tables.model.query import Key
    >>> keys = (Key(name="a", type="BIGINT", values=(1, 2)), Key(name="b", type="BOOLEAN",
    ...         values=(False, True)))
    >>> known_groups(Query(rows="", keys=keys, values=(), aggregates=(), output="", names=(),
    ...              tables=()))
    ((1, False), (1, True), (2, False), (2, True))
    """
    if not query.has_known_keys:
        return None
    listed = ([_canonical(v, key.type) for v in key.values or ()] for key in query.keys)
    return tuple(itertools.product(*listed))


def _canonical(value: object, type_: str) -> object:
    """Write dates and times the one way in which the engine's are written."""
    if isinstance(value, str) and type_ == "DATE":
        return date.fromisoformat(value).isoformat()
    if isinstance(value, str) and type_.startswith("TIMESTAMP"):
        return datetime.fromisoformat(value).isoformat(sep=" ")
    return value


def run(
    prepared: Prepared, *, engine: Engine, catalog: Catalog, confidence: Fraction, source: Source
) -> Released:
    """Compute and add noise. Only call it once the price is paid."""
    return _Run(prepared, engine, catalog, confidence, source).run()


class _Run:
    """One release under way."""

    def __init__(
        self,
        prepared: Prepared,
        engine: Engine,
        catalog: Catalog,
        confidence: Fraction,
        source: Source,
    ) -> None:
        self.query, self.layout, self.price = prepared.query, prepared.layout, prepared.price
        self.asked = prepared.bounding
        self.engine, self.catalog, self.confidence = engine, catalog, confidence
        self.source = source
        self.groups = known_groups(self.query) if self.query.keys else None
        self.salt = token_hex(16)  # fresh, and never shown: who is dropped must not be chosen
        self.statements: list[str] = []
        self.threshold: Fraction | None = None
        self.limits: dict[str, Fraction] = {}
        self._tables: dict[int, pa.Table] = {}  # of quantiles, by value
        self.bounds = {i: v.bounds for i, v in enumerate(self.query.values) if v.bounds is not None}

    def run(self) -> Released:
        for inference in self.price.inferences:
            self._infer(inference)
        shown = Shown(self.groups or ((),)) if self.query.has_known_keys else None
        units, families = None, tuple[Noisy, ...]()
        if self.layout.selector == "units":
            shown, units = self._units(shown)
        if self.layout.families:
            shown, families = self._families(shown)
        assert shown is not None
        if self.layout.with_units and units is None:
            shown, units = self._units(shown)
        return Released(
            shown=shown,
            families=families,
            units=units,
            distinct={value: self._distinct(value, shown) for value in self.layout.distinct},
            ranked={i: self._ranked(i, shown) for i in self.layout.ranks},
            limits=self.limits,
            bounds=self.bounds,
            threshold=self.threshold,
            bounding=self._bounding() if self.layout.families else None,
            statements=tuple(self.statements),
        )

    def _aggregate(self, statement: Statement) -> "pa.Table":
        self.statements.append(self.engine.sql(statement))
        return self.engine.aggregate(statement).reveal_without_noise()

    # Limits and bounds

    def _infer(self, inference: Inference) -> None:
        """Choose one limit or bound privately and remember it."""
        of, value = inference.of, inference.value
        if of in ("largest", "smallest"):
            assert value is not None
            self._infer_bound(of, value)
            return
        edges = limits.limit_edges(2 if of == "norm" else 1)
        profile = Profile(
            query=self.query,
            of="rows" if of == "groups" else of,
            edges=edges,
            value=value,
            groups=self.groups,
            once=of == "groups",
        )
        chosen = self._chosen(profile, edges)
        if of != "pairs" and self.catalog.rows is not None:
            chosen = min(chosen, Fraction(self.catalog.rows))
        self.limits[_name(of, value)] = chosen

    def _infer_bound(self, end: Literal["largest", "smallest"], value: int) -> None:
        """Choose one end of a value's range; the lower one comes first."""
        candidates = limits.value_edges()
        edges = limits.just_below(candidates) if end == "smallest" else candidates
        profile = Profile(query=self.query, of=end, edges=edges, value=value, groups=self.groups)
        chosen = self._chosen(profile, candidates)
        if end == "smallest":
            self.bounds[value] = (chosen, chosen)
        else:
            low = self.bounds[value][0]
            self.bounds[value] = (min(low, chosen), max(low, chosen))

    def _chosen(self, profile: Profile, candidates: tuple[Fraction, ...]) -> Fraction:
        found = self._aggregate(profile)
        bins = np.zeros(len(candidates) + 1, dtype=np.int64)
        bins[found["bin"].to_numpy()] = found["units"].to_numpy()
        return limits.choose_limit(
            bins,
            edges=candidates,
            above=self._good_rank(),
            epsilon=self.price.inference_epsilon,
            neighbours=self.catalog.neighbours,
            group_size=self.catalog.unit.size,
            from_below=profile.of == "smallest",
            source=self.source,
        )

    def _good_rank(self) -> float:
        """Return how many units a good limit cuts: fewer would cost more noise than they save."""
        groups = len(self.groups) if self.groups else (NOMINAL_GROUPS if self.query.keys else 1)
        one_row = self._sensitivity(Norm(limit=1, order=1))
        return limits.good_rank(self.price.noise, groups=groups, sensitivity=one_row)

    def _limit(self, of: LimitKind, value: int | None = None) -> Fraction:
        declared = declared_limit(of, self.query, self.catalog)
        return self.limits[_name(of, value)] if declared is None else declared

    # Sums

    def _bounding(self) -> Bounding | None:
        if self.query.unit_is_row:
            return None
        if self.asked is not None:
            return self.asked
        of: LimitKind = "norm" if self.price.order == 2 and self.query.keys else "rows"
        return Norm(limit=self._limit(of), order=self.price.order)

    def _cells(self, family: Family) -> Cells:
        bounds = tuple(self.bounds[v] for v in family.values) if family.needs_bounds else ()
        return Cells(
            kind=family.kind, values=family.values, bounds=bounds, with_absent=family.with_absent
        )

    def _families(self, shown: Shown | None) -> tuple[Shown, tuple[Noisy, ...]]:
        """Add up all families; show the groups that were selected, or select by the first."""
        bounding = self._bounding()
        cells = tuple(self._cells(family) for family in self.layout.families)
        is_selecting = shown is None
        table = self._aggregate(
            Sums(
                query=self.query,
                cells=cells,
                bounding=bounding,
                salt=self.salt,
                groups=self.groups,
                least=_least(bounding) if is_selecting else None,
            )
        )
        if shown is not None:
            return shown, tuple(self._noisy(cells, shown.aligned(table), bounding))
        selected, counted, steps = self._selected(table, bounding)
        others = self._noisy(cells[1:], steps[:, 1:], bounding)
        return selected, (counted, *others)

    def _selected(
        self, table: "pa.Table", bounding: Bounding | None
    ) -> tuple[Shown, Noisy, Integers]:
        """Show the keys whose noisy first cell reaches a threshold, sorted; see _thresholds."""
        import pyarrow as pa

        keys = [name for name in table.column_names if name.startswith("key_")]
        reach = self._sensitivity(bounding)
        self.threshold = threshold(
            self.price.noise,
            sensitivity=reach,
            bounding=bounding,
            least=_least(bounding),
            delta=self.price.key_delta,
            neighbours=self.catalog.neighbours,
            group_size=self.catalog.unit.size,
        )
        counts = table.column(len(keys)).to_numpy().astype(np.int64)
        noisy = self.price.noise.add(counts, sensitivity=reach, source=self.source)
        is_shown = noisy >= math.ceil(self.threshold * WEIGHT_STEPS)
        kept = table.filter(pa.array(is_shown)).append_column(
            "noisy", pa.array(noisy[is_shown], type=pa.int64())
        )
        # In an order of their own: that of the engine would tell who came first.
        kept = kept.sort_by([(key, "ascending") for key in keys])
        counted = Noisy(
            cells=Cells(kind="rows"),
            noisy=in_rows(kept["noisy"].to_numpy())[:, None],
            deviation=self.price.noise.deviation(sensitivity=reach),
        )
        steps = cells_of(kept.drop_columns(["noisy"]), keys=len(keys))
        return Shown(kept.select(keys)), counted, steps

    def _reach(self, bounding: Bounding | None, cells: Cells) -> Fraction:
        return self._sensitivity(bounding, is_signed=cells.kind == "sum" and cells.bounds[0][0] < 0)

    def _sensitivity(self, bounding: Bounding | None, *, is_signed: bool = False) -> Fraction:
        return sensitivity(
            bounding or Norm(limit=1, order=1),
            order=self.price.order,
            neighbours=self.catalog.neighbours,
            is_signed=is_signed,
            group_size=self.catalog.unit.size,
        )

    def _noisy(
        self, cells: Sequence[Cells], steps: Integers, bounding: Bounding | None
    ) -> Iterator[Noisy]:
        start = 0
        for one in cells:
            reach = self._reach(bounding, one)
            yield self._noised(one, steps[:, start : start + one.count], reach)
            start += one.count

    def _noised(self, cells: Cells, steps: Integers, reach: Fraction) -> Noisy:
        noisy = self.price.noise.add(steps, sensitivity=reach, source=self.source)
        deviation = self.price.noise.deviation(sensitivity=reach)
        return Noisy(cells=cells, noisy=in_rows(noisy), deviation=deviation)

    # Other counts

    def _units(self, shown: Shown | None) -> tuple[Shown, Noisy]:
        """Count units, each at most once in a group; select groups by it where none are shown."""
        bounding = None
        if not self.query.unit_is_row:
            most, order = self._limit("groups"), self.price.order
            # A unit in k groups has the L2 norm sqrt(k).
            bounding = Norm(limit=most if order == 1 else root_up(most), order=order)
        cells = Cells(kind="rows")
        table = self._aggregate(
            Sums(
                query=self.query,
                cells=(cells,),
                bounding=bounding,
                salt=self.salt,
                groups=self.groups,
                once=not self.query.unit_is_row,
                least=_least(bounding) if shown is None else None,
            )
        )
        if shown is None:
            selected, counted, _ = self._selected(table, bounding)
            return selected, counted
        return shown, self._noised(cells, shown.aligned(table), self._sensitivity(bounding))

    def _distinct(self, value: int, shown: Shown) -> Noisy:
        """Count distinct values; a unit names so many, which may all be in one group."""
        most = int(self._limit("pairs", value))
        statement = Distinct(
            query=self.query, value=value, most=most, salt=self.salt, groups=self.groups
        )
        steps = shown.aligned(self._aggregate(statement)) * WEIGHT_STEPS
        reach = self._sensitivity(Norm(limit=most, order=1))
        return self._noised(Cells(kind="rows"), steps, reach)

    # Quantiles

    def _ranked(self, index: int, shown: Shown) -> Ranked:
        """Choose a quantile, or nearly an extreme, in every group."""
        aggregate = self.query.aggregates[index]
        value = aggregate.values[0]
        bounding = self._rank_bounding()
        place = place_of(value, self.bounds[value], is_whole=self.query.values[value].is_whole)
        drawing = Drawing(
            price=self.price,
            catalog=self.catalog,
            bounding=bounding,
            is_single=not self.query.keys,
            confidence=self.confidence,
            source=self.source,
        )
        return drawing.ranked(aggregate, place, self._placed(place, bounding), shown)

    def _rank_bounding(self) -> Norm | None:
        """Return the L1 norm that bounds a unit's weight over all groups."""
        if self.query.unit_is_row:
            return None
        if isinstance(self.asked, Groups):
            return Norm(limit=self.asked.groups * self.asked.rows, order=1)
        if isinstance(self.asked, Norm) and self.asked.order == 1:
            return self.asked
        return Norm(limit=self._limit("rows"), order=1)

    def _placed(self, place: Place, bounding: Norm | None) -> "pa.Table":
        if place.value not in self._tables:
            statement = Sums(
                query=self.query,
                cells=(Cells(kind="rows"),),
                bounding=bounding,
                salt=self.salt,
                groups=self.groups,
                place=place,
            )
            self._tables[place.value] = self._aggregate(statement)
        return self._tables[place.value]


def _least(bounding: Bounding | None) -> Fraction | None:
    """Return the smallest contribution to a group that counts where groups are selected."""
    return default_least(bounding) if isinstance(bounding, Norm) else None


def _name(of: str, value: int | None) -> str:
    return of if value is None else f"{of}_{value}"
