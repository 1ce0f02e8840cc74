"""Audit several pairs of inputs with one budget of error."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from discreet._exact import Number
from discreet.audit._examination import claim, learning, require_pair, settle, study
from discreet.audit._result import Audit
from discreet.audit.outputs import collect
from discreet.audit.scores import propose
from discreet.errors import ParameterError

__all__ = ["search"]

T = TypeVar("T")


def search(
    fn: Callable[..., object],
    *,
    pairs: Iterable[tuple[T, T]],
    epsilon: Number,
    delta: Number,
    samples: int = 100_000,
    confidence: Number = 0.999,
    batch: bool = False,
) -> Audit:
    """Prove a lower bound on the epsilon of ``fn`` over several pairs of neighbouring inputs.

    A quarter of ``samples`` is drawn for each pair and studied as :func:`mechanism` does; the pair
    and event that promise most are then counted in fresh samples, the other three quarters.

    Claim: if calls are independent and ``fn`` is (epsilon, delta)-DP for every pair, the result
    fails with probability at most 1 - ``confidence``, however many pairs there are.

    Why: the pair is chosen by samples that certify nothing, and only one event of one pair is ever
    tested, so there is nothing to correct for: docs/proofs/audit.md.

    >>> import numpy as np
    >>> rng = np.random.default_rng(7)
    >>> def noisy(value, n):
    ...     return value**2 + rng.laplace(scale=1, size=n)   # its sensitivity is not 1 everywhere
    >>> found = search(noisy, pairs=[(0, 1), (1, 2), (-1, 0)], epsilon=1, delta=0, batch=True)
    >>> found.passed, found.pair
    (False, (1, 2))
    """
    claimed = claim(epsilon=epsilon, delta=delta, confidence=confidence, samples=samples)
    tried = list(pairs)
    if not tried:
        message = "pairs must hold at least one pair of neighbouring inputs."
        raise ParameterError(message, parameter="pairs")
    for pair in tried:
        require_pair(pair)
    studied = learning(claimed.samples)

    def outputs(pair: tuple[T, T], count: int) -> tuple[Any, Any]:
        return collect(fn, pair, count, batch=batch)

    studies = [study(outputs(pair, studied), pair, claimed, propose=propose) for pair in tried]
    best = max(range(len(tried)), key=lambda i: studies[i].choice.promise)
    return settle(studies[best], outputs(tried[best], claimed.samples - studied), claimed)
