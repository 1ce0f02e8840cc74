"""Prepared statements, and portals: statements with values, perhaps half fetched."""

from dataclasses import dataclass
from typing import final

from discreet.service.wire.protocol.failures import WireFailure
from discreet.service.wire.session.outcome import Outcome, OutputField
from discreet.service.wire.session.questions import AskedQuestion
from discreet.service.wire.session.statements import ClientStatement
from discreet.service.wire.settings import WireSettings

__all__ = ["Portal", "PreparedShelf", "PreparedStatement"]


@final
@dataclass(slots=True, kw_only=True)
class PreparedStatement:
    """A statement that was parsed, with the types of its parameters.

    ``fields`` are the columns that the client was told, who may not ask again.
    """

    statement: ClientStatement
    types: list[int]
    fields: tuple[OutputField, ...] | None = None


@final
@dataclass(slots=True, kw_only=True)
class Portal:
    """A statement with its values: ``outcome`` is there once it ran, ``at`` is the next row.

    ``weight`` is about how many bytes its rows take; all of them are kept until the last is sent.
    """

    prepared: PreparedStatement
    asked: AskedQuestion | None
    formats: tuple[int, ...]
    fields: tuple[OutputField, ...] | None = None
    is_described: bool = False
    outcome: Outcome | None = None
    at: int = 0
    weight: int = 0

    @property
    def statement(self) -> ClientStatement:
        """The statement that has the values."""
        return self.prepared.statement

    def describe(self, fields: tuple[OutputField, ...] | None) -> None:
        """Note the columns, which must be those that the client was told, if it was."""
        told = self.prepared.fields
        if told is not None and fields is not None and told != fields:
            # Said like PostgreSQL, whose drivers prepare the statement anew then.
            raise WireFailure("0A000", "cached plan must not change result type")
        self.fields, self.is_described = fields, True


@final
class PreparedShelf:
    """Holds what one connection has prepared, up to its limits; "" is a name, used ever again.

    >>> shelf = PreparedShelf(WireSettings(prepared_statements=1))
    >>> shelf.keep("", PreparedStatement(statement=ClientStatement("SELECT 1", ()), types=[]))
    >>> shelf.statement("").statement.text
    'SELECT 1'
    """

    def __init__(self, settings: WireSettings) -> None:
        self._settings = settings
        self._statements: dict[str, PreparedStatement] = {}
        self._portals: dict[str, Portal] = {}

    def keep(self, name: str, prepared: PreparedStatement) -> None:
        """Keep a statement."""
        if name and name in self._statements:
            raise WireFailure("42P05", f"there is already a prepared statement {name[:80]!r}")
        kept = {**self._statements, name: prepared}
        size = sum(len(key) + len(one.statement.text) for key, one in kept.items())
        most = self._settings.prepared_statements
        if len(kept) > most or size > self._settings.prepared_characters:
            raise WireFailure(
                "53400", f"a connection keeps at most {most} prepared statements, not too long",
                hint="DEALLOCATE ALL lets go of them.",
            )  # fmt: skip
        self._statements = kept

    def statement(self, name: str) -> PreparedStatement:
        """Return a statement."""
        if name not in self._statements:
            raise WireFailure("26000", f"there is no prepared statement {name[:80]!r}")
        return self._statements[name]

    def bind(self, name: str, portal: Portal) -> None:
        """Keep a portal."""
        if name and name in self._portals:
            raise WireFailure("42P03", f"there is already a portal {name[:80]!r}")
        if len(self._portals) >= self._settings.portals and name not in self._portals:
            raise WireFailure("53400", f"a connection has at most {self._settings.portals} portals")
        self._portals[name] = portal

    def keep_rows(self, portal: Portal, outcome: Outcome) -> Outcome:
        """Keep what came of a portal, unless others have much to be fetched already."""
        others = sum(one.weight for one in self._portals.values() if one is not portal)
        if others and others + outcome.weight > self._settings.portal_bytes:
            raise WireFailure(
                "53400", "the rows that this connection has yet to fetch are too many",
                hint="Fetch or close what was begun before. What was charged is free to ask again.",
            )  # fmt: skip
        portal.outcome, portal.weight = outcome, outcome.weight
        return outcome

    def portal(self, name: str) -> Portal:
        """Return a portal."""
        if name not in self._portals:
            raise WireFailure("34000", f"there is no portal {name[:80]!r}")
        return self._portals[name]

    def close(self, kind: str, name: str) -> None:
        """Let go of a statement ("S") or portal ("P"), if there is one."""
        (self._statements if kind == "S" else self._portals).pop(name, None)

    def close_statements(self) -> None:
        """Let go of all statements."""
        self._statements = {}

    def close_portals(self) -> None:
        """Let go of all portals, as the end of a transaction does."""
        self._portals = {}
