"""A shuffler, an analyser and the account that pays, gone afterwards."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import final

from discreet.ledger import Account, Ledger
from discreet.local import DirectResponse
from discreet.local.wire import encode, parameters_of
from discreet.privacy import Guarantee, Unit
from discreet.shuffle import (
    Analyser,
    AnalyserSettings,
    Arrival,
    Shuffler,
    ShufflerSettings,
    Verdict,
)

__all__ = ["TemporaryShuffle", "temporary_shuffle"]

_SENDERS = 8


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TemporaryShuffle:
    """Both halves of a collection of values from 0 to 3, with tokens for eight senders.

    >>> with temporary_shuffle(minimum=2) as halves:
    ...     len(halves.tokens), halves.account.neighbours.value
    (8, 'replace_one')
    """

    shuffler: Shuffler
    analyser: Analyser
    account: Account
    tokens: tuple[str, ...]

    def arrivals(self, values: Sequence[int]) -> list[Arrival]:
        """Return a sealed report of each value, by one sender each.

        >>> with temporary_shuffle(minimum=2) as halves:
        ...     [len(one.envelope) for one in halves.arrivals([1, 3])]
        [132, 132]
        """
        parameters = self.shuffler.settings.parameters
        reports = encode(parameters, parameters.randomiser.release(values))
        sealed = [self.shuffler.envelopes.seal(one, key=self.analyser.key) for one in reports]
        return list(map(Arrival, self.tokens, sealed))

    def send(self, values: Sequence[int]) -> list[Verdict]:
        """Let senders send a value each.

        >>> with temporary_shuffle(minimum=2) as halves:
        ...     [verdict.value for verdict in halves.send([1, 3])]
        ['waiting', 'waiting']
        """
        return self.shuffler.accept(self.arrivals(values))

    def carry(self) -> int | None:
        """Release a batch and bring it to the analyser, which does not open it yet.

        >>> with temporary_shuffle(minimum=2) as halves:
        ...     print(halves.carry())
        ...     _ = halves.send([1, 3])
        ...     halves.carry()
        None
        1
        """
        number = self.shuffler.release()
        if number is not None:
            raw = self.shuffler.next()
            assert raw is not None
            self.analyser.keep(raw, shuffler=self.shuffler.key)
            self.shuffler.taken(number)
        return number


@contextmanager
def temporary_shuffle(*, minimum: int) -> Iterator[TemporaryShuffle]:
    """Set up both halves in a temporary folder, for a test or an example.

    >>> with temporary_shuffle(minimum=2) as halves:
    ...     halves.shuffler.waiting
    (0, 0)
    """
    law = DirectResponse(domain=4, epsilon=1)
    parameters = parameters_of(law, name="tea", a_day=1, lifetime=1)
    assumed = AnalyserSettings(parameters=parameters, minimum=minimum, honest=1, delta=1e-8)
    with (
        tempfile.TemporaryDirectory() as folder,
        Ledger.open(Path(folder) / "budget.db", testing=True) as ledger,
        Analyser.make(Path(folder) / "analyser.db", assumed) as analyser,
    ):
        account = ledger.create(
            "tea",
            unit=Unit.record(),
            neighbours="replace_one",
            guarantee=Guarantee(epsilon=10, delta=1e-6),
        )
        settings = ShufflerSettings(parameters=parameters, analyser=analyser.key, minimum=minimum)
        with Shuffler.make(Path(folder) / "shuffler.db", settings) as shuffler:
            yield TemporaryShuffle(
                shuffler=shuffler,
                analyser=analyser,
                account=account,
                tokens=tuple(shuffler.admit(_SENDERS)),
            )
