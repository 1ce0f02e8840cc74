"""A question as plain data: which rows, which keys, which aggregates; no engine and no noise."""

import json
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import final

from discreet.tables.model.aggregates import SPECS, AggregateKind, AggregateSpec
from discreet.tables.model.output import Output
from discreet.tables.model.relation import Select, rows_form
from discreet.tables.model.types import Type

__all__ = [
    "Aggregate",
    "Key",
    "KeyValue",
    "Query",
    "Value",
    "canonical",
]

KeyValue = str | int | float | bool | None
"""One key of a group, as JSON has it; dates and times are ISO texts."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A column that groups rows: ``values`` are all its public values, None if they are secret.

    >>> Key(name="region", type="text", values=("north", "south")).is_known
    True
    """

    name: str
    type: Type
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
    whole numbers, by type. ``column`` is the plain column it is, where it is one, and ``total`` how
    much of one unit's sum of it counts at most, where that is declared.

    >>> Value(text="income", bounds=(Fraction(0), Fraction(200_000)), is_whole=True).bounds[1]
    Fraction(200000, 1)
    """

    text: str
    bounds: tuple[Fraction, Fraction] | None
    is_whole: bool = False
    column: str | None = None
    total: Fraction | None = None

    @property
    def form(self) -> dict[str, object]:
        """All of it, for fingerprints, which tell nothing of what is not said."""
        return {k: v for k, v in asdict(self).items() if k != "total" or v is not None}


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

    ``rows`` never raise an error whatever the data, and have no aggregates over units: their
    columns are ``unit`` (never NULL; absent where ``unit_is_row``), ``key_0``, ``key_1``, ... and
    ``value_0``, ``value_1``, ... Numeric values are doubles without NaN, infinities may occur; a
    value that is only counted may have any type.

    ``output`` is everything that is post-processing, over released keys and aggregates;
    ``key_names`` are those of its columns that are keys.

    ``tables`` are the protected tables that are read. A query depends on nothing but the question
    and public declarations, so equal questions have equal queries.

    >>> from discreet.tables.model.scalar import ReleasedAggregate
    >>> people = Query(rows=Select.of("people", unit="user_id"), tables=("people",),
    ...                aggregates=(Aggregate(kind="count"),),
    ...                output=Output(columns=(("n", ReleasedAggregate(0)),)))
    >>> people.has_known_keys, people.names
    (True, ('n',))
    """

    rows: Select
    tables: tuple[str, ...]
    keys: tuple[Key, ...] = ()
    values: tuple[Value, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    output: Output = field(default_factory=Output)
    key_names: tuple[str, ...] = ()
    unit_is_row: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the answer's columns."""
        return self.output.names

    @property
    def has_known_keys(self) -> bool:
        """Whether the groups of the answer are public: all combinations appear."""
        return all(key.is_known for key in self.keys)


def canonical(query: Query) -> str:
    """Return a query as JSON that equal queries share, for fingerprints.

    >>> canonical(Query(rows=Select.of("t", unit="id"), tables=("t",),
    ...                 aggregates=(Aggregate(kind="count"),)))[:46]
    '{"aggregates":[{"is_sample":true,"kind":"count'
    """
    made = {
        "rows": rows_form(query.rows),
        # Not by asdict, which would copy each of a million values.
        "keys": [{"name": k.name, "type": k.type, "values": k.values} for k in query.keys],
        "values": [value.form for value in query.values],
        "aggregates": [asdict(aggregate) for aggregate in query.aggregates],
        "output": query.output.form(),
        "tables": query.tables,
        "key_names": query.key_names,
        "unit_is_row": query.unit_is_row,
    }
    return json.dumps(made, sort_keys=True, separators=(",", ":"), default=_text, allow_nan=False)


def _text(value: object) -> str:
    if not isinstance(value, Fraction):
        raise TypeError(f"a query cannot hold a {type(value).__name__}")
    return str(value)
