"""How much one sender may bring, without remembering who it was."""

import hashlib
import os
from collections import OrderedDict
from ipaddress import IPv6Address, ip_address
from time import monotonic
from typing import Final, final

__all__ = ["SenderLimit"]

_MOST: Final = 20_000  # senders that are remembered
_BURST: Final = 10.0  # seconds' worth that may come at once


@final
class SenderLimit:
    """Let each address bring so many reports a minute, and ten seconds' worth at once.

    Addresses are known by a hash under a key that this process drew and forgets, in memory only. Of
    version 6 the network counts, since one sender has as many addresses in it as it likes.

    >>> limit = SenderLimit(per_minute=600)
    >>> limit.take("10.0.0.1", reports=100), limit.take("10.0.0.1", reports=100) > 0
    (0.0, True)
    """

    def __init__(self, *, per_minute: int) -> None:
        self._rate = per_minute / 60
        self._levels: OrderedDict[bytes, tuple[float, float]] = OrderedDict()
        self._key = os.urandom(16)

    def take(self, address: str, *, reports: int) -> float:
        """Count what somebody brings; return 0, or how many seconds to wait if it is too much.

        The first thing that somebody brings may be of any size: a larger one is waited for longer.
        """
        if not self._rate:
            return 0.0
        sender, now = self._sender(address), monotonic()
        at, level = self._levels.pop(sender, (now, 0.0))
        level = max(0.0, level - (now - at) * self._rate)
        wait = level / self._rate - _BURST if level else 0.0
        is_full = level > 0 and level + reports > self._rate * _BURST
        self._levels[sender] = (now, level if is_full else level + reports)
        if len(self._levels) > _MOST:
            self._levels.popitem(last=False)
        return max(1.0, wait) if is_full else 0.0

    def _sender(self, address: str) -> bytes:
        try:
            parsed = ip_address(address.partition("%")[0])
            network = parsed.packed[:8] if isinstance(parsed, IPv6Address) else parsed.packed
        except ValueError:
            network = address.encode()
        return hashlib.blake2b(network, key=self._key, digest_size=8).digest()
