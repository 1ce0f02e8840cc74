"""HTTP whose requests must begin soon and briefly, or strangers could hold every connection."""

from asyncio import TimerHandle, Transport
from typing import Final, final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["BriefHeads"]

_PATIENCE: Final = 15.0  # seconds in which the head of a request has to arrive
_LARGEST: Final = 65_536  # bytes of one that comes in pieces


@final
class BriefHeads(HttpToolsProtocol):
    """End connections that say nothing, drip, or send headers without end.

    Uvicorn itself waits for ever and reads on for ever until the headers of a request are complete;
    a thousand connections at rest keep everybody else out.
    """

    _timer: TimerHandle | None = None  # runs while a head is awaited
    _size = 0

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        self._stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless the head is too large by now."""
        super().data_received(data)
        if self._timer is not None:
            self._size += len(data)
            if self._size > _LARGEST:
                self._stop()
                self.transport.close()

    def on_message_begin(self) -> None:
        """Begin to wait for the rest of a head."""
        super().on_message_begin()
        self._size = 0
        self._await_head()

    def on_headers_complete(self) -> None:
        """Be content with the head."""
        self._stop()
        super().on_headers_complete()

    def _await_head(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(_PATIENCE, self.transport.close)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
