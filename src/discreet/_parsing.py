"""A limit to how often a parser of SQL may start over: some short texts would take it years."""

from typing import Any, Final

__all__ = ["LimitedSteps"]

_MOST: Final = 20  # times that each word may be read again, on the average
_ALWAYS: Final = 5_000  # words that may be read again in any text


class LimitedSteps:
    """Mixed into a parser of sqlglot, so that its time is bounded by the length of the text.

    The parser reads ``DATE(x)`` as a type first, and as a function if that fails. Within brackets
    it does so at every level, which takes twice as long for each: 129 characters keep it busy for
    longer than a machine lasts. What goes too far ends as what is nested too deeply does, with a
    RecursionError, since the parser itself would catch one of its own.

    >>> import sqlglot
    >>> from sqlglot.dialects.duckdb import DuckDB
    >>> class Limited(DuckDB):
    ...     class Parser(LimitedSteps, DuckDB.Parser): pass
    >>> sqlglot.parse_one("SELECT DATE(DATE(x))", read=Limited).sql()
    'SELECT DATE(DATE(x))'
    >>> sqlglot.parse_one("SELECT " + 40 * "DATE(" + "x" + 40 * ")", read=Limited)
    Traceback (most recent call last):
        ...
    RecursionError: this text would be read again and again
    """

    _index: int
    _tokens: list[Any]
    _again = 0  # words that were read and will be once more; a parser reads one text

    def _retreat(self, index: int) -> None:
        self._again += max(0, self._index - index)
        if self._again > _ALWAYS + _MOST * len(self._tokens):
            raise RecursionError("this text would be read again and again")
        super()._retreat(index)  # type: ignore[misc]
