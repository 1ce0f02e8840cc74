"""Names of tables and columns that can be told apart."""

from collections.abc import Iterable, Sequence
from typing import Final

from discreet.errors import DataError, ParameterError

__all__ = ["TABLE", "columns_checked", "tables_checked"]

TABLE: Final = "table://"
"""What a declaration writes before the name of a database's table, which is no file beside it."""


def tables_checked(names: Iterable[str]) -> None:
    """Refuse tables that could not be told apart, or not be named.

    >>> tables_checked(["people", "People"])
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: two tables are named 'People' (capital letters do not count).
    """
    seen: set[str] = set()
    for name in names:
        if not name or "\0" in name or '"' in name:
            raise ParameterError("a table's name must be a text without quotes.", parameter="name")
        if name.casefold() in seen:
            raise ParameterError(
                f"two tables are named {name!r} (capital letters do not count).", parameter="name"
            )
        seen.add(name.casefold())


def columns_checked(table: str, names: Sequence[object]) -> None:
    """Refuse columns that could not be told apart, or not be named.

    >>> columns_checked("people", ["user_id", "User_ID"])
    Traceback (most recent call last):
        ...
    discreet.errors.DataError: table 'people' has two columns named 'User_ID' (capital letters do
    not count). Rename one of them.
    """
    if not names:
        raise DataError(f"table {table!r} has no columns.")
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str) or not name or "\0" in name:
            raise DataError(
                f"the columns of table {table!r} must be named by non-empty texts. Rename them."
            )
        if name.casefold() in seen:
            raise DataError(
                f"table {table!r} has two columns named {name!r} (capital letters do not count). "
                "Rename one of them."
            )
        seen.add(name.casefold())
