"""Which datasets rest, because too many answers about them missed their deadline."""

from collections import Counter
from threading import Lock
from time import monotonic
from typing import Final, Protocol, final

from discreet.errors import TryLater

__all__ = ["MissCounter", "Rest"]

_FRESH: Final = 1.0  # seconds for which a count is believed by whoever will be asked again


class MissCounter(Protocol):
    """Counts answers that missed their deadline, for all workers together."""

    def add(self, dataset: str, /) -> int:
        """Count one more; return how many there were since the dataset was last reopened."""

    def count(self, dataset: str, /) -> int:
        """Return how many there were since the dataset was last reopened."""


@final
class Rest:
    """Counts misses and refuses datasets with too many of them. Threads may share it.

    A miss that could not be written yet, since the records did not answer, is not forgotten: it is
    written before anybody is told a count.

    >>> class Memory(Counter):
    ...     def add(self, dataset):
    ...         self[dataset] += 1
    ...     def count(self, dataset):
    ...         return self[dataset]
    >>> rest = Rest(Memory(), most=1)
    >>> rest.refuse("people")
    >>> rest.missed("people")
    >>> rest.refuse("people")
    Traceback (most recent call last):
        ...
    discreet.errors.TryLater: 'people' rests, since 1 answers were not ready in time. ...
    """

    def __init__(self, misses: MissCounter, *, most: int) -> None:
        self._misses, self._most = misses, most
        self._noting, self._asking = Lock(), Lock()  # the first is never held for long
        self._unwritten: Counter[str] = Counter()
        self._counted: dict[str, tuple[float, int]] = {}

    def missed(self, dataset: str) -> None:
        """Note a miss, without waiting for anything."""
        with self._noting:
            self._unwritten[dataset] += 1

    def write(self, dataset: str) -> None:
        """Write down what was noted. May wait, and raise ``LedgerUnavailable``."""
        with self._asking:
            self._write(dataset)

    def refuse(self, dataset: str) -> None:
        """Raise ``TryLater`` if a dataset rests now. May wait, and raise ``LedgerUnavailable``."""
        with self._asking:
            self._write(dataset)
            count = self._misses.count(dataset)
            self._counted[dataset] = monotonic(), count
        self._refuse(dataset, count)

    def refuse_from_memory(self, dataset: str) -> bool:
        """Do the same by what was known a moment ago; false if it has to be asked."""
        at, count = self._counted.get(dataset, (float("-inf"), 0))
        if monotonic() - at > _FRESH or self._unwritten[dataset]:
            return False
        self._refuse(dataset, count)
        return True

    def _write(self, dataset: str) -> None:
        while self._unwritten[dataset]:
            self._misses.add(dataset)
            with self._noting:
                self._unwritten[dataset] -= 1

    def _refuse(self, dataset: str, count: int) -> None:
        if count >= self._most:
            raise TryLater(
                f"{dataset!r} rests, since {self._most} answers were not ready in time. "
                "Nothing was spent. A custodian can reopen it."
            )
