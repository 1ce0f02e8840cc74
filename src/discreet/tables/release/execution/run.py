"""One run of a priced question, from its limits to everything that leaves the data."""

from dataclasses import dataclass, field
from datetime import date, datetime
from fractions import Fraction
from secrets import token_hex
from typing import final

from discreet.noise import Source
from discreet.tables.algorithms.limit_choice import ChosenBounds, ChosenLimit
from discreet.tables.algorithms.noisy_profile import NoisyProfile
from discreet.tables.algorithms.propagation import Noisy
from discreet.tables.engines.protocol import Connection
from discreet.tables.model.bounds import Bounding
from discreet.tables.model.catalog import Catalog
from discreet.tables.model.query import Query
from discreet.tables.model.statements import Combinations
from discreet.tables.pricing.prepared import Prepared
from discreet.tables.release.execution.context import RunContext
from discreet.tables.release.execution.group_index import GroupIndex
from discreet.tables.release.execution.limits import choose_limits
from discreet.tables.release.execution.quantiles import Ranked, draw_ranked
from discreet.tables.release.execution.sums import (
    Selection,
    add_up,
    add_up_distinct,
    count_distinct,
)

__all__ = ["Released", "known_groups", "run"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """Everything that left the data: post-processing alone comes after it.

    ``shown`` are the groups, known or selected. ``families``, ``units``, ``distinct`` and
    ``distinct_sums`` hold noisy cells, ``ranked`` the quantiles by aggregate. ``limits`` and
    ``bounds`` say what was used, and ``totals`` how much of a unit's sum of a value counted; where
    they were inferred, they follow from ``profiles``, and ``cuts`` and ``clamps`` say what they
    cut, by name and by value: None where too few people were found.
    """

    shown: GroupIndex
    families: tuple[Noisy, ...]
    units: Noisy | None
    distinct: dict[int, Noisy]
    distinct_sums: dict[int, Noisy]
    ranked: dict[int, Ranked]
    limits: dict[str, Fraction]
    bounds: dict[int, tuple[Fraction, Fraction]]
    threshold: Fraction | None
    bounding: Bounding | None
    totals: dict[int, Fraction] = field(default_factory=dict)
    statements: tuple[str, ...] = field(default=())
    profiles: tuple[NoisyProfile, ...] = ()
    cuts: dict[str, ChosenLimit | None] = field(default_factory=dict)
    clamps: dict[int, ChosenBounds | None] = field(default_factory=dict)


def known_groups(query: Query) -> Combinations | None:
    """Return all combinations of public keys, None where some are secret.

    >>> from discreet.tables.model.query import Key
    >>> from discreet.tables.model.relation import Select
    >>> keys = (Key(name="a", type="int64", values=(1, 2)), Key(name="b", type="boolean",
    ...         values=(False, True)))
    >>> rows = Select.of("t", unit="id", key_0="a", key_1="b")
    >>> known_groups(Query(rows=rows, tables=("t",), keys=keys))
    Combinations(lists=((1, 2), (False, True)))
    """
    if not query.has_known_keys:
        return None
    listed = (tuple(_canonical(v, key.type) for v in key.values or ()) for key in query.keys)
    return Combinations(tuple(listed))


def _canonical(value: object, type_: str) -> object:
    """Write dates and times the one way in which the engine's are written."""
    if isinstance(value, str) and type_ == "date":
        return date.fromisoformat(value).isoformat()
    if isinstance(value, str) and type_ == "timestamp":
        return datetime.fromisoformat(value).isoformat(sep=" ")
    return value


def run(
    prepared: Prepared,
    *,
    connection: Connection,
    catalog: Catalog,
    confidence: Fraction,
    source: Source,
) -> Released:
    """Compute and add noise. Only call it once the price is paid."""
    query, layout = prepared.query, prepared.layout
    groups = known_groups(query)
    context = RunContext(
        prepared=prepared,
        connection=connection,
        catalog=catalog,
        confidence=confidence,
        source=source,
        groups=groups if query.keys else None,
        salt=token_hex(16),  # fresh, and never shown: who is dropped must not be chosen
    )
    limits = choose_limits(context)
    known = None if groups is None else Selection(shown=GroupIndex(groups))
    added = add_up(limits, known)
    shown = added.selection.shown
    return Released(
        shown=shown,
        families=added.families,
        units=added.units,
        distinct={value: count_distinct(limits, value, shown) for value in layout.distinct},
        distinct_sums={v: add_up_distinct(limits, v, shown) for v in layout.distinct_sums},
        ranked=draw_ranked(limits, shown),
        limits=limits.chosen,
        bounds=limits.bounds,
        threshold=added.selection.threshold,
        bounding=limits.of_sums(),
        totals={value: limits.of_total(value) for value in layout.totals},
        statements=tuple(context.statements),
        profiles=tuple(limits.profiles),
        cuts=limits.cuts,
        clamps=limits.clamps,
    )
