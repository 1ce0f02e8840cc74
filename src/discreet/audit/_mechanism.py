"""Audit a mechanism by counting."""

from collections.abc import Callable
from typing import TypeVar

from discreet._exact import Number
from discreet.audit._examination import claim, learning, require_pair, settle, study
from discreet.audit._result import Audit
from discreet.audit.outputs import collect
from discreet.audit.scores import propose

__all__ = ["mechanism"]

T = TypeVar("T")


def mechanism(
    fn: Callable[..., object],
    *,
    pair: tuple[T, T],
    epsilon: Number,
    delta: Number,
    samples: int = 100_000,
    confidence: Number = 0.999,
    batch: bool = False,
) -> Audit:
    """Prove a lower bound on the epsilon of ``fn`` between two neighbouring inputs.

    ``fn(value)`` is called ``samples`` times for each input of the pair; with ``batch=True``,
    ``fn(value, n)`` is called once for each and returns n outputs. Outputs may be anything that
    can be told apart: numbers, texts, sequences, arrays, sets, mappings; a single call that raises
    counts as an output of its own. Floats are taken as numbers; :func:`low_bits` looks at their
    last bits.

    Claim: if calls are independent and ``fn`` is (epsilon, delta)-DP for this pair, the result
    fails with probability at most 1 - ``confidence``, however the outputs are distributed. A pass
    proves nothing; ``power`` says how much it could have shown.

    Why: an eighth of the samples proposes events (half-lines, sets of outcomes, scores learned from
    vectors, sequences and texts), an eighth picks one event and the direction, and the rest counts
    that one. An exact test of the two counts, independent of the choice, gives the bound:
    docs/proofs/audit.md. It cannot exceed about log(samples / 4) at 95%.

    >>> import numpy as np
    >>> rng = np.random.default_rng(7)
    >>> def noisy(value, n):
    ...     return value + rng.laplace(scale=1, size=n)   # insecure: an example, not a mechanism
    >>> found = mechanism(noisy, pair=(0, 1), epsilon=1, delta=0, batch=True)
    >>> found.passed, found.epsilon_lower > 0.9
    (True, True)
    >>> mechanism(noisy, pair=(0, 2), epsilon=1, delta=0, batch=True).passed
    False
    """
    claimed = claim(epsilon=epsilon, delta=delta, confidence=confidence, samples=samples)
    require_pair(pair)
    first, second = collect(fn, pair, claimed.samples, batch=batch)
    studied = learning(claimed.samples)
    found = study((first[:studied], second[:studied]), pair, claimed, propose=propose)
    return settle(found, (first[studied:], second[studied:]), claimed)
