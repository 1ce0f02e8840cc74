"""What an engine cannot compute, told before anything is charged."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Protocol, runtime_checkable

from discreet.errors import Refused
from discreet.tables.engines.protocol import Connection
from discreet.tables.model.query import Query
from discreet.tables.model.scalar import Call

__all__ = ["SelectiveConnection", "refuse_lacking"]


@runtime_checkable
class SelectiveConnection(Protocol):
    """A connection that lacks some functions, or cannot make them total for some arguments."""

    def lacks(self, call: Call, /) -> str | None:
        """Say what of a call cannot be computed and what to ask instead; None if all of it can.

        The arguments that decide are literals: what is refused never depends on data.
        """


def refuse_lacking(query: Query, connection: Connection) -> None:
    """Refuse a question that its engine cannot compute."""
    if not isinstance(connection, SelectiveConnection):
        return
    for call in _calls(query.rows):
        reason = connection.lacks(call)
        if reason is not None:
            raise Refused(
                code="engine",
                line=1,
                column=1,
                reason=reason,
                remedy="Ask in another way, or where the tables are opened with another engine.",
            )


def _calls(plan: object) -> Iterator[Call]:
    """Yield all calls of a plan."""
    if isinstance(plan, Call):
        yield plan
    if isinstance(plan, tuple):
        for part in plan:
            yield from _calls(part)
    elif is_dataclass(plan) and not isinstance(plan, type):
        for one in fields(plan):
            yield from _calls(getattr(plan, one.name))
