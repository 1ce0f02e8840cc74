"""What the records ask of a database, and how they say that it did not answer."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from discreet.errors import LedgerUnavailable

__all__ = ["PATIENCE", "RecordsDriver", "Value", "unavailable"]

PATIENCE = 10.0  # seconds that another program may keep the database locked

Value = str | bytes | int | float | None


class RecordsDriver(Protocol):
    """One kind of database: how to connect to it, and how to run portable SQL.

    Whatever goes wrong is told as ``LedgerUnavailable``.
    """

    def connect(self) -> Any:
        """Open a connection that commits after every statement."""

    def is_sound(self, connection: Any, /) -> bool:
        """Say whether a connection that rested is still there, without asking the server."""

    def run(
        self, connection: Any, sql: str, parameters: Mapping[str, Value], /
    ) -> list[tuple[Any, ...]]:
        """Run a statement with parameters such as ``:who`` and return its rows."""

    def has_tables(self, connection: Any, /) -> bool:
        """Say whether the tables are there."""

    def make(self, connection: Any, statements: Sequence[str], /) -> None:
        """Make the tables in one transaction, unless somebody else was faster."""


def unavailable(where: str, reason: str, *, may_be_recorded: bool = False) -> LedgerUnavailable:
    """Return the error for whoever needed the records.

    >>> print(unavailable("/srv/gateway.db", "database or disk is full"))
    the gateway's records in /srv/gateway.db did not answer (database or disk is full). Nothing was
    written. Check that the database is there, has room and may be written, then try again.
    """
    outcome = "Whether the last step was written is not known" if may_be_recorded else ""
    return LedgerUnavailable(
        f"the gateway's records in {where} did not answer ({reason}). "
        f"{outcome or 'Nothing was written'}. Check that the database is there, has room and may "
        "be written, then try again.",
        may_be_recorded=may_be_recorded,
    )
