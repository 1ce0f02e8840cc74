"""Laws of two stages: a permanent response that is drawn once, and a coin for each report of it."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Self, final

from discreet._exact import Number, positive, refusal, whole
from discreet.local.laws.preference import ONE, Preference
from discreet.noise.enclosure import chance_odds, log_up

__all__ = ["ChainedCoins", "ChainedPreference"]

_ENOUGH: Final = Fraction(100)  # from here on the chance of a lie is below 2**-64 in any case
_MOST: Final = 1 << 12  # reports; more are told apart no better, and their ratio takes long


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ChainedPreference:
    """Prefer one's own output for ever, then prefer that response in each single report.

    The ``permanent`` response is drawn once. A report gives it with chance ``keep / 2**64``,
    otherwise uniformly one of the other outputs, with a fresh coin each time.

    Claim: all reports of one value, however many, are ``lasting``-DP when it is replaced by
    another. ``t`` of them are ``epsilon_after(t)``-DP and no less; the first is
    ``epsilon_after(1)``-DP.

    Why: reports are post-processing of the permanent response. Of ``t`` reports, c_u of which are
    u, the chance under value v is proportional to sum_u P(u | v) r**c_u, with r the ratio of a kept
    response to another. So two values v and w have the ratio 1 + (p - q)(a - b) / (q S + (p - q) b)
    with a = r**c_v, b = r**c_w and S the sum over all outputs, which is largest where all reports
    are v.

    >>> law = ChainedPreference.calibrated(epsilon=2, first=0.5, outputs=4)
    >>> law.epsilon_after(1), round(law.epsilon_after(7), 3), law.lasting
    (0.5, 1.962, 2.0)
    """

    permanent: Preference
    keep: int

    def __post_init__(self) -> None:
        if not whole(self.keep, name="keep") <= ONE or self.keep * self.outputs <= ONE:
            wanted = "such that the permanent response is likelier than another"
            raise refusal("keep", wanted, self.keep, "Use a larger first epsilon.")

    @classmethod
    def calibrated(cls, *, epsilon: Number, first: Number, outputs: int) -> Self:
        """Return the law with the largest ``keep`` of which one report is ``first``-DP."""
        permanent = Preference.calibrated(epsilon=epsilon, outputs=outputs, preferred=1)
        if _first_budget(first, epsilon) == positive(epsilon, name="epsilon"):
            return cls(permanent=permanent, keep=ONE)
        one = Preference.calibrated(epsilon=first, outputs=outputs, preferred=1)
        hit, miss = permanent.hit(shared=1), permanent.hit(shared=0)
        # A report is the value itself with chance miss + keep (hit - miss): at most the one asked.
        keep = (one.keep_chance - miss) / (hit - miss)
        return cls(permanent=permanent, keep=min(int(keep * ONE), ONE))

    @property
    def outputs(self) -> int:
        """How many outputs there are."""
        return self.permanent.outputs

    @property
    def keep_chance(self) -> Fraction:
        """The chance that a report is the permanent response."""
        return Fraction(self.keep, ONE)

    @property
    def stray(self) -> Fraction:
        """The chance that a report is a certain other output."""
        return (1 - self.keep_chance) / (self.outputs - 1)

    @property
    def hit(self) -> Fraction:
        """The chance that a report is the value itself."""
        return _mixed(self.permanent.hit(shared=1), self.keep_chance, self.stray)

    @property
    def miss(self) -> Fraction:
        """The chance that a report is a certain other value."""
        return _mixed(self.permanent.hit(shared=0), self.keep_chance, self.stray)

    @property
    def lasting(self) -> float:
        """The epsilon of all reports of one value, for ever."""
        return self.permanent.epsilon

    @property
    def further(self) -> float | None:
        """The epsilon of one more report whatever was reported before; None if there is none."""
        return None if self.stray == 0 else _log_up(self.keep_chance / self.stray)

    def epsilon_after(self, reports: int) -> float:
        """Return the epsilon of this many reports of one value; they are likest if all are it."""
        if whole(reports, name="reports") > _MOST:
            return self.lasting
        own, other = self.permanent.hit(shared=1), self.permanent.hit(shared=0)
        return _log_up(_likelier(own, other, self.keep_chance, self.stray, reports))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ChainedCoins:
    """Give each bit a permanent response, and let a coin turn it round in a single report.

    A bit that is set shows as 1 for ever with chance ``own / 2**64``, one that is not with chance
    ``other / 2**64``. A report shows the permanent bit with chance ``keep / 2**64``, otherwise the
    opposite. Two values differ in at most ``differing`` bits: in one, or in one that only the
    first has and one that only the second has.

    Claim: all reports of one value, however many, are ``lasting``-DP when it is replaced by
    another; ``t`` of them are ``epsilon_after(t)``-DP and no less.

    Why: bits are independent, so only the differing ones count. With j ones in t reports of a bit,
    the ratio of its chances if set and if not is a mean of own and other in which the ones weigh
    (keep / (1 - keep))**(2 j - t); it grows with j. So it is largest if all t reports show the bit
    of the first value as 1 and that of the second as 0.

    >>> law = ChainedCoins.calibrated(epsilon=2, first=0.5, differing=2, optimized=True)
    >>> law.epsilon_after(1), round(law.epsilon_after(7), 3), law.lasting
    (0.5, 1.934, 2.0)
    """

    own: int
    other: int
    keep: int
    differing: int

    def __post_init__(self) -> None:
        if not 0 < whole(self.other, name="other") < whole(self.own, name="own") < ONE:
            raise refusal("other", "below own, which is below 2**64", self.other)
        if not ONE < 2 * whole(self.keep, name="keep") <= 2 * ONE:
            wanted = "such that the permanent bit is likelier than its opposite"
            raise refusal("keep", wanted, self.keep, "Use a larger first epsilon.")
        if self.differing not in (1, 2):
            raise refusal("differing", "1 or 2", self.differing)

    @classmethod
    def calibrated(cls, *, epsilon: Number, first: Number, differing: int, optimized: bool) -> Self:
        """Return the law with the largest ``keep`` of which one report is ``first``-DP.

        A set bit is 1 with a half if ``optimized``, otherwise as often as another one is 0. A
        report's coins have the same form then: a half stays a half. [ACBX22, Table 1]
        """
        if optimized and differing != 2:
            raise refusal("optimized", "False where values differ in one bit", optimized)
        share = 1 if optimized else differing  # of how many bits the whole loss is made up
        budget = _first_budget(first, epsilon)
        other = _rarely(positive(epsilon, name="epsilon") / share)
        own = ONE // 2 if optimized else ONE - other
        # A report's bit that is not set shows as 1 with chance 1 - other - keep (1 - 2 other), all
        # over 2**64: at least the one asked for.
        rarely = _rarely(budget / share)
        keep = ONE * (ONE - other - rarely) // (ONE - 2 * other) if 2 * other < ONE else 0
        return cls(own=own, other=other, keep=keep, differing=differing)

    @property
    def own_chance(self) -> Fraction:
        """The chance that a set bit is 1 for ever."""
        return Fraction(self.own, ONE)

    @property
    def other_chance(self) -> Fraction:
        """The chance that a bit that is not set is 1 for ever."""
        return Fraction(self.other, ONE)

    @property
    def keep_chance(self) -> Fraction:
        """The chance that a report shows the permanent bit."""
        return Fraction(self.keep, ONE)

    @property
    def hit(self) -> Fraction:
        """The chance that a report shows 1 for a set bit."""
        return _mixed(self.own_chance, self.keep_chance, 1 - self.keep_chance)

    @property
    def miss(self) -> Fraction:
        """The chance that a report shows 1 for another bit."""
        return _mixed(self.other_chance, self.keep_chance, 1 - self.keep_chance)

    @property
    def lasting(self) -> float:
        """The epsilon of all reports of one value, for ever."""
        above = self.own_chance / self.other_chance
        below = (1 - self.own_chance) / (1 - self.other_chance)
        return self._epsilon(above, below)

    @property
    def further(self) -> float | None:
        """The epsilon that one bit adds in one more report; None if there is none."""
        keep = self.keep_chance
        return None if keep == 1 else _log_up(keep / (1 - keep))

    def epsilon_after(self, reports: int) -> float:
        """Return the epsilon of this many reports of one value."""
        if whole(reports, name="reports") > _MOST:
            return self.lasting
        own, other, keep = self.own_chance, self.other_chance, self.keep_chance
        above = _likelier(own, other, keep, 1 - keep, reports)
        below = _likelier(own, other, 1 - keep, keep, reports)
        return self._epsilon(above, below)

    def _epsilon(self, above: Fraction, below: Fraction) -> float:
        return _log_up(above / below if self.differing == 2 else max(above, 1 / below))


def _first_budget(first: Number, epsilon: Number) -> Fraction:
    budget, hint = positive(first, name="first"), "One report cannot tell more than all of them."
    if budget > positive(epsilon, name="epsilon"):
        raise refusal("first", "at most epsilon", first, hint)
    return budget


def _rarely(budget: Fraction) -> int:
    """Return the least whole number whose chance has odds of at most exp(budget) against it."""
    return chance_odds(min(budget, _ENOUGH), Fraction(1))(64) + 1


def _mixed(chance: Fraction, kept: Fraction, otherwise: Fraction) -> Fraction:
    return chance * kept + (1 - chance) * otherwise


def _likelier(
    own: Fraction, other: Fraction, kept: Fraction, otherwise: Fraction, reports: int
) -> Fraction:
    """Return how much likelier ``reports`` equal reports are with ``own`` than with ``other``."""
    kept, otherwise = kept**reports, otherwise**reports
    return _mixed(own, kept, otherwise) / _mixed(other, kept, otherwise)


def _log_up(ratio: Fraction) -> float:
    """Return a float not below log(ratio), however long the ratio's whole numbers are."""
    return log_up(Fraction(-(-(ratio.numerator << 192) // ratio.denominator), 1 << 192))
