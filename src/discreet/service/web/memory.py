"""Answers that were given, for whoever asks the very same again: at no cost and in no time."""

from collections import OrderedDict
from dataclasses import dataclass
from time import monotonic
from typing import Final, final

__all__ = ["AnswerMemory"]

_MOST: Final = 4096
_MOST_BYTES: Final = 64 << 20
_FRESH: Final = 1.0  # seconds for which data is believed unchanged


@final
@dataclass(frozen=True, slots=True)
class _Remembered:
    version: str
    body: bytes


@final
class AnswerMemory:
    """Remembers answers by who asked, what for, and the request to the letter.

    The key begins with the login's name, so that nobody gets what another one paid for; an answer
    counts only while its data has the version that it was made from, which ``saw`` says.

    >>> memory = AnswerMemory()
    >>> memory.saw("people", "v1")
    >>> memory.put(("ana", "people", b"{}"), "v1", b"42")
    >>> memory.get(("ana", "people", b"{}")), memory.get(("ben", "people", b"{}"))
    (b'42', None)
    """

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str, bytes], _Remembered] = OrderedDict()
        self._size = 0
        self._versions: dict[str, tuple[float, str]] = {}

    def saw(self, dataset: str, version: str) -> None:
        """Take note of the version that a dataset has now."""
        self._versions[dataset] = (monotonic(), version)

    def is_fresh(self, dataset: str) -> bool:
        """Say whether the version was looked at a moment ago."""
        return monotonic() - self._versions.get(dataset, (-1e9, ""))[0] < _FRESH

    def get(self, key: tuple[str, str, bytes]) -> bytes | None:
        """Return what was answered, unless the data has changed."""
        found = self._known.get(key)
        if found is None or self._versions.get(key[1], (0.0, ""))[1] != found.version:
            return None
        return found.body

    def put(self, key: tuple[str, str, bytes], version: str, body: bytes) -> None:
        """Remember an answer; the oldest ones are forgotten."""
        before = self._known.pop(key, None)
        self._known[key] = _Remembered(version, body)
        self._size += _size(key, body) - (0 if before is None else _size(key, before.body))
        while len(self._known) > _MOST or self._size > _MOST_BYTES:
            oldest, forgotten = self._known.popitem(last=False)
            self._size -= _size(oldest, forgotten.body)


def _size(key: tuple[str, str, bytes], body: bytes) -> int:
    """Count requests, too: they may be longer than what they are answered with."""
    return len(key[2]) + len(body)
