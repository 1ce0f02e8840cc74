"""Reports of nobody, which hide how few there may be of others."""

from discreet.local.wire import Parameters, encode
from discreet.noise import SYSTEM, Source, uniform_integers
from discreet.shuffle.envelopes.keys import SealingKey
from discreet.shuffle.envelopes.sealing import Envelopes

__all__ = ["dummies"]


def dummies(
    count: int, *, parameters: Parameters, key: SealingKey, source: Source = SYSTEM
) -> list[bytes]:
    """Return sealed reports of uniformly random values of the domain.

    Claim: nobody but who made them can tell them from others' envelopes. Each hides a report as
    well as one of an honest sender does, as long as the shuffler is honest.

    Why: each is a report by the collection's own law, of a value that depends on nothing, with a
    token of its own: what a device sends whose owner rolls a die.
    """
    randomiser = parameters.randomiser
    values = uniform_integers(randomiser.domain, count, source=source)
    reports = encode(parameters, randomiser.release(values, source=source), source=source)
    envelopes = Envelopes.of(parameters)
    return [envelopes.seal(report, key=key) for report in reports]
