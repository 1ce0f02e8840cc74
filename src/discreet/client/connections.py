"""Connections that are kept and shared by threads, each with an end to its patience."""

import io
import os
import socket
import ssl
from http.client import HTTPConnection, HTTPResponse
from threading import Lock
from time import monotonic
from typing import Any, Final, final

from discreet.client.address import GatewayAddress

__all__ = ["ConnectionPool", "GatewayConnection"]

_KEPT: Final = 8  # idle connections


class _UntilThen(io.RawIOBase):
    """Bytes of a socket, as long as there is time: however slowly they drip in."""

    def __init__(self, sock: socket.socket, ends: float) -> None:
        self._sock, self._ends = sock, ends
        self._raw, self.is_over = sock.makefile("rb", buffering=0), False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(_left(self._ends))
        size = self._raw.readinto(buffer)
        self.is_over = self.is_over or size == 0
        return size

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()


@final
class GatewayConnection(HTTPConnection):
    """One connection to a gateway, with TLS where its address says so.

    ``ends`` is the time on the clock by which a request has to be answered.

    >>> from discreet.client.address import read_address
    >>> GatewayConnection(read_address("http://127.0.0.1:8000"), None).host
    '127.0.0.1'
    """

    def __init__(self, address: GatewayAddress, context: ssl.SSLContext | None) -> None:
        super().__init__(address.host, address.port)
        self._context, self.ends = context, 0.0
        self._answer: _UntilThen | None = None
        self.response_class = self._response  # type: ignore[assignment]

    @property
    def is_cut(self) -> bool:
        """Whether the other side has hung up while it was read, which HTTPConnection may miss."""
        return self._answer is not None and self._answer.is_over

    def connect(self) -> None:
        """Connect, and shake hands.

        >>> from discreet.client.address import read_address
        >>> GatewayConnection(read_address("http://127.0.0.1:1"), None).connect()
        Traceback (most recent call last):
            ...
        TimeoutError: no time is left
        """
        self.timeout = _left(self.ends)
        super().connect()
        if self._context is not None:
            try:
                self.sock.settimeout(_left(self.ends))
                self.sock = self._context.wrap_socket(self.sock, server_hostname=self.host)
            except BaseException:
                self.close()
                raise

    def say(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> None:
        """Send a request, in the time that is left.

        >>> from discreet.client.address import read_address
        >>> GatewayConnection(read_address("http://127.0.0.1:1"), None).say("GET", "/", None, {})
        Traceback (most recent call last):
            ...
        TimeoutError: no time is left
        """
        if self.sock is None:
            self.connect()
        self.sock.settimeout(_left(self.ends))
        self.request(method, path, body=body, headers=headers)

    def _response(self, sock: socket.socket, *args: Any, **options: Any) -> HTTPResponse:
        made = HTTPResponse(sock, *args, **options)
        made.fp.close()
        self._answer = _UntilThen(sock, self.ends)
        made.fp = io.BufferedReader(self._answer)
        return made


@final
class ConnectionPool:
    """Connections to one gateway, each used by one thread at a time. A fork begins anew.

    >>> from discreet.client.address import read_address
    >>> pool = ConnectionPool(read_address("http://127.0.0.1:8000"), None)
    >>> pool.close()
    """

    def __init__(self, address: GatewayAddress, context: ssl.SSLContext | None) -> None:
        self._address, self._context = address, context
        self._idle: list[GatewayConnection] = []
        self._lock, self._process, self.is_closed = Lock(), os.getpid(), False

    def take(self, *, ends: float, fresh: bool) -> tuple[GatewayConnection, bool]:
        """Return a connection, and whether it was used before; ``fresh`` wants a new one.

        >>> from discreet.client.address import read_address
        >>> pool = ConnectionPool(read_address("http://127.0.0.1:1"), None)
        >>> pool.take(ends=0, fresh=True)
        Traceback (most recent call last):
            ...
        TimeoutError: no time is left
        """
        with self._lock:
            if self._process != os.getpid():  # two processes must not speak on one connection
                self._idle, self._process = [], os.getpid()
            kept = self._idle.pop() if self._idle and not fresh else None
        if kept is not None:
            kept.ends = ends
            return kept, True
        made = GatewayConnection(self._address, self._context)
        made.ends = ends
        made.connect()
        return made, False

    def put(self, connection: GatewayConnection) -> None:
        """Keep a connection whose answer was read to its end.

        >>> from discreet.client.address import read_address
        >>> address = read_address("http://127.0.0.1:1")
        >>> ConnectionPool(address, None).put(GatewayConnection(address, None))
        """
        with self._lock:
            has_room = len(self._idle) < _KEPT and self._process == os.getpid()
            if has_room and not self.is_closed:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close what is idle, and what comes back later.

        >>> from discreet.client.address import read_address
        >>> ConnectionPool(read_address("http://127.0.0.1:1"), None).close()
        """
        with self._lock:
            idle, self._idle, self.is_closed = self._idle, [], True
        for one in idle:
            one.close()


def _left(ends: float) -> float:
    left = ends - monotonic()
    if left <= 0:
        raise TimeoutError("no time is left")
    return left
