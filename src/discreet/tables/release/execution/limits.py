"""How much of a unit counts, and between which ends values lie: declared, or chosen privately."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, Literal, final

import numpy as np

from discreet.tables.algorithms import limit_choice
from discreet.tables.algorithms.noisy_profile import NoisyProfile, release_profile
from discreet.tables.model.bounds import MOST, Bounding, Groups, Norm, largest, root_up
from discreet.tables.model.statements import Cells, Profile
from discreet.tables.pricing.inferences import (
    Inference,
    LimitKind,
    declared_limit,
    known_rows,
    over_groups,
    said_total,
)
from discreet.tables.release.execution.context import RunContext

__all__ = ["Limits", "choose_limits"]

NOMINAL_GROUPS: Final = 20  # in the choice of limits, where the number of groups is secret
_ONE_BIN: Final = Norm(limit=1, order=1)  # how a unit is bounded in a profile: it is in one bin
_NO_BOUNDS: Final = (Fraction(0), Fraction(1))

Measured = Literal["rows", "largest"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one release: those ``chosen`` privately, by name, and ``bounds`` of values.

    These follow from ``profiles``, in the order of the price. ``cuts`` and ``clamps`` say what they
    cut, None where too few people were found to choose any.
    """

    context: RunContext
    chosen: dict[str, Fraction] = field(default_factory=dict)
    bounds: dict[int, tuple[Fraction, Fraction]]
    profiles: list[NoisyProfile] = field(default_factory=list)
    cuts: dict[str, limit_choice.ChosenLimit | None] = field(default_factory=dict)
    clamps: dict[int, limit_choice.ChosenBounds | None] = field(default_factory=dict)

    def of(self, what: LimitKind, value: int | None = None) -> Fraction:
        """Return one limit."""
        context = self.context
        declared = declared_limit(what, context.query, context.catalog, context.prepared.bounding)
        return self.chosen[_name(what, value)] if declared is None else declared

    def lost(self, what: LimitKind) -> float:
        """Return how many rows a limit cut for each that is left, as far as its profile tells.

        It is 0 where the limit was declared: that says which rows are asked about.
        """
        cut = self.cuts.get(what)
        return 0.0 if cut is None else cut.share

    def of_sums(self) -> Bounding | None:
        """Return how units are bounded in sums over rows; None: rows are units, or none."""
        asked, order = self.context.prepared.bounding, self.context.price.order
        layout = self.context.prepared.layout
        if self.context.query.unit_is_row or len(layout.families) == len(layout.totals):
            return None
        if isinstance(asked, Norm | Groups):
            return asked
        return Norm(limit=self.of(over_groups(order, self.context.query)), order=order)

    def of_total(self, value: int) -> Fraction:
        """Return how much of a unit's sum of a value counts, in the norm over groups."""
        query, price = self.context.query, self.context.price
        said = said_total(query.values[value], self.context.prepared.bounding)
        if said is not None:
            return said
        declared = declared_limit(over_groups(price.order, query), query, self.context.catalog)
        rows = self.chosen[_name("total", value)] if declared is None else declared
        return rows * largest(self.bounds[value])

    def total(self, value: int) -> Cells:
        """Return the cells of a whole sum.

        No row counts more than the limit: whoever has such a row reaches it anyway, and steps are
        all the finer.
        """
        limit, order = self.of_total(value), self.context.price.order
        low, high = (min(max(end, -limit), limit) for end in self.bounds[value])
        row = largest((low, high))
        # More rows than anybody has are as good as any number of them.
        own = Norm(limit=min(limit / row, Fraction(MOST)) if row else 1, order=order)
        return Cells(kind="total", values=(value,), bounds=((low, high),), own=own)

    def units(self) -> Cells:
        """Return the cells that count each unit once in a group."""
        if self.context.query.unit_is_row:
            return Cells(kind="rows")
        most, order = self.of("groups"), self.context.price.order
        # A unit in k groups has the L2 norm sqrt(k).
        limit = most if order == 1 else root_up(most)
        return Cells(kind="units", own=Norm(limit=limit, order=order))

    def of_ranks(self) -> Norm | None:
        """Return the L1 norm that bounds a unit's weight over all groups."""
        asked = self.context.prepared.bounding
        if self.context.query.unit_is_row:
            return None
        if isinstance(asked, Groups):
            return Norm(limit=asked.groups * asked.rows, order=1)
        if isinstance(asked, Norm) and asked.order == 1:
            return asked
        return Norm(limit=self.of("rows"), order=1)


def choose_limits(context: RunContext) -> Limits:
    """Release profiles of what nobody declared, in the order of the price, and choose from them."""
    values = enumerate(context.query.values)
    limits = Limits(
        context=context, bounds={i: one.bounds for i, one in values if one.bounds is not None}
    )
    above = _good_rank(context)
    ends = dict[int, list[NoisyProfile]]()
    totals = [one for one in context.price.inferences if one.of == "total"]
    for inference in context.price.inferences:
        if inference in totals:
            continue
        profile = _released(limits, inference)
        if inference.is_limit:
            _choose(limits, inference, profile, above)
        else:
            assert inference.value is not None
            ends.setdefault(inference.value, []).append(profile)
    for value, profiles in ends.items():
        found = limit_choice.choose_bounds(profiles[0], profiles[-1], above=above)
        limits.clamps[value] = found
        # Something must be run with; what follows from it is not shown.
        limits.bounds[value] = _NO_BOUNDS if found is None else (found.low, found.high)
    for inference in totals:  # which are measured in the largest value
        _choose(limits, inference, _released(limits, inference), above)
    return limits


def _choose(limits: Limits, inference: Inference, profile: NoisyProfile, above: float) -> None:
    name = _name(inference.of, inference.value)
    limits.cuts[name] = limit_choice.choose_limit(profile, above=above)
    limits.chosen[name] = _limit(limits.context, inference, limits.cuts[name])


def _limit(
    context: RunContext, inference: Inference, found: limit_choice.ChosenLimit | None
) -> Fraction:
    chosen = Fraction(1) if found is None else found.limit
    most = known_rows(context.query, context.catalog)
    if inference.of != "pairs" and most is not None:
        return min(chosen, Fraction(most))
    return chosen


def _released(limits: Limits, inference: Inference) -> NoisyProfile:
    context, of, edges = limits.context, inference.of, inference.edges
    noise, is_total = context.price.inference_noise, of == "total" and inference.value is not None
    assert noise is not None
    measured: dict[str, Measured] = {"groups": "rows", "only": "largest"}
    profile = Profile(
        query=context.query,
        of=measured.get(of, of),  # type: ignore[arg-type]  # the others are measured as they are
        edges=edges,
        value=inference.value,
        bounds=limits.bounds[inference.value or 0] if is_total else None,
        order=context.price.order if is_total else 1,
        groups=context.groups,
        once=of == "groups",
        salt=context.salt,
    )
    found = context.aggregate(profile)
    bins = np.zeros(len(edges) + 1, dtype=np.int64)
    bins[found["bin"].to_numpy()] = found["units"].to_numpy()
    released = release_profile(
        bins,
        edges=edges,
        noise=noise,
        sensitivity=context.sensitivity(_ONE_BIN),
        source=context.source,
    )
    limits.profiles.append(released)
    return released


def _good_rank(context: RunContext) -> float:
    """Return how many units a good limit cuts: fewer would cost more noise than they save."""
    nominal = NOMINAL_GROUPS if context.query.keys else 1
    groups = len(context.groups) if context.groups else nominal
    one_row = context.sensitivity(Norm(limit=1, order=1))
    return limit_choice.good_rank(context.price.noise, groups=groups, sensitivity=one_row)


def _name(of: str, value: int | None) -> str:
    return of if value is None else f"{of}_{value}"
