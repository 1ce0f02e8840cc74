"""How often one may knock: a bucket of requests for each name, refilled as time goes by."""

from collections import OrderedDict
from dataclasses import dataclass
from time import monotonic
from typing import Final, final

from discreet.errors import TryLater

__all__ = ["RequestLimit", "RequestLimits"]

_MOST: Final = 10_000  # names that are remembered


@final
class RequestLimit:
    """Let each name make so many requests a minute, and as many at once as in ten seconds.

    >>> limit = RequestLimit(per_minute=6)
    >>> limit.take("ana")
    >>> limit.take("ana")
    Traceback (most recent call last):
        ...
    discreet.errors.TryLater: too many requests. Nothing was spent. ...
    """

    def __init__(self, *, per_minute: int) -> None:
        self._rate = per_minute / 60
        self._room = max(1.0, per_minute / 6)
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> None:
        """Count one request, or refuse it."""
        now = monotonic()
        at, level = self._levels.pop(name, (now, 0.0))
        level = max(0.0, level - (now - at) * self._rate)
        is_full = level + 1 > self._room
        self._levels[name] = (now, level if is_full else level + 1)
        if len(self._levels) > _MOST:
            self._levels.popitem(last=False)
        if is_full:
            raise TryLater(
                "too many requests. Nothing was spent. Wait a little.",
                seconds=(level + 1 - self._room) / self._rate,
            )


@final
@dataclass(frozen=True, slots=True)
class RequestLimits:
    """How often a login may ask, an address without one, and how often one may fail to log in."""

    of_logins: RequestLimit
    of_guests: RequestLimit
    of_strangers: RequestLimit
