"""The messages of a session, one after the other, in both protocols: simple and extended."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, final

from discreet.service.identity.limits import RequestLimit
from discreet.service.wire.auth.conversation import renewed
from discreet.service.wire.interfaces import WireDoor
from discreet.service.wire.link import WireLink
from discreet.service.wire.protocol import replies
from discreet.service.wire.protocol.failures import (
    WireFailure,
    failure_of,
    place_of,
    shutting_down,
)
from discreet.service.wire.protocol.requests import (
    BindMessage,
    ExecuteMessage,
    ParseMessage,
    QueryMessage,
    Request,
    TargetMessage,
    read_request,
)
from discreet.service.wire.session.execution import (
    asked_of,
    check_transaction,
    execute,
    fields_of,
    questioned,
)
from discreet.service.wire.session.outcome import Outcome, described
from discreet.service.wire.session.prepared import Portal, PreparedShelf, PreparedStatement
from discreet.service.wire.session.questions import parameter_types, shape_question
from discreet.service.wire.session.state import SessionState
from discreet.service.wire.session.statements import ClientStatement, cut
from discreet.service.wire.settings import WireSettings
from discreet.service.wire.values.parameters import decoded, literal

__all__ = ["MessageLoop"]

_LOG: Final = logging.getLogger(__name__)
_MOST_VALUES: Final = 2000


@final
class MessageLoop:
    """Reads messages and answers them until the client goes."""

    def __init__(
        self,
        link: WireLink,
        session: SessionState,
        door: WireDoor,
        settings: WireSettings,
        limit: RequestLimit,
    ) -> None:
        self.link, self.session, self._door, self._limit = link, session, door, limit
        self._shelf = PreparedShelf(settings)
        self._skips = False  # until the next Sync, after an error

    async def run(self) -> None:
        """Go on until the client says goodbye, vanishes, or breaks the rules."""
        self.link.send(replies.ready(self.session.status))
        await self.link.flush()
        while True:
            try:
                found = await self._message()
            except TimeoutError:
                raise WireFailure(
                    "57P05", "terminating connection due to idle-session timeout", is_fatal=True
                ) from None
            if found is None or found[0] == b"X":
                return
            self.session.is_answering = True
            await self._answer(*found)
            # Nobody waits for an answer before the end of a batch, or a wish to have it.
            await (self.link.flush() if found[0] in b"QSH" else self.link.flush_if_full())
            if found[0] in b"QS":
                self._end_of_batch()

    def _end_of_batch(self) -> None:
        self.session.is_answering = False
        if self.session.is_ending:
            raise shutting_down()

    async def _message(self) -> tuple[bytes, bytes] | None:
        return await self.link.message(is_known=True)

    async def _answer(self, kind: bytes, body: bytes) -> None:
        if kind == b"S":
            self._end_of_extended()
            return
        if kind == b"H" or self._skips:
            return
        try:
            request = read_request(kind, body)
            if kind in b"QDE":  # of the others, none asks anybody for anything
                self.session.login = await renewed(self.session.login, self._door)
            if kind in b"DE":
                self._limit.take(self.session.login.who)
            await self._do(request)
        except Exception as error:  # a mistake of ours must not end the worker
            self._fail(error)
            if kind != b"Q":
                self._skips = True
        if kind == b"Q":
            self._end_of_extended()

    async def _do(self, request: Request) -> None:
        match request:
            case QueryMessage():
                await self._query(request.text)
            case ParseMessage():
                await self._parse(request)
            case BindMessage():
                await self._bind(request)
            case ExecuteMessage():
                await self._execute(request)
            case TargetMessage(action="C"):
                self._shelf.close(request.kind, request.name)
                self.link.send(replies.CLOSE_COMPLETE)
            case TargetMessage(kind="S"):
                await self._describe_statement(request.name)
            case _:
                await self._describe_portal(request.name)

    def _end_of_extended(self) -> None:
        self._skips = False
        if self.session.status == "I":
            self._shelf.close_portals()
        self.link.send(replies.ready(self.session.status))

    def _fail(self, error: Exception) -> None:
        failure = failure_of(error)
        if failure.code == "XX000":
            _LOG.error("a statement failed: %s", place_of(error))
        if failure.is_fatal or isinstance(error, ConnectionError):
            raise error
        if self.session.status == "T":
            self.session.status = "E"
        self.link.send(replies.error_response(failure.fields()))

    async def _query(self, text: str) -> None:
        statements = await asyncio.to_thread(cut, text)  # which takes a while, if it is long
        if not statements:
            self.link.send(replies.EMPTY_QUERY)
        for statement in statements:
            self._limit.take(self.session.login.who)
            check_transaction(statement, self.session)
            if statement.first == "DEALLOCATE":
                self._deallocate(statement)
                continue
            asked = await asked_of(statement, (), self.session)
            outcome = await execute(statement, asked, self.session)
            if outcome.fields is not None:
                self.link.send(described(outcome.fields, ()))
                await self._rows(outcome, (), 0, len(outcome.rows))
            self._complete(outcome)

    async def _rows(self, outcome: Outcome, formats: Sequence[int], start: int, stop: int) -> None:
        for index in range(start, stop):
            self.link.send(outcome.row(index, formats))
            await self.link.flush_if_full()

    def _complete(self, outcome: Outcome, tag: str | None = None) -> None:
        self.link.send(
            *(replies.notice_response(one) for one in outcome.notices),
            *(replies.parameter_status(name, value) for name, value in outcome.changed),
            replies.command_complete(tag or outcome.tag),
        )

    def _deallocate(self, statement: ClientStatement) -> None:
        words = [word for word in statement.words[1:] if word != "PREPARE"]
        if words == ["ALL"]:
            self._shelf.close_statements()
        else:
            name = statement.tokens[-1].text
            self._shelf.statement(name)
            self._shelf.close("S", name)
        tag = "DEALLOCATE ALL" if words == ["ALL"] else "DEALLOCATE"
        self.link.send(replies.command_complete(tag))

    async def _parse(self, request: ParseMessage) -> None:
        (statement,) = await asyncio.to_thread(cut, request.text, single=True)
        if statement.parameters > _MOST_VALUES or len(request.types) > _MOST_VALUES:
            raise WireFailure("54000", f"a statement has at most {_MOST_VALUES} parameters")
        types = await asyncio.to_thread(
            parameter_types, questioned(statement) or statement, request.types
        )
        self._shelf.keep(request.name, PreparedStatement(statement=statement, types=types))
        self.link.send(replies.PARSE_COMPLETE)

    async def _bind(self, request: BindMessage) -> None:
        prepared = self._shelf.statement(request.statement)
        if len(request.values) != len(prepared.types):
            raise WireFailure(
                "08P01", f"the statement has {len(prepared.types)} parameters, "
                f"and {len(request.values)} values came",
            )  # fmt: skip
        formats = request.formats
        if len(formats) == 1:
            formats *= len(request.values)
        if len(formats) not in (0, len(request.values)):
            raise WireFailure("08P01", "there must be no format, one, or one for each value")
        binary = [one == 1 for one in formats] or [False] * len(request.values)
        given = zip(request.values, prepared.types, binary, strict=True)
        values = [literal(decoded(value, oid, is_binary=one)) for value, oid, one in given]
        statement = prepared.statement
        asked = await asked_of(statement, values, self.session) if statement.tokens else None
        portal = Portal(prepared=prepared, asked=asked, formats=request.results)
        self._shelf.bind(request.portal, portal)
        self.link.send(replies.BIND_COMPLETE)

    async def _describe_statement(self, name: str) -> None:
        prepared = self._shelf.statement(name)
        statement, asked = prepared.statement, None
        self.link.send(replies.parameter_description(prepared.types))
        if statement.is_question:
            asked = await asyncio.to_thread(
                shape_question, statement, prepared.types, self.session.dataset
            )
        prepared.fields = await fields_of(statement, asked, self.session)
        self.link.send(
            replies.NO_DATA if prepared.fields is None else described(prepared.fields, ())
        )

    async def _describe_portal(self, name: str) -> None:
        portal = self._shelf.portal(name)
        await self._know_fields(portal)
        portal.prepared.fields = portal.fields
        if portal.fields is None:
            self.link.send(replies.NO_DATA)
        else:
            self.link.send(described(portal.fields, portal.formats))

    async def _know_fields(self, portal: Portal) -> None:
        """Find out the columns of a portal, and whether its formats are as many."""
        statement, asked = portal.statement, portal.asked
        if not portal.is_described and asked is not None and asked.tree is not None:
            # Free, so it may as well be answered at once: that takes no longer.
            outcome = await execute(statement, asked, self.session)
            portal.describe(outcome.fields)
            self._shelf.keep_rows(portal, outcome)
        elif not portal.is_described:
            portal.describe(await fields_of(statement, asked, self.session))
        if len(portal.formats) not in (0, 1, len(portal.fields or ())):
            raise WireFailure("08P01", "there must be no format, one, or one for each column")

    async def _execute(self, request: ExecuteMessage) -> None:
        portal = self._shelf.portal(request.portal)
        if not portal.statement.tokens:
            self.link.send(replies.EMPTY_QUERY)
            return
        check_transaction(portal.statement, self.session)
        if portal.statement.first == "DEALLOCATE":
            self._deallocate(portal.statement)
            return
        await self._know_fields(portal)  # before anything is paid
        outcome = portal.outcome
        if outcome is None:
            found = await execute(portal.statement, portal.asked, self.session, portal.fields)
            outcome = self._shelf.keep_rows(portal, found)
        if outcome.fields is None:
            self._complete(outcome)
            return
        left = len(outcome.rows) - portal.at
        count = min(left, request.most) if request.most > 0 else left
        await self._rows(outcome, portal.formats, portal.at, portal.at + count)
        portal.at += count
        if count < left:
            self.link.send(replies.PORTAL_SUSPENDED)
        else:
            is_select = outcome.tag.startswith("SELECT")
            self._complete(outcome, f"SELECT {count}" if is_select else None)
            # Whoever runs it to its end once more gets no rows, nor is anything asked again.
            portal.outcome, portal.at = replace(outcome, rows=(), notices=()), 0
            portal.weight = 0
