"""HTTP whose requests must come soon and briefly, or strangers could hold every connection."""

from asyncio import TimerHandle, Transport
from typing import Final, final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["BriefHeads"]

_PATIENCE: Final = 15.0  # seconds in which the head of a request has to arrive
_STALLED: Final = 120.0  # seconds after which somebody who takes nothing of an answer is gone
_LARGEST: Final = 65_536  # bytes of one that comes in pieces


@final
class BriefHeads(HttpToolsProtocol):
    """End connections that say nothing, drip, send headers without end, or do not listen.

    Uvicorn itself waits for ever and reads on for ever: until the headers of a request are
    complete, for the rest of a request that was answered before it was there, and for whoever
    takes no answer. A thousand connections at rest keep everybody else out.
    """

    _timer: TimerHandle | None = None  # runs while a head, or what follows an answer, is awaited
    _looking: TimerHandle | None = None
    _size = 0
    _unsent = 0  # bytes at the last look, 0 if some were taken since
    _is_whole = True

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._await_rest()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        self._stop()
        if self._looking is not None:
            self._looking.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless the head is too large by now."""
        super().data_received(data)
        if self._timer is not None and self._is_whole:
            self._size += len(data)
            if self._size > _LARGEST:
                self._stop()
                self.transport.close()

    def on_message_begin(self) -> None:
        """Begin to wait for the rest of a head."""
        super().on_message_begin()
        self._size = 0
        self._await_rest()

    def on_headers_complete(self) -> None:
        """Be content with the head."""
        self._stop()
        self._is_whole = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Be content with the request."""
        self._stop()
        self._is_whole = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the rest of a request that was answered already, but not for ever."""
        super().on_response_complete()
        if not self._is_whole:
            self._await_rest()

    def resume_writing(self) -> None:
        """Take note that somebody listens: more may be sent at once, so that as much is left."""
        self._unsent = 0
        super().resume_writing()

    def _await_rest(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(_PATIENCE, self.transport.close)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        """End the connection if nothing of what waits to be sent was taken since the last look."""
        unsent = self.transport.get_write_buffer_size()
        if unsent and unsent >= self._unsent > 0:
            if self.cycle is not None:
                self.cycle.disconnected = True  # what is under way says nothing any more
            self.transport.abort()
            return
        self._unsent = unsent
        self._looking = self.loop.call_later(_STALLED, self._look)
