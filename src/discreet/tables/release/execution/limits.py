"""How much of a unit counts, and between which ends values lie: declared, or chosen privately."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, Literal, final

import numpy as np

from discreet.tables.algorithms import limit_choice
from discreet.tables.model.bounds import Bounding, Groups, Norm, root_up
from discreet.tables.model.statements import Cells, Profile
from discreet.tables.pricing.inferences import Inference, LimitKind, declared_limit, known_rows
from discreet.tables.release.execution.context import RunContext

__all__ = ["Limits", "choose_limits"]

NOMINAL_GROUPS: Final = 20  # in the choice of limits, where the number of groups is secret


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one release: those ``chosen`` privately, by name, and ``bounds`` of values."""

    context: RunContext
    chosen: dict[str, Fraction] = field(default_factory=dict)
    bounds: dict[int, tuple[Fraction, Fraction]]

    def of(self, what: LimitKind, value: int | None = None) -> Fraction:
        """Return one limit."""
        declared = declared_limit(what, self.context.query, self.context.catalog)
        return self.chosen[_name(what, value)] if declared is None else declared

    def of_sums(self) -> Bounding | None:
        """Return how units are bounded in sums over rows; None: rows are units, or none."""
        asked, order = self.context.prepared.bounding, self.context.price.order
        if self.context.query.unit_is_row or not self.context.prepared.layout.families:
            return None
        if asked is not None:
            return asked
        what: LimitKind = "norm" if order == 2 and self.context.query.keys else "rows"
        return Norm(limit=self.of(what), order=order)

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
    """Choose privately what nobody declared, in the order of the price."""
    values = enumerate(context.query.values)
    limits = Limits(
        context=context, bounds={i: one.bounds for i, one in values if one.bounds is not None}
    )
    for inference in context.price.inferences:
        of, value = inference.of, inference.value
        if of == "largest" or of == "smallest":
            assert value is not None
            limits.bounds[value] = _bounds(context, of, value, limits.bounds.get(value))
        else:
            limits.chosen[_name(of, value)] = _limit(context, inference)
    return limits


def _limit(context: RunContext, inference: Inference) -> Fraction:
    of = inference.of
    edges = limit_choice.limit_edges(2 if of == "norm" else 1)
    profile = Profile(
        query=context.query,
        of="rows" if of == "groups" else of,
        edges=edges,
        value=inference.value,
        groups=context.groups,
        once=of == "groups",
        salt=context.salt,
    )
    chosen = _chosen(context, profile, edges)
    most = known_rows(context.query, context.catalog)
    if of != "pairs" and most is not None:
        return min(chosen, Fraction(most))
    return chosen


def _bounds(
    context: RunContext,
    end: Literal["largest", "smallest"],
    value: int,
    known: tuple[Fraction, Fraction] | None,
) -> tuple[Fraction, Fraction]:
    """Choose one end of a value's range; the lower one comes first."""
    candidates = limit_choice.value_edges()
    edges = limit_choice.just_below(candidates) if end == "smallest" else candidates
    profile = Profile(
        query=context.query,
        of=end,
        edges=edges,
        value=value,
        groups=context.groups,
        salt=context.salt,
    )
    chosen = _chosen(context, profile, candidates)
    low = chosen if known is None else known[0]
    return min(low, chosen), max(low, chosen)


def _chosen(context: RunContext, profile: Profile, candidates: tuple[Fraction, ...]) -> Fraction:
    found = context.aggregate(profile)
    bins = np.zeros(len(candidates) + 1, dtype=np.int64)
    bins[found["bin"].to_numpy()] = found["units"].to_numpy()
    return limit_choice.choose_limit(
        bins,
        edges=candidates,
        above=_good_rank(context),
        epsilon=context.price.inference_epsilon,
        neighbours=context.catalog.neighbours,
        group_size=context.catalog.unit.size,
        from_below=profile.of == "smallest",
        source=context.source,
    )


def _good_rank(context: RunContext) -> float:
    """Return how many units a good limit cuts: fewer would cost more noise than they save."""
    nominal = NOMINAL_GROUPS if context.query.keys else 1
    groups = len(context.groups) if context.groups else nominal
    one_row = context.sensitivity(Norm(limit=1, order=1))
    return limit_choice.good_rank(context.price.noise, groups=groups, sensitivity=one_row)


def _name(of: str, value: int | None) -> str:
    return of if value is None else f"{of}_{value}"
