"""How pictures are computed: one at a time, apart from all else, and from the address alone."""

import asyncio
import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, final

from discreet.errors import ParameterError, TryLater
from discreet.service.pages.page import PageCall

__all__ = ["AddressSource", "chosen", "computed"]

_MOST_WAITING: Final = 32
# A thread of its own: what strangers look at takes none from those that logins wait for.
_painter = ThreadPoolExecutor(1, thread_name_prefix="discreet-gallery")
_waiting = 0


async def computed(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what ``work`` computes, in turn; refuse where too many wait already."""
    global _waiting
    if _waiting >= _MOST_WAITING:
        raise TryLater("too many pictures are being computed. Come back in a moment.", seconds=2)
    _waiting += 1
    try:
        return await asyncio.get_running_loop().run_in_executor(_painter, work)
    finally:
        _waiting -= 1


def chosen(call: PageCall, name: str, among: tuple[str, ...], default: str) -> str:
    """Return one of several words from the query."""
    found = call.query.get(name) or default
    if found not in among:
        raise ParameterError(f"{name} must be one of {', '.join(among)}.", parameter=name)
    return found


@final
class AddressSource:
    """Random bytes that follow from a text, so that one address shows one picture everywhere.

    They choose the coins of people who do not exist. They are no secret, and say so.

    >>> AddressSource("a").read(4) == AddressSource("a").read(4)
    True
    >>> AddressSource("a").is_secure
    False
    """

    def __init__(self, text: str) -> None:
        self._key, self._blocks = text.encode(), 0

    @property
    def is_secure(self) -> bool:
        """Whether the bytes are unpredictable to everybody."""
        return False

    def read(self, n: int, /) -> bytes:
        """Return the next ``n`` bytes.

        >>> len(AddressSource("a").read(100))
        100
        """
        self._blocks += 1
        return hashlib.shake_256(self._key + self._blocks.to_bytes(8)).digest(n)
