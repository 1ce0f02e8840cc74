"""The dataframe interface: a question built step by step, which becomes the same SQL."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, Unpack, final

from discreet.errors import ParameterError
from discreet.noise import SYSTEM, Source
from discreet.tables.aggregates import Ask
from discreet.tables.model.query import KeyValue
from discreet.tables.pricing.offer import Offer, OfferFields, offered

if TYPE_CHECKING:
    from discreet.tables.model.quotes import Quote
    from discreet.tables.results.result import Result

__all__ = ["Askable", "Question"]


class Askable(Protocol):
    """What a question can be put to: tables that are protected here, or behind a gateway.

    >>> from discreet.testing import temporary_tables
    >>> with temporary_tables(epsilon=3) as T:
    ...     asked: Askable = T
    """

    def quote(
        self,
        question: "str | Question",
        offer: Offer | None = None,
        **fields: Unpack[OfferFields],
    ) -> "Quote":
        """Say what a question costs: see :meth:`Protected.quote`.

        >>> from discreet.testing import temporary_tables
        >>> with temporary_tables(epsilon=3) as T:
        ...     T.quote("SELECT COUNT(*) AS n FROM people", epsilon=0.3).fits
        True
        """

    def sql(
        self,
        question: "str | Question",
        offer: Offer | None = None,
        *,
        source: Source = SYSTEM,
        **fields: Unpack[OfferFields],
    ) -> "Result":
        """Pay and answer: see :meth:`Protected.sql`.

        >>> from discreet.testing import temporary_tables
        >>> with temporary_tables(epsilon=3) as T:
        ...     T.sql("SELECT COUNT(*) AS n FROM people", epsilon=0.3).columns
        ('n',)
        """


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question about one table, which each method returns anew with a piece added.

    :meth:`Protected.where`, ``group_by`` and ``agg`` begin one. ``sql`` is what it says in SQL.

    >>> from discreet.tables import count, mean
    >>> asked = Question(table="people").where("age >= 18").group_by("region")
    >>> print(asked.agg(n=count(), pay=mean("income", bounds=(0, 200_000))).sql)
    SELECT region, COUNT(*) AS "n", AVG(CLAMP(income, 0, 200000)) AS "pay"
    FROM "people"
    WHERE (age >= 18)
    GROUP BY region
    """

    table: str
    tables: Askable | None = None
    conditions: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    asks: tuple[tuple[str, Ask], ...] = ()
    order: tuple[str, ...] = ()
    most: int | None = None

    def where(self, condition: str) -> "Question":
        """Keep the rows that fulfil a condition, written as in SQL.

        >>> Question(table="people").where("age >= 18").conditions
        ('age >= 18',)
        """
        return replace(self, conditions=(*self.conditions, _text(condition, "condition")))

    def group_by(
        self, *columns: str, keys: Mapping[str, Sequence[KeyValue]] | None = None
    ) -> "Question":
        """Group by columns or expressions; ``keys`` lists the values of some, which all appear.

        >>> asked = Question(table="people")
        >>> asked.group_by("region", keys={"region": ["north", "south"]}).conditions
        ("region IN ('north', 'south')",)
        """
        grouped = replace(self, keys=(*self.keys, *(_text(column, "column") for column in columns)))
        for column, listed in (keys or {}).items():
            if column not in columns:
                raise ParameterError(
                    f"keys lists values of {column!r}, which is not among the columns to group by.",
                    parameter="keys",
                )
            if not listed:
                raise ParameterError(f"keys of {column!r} must not be empty.", parameter="keys")
            values = ", ".join(_literal(value) for value in listed)
            grouped = grouped.where(f"{column} IN ({values})")
        return grouped

    def agg(self, **aggregates: Ask) -> "Question":
        """Ask for aggregates, by the names they shall have in the answer.

        >>> from discreet.tables import count
        >>> [name for name, _ in Question(table="people").agg(n=count()).asks]
        ['n']
        """
        for name, ask in aggregates.items():
            if not isinstance(ask, Ask):
                raise ParameterError(
                    f"{name} must be an aggregate such as count() or mean('income').",
                    parameter=name,
                )
        return replace(self, asks=(*self.asks, *aggregates.items()))

    def order_by(self, *columns: str) -> "Question":
        """Sort the answer, by released values or keys: ``order_by("n DESC")``.

        >>> Question(table="people").order_by("n DESC").order
        ('n DESC',)
        """
        return replace(self, order=(*self.order, *(_text(one, "column") for one in columns)))

    def limit(self, most: int) -> "Question":
        """Return only so many rows of the answer.

        >>> Question(table="people").limit(3).most
        3
        """
        return replace(self, most=int(most))

    @property
    def sql(self) -> str:
        """The same question in SQL."""
        if not self.asks and not self.keys:
            raise ParameterError(
                "ask for something: .agg(n=count()), with count from discreet.tables.",
                parameter="aggregates",
            )
        named = [f"{ask.sql} AS {_quoted(name)}" for name, ask in self.asks]
        lines = [f"SELECT {', '.join([*self.keys, *named])}", f"FROM {_quoted(self.table)}"]
        if self.conditions:
            lines.append("WHERE " + " AND ".join(f"({one})" for one in self.conditions))
        if self.keys:
            lines.append(f"GROUP BY {', '.join(self.keys)}")
        if self.order:
            lines.append(f"ORDER BY {', '.join(self.order)}")
        if self.most is not None:
            lines.append(f"LIMIT {self.most}")
        return "\n".join(lines)

    def quote(self, offer: Offer | None = None, **fields: Unpack[OfferFields]) -> "Quote":
        """Say what it would cost and how far off it may be: see :meth:`Protected.quote`.

        >>> from discreet.tables import count
        >>> from discreet.testing import temporary_tables
        >>> with temporary_tables(epsilon=3) as T:
        ...     T.agg(n=count()).quote(epsilon=0.5).fits
        True
        """
        return self._asked().quote(self, offered(offer, fields, by=self.quote))

    def release(
        self,
        offer: Offer | None = None,
        *,
        source: Source = SYSTEM,
        **fields: Unpack[OfferFields],
    ) -> "Result":
        """Pay and answer: see :meth:`Protected.sql` for how.

        >>> from discreet.tables import count
        >>> from discreet.testing import temporary_tables
        >>> with temporary_tables(epsilon=3) as T:
        ...     T.group_by("sex").agg(n=count()).release(epsilon=0.5)["sex"].tolist()
        ['female', 'male']
        """
        said = offered(offer, fields, by=self.release)
        return self._asked().sql(self, said, source=source)

    def _asked(self) -> Askable:
        if self.tables is None:
            raise ParameterError("this question belongs to no table.", parameter="tables")
        return self.tables


def _text(value: object, name: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ParameterError(f"{name} must be a text, as in SQL.", parameter=name)
    return value


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _literal(value: KeyValue) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return repr(value)
    escaped = str(value).replace("'", "''")
    return f"'{escaped}'"
