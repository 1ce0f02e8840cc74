"""A question as plain data: which rows, which keys, which aggregates; no engine and no noise."""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from discreet.tables.model.aggregates import SPECS, AggregateKind, AggregateSpec

__all__ = [
    "Aggregate",
    "Key",
    "KeyValue",
    "Query",
    "Value",
]

KeyValue = str | int | float | bool | None
"""One key of a group, as JSON has it; dates and times are ISO texts."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A column that groups rows: ``values`` are all its public values, None if they are secret.

    >>> Key(name="region", type="VARCHAR", values=("north", "south")).is_known
    True
    """

    name: str
    type: str  # DuckDB's name of it
    values: tuple[KeyValue, ...] | None

    @property
    def is_known(self) -> bool:
        """Whether all values are public, so that every one of them appears in the answer."""
        return self.values is not None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """An expression that is aggregated: its text for people, and its public bounds, if any.

    ``bounds`` of None are still to be inferred privately. ``is_whole`` says that all values are
    whole numbers, by type. ``column`` is the plain column it is, where it is one.

    >>> Value(text="income", bounds=(Fraction(0), Fraction(200_000)), is_whole=True).bounds[1]
    Fraction(200000, 1)
    """

    text: str
    bounds: tuple[Fraction, Fraction] | None
    is_whole: bool = False
    column: str | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """One aggregate of the question; ``values`` are positions in :attr:`Query.values`.

    ``quantile`` is set for quantiles; ``is_sample`` divides by n - 1 where that differs.

    >>> Aggregate(kind="mean", values=(0,)).kind
    'mean'
    """

    kind: AggregateKind
    values: tuple[int, ...] = ()
    quantile: Fraction | None = None
    is_sample: bool = True

    @property
    def spec(self) -> AggregateSpec:
        """What there is to know of its kind."""
        return SPECS[self.kind]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question that can be answered privately.

    ``rows`` is a SELECT in DuckDB's dialect that never raises an error whatever the data, without
    aggregates over units: its columns are ``unit`` (never NULL; absent where ``unit_is_row``),
    ``key_0``, ``key_1``, ... and ``value_0``, ``value_1``, ... Numeric values are DOUBLE without
    NaN, infinities may occur; a value that is only counted may have any type.

    ``output`` is a SELECT over the table ``released`` with one column for each key (``key_0``, ...)
    and each aggregate (``aggregate_0``, ...): everything that is post-processing. ``names`` are
    its columns' names, and ``key_names`` those of them that are keys.

    ``tables`` are the protected tables that are read. The text of a query depends on nothing but
    the question and public declarations, so equal questions have equal queries.

    >>> people = Query(rows='SELECT user_id AS unit FROM people', keys=(), values=(),
    ...                aggregates=(Aggregate(kind="count"),), tables=("people",),
    ...                output='SELECT aggregate_0 AS n FROM released', names=("n",))
    >>> people.has_known_keys
    True
    """

    rows: str
    keys: tuple[Key, ...]
    values: tuple[Value, ...]
    aggregates: tuple[Aggregate, ...]
    output: str
    names: tuple[str, ...]
    tables: tuple[str, ...]
    key_names: tuple[str, ...] = ()
    unit_is_row: bool = False

    @property
    def has_known_keys(self) -> bool:
        """Whether the groups of the answer are public: all combinations appear."""
        return all(key.is_known for key in self.keys)
