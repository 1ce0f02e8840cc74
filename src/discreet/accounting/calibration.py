"""From a guarantee to the smallest noise that meets it, certified on the safe side."""

import math
from collections.abc import Callable

from discreet._exact import Number, float_up, nonnegative, positive, probability, show
from discreet._rounding import log_of
from discreet.accounting.arithmetic.search import smallest_enough, smallest_float
from discreet.accounting.losses.certified import epsilon_upper
from discreet.accounting.losses.loss import Loss
from discreet.errors import ParameterError

__all__ = ["calibrate", "classic_gaussian_sigma"]


def calibrate(
    make_loss: Callable[[float], Loss], *, epsilon: Number, delta: Number, largest: bool = False
) -> float:
    """Return the smallest parameter whose loss is (epsilon, delta)-DP.

    ``make_loss`` maps a positive float (a noise multiplier, a scale, ...) to a loss that gets
    smaller as the parameter grows. For one that gets larger (a sampling rate), ``largest=True``
    returns the largest parameter instead; where ``make_loss`` refuses a parameter, the search
    stays below it. For a number of steps there is :func:`most_steps`.

    Claim: ``delta(make_loss(result), epsilon=epsilon) <= delta`` and, for an epsilon above 0,
    ``epsilon(make_loss(result), delta=delta) <= epsilon``, both as evaluated: so whatever the
    search does the answer is safe, and whoever looks at it from either side sees that it is.

    >>> from discreet.accounting import GaussianLoss, LaplaceLoss
    >>> f"{calibrate(lambda s: GaussianLoss(noise_multiplier=s), epsilon=1, delta=1e-5):.4f}"
    '3.7306'
    >>> calibrate(lambda s: LaplaceLoss(noise_multiplier=s), epsilon=0.5, delta=0)
    2.0
    >>> step = GaussianLoss(noise_multiplier=2)
    >>> rate = calibrate(lambda r: step.sampled(rate=r) * 100, epsilon=1, delta=1e-5, largest=True)
    >>> round(rate, 4)
    0.0459
    """
    budget = nonnegative(epsilon, name="epsilon")
    allowed = probability(delta, name="delta", zero=True)

    def reached(parameter: float) -> float:
        """Return delta at a parameter, searched for upwards: its inverse where largest is asked."""
        if not largest:
            return make_loss(parameter).delta_upper(epsilon=budget)
        try:
            return make_loss(1 / parameter).delta_upper(epsilon=budget)
        except ParameterError:
            return math.inf

    is_dear = make_loss(1.0).is_composed and allowed > 0
    if is_dear:
        # A composition is dear to evaluate: stop at six digits, on the safe side.
        log_allowed = log_of(allowed)

        def excess(parameter: float) -> float:
            found = reached(parameter)
            above = math.log(max(found, 1e-300)) - log_allowed
            return above if found > allowed else min(-1e-300, above)

        found = smallest_enough(excess, relative=1e-6)
    else:
        found = smallest_float(lambda s: reached(s) <= allowed)
    if found is not None and budget:

        def is_within(parameter: float) -> bool:
            loss = make_loss(1 / parameter if largest else parameter)
            return epsilon_upper(loss, delta=allowed) <= budget and reached(parameter) <= allowed

        found = _first(is_within, found, step=1e-6 if is_dear else 2.0**-52)
    if found is None:
        raise ParameterError(
            f"no parameter up to 1e300 gives epsilon={show(epsilon)} at delta={show(delta)}. "
            "Noise that is not pure needs delta above 0; no noise reaches 0 in both.",
            parameter="delta" if allowed == 0 else "epsilon",
        )
    return 1 / found if largest else found


def _first(holds: Callable[[float], bool], start: float, *, step: float) -> float | None:
    """Return the first of some parameters from ``start`` upwards, by growing steps, that holds.

    Delta and epsilon of a composition are computed to about 1e-5 each, so the first may be met
    where the second is not yet.
    """
    for _ in range(64):
        if holds(start):
            return start
        start, step = start * (1 + step), 2 * step
    return None


def classic_gaussian_sigma(*, epsilon: Number, delta: Number, sensitivity: Number) -> float:
    """Return the textbook sigma = sensitivity sqrt(2 ln(1.25/delta)) / epsilon, for comparison.

    It is proved for epsilon of at most 1 only [DR14, Theorem A.1, and its limit at 1], false for
    large epsilon, and always larger than :func:`calibrate` finds, so no mechanism uses
    it. Larger epsilon is refused.

    >>> round(classic_gaussian_sigma(epsilon=1, delta=1e-5, sensitivity=0.5), 2)  # mean BMI, n=100
    2.42
    """
    hint = "The classic formula is proved for epsilon up to 1; use calibrate instead."
    budget = positive(epsilon, name="epsilon")
    if budget > 1:
        message = f"epsilon must be at most 1, got {show(epsilon)}. {hint}"
        raise ParameterError(message, parameter="epsilon")
    failure = probability(delta, name="delta")
    width = positive(sensitivity, name="sensitivity")
    # Logarithms of the integers, because delta itself may be too small for a float.
    log_odds = math.log(1.25) + math.log(failure.denominator) - math.log(failure.numerator)
    factor = math.sqrt(2 * log_odds) * (1 + 1e-12)
    return factor * float_up(width / budget)
