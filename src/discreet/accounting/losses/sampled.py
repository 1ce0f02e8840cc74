"""Losses of operations on a random part of the data."""

import math
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

from discreet._exact import Number, float_up, plain, probability, whole
from discreet._rounding import float_down, log_of
from discreet.accounting import renyi
from discreet.accounting.losses.loss import Curve, Loss
from discreet.accounting.losses.pure import ApproximateLoss
from discreet.accounting.pairs.pairs import MixedPair, Pair, SampledPair
from discreet.errors import ParameterError
from discreet.privacy import Neighbours

__all__ = ["SampledLoss", "TruncatedPoissonLoss", "WithoutReplacementLoss"]

# The bound for sampling of anything adds up all whole orders below, each dear.
_HIGHEST_GENERAL = 256


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SampledLoss(Loss):
    """Describe Poisson sampling: each unit takes part with chance ``rate``, independently.

    Claim: with ``inner`` the loss of the operation on the sample under add/remove (or zero-out),
    the whole is dominated by ((1-r)Q + rP, Q) for removing and (P, (1-r)P + rQ) for adding a unit,
    where (P, Q) dominates ``inner``. It does not hold for batches of fixed size.

    Why: [ZDW22, Theorem 11]. In particular epsilon becomes log(1 + r (exp(epsilon) - 1)).

    >>> from discreet.accounting import PureLoss, epsilon
    >>> round(epsilon(PureLoss(epsilon=0.5).sampled(rate=0.01), delta=0), 5)
    0.00647
    """

    inner: Loss
    rate: Number
    kind: ClassVar[str] = "sampled"
    is_slow: ClassVar[bool] = True
    neighbours: ClassVar[Neighbours | None] = Neighbours.add_remove

    def __post_init__(self) -> None:
        _chance_to_take_part(self.rate)
        object.__setattr__(self, "rate", plain(self.rate, name="rate"))
        _require_single(self.inner, Neighbours.add_remove)

    @property
    def epsilon_pure(self) -> Fraction | float:
        """log(1 + rate (exp(epsilon) - 1)), rounded up."""
        return _amplified(self.inner.epsilon_pure, Fraction(self.rate))

    def delta_upper(self, *, epsilon: Number) -> float:
        """Return delta at ``epsilon``, rounded up.

        Why: at a' = 1 + (a - 1) / rate, delta(log a) = rate * inner delta(log a') for removing,
        which is the larger of the two directions at epsilon >= 0 [BBG20, Theorem 8].

        >>> from discreet.accounting import PureLoss
        >>> round(SampledLoss(inner=PureLoss(epsilon=2), rate=0.5).delta_upper(epsilon=1), 4)
        0.176
        """
        return _amplified_delta(self.inner, Fraction(self.rate), Fraction(epsilon))

    def renyi_upper(self, *, order: Fraction) -> Fraction | float:
        """Return the divergence of sampled Gaussian noise, or of what is known by its epsilon.

        >>> from discreet.accounting import GaussianLoss
        >>> loss = SampledLoss(inner=GaussianLoss(noise_multiplier=4), rate=0.01)
        >>> round(loss.renyi_upper(order=Fraction(32)), 8)
        0.00010526
        """
        multiplier, pure = self.inner.gaussian_multiplier, self.inner.epsilon_pure
        if multiplier is not None:
            return renyi.sampled_gaussian(noise_multiplier=multiplier, rate=self.rate, order=order)
        if isinstance(pure, Fraction):
            return renyi.sampled_pure(epsilon=pure, rate=self.rate, order=order)
        return math.inf

    def renyi_curve(self) -> Curve | None:
        """Return the same, and the bound for sampling of anything where that is smaller.

        >>> from discreet.accounting import LaplaceLoss
        >>> loss = SampledLoss(inner=LaplaceLoss(noise_multiplier=4), rate=0.01)
        >>> round(loss.renyi_curve()(8.0), 8)
        2.516e-05
        """
        rate, inner = Fraction(self.rate), self.inner
        if inner.gaussian_multiplier is not None:
            return lambda order: float(self.renyi_upper(order=Fraction(order)))
        curve = None if inner.failure or isinstance(inner, SampledLoss) else inner.renyi_curve()
        if curve is None:
            return None

        def bound(order: float) -> float:
            found = float(self.renyi_upper(order=Fraction(order)))
            if order <= _HIGHEST_GENERAL:
                found = min(found, renyi.sampled(curve, rate=rate, order=order))
            return found

        return bound

    @property
    def least_delta(self) -> Fraction:
        """That of the operation, times the rate."""
        return Fraction(self.rate) * self.inner.least_delta

    @property
    def mu_squared(self) -> float | None:
        """rate^2 (exp(1 / m^2) - 1) for Gaussian noise."""
        multiplier = self.inner.gaussian_multiplier
        if multiplier is None:
            return None
        exponent = float(1 / Fraction(multiplier) ** 2)
        return float(self.rate) ** 2 * math.expm1(exponent) if exponent < 700 else None

    def pairs(self) -> tuple[Pair, Pair]:
        """Return the two sampled pairs.

        >>> from discreet.accounting import PureLoss
        >>> pairs = SampledLoss(inner=PureLoss(epsilon=2), rate=0.5).pairs()
        >>> [round(pair.span(1)[1], 3) for pair in pairs]  # the largest losses
        [1.434, 0.566]
        """
        removing, adding = self.inner.pairs()
        rate = float_up(Fraction(self.rate))
        if rate == 1:
            return removing, adding
        return SampledPair(removing, rate, removes=True), SampledPair(adding, rate, removes=False)

    @property
    def is_tight(self) -> bool:
        """Whether the operation on the sample is."""
        return self.inner.is_tight

    def attained_pairs(self) -> tuple[Pair, Pair] | None:
        """Return the two sampled pairs of an operation that ``inner`` describes.

        >>> from discreet.accounting import PureLoss
        >>> pairs = SampledLoss(inner=PureLoss(epsilon=2), rate=0.5).attained_pairs()
        >>> [round(pair.span(1)[1], 3) for pair in pairs]
        [1.434, 0.566]
        """
        found, rate = self.inner.attained_pairs(), float_down(Fraction(self.rate))
        if found is None or not 0 < rate < 1:
            return found if rate else None
        removing, adding = found
        return SampledPair(removing, rate, removes=True), SampledPair(adding, rate, removes=False)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedPoissonLoss(Loss):
    """Describe Poisson sampling from at most ``population`` units, cut to ``batch`` units.

    ``uniform`` says that the units kept are drawn uniformly from those sampled; otherwise any cut
    is covered. Under add/remove, ``inner`` being the loss of the operation on the batch.

    Claim: with t the chance that a sample of all units but one already fills the batch, it is
    dominated by plain Poisson sampling with probability 1 - t and, with probability t, by sampling
    of ``inner.group(2)`` if the cut is uniform, of an operation that tells all if not. Outside an
    event of probability rate * t it has the divergences of plain sampling.

    Why: docs/proofs/truncated_poisson.md. One unit more takes the place of another one at most,
    and only where the others fill the batch and it is drawn itself. (By total variation
    [CGKKMSZ24] delta grows by (1 + exp(epsilon)) t.)

    >>> from discreet.accounting import GaussianLoss, epsilon
    >>> inner = GaussianLoss(noise_multiplier=1)
    >>> loss = TruncatedPoissonLoss(inner=inner, rate=0.01, batch=200, population=10_000)
    >>> round(epsilon(loss * 100, delta=1e-6), 3), round(epsilon(loss.plain * 100, delta=1e-6), 3)
    (0.954, 0.954)
    """

    inner: Loss
    rate: Number
    batch: int
    population: int
    uniform: bool = False
    kind: ClassVar[str] = "truncated_poisson"
    is_slow: ClassVar[bool] = True
    neighbours: ClassVar[Neighbours | None] = Neighbours.add_remove

    def __post_init__(self) -> None:
        _require_single(self.inner, Neighbours.add_remove)
        _chance_to_take_part(self.rate)
        object.__setattr__(self, "rate", plain(self.rate, name="rate"))
        object.__setattr__(self, "batch", whole(self.batch, name="batch"))
        object.__setattr__(self, "population", whole(self.population, name="population"))
        if not isinstance(self.uniform, bool):
            raise ParameterError("uniform must be True or False.", parameter="uniform")

    @property
    def plain(self) -> SampledLoss:
        """The same without the cut."""
        return SampledLoss(inner=self.inner, rate=self.rate)

    @property
    def exchanged(self) -> SampledLoss:
        """What is lost where the others fill the batch: one unit may take another one's place."""
        worst: Loss = ApproximateLoss(epsilon=0, delta=1)
        if self.uniform:
            with suppress(ParameterError):  # where no bound for two units is known
                worst = self.inner.group(2)
        return SampledLoss(inner=worst, rate=self.rate)

    @property
    def overflow(self) -> float:
        """A bound on the chance that all units but one fill the batch."""
        from scipy.stats import binom

        chance = binom.sf(self.batch - 1, self.population - 1, float_up(Fraction(self.rate)))
        return min(1.0, float(chance) * (1 + 1e-9))

    @property
    def epsilon_pure(self) -> Fraction | float:
        """That of an exchange, or of plain sampling if nothing can ever be cut."""
        return self.exchanged.epsilon_pure if self.overflow else self.plain.epsilon_pure

    @property
    def failure(self) -> Fraction:
        """The chance that the unit is drawn where the others fill the batch, if the cut is uniform.

        It holds for every cut. But ledgers have others on record as one guarantee for a whole run,
        so their divergences are not told.
        """
        return Fraction(self.rate) * Fraction(self.overflow) if self.uniform else Fraction(0)

    def delta_upper(self, *, epsilon: Number) -> float:
        """Return delta at ``epsilon``, rounded up.

        >>> from discreet.accounting import PureLoss
        >>> inner = PureLoss(epsilon=2)
        >>> loss = TruncatedPoissonLoss(inner=inner, rate=0.5, batch=90, population=100)
        >>> round(loss.delta_upper(epsilon=1), 4)
        0.176
        """
        chance, rest = self.overflow, self.plain.delta_upper(epsilon=epsilon)
        if not chance:
            return rest
        cut = self.exchanged.delta_upper(epsilon=epsilon)
        return min(1.0, (rest + chance * max(0.0, cut - rest)) * (1 + 1e-15))

    def renyi_upper(self, *, order: Fraction) -> Fraction | float:
        """Return the divergence of plain sampling, which holds but for ``failure``.

        >>> from discreet.accounting import GaussianLoss
        >>> loss = TruncatedPoissonLoss(inner=GaussianLoss(noise_multiplier=4), rate=0.01,
        ...                             batch=200, population=10_000, uniform=True)
        >>> round(loss.renyi_upper(order=Fraction(32)), 8)
        0.00010526
        """
        return self.plain.renyi_upper(order=order) if self.uniform else math.inf

    def renyi_curve(self) -> Curve | None:
        """Return that of plain sampling, which holds but for ``failure``.

        >>> from discreet.accounting import GaussianLoss
        >>> loss = TruncatedPoissonLoss(inner=GaussianLoss(noise_multiplier=4), rate=0.01,
        ...                             batch=200, population=10_000, uniform=True)
        >>> round(loss.renyi_curve()(32.0), 8)
        0.00010526
        """
        return self.plain.renyi_curve() if self.uniform else None

    def pairs(self) -> tuple[Pair, Pair]:
        """Return plain sampling mixed with an exchange, for removing and for adding a unit.

        >>> from discreet.accounting import PureLoss
        >>> inner = PureLoss(epsilon=1)
        >>> loss = TruncatedPoissonLoss(inner=inner, rate=0.5, batch=9, population=20, uniform=True)
        >>> [round(pair.span(1)[1], 3) for pair in loss.pairs()]  # as for epsilon 2
        [1.434, 0.566]
        """
        chance = self.overflow
        if not chance:
            return self.plain.pairs()
        removing, adding = self.plain.pairs()
        worse, better = self.exchanged.pairs()
        return MixedPair(removing, worse, chance), MixedPair(adding, better, chance)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutReplacementLoss(Loss):
    """Describe a batch of fixed size, drawn without replacement from ``population`` units.

    Claim: with ``inner`` the loss of the operation on the batch under replace-one and r = batch /
    population, delta(log(1 + r (a - 1))) = r * inner delta(log a) for a >= 1, under replace-one.

    Why: [BBG20, Theorem 11 and Section 5]: tight for replacement of one unit. The population must
    be public, as it is under replace-one. In particular epsilon becomes
    log(1 + r (exp(epsilon) - 1)).

    >>> from discreet.accounting import PureLoss, epsilon
    >>> loss = WithoutReplacementLoss(inner=PureLoss(epsilon=0.5), batch=10, population=1000)
    >>> round(epsilon(loss, delta=0), 5)
    0.00647
    """

    inner: Loss
    batch: int
    population: int
    kind: ClassVar[str] = "without_replacement"
    is_slow: ClassVar[bool] = True
    neighbours: ClassVar[Neighbours | None] = Neighbours.replace_one

    def __post_init__(self) -> None:
        population = whole(self.population, name="population")
        batch = whole(self.batch, name="batch")
        if batch > population:
            raise ParameterError(
                f"batch must be at most the population, got {batch} of {population}.",
                parameter="batch",
            )
        object.__setattr__(self, "batch", batch)
        object.__setattr__(self, "population", population)
        _require_single(self.inner, Neighbours.replace_one)

    @property
    def epsilon_pure(self) -> Fraction | float:
        """log(1 + r (exp(epsilon) - 1)), rounded up."""
        return _amplified(self.inner.epsilon_pure, Fraction(self.batch, self.population))

    def delta_upper(self, *, epsilon: Number) -> float:
        """Return delta at ``epsilon``, rounded up.

        >>> from discreet.accounting import PureLoss
        >>> loss = WithoutReplacementLoss(inner=PureLoss(epsilon=2), batch=5, population=10)
        >>> round(loss.delta_upper(epsilon=1), 4)
        0.176
        """
        rate = Fraction(self.batch, self.population)
        return _amplified_delta(self.inner, rate, Fraction(epsilon))

    @property
    def is_tight(self) -> bool:
        """Whether the operation on the batch is."""
        return self.inner.is_tight

    def attained_pairs(self) -> tuple[Pair, Pair] | None:
        """Return a pair of an operation that answers by P if one unit is in the batch, else by Q.

        >>> from discreet.accounting import PureLoss
        >>> loss = WithoutReplacementLoss(inner=PureLoss(epsilon=2), batch=5, population=10)
        >>> round(loss.attained_pairs()[0].span(1)[1], 3)
        1.434
        """
        found = self.inner.attained_pairs()
        rate = float_down(Fraction(self.batch, self.population))
        if found is None or not 0 < rate < 1:
            return found if rate else None
        pair = SampledPair(found[0], rate, removes=True)
        return pair, pair


def _require_single(inner: object, relation: Neighbours) -> None:
    if not isinstance(inner, Loss) or inner.is_composed or inner.mixed_pairs():
        raise ParameterError(
            "inner must be the loss of one operation, not of a composition or of a sampled group. "
            "Sample each operation before composing: "
            "GaussianLoss(noise_multiplier=...).sampled(rate=...) * steps.",
            parameter="inner",
        )
    if inner.neighbours not in (None, relation):
        raise ParameterError(
            f"inner holds for {inner.neighbours} only, but this sampling is for {relation}.",
            parameter="inner",
        )


def _chance_to_take_part(rate: Number) -> None:
    """Refuse a rate that is none, or so small that its odds are no doubles."""
    exact = probability(rate, name="rate", one=True, hint="It is each unit's chance to take part.")
    if exact < Fraction(1, 10**100):
        raise ParameterError(
            "rate must be at least 1e-100: below it nobody takes part, and nothing is lost.",
            parameter="rate",
        )


def _amplified(inner: Fraction | float, rate: Fraction) -> Fraction | float:
    """Return log(1 + rate (exp(inner) - 1)), rounded up."""
    if not isinstance(inner, Fraction):
        return math.inf
    if inner > 500:
        return inner
    amplified = math.log1p(float_up(rate) * math.expm1(float_up(inner)))
    return min(inner, Fraction(amplified) * (1 + Fraction(1, 10**14)))


def _amplified_delta(inner: Loss, rate: Fraction, epsilon: Fraction) -> float:
    """Return rate * inner delta at log(1 + (exp(epsilon) - 1) / rate), rounded up."""
    if epsilon > 500:  # there log(1 + (exp(e) - 1) / r) is e + log(1 / r), to 200 digits
        lifted = epsilon - Fraction(log_of(rate) * (1 - 1e-14)) - Fraction(1, 10**200)
    elif epsilon > 10**280 * rate:  # log(1 + x) is at least log(x), and the ratio no double
        lifted = Fraction(max(0.0, log_of(epsilon) - log_of(rate) - 1e-12))
    else:
        ratio = math.expm1(float(epsilon)) / float(rate)
        lifted = Fraction(math.log1p(ratio) * (1 - 1e-14))
    return min(1.0, float_up(rate * Fraction(inner.delta_upper(epsilon=lifted))))
