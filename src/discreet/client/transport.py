"""Requests to a gateway and what it answers, over the standard library alone."""

import json
import ssl
import weakref
from collections.abc import Mapping
from http.client import (
    HTTPException,
    HTTPResponse,
    IncompleteRead,
    RemoteDisconnected,
)
from time import monotonic
from typing import Any, Final, NamedTuple, Protocol, final

from discreet._json import read_json
from discreet._version import __version__
from discreet.client.address import GatewayAddress
from discreet.client.connections import ConnectionPool, GatewayConnection
from discreet.client.problems import error_of, seconds_in
from discreet.errors import DiscreetError, LedgerUnavailable, ParameterError, TryLater

__all__ = ["GatewayCall", "Token", "Transport", "Wire"]

LARGEST: Final = 64 << 20  # bytes of an answer
_PIECE: Final = 1 << 16
_JSON: Final = "application/json"
_PROBLEM: Final = "application/problem+json"
_REDACTED: Final = "..."


class GatewayCall(NamedTuple):
    """What is asked of a gateway. ``is_paid`` says that answering it may charge.

    One that ``can_repeat`` is sent once more if the connection breaks: it changes nothing, or has
    a ``key`` by which the gateway knows it again.

    >>> GatewayCall("GET", "/v1/me").can_repeat
    True
    """

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    key: str | None = None
    is_paid: bool = False
    can_repeat: bool = True


class Wire(Protocol):
    """What brings a call to a gateway and its answer back."""

    def call(self, call: GatewayCall, /) -> dict[str, Any]:
        """Return the document that answers a call, or raise what the gateway's problem says."""

    def close(self) -> None:
        """Let go of all connections."""


@final
class Token:
    """An API key or a token of an issuer. It does not show itself.

    >>> Token("dk_secret")
    Token(...)
    >>> Token("two words")
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: token must be the text of an API key or of an issuer's token, in
    one piece.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        if not _is_token(text):
            raise ParameterError(
                "token must be the text of an API key or of an issuer's token, in one piece.",
                parameter="token",
            )
        self._text = text

    def __repr__(self) -> str:
        return "Token(...)"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a token is not pickled: it would be readable in there.")

    @property
    def header(self) -> str:
        """What the header Authorization says."""
        return f"Bearer {self._text}"

    def hidden_in(self, data: bytes) -> bytes:
        """Return what a gateway says without the token, should it echo it.

        >>> Token("dk_secret").hidden_in(b"who is dk_secret?")
        b'who is ...?'
        """
        return data.replace(self._text.encode(), _REDACTED.encode())


def _is_token(text: object) -> bool:
    if not isinstance(text, str) or not 0 < len(text) <= 16_384:
        return False
    return text.isascii() and text.isprintable() and " " not in text


class _Answer(NamedTuple):
    status: int
    media_type: str
    headers: Mapping[str, str]
    data: bytes


@final
class Transport:
    """Calls to one gateway, from any number of threads.

    Redirects are not followed, nor are answers read that are too large or no JSON. Nothing waits
    or asks again by itself, but for one repetition where a connection broke.

    >>> from discreet.client.address import read_address
    >>> Transport(read_address("https://gateway.example"), Token("dk_secret"), timeout=30)
    Transport(https://gateway.example)
    """

    def __init__(
        self,
        address: GatewayAddress,
        token: Token,
        *,
        timeout: float,
        context: ssl.SSLContext | None = None,
        largest: int = LARGEST,
    ) -> None:
        self._address, self._prefix, self._token = address, address.prefix, token
        self._timeout, self._largest = timeout, largest
        if address.is_secure and context is None:
            context = ssl.create_default_context()
        self._pool = ConnectionPool(address, context)
        self._end = weakref.finalize(self, self._pool.close)  # if nobody closes it

    def __repr__(self) -> str:
        return f"Transport({self._address})"

    def close(self) -> None:
        """Let go of all connections.

        >>> from discreet.client.address import read_address
        >>> Transport(read_address("https://gateway.example"), Token("dk"), timeout=30).close()
        """
        self._end()

    def call(self, call: GatewayCall, /) -> dict[str, Any]:
        """Return the document that answers a call, or raise what the gateway's problem says.

        >>> from discreet.client.address import read_address
        >>> nobody = Transport(read_address("http://127.0.0.1:1"), Token("dk"), timeout=30)
        >>> nobody.call(GatewayCall("GET", "/v1/me"))
        Traceback (most recent call last):
            ...
        discreet.errors.LedgerUnavailable: the gateway http://127.0.0.1:1 cannot be reached
        (...). Nothing was spent.
        """
        if self._pool.is_closed:
            raise LedgerUnavailable("this connection to a gateway is closed. Connect again.")
        body = None if call.body is None else json.dumps(call.body, allow_nan=False).encode()
        answer = self._answered(call, body)
        return self._read(answer, call)

    def _answered(self, call: GatewayCall, body: bytes | None) -> _Answer:
        """Send a call; where its connection breaks and it can be repeated, once more."""
        ends = monotonic() + self._timeout
        attempts = 2 if call.can_repeat else 1
        for attempt in range(1, attempts + 1):
            is_last = attempt == attempts
            # What cannot be repeated gets a connection of which nobody has grown tired.
            connection = self._connection(ends, fresh=is_last, again=attempt > 1, of=call)
            try:
                connection.say(call.method, self._prefix + call.path, body, self._headers(call))
                with connection.getresponse() as response:
                    if connection.is_cut:  # in the middle of the headers
                        raise IncompleteRead(b"")
                    answer = self._received(response)
            except BaseException as caught:
                connection.close()
                is_cut = isinstance(caught, HTTPException) and connection.is_cut
                error = IncompleteRead(b"") if is_cut else caught
                refusal = self._refusal(call, error)
                if refusal is None:
                    raise
                if is_last or not _is_broken(error):
                    raise refusal from None
                continue
            if connection.sock is None:
                connection.close()
            else:
                self._pool.put(connection)
            return answer
        raise AssertionError("the last attempt returns or raises")

    def _connection(
        self, ends: float, *, fresh: bool, again: bool, of: GatewayCall
    ) -> GatewayConnection:
        try:
            return self._pool.take(ends=ends, fresh=fresh)[0]
        except (OSError, UnicodeError) as error:  # of a host that cannot have a name
            if again:
                raise self._lost(of, "broke the connection") from None
            why = _reason(error)
            raise LedgerUnavailable(
                f"the gateway {self._address} cannot be reached ({why}). Nothing was spent."
            ) from None

    def _headers(self, call: GatewayCall) -> dict[str, str]:
        headers = {
            "Authorization": self._token.header,
            "Accept": f"{_JSON}, {_PROBLEM}",
            "Accept-Encoding": "identity",
            "User-Agent": f"discreet/{__version__}",
        }
        if call.body is not None:
            headers["Content-Type"] = _JSON
        if call.key is not None:
            headers["Idempotency-Key"] = call.key
        return headers

    def _received(self, response: HTTPResponse) -> _Answer:
        """Read an answer to its end, unless it has none."""
        pieces, size = [], 0
        while piece := response.read1(_PIECE):
            size += len(piece)
            if size > self._largest:
                raise _StrangeAnswerError(f"with more than {self._largest:,} bytes")
            pieces.append(piece)
        if response.length:  # read1 does not say that something is missing
            raise IncompleteRead(b"", response.length)
        return _Answer(
            status=response.status,
            media_type=(response.getheader("Content-Type") or "").partition(";")[0].strip().lower(),
            headers={name.lower(): value for name, value in response.getheaders()},
            data=b"".join(pieces),
        )

    def _read(self, answer: _Answer, call: GatewayCall) -> dict[str, Any]:
        retry_after = answer.headers.get("retry-after")
        wanted = _JSON if 200 <= answer.status < 300 else _PROBLEM
        if answer.media_type == wanted and "content-encoding" not in answer.headers:
            try:
                said = answer.data if wanted == _JSON else self._token.hidden_in(answer.data)
                document = read_json(said)
            except ValueError:
                document = None
            if isinstance(document, dict) and wanted == _JSON:
                return document
            if isinstance(document, dict):
                raise error_of(document, retry_after=retry_after)
            raise self._strange(call, "with what is no JSON document")
        raise self._odd(answer, call, seconds_in(retry_after))

    def _odd(self, answer: _Answer, call: GatewayCall, seconds: float | None) -> DiscreetError:
        """Return what it means that something between here and the gateway answered."""
        status = answer.status
        if status in (429, 503) and seconds is not None:
            told = f"{self._address} takes no more at the moment (status {status})."
            return TryLater(f"{told} {_spent(call)} Ask again later.", seconds=seconds)
        if status in (502, 503, 504):
            return self._lost(call, f"is not behind its address (status {status})")
        if 300 <= status < 400:
            why = "with a redirect, which is not followed: the token is for this address alone"
            return self._strange(call, why)
        if 200 <= status < 300:
            return self._strange(call, "with something else than JSON")
        return self._strange(call, f"with status {status} and no problem document")

    def _lost(self, call: GatewayCall, what: str) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"the gateway {self._address} {what}. {_spent(call)}", may_be_recorded=call.is_paid
        )

    def _strange(self, call: GatewayCall, how: object) -> DiscreetError:
        """Return what to raise for an answer that no gateway gives."""
        return DiscreetError(f"{self._address} answered {how}. Is a gateway there? {_spent(call)}")

    def _refusal(self, call: GatewayCall, error: BaseException) -> DiscreetError | None:
        """Return what to raise for what went wrong under way, unless it is none of our business."""
        if isinstance(error, TimeoutError):
            return self._lost(call, f"did not answer in {self._timeout:g} seconds")
        if _is_broken(error):
            return self._lost(call, "broke the connection")
        if isinstance(error, _StrangeAnswerError):
            return self._strange(call, error)
        if isinstance(error, HTTPException):
            return self._strange(call, "with something else than HTTP")
        return None


class _StrangeAnswerError(Exception):
    """How an answer is not like those of a gateway."""


def _is_broken(error: BaseException) -> bool:
    if isinstance(error, TimeoutError):
        return False
    return isinstance(error, RemoteDisconnected | IncompleteRead | OSError)


def _reason(error: OSError | UnicodeError) -> str:
    if isinstance(error, UnicodeError):
        return "no host can have this name"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    return error.strerror or type(error).__name__


def _spent(call: GatewayCall) -> str:
    if not call.is_paid:
        return "Nothing was spent."
    if call.key is None:
        return "It may have been charged."
    return (
        f"It may have been charged; the same question asked again with key={call.key!r} is never "
        "charged twice."
    )
