"""The question being read: its text, its catalog, and how it is refused."""

import difflib
from collections.abc import Iterable, Sequence
from typing import Final, final

from sqlglot import ErrorLevel, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import Token

from discreet._parsing import LimitedSteps
from discreet.errors import Refused
from discreet.tables.model.catalog import Catalog, Table
from discreet.tables.sql.question.positions import Positions
from discreet.tables.sql.question.refusals import refused

__all__ = ["DIALECT", "UNWRITTEN", "ReadingContext", "fold", "nearest", "short_sql"]


class Questions(DuckDB):
    """DuckDB's SQL, but for words that others use and that mean another thing in it."""

    class Parser(LimitedSteps, DuckDBParser):
        """Reads DECODE(x, 1, 'a', 2, 'b', 'other'), which is short for a CASE."""

        FUNCTION_PARSERS = {  # noqa: RUF012
            **DuckDBParser.FUNCTION_PARSERS,
            "DECODE": lambda self: self._parse_decode(),
        }


DIALECT: Final = Questions  # what questions are written in
UNWRITTEN: Final = " t"  # a name for a subquery that no question can write as a plain name
_MOST_SOURCES = 64  # tables and subqueries in one question, each use of a WITH counted
_MOST_TABLES = 8  # read by one question: joined with itself k times, a unit's n rows are n**k


@final
class ReadingContext:
    """Holds what all parts of the translation need to know."""

    def __init__(
        self,
        text: str,
        tokens: list[Token],
        *,
        catalog: Catalog,
        periods: Sequence[str] | None,
    ) -> None:
        self.text, self.catalog, self.periods = text, catalog, periods
        self.positions = Positions(text, tokens)
        self.tables: dict[str, Table] = {fold(table.name): table for table in catalog.tables}
        self.read: set[str] = set()  # protected tables in use
        self.uses = 0  # of tables
        self._sources = 0

    def refuse(self, code: str, node: exp.Expression, **words: object) -> Refused:
        """Return the refusal of a node."""
        line, column = self.positions.of(node)
        return self.refuse_at(code, line, column, **words)

    def refuse_at(self, code: str, line: int, column: int, **words: object) -> Refused:
        """Return a refusal at a place."""
        protected = [table.name for table in self.catalog.tables if not table.is_public]
        words.setdefault("table", protected[0] if protected else "a_table")
        words.setdefault("unit", self.catalog.unit.name or "column")
        words.setdefault("tables", ", ".join(table.name for table in self.catalog.tables))
        return refused(code, line=line, column=column, **words)

    def check(self, node: object) -> None:
        """Refuse an argument that the parser let be missing."""
        if not isinstance(node, exp.Expression):
            raise self.refuse_at("syntax", 1, 1, why="a function lacks an argument")

    def count_source(self, node: exp.Expression) -> None:
        """Count one more table or subquery; nested uses of WITH can double at each level."""
        self._sources += 1
        if self._sources > _MOST_SOURCES:
            raise self.refuse("too_complex", node)

    def count_table(self, node: exp.Expression) -> None:
        """Count one more use of a table."""
        self.uses += 1
        if self.uses > _MOST_TABLES:
            raise self.refuse("many_tables", node, most=_MOST_TABLES)

    def arguments(self, node: exp.Expression, *allowed: str) -> None:
        """Refuse a node that has parts other than those that its rule looks at."""
        for key, value in node.args.items():
            if value and key not in allowed:
                raise self.refuse("expression", node, word=short_sql(node))


def fold(name: str) -> str:
    """Return a name as names are compared: without regard to case, in ASCII only.

    >>> fold("ÜBER_Age")
    'Über_age'
    """
    if name.isascii():  # nearly always, and many times faster
        return name.lower()
    return "".join(c.lower() if c.isascii() else c for c in name)


def short_sql(node: exp.Expression) -> str:
    """Return a node as short text in the analyst's own words.

    >>> import sqlglot
    >>> short_sql(sqlglot.parse_one("p.a  +  1").this)
    'p.a'
    """
    text = node.sql(DIALECT, comments=False, unsupported_level=ErrorLevel.IGNORE)
    return text if len(text) <= 60 else text[:57] + "..."


def nearest(word: str, names: Iterable[str], *, what: str) -> str:
    """Say which names were perhaps meant.

    >>> nearest("regoin", ["region", "age"], what="columns")
    'Did you mean region?'
    """
    names = list(dict.fromkeys(names))
    by_lower = {n.lower(): n for n in names}
    near = difflib.get_close_matches(word.lower(), by_lower, n=3, cutoff=0.6)
    if near:
        return f"Did you mean {' or '.join(by_lower[n] for n in near)}?"
    if not names:
        return f"There are no {what}."
    listed = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"The {what} are {listed}."
