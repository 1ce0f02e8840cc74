"""How many right guesses an (epsilon, delta) claim allows, and what more of them prove.

The proofs are in docs/proofs/one_run_auditing.md.
"""

from math import exp, lgamma, log1p

__all__ = ["epsilon_proved", "tail_upper"]

_ROUNDING = 1 + 1e-9  # far more than the incomplete beta function errs by, relatively
_SMALL = -640.0  # logarithm of a probability that still has all its digits
_MOST_EPSILON = 64.0
_HALVINGS = 50


def tail_upper(right: int, *, guesses: int, epsilon: float, failures: float) -> float:
    """Return the most that the chance of ``right`` or more right guesses can be.

    Claim: of m canaries, each in the data by a fair coin of its own, ``guesses`` are guessed and
    the others abstained on. If the run is (epsilon, delta)-DP for each canary, then with f the
    chance that Binomial(guesses, e^epsilon / (1 + e^epsilon)) is at least ``right``, and b that it
    equals it, the chance is at most f + failures f (1 - f) / (right b). ``failures`` is m delta,
    or m delta / 2 where every guess is "included".

    Why: theorem 2 of the proof. At delta = 0 it is that of [SNJ23]; its last term was at most the
    2 m delta max_i (f(right - i) - f(right)) / i of theirs wherever the two were compared.

    >>> round(tail_upper(90, guesses=100, epsilon=1, failures=0), 5)
    3e-05
    >>> round(tail_upper(90, guesses=100, epsilon=1, failures=0.1), 5)
    0.00158
    """
    from scipy.special import bdtrc

    if right <= 0:
        return 1.0
    tail = float(bdtrc(right - 1, guesses, 1 / (1 + exp(-epsilon))))
    if failures == 0:
        return min(1.0, tail * _ROUNDING)
    point = _log_point(right, guesses, epsilon)
    if point > _SMALL:
        times = tail / exp(point)
    else:  # the terms after the first fall at least as fast as a geometric series
        ratio = (guesses - right) / (right + 1) * exp(epsilon)
        if ratio >= 1:
            return 1.0
        times = 1 / (1 - ratio)
    return min(1.0, (tail + failures * times * (1 - tail) / right) * _ROUNDING)


def epsilon_proved(right: int, *, guesses: int, failures: float, alpha: float) -> float:
    """Return the largest epsilon that is refuted at ``alpha``.

    >>> round(epsilon_proved(95, guesses=100, failures=0, alpha=0.05), 3)
    2.172
    >>> epsilon_proved(50, guesses=100, failures=0, alpha=0.05)
    0.0
    """

    def refuted(epsilon: float) -> bool:
        bound = tail_upper(right, guesses=guesses, epsilon=epsilon, failures=failures)
        return bound <= alpha

    low, high = 0.0, _MOST_EPSILON
    if not refuted(low):
        return 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def _log_point(right: int, guesses: int, epsilon: float) -> float:
    """Return log Pr[Binomial(guesses, e^epsilon / (1 + e^epsilon)) = right]."""
    ways = lgamma(guesses + 1) - lgamma(right + 1) - lgamma(guesses - right + 1)
    miss = -epsilon - log1p(exp(-epsilon))
    return ways - right * log1p(exp(-epsilon)) + (guesses - right) * miss
