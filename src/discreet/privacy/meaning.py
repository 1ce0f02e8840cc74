"""What a guarantee means for one person, in probabilities an outsider can picture.

All of it follows from one picture. Somebody wants to know whether your records are in the data
(add_remove) or which of two versions they are (replace_one). A test that cries "yes" with
probability a when the answer is no, and with probability b when it is yes, obeys

    b <= e^epsilon a + delta   and   1 - a <= e^epsilon (1 - b) + delta,

the definition applied to the event "cries yes" and to its complement [WZ10; KOV17, Section 2].
Every bound below is the best point of that region. Some (epsilon, delta) mechanism fills the
whole region, so none of them can be improved without knowing the mechanism.

Results are floats rounded towards more risk. No epsilon overflows.
"""

from fractions import Fraction
from typing import Literal, NamedTuple

from discreet._exact import exact, float_up, probability
from discreet._rounding import exp_lower, float_down
from discreet.privacy.guarantee import WEAK_EPSILON, Guarantee

STRONG_EPSILON = 1
NEGLIGIBLE_EPSILON = 100

Strength = Literal["strong", "moderate", "weak", "negligible"]


class Odds(NamedTuple):
    """Compare the two worlds: how often an observer says "in the data", with you and without.

    >>> Odds(with_you=0.75, without_you=0.25).with_you
    0.75
    """

    with_you: float
    without_you: float


def strength(guarantee: Guarantee) -> Strength:
    """Return the usual band of epsilon: to 1 strong, to 10 moderate, to 100 weak, then negligible.

    The bands are habit, not theorem; delta is judged apart, by ``Guarantee.warn_if_weak``.

    >>> [strength(Guarantee(epsilon=e)) for e in (1, 10, 10.5, 101)]
    ['strong', 'moderate', 'weak', 'negligible']
    """
    if guarantee.epsilon <= STRONG_EPSILON:
        return "strong"
    if guarantee.epsilon <= WEAK_EPSILON:
        return "moderate"
    return "weak" if guarantee.epsilon <= NEGLIGIBLE_EPSILON else "negligible"


def odds(guarantee: Guarantee) -> Odds:
    """Return the two frequencies of odds-based explanations [NSCKR23], valid for any mechanism.

    Claim: an observer who is right as often when you take part as when you do not says "you took
    part" with probability at most ``with_you`` if you did, and at least ``without_you`` if you
    did not, where with_you = (e^epsilon + delta) / (1 + e^epsilon) = 1 - without_you.

    Why: set b = 1 - a in the first inequality above and solve for b.

    >>> with_you, without_you = odds(Guarantee(epsilon=1))
    >>> round(100 * with_you), round(100 * without_you)
    (73, 27)
    """
    miss = _least_miss(guarantee)
    return Odds(with_you=float_up(1 - miss), without_you=float_down(miss))


def success(guarantee: Guarantee, *, prior: float | Fraction) -> float:
    """Return the best observer's chance of a right guess, starting from a prior belief.

    Claim: who gives "you took part" a probability of ``prior`` beforehand guesses right with
    probability at most 1 - (1 - delta) min(prior, 1 - prior, 1 / (1 + e^epsilon)).

    Why: the chance of a wrong guess, (1 - prior) a + prior (1 - b), is linear, so its minimum is
    at a corner of the region: (0, delta), (1 - delta, 1), or the corner of :func:`odds`.

    >>> round(success(Guarantee(epsilon=1, delta=1e-6), prior=0.5), 4)
    0.7311
    >>> success(Guarantee(epsilon=1e6), prior=0.5)
    1.0
    """
    belief = probability(prior, name="prior", zero=True, one=True)
    certain = 1 - exact(guarantee.delta, name="delta")
    return float_up(1 - min(certain * belief, certain * (1 - belief), _least_miss(guarantee)))


def advantage(guarantee: Guarantee) -> float:
    """Return how far the best observer gets from guessing (0) towards knowing (1).

    Claim: b - a is at most (e^epsilon - 1 + 2 delta) / (e^epsilon + 1) [HOTRGHK23], the
    membership-inference advantage.

    Why: it is 2 * success - 1 at prior 1/2, the corner of :func:`odds`.

    >>> round(advantage(Guarantee(epsilon=1)), 4)
    0.4621
    """
    return float_up(1 - 2 * _least_miss(guarantee))


def posterior(guarantee: Guarantee, *, prior: float | Fraction) -> float:
    """Return how far a belief about you can rise after seeing a release.

    Claim: for an observer who knows all other records, and outside an accident of probability at
    most delta, Pr[you took part | output] <= prior / (prior + (1 - prior) e^-epsilon).

    Why: let P and Q be the densities with and without you. P' = min(P, e^epsilon Q) and
    Q' = min(Q, e^epsilon P) satisfy P' <= e^epsilon Q', and P - P' = (P - e^epsilon Q)^+ has mass
    at most delta by definition, as has Q - Q'. Call the part cut off the accident; outside it,
    Bayes' rule multiplies the odds prior : (1 - prior) by at most e^epsilon. What the accident
    reveals is bounded by :func:`success`, which needs no exception.

    >>> round(posterior(Guarantee(epsilon=1), prior=0.1), 4)
    0.232
    """
    return float_up(posterior_bound(guarantee, prior=prior))


def posterior_bound(guarantee: Guarantee, *, prior: float | Fraction) -> Fraction:
    """Return the :func:`posterior` before it is rounded to a float: at epsilon 0 it is the prior.

    >>> posterior_bound(Guarantee(epsilon=0), prior=Fraction(1, 100))
    Fraction(1, 100)
    """
    belief = probability(prior, name="prior", zero=True, one=True)
    if belief == 0:
        return belief
    shrink = exp_lower(-exact(guarantee.epsilon, name="epsilon"))
    return belief / (belief + (1 - belief) * shrink)


def detection(guarantee: Guarantee, *, false_alarms: float | Fraction) -> float:
    """Return the best true-positive rate of an observer with this rate of false alarms.

    Claim: b is at most min(e^epsilon a + delta, 1 - e^-epsilon (1 - delta - a), 1).

    Why: these are the two inequalities above, solved for b.

    >>> round(detection(Guarantee(epsilon=1, delta=1e-6), false_alarms=0.01), 4)
    0.0272
    """
    alarms = probability(false_alarms, name="false_alarms", zero=True, one=True)
    delta = exact(guarantee.delta, name="delta")
    shrink = exp_lower(-exact(guarantee.epsilon, name="epsilon"))
    # Dividing by e^-epsilon from below is multiplying by e^epsilon from above.
    if alarms > 0:
        first = min(Fraction(1), alarms / shrink + delta) if shrink else Fraction(1)
    else:
        first = delta
    second = 1 - shrink * max(Fraction(0), 1 - delta - alarms)
    return float_up(min(Fraction(1), first, second))


def _least_miss(guarantee: Guarantee) -> Fraction:
    """Return a lower bound on (1 - delta) / (1 + e^epsilon), the balanced observer's error."""
    shrink = exp_lower(-exact(guarantee.epsilon, name="epsilon"))
    # 1 / (1 + e^epsilon) = s / (1 + s) with s = e^-epsilon, which grows with s.
    return (1 - exact(guarantee.delta, name="delta")) * shrink / (1 + shrink)
