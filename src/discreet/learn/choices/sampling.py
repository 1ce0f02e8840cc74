"""Who takes part in a step: the sampler that is drawn from is the sampler that is accounted.

Every kind of sampling knows both halves: :meth:`draw` picks the units of one logical batch, from
the secure source and nowhere else, and :meth:`loss` says what one step on such a batch costs. They
are never combined by hand, so a batch cannot be drawn in one way and accounted in another.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol, final, runtime_checkable

import numpy as np

from discreet._exact import Number, plain, positive, probability, whole
from discreet.accounting import (
    GaussianLoss,
    Loss,
    SampledGroupLoss,
    TruncatedPoissonLoss,
    WithoutReplacementLoss,
)
from discreet.errors import ParameterError
from discreet.learn.choices.draws import Indices, subset, tossed
from discreet.noise import SYSTEM, Source
from discreet.privacy import Neighbours

__all__ = ["FullBatch", "Poisson", "Sampling", "TruncatedPoisson", "WithoutReplacement"]


@runtime_checkable
class Sampling(Protocol):
    """What a sampler must offer: a draw, what it costs, and the numbers that are public.

    >>> isinstance(Poisson(rate=0.01, population=50_000), Sampling)
    True
    """

    @property
    def neighbours(self) -> Neighbours:
        """The neighbouring relation that :meth:`loss` holds for."""
        ...

    @property
    def population(self) -> int:
        """The declared, public number of units."""
        ...

    @property
    def expected(self) -> float:
        """The public number that a noisy sum is divided by: never the realised batch size."""
        ...

    @property
    def proof(self) -> str:
        """Where the bound of :meth:`loss` is proved."""
        ...

    def check(self, n: int) -> None:
        """Refuse a dataset of ``n`` units that the claim does not cover.

        >>> WithoutReplacement(size=10, population=100).check(100)
        """
        ...

    def loss(self, *, noise_multiplier: Number) -> Loss:
        """Return what one step costs: Gaussian noise of ``noise_multiplier`` times the clip.

        >>> Poisson(rate=0.01, population=50_000).loss(noise_multiplier=1)
        SampledLoss(inner=GaussianLoss(noise_multiplier=1), rate=0.01)
        """
        ...

    def draw(self, n: int, *, source: Source = SYSTEM) -> Indices:
        """Pick the units of one batch out of ``n``, in ascending order; there may be none.

        >>> FullBatch(population=3).draw(3)
        array([0, 1, 2])
        """
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Poisson:
    """Let each unit take part with chance ``rate``, independently of all others.

    Claim: a step that sums one clipped contribution (L2 norm at most C) of each unit drawn, adds
    Gaussian noise of standard deviation noise_multiplier * C and divides by ``expected`` costs
    :meth:`loss`, for ``together`` units that change together, under add/remove or zero-out. The
    batch size is random and may be 0. Under add/remove how many units there are stays secret:
    ``population`` is a number that anybody may know, and only ``rate`` enters the cost.

    Why: [ZDW22, Theorem 11]: each unit is in or out by its own coin, and adding a unit that was
    drawn moves the sum by at most C; a unit that is zeroed out adds 0, drawn or not. For several
    units docs/proofs/sampled_groups.md. Coins are exact for the rational ``rate``.

    >>> sampling = Poisson(rate=0.25, population=1_000)
    >>> sampling.expected, sampling.neighbours.value
    (250.0, 'add_remove')
    >>> batch = sampling.draw(1_000)  # of random size: 250, give or take a hundred
    >>> 100 < len(batch) < 400, bool((np.diff(batch) > 0).all())
    (True, True)
    >>> Poisson(rate=0.25, population=1_000, together=2).loss(noise_multiplier=4)
    SampledGroupLoss(noise_multiplier=4, rate=0.25, size=2)
    """

    rate: Number
    population: int
    neighbours: Neighbours = Neighbours.add_remove
    together: int = 1

    def __post_init__(self) -> None:
        _check_rate(self)
        _check_change(self)
        if self.neighbours is Neighbours.replace_one:
            raise ParameterError(
                "Poisson batches have a proof for add_remove and zero_out. For replace_one use "
                "sampling='without_replacement' or 'full'.",
                parameter="neighbours",
            )

    @property
    def proof(self) -> str:
        """Where the bound is proved: for several units, or for one."""
        if self.together > 1:
            return "sampled groups [Kah86], docs/proofs/sampled_groups.md"
        return "Poisson sampling [ZDW22, Theorem 11]"

    def __repr__(self) -> str:
        return _shown(self)

    @property
    def expected(self) -> float:
        """The rate times the population: the batch size on average, if that is right."""
        return float(Fraction(self.rate) * self.population)

    def check(self, n: int) -> None:
        """Refuse another number of units than the declared one, where that is public.

        >>> Poisson(rate=0.25, population=1_000).check(999)
        """
        _check_size(self, n)

    def loss(self, *, noise_multiplier: Number) -> Loss:
        """Return what one step costs.

        >>> Poisson(rate=0.01, population=50_000).loss(noise_multiplier=2)
        SampledLoss(inner=GaussianLoss(noise_multiplier=2), rate=0.01)
        """
        if (self.neighbours, self.together) == (Neighbours.add_remove, 1):
            return GaussianLoss(noise_multiplier=noise_multiplier).sampled(rate=self.rate)
        return SampledGroupLoss(
            noise_multiplier=noise_multiplier, rate=self.rate, size=self.together
        )

    def draw(self, n: int, *, source: Source = SYSTEM) -> Indices:
        """Toss one exact coin for each of ``n`` units.

        >>> Poisson(rate=1, population=3).draw(3)
        array([0, 1, 2])
        """
        self.check(n)
        return tossed(n, Fraction(self.rate), source)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedPoisson:
    """Sample as :class:`Poisson` does, and keep at most ``capacity`` of the units drawn.

    Memory is bounded, so batches can be padded to one shape.

    Claim: as for :class:`Poisson`, for datasets of at most ``population`` units, except that where
    a batch is full a unit may take the place of another one, which costs as two units do. A larger
    dataset is refused. A capacity of a few deviations above the mean costs next to nothing more
    than no capacity.

    Why: docs/proofs/truncated_poisson.md; see :class:`discreet.accounting.TruncatedPoissonLoss`.
    Which units are dropped is drawn uniformly.

    >>> sampling = TruncatedPoisson(rate=0.5, capacity=3, population=100)
    >>> len(sampling.draw(100))
    3
    """

    rate: Number
    capacity: int
    population: int
    neighbours: ClassVar[Neighbours] = Neighbours.add_remove
    proof: ClassVar[str] = "truncated Poisson [CGKKMSZ24], docs/proofs/truncated_poisson.md"

    def __post_init__(self) -> None:
        _check_rate(self)
        object.__setattr__(self, "capacity", whole(self.capacity, name="capacity"))

    @property
    def expected(self) -> float:
        """The rate times the population."""
        return float(Fraction(self.rate) * self.population)

    def check(self, n: int) -> None:
        """Refuse more units than the population has: they overflow more often than accounted.

        >>> TruncatedPoisson(rate=0.5, capacity=90, population=100).check(100)
        """
        if whole(n, name="n", minimum=0) > self.population:
            raise ParameterError(
                f"the dataset has more units than the declared population of {self.population}, "
                "and truncated batches are accounted for at most that many. Nothing was spent. "
                "Declare a larger population=, or sample with sampling='poisson'.",
                parameter="population",
            )

    def loss(self, *, noise_multiplier: Number) -> Loss:
        """Return what one step costs.

        >>> TruncatedPoisson(rate=0.5, capacity=90, population=100).loss(noise_multiplier=2)
        TruncatedPoissonLoss(inner=GaussianLoss(noise_multiplier=2), rate=0.5, batch=90,
                             population=100, uniform=True)
        """
        return TruncatedPoissonLoss(
            inner=GaussianLoss(noise_multiplier=noise_multiplier),
            rate=self.rate,
            batch=self.capacity,
            population=self.population,
            uniform=True,
        )

    def draw(self, n: int, *, source: Source = SYSTEM) -> Indices:
        """Toss a coin for each of ``n`` units, and drop as many as are too many.

        >>> TruncatedPoisson(rate=1, capacity=2, population=9).draw(9).size
        2
        """
        self.check(n)
        drawn = tossed(n, Fraction(self.rate), source)
        if drawn.size <= self.capacity:
            return drawn
        return drawn[subset(drawn.size, self.capacity, source)]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutReplacement:
    """Draw ``size`` different units, every set of that size being equally likely.

    Claim: a step as in :class:`Poisson` costs :meth:`loss`, for one unit under replace-one. The
    number of units is public and equals ``population``.

    Why: [BBG20, Theorem 11 and Section 5]. Replacing a unit that was drawn moves the sum by at
    most 2C, so noise of noise_multiplier * C is noise_multiplier / 2 times the sensitivity.

    >>> sampling = WithoutReplacement(size=64, population=1_000)
    >>> len(sampling.draw(1_000)), sampling.neighbours.value
    (64, 'replace_one')
    >>> sampling.loss(noise_multiplier=2)
    WithoutReplacementLoss(inner=GaussianLoss(noise_multiplier=Fraction(1, 1)), batch=64,
                           population=1000)
    """

    size: int
    population: int
    neighbours: ClassVar[Neighbours] = Neighbours.replace_one
    proof: ClassVar[str] = "sampling without replacement [BBG20, Theorem 11]"

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", whole(self.size, name="size"))
        object.__setattr__(self, "population", whole(self.population, name="population"))
        if self.size > self.population:
            raise ParameterError(
                f"size must be at most the population, got {self.size} of {self.population}.",
                parameter="size",
            )

    @property
    def expected(self) -> float:
        """The batch size, which never varies."""
        return float(self.size)

    def check(self, n: int) -> None:
        """Refuse a number of units that is not the declared one.

        >>> WithoutReplacement(size=10, population=100).check(99)
        Traceback (most recent call last):
            ...
        discreet.errors.ParameterError: the dataset does not have the 100 units...
        """
        _check_public(n, self.population, self.neighbours)

    def loss(self, *, noise_multiplier: Number) -> Loss:
        """Return what one step costs; the class says why the noise counts half.

        >>> WithoutReplacement(size=5, population=9).loss(noise_multiplier=1).inner
        GaussianLoss(noise_multiplier=Fraction(1, 2))
        """
        return WithoutReplacementLoss(
            inner=_halved(noise_multiplier), batch=self.size, population=self.population
        )

    def draw(self, n: int, *, source: Source = SYSTEM) -> Indices:
        """Draw a set of units.

        >>> WithoutReplacement(size=3, population=3).draw(3)
        array([0, 1, 2])
        """
        self.check(n)
        return subset(n, self.size, source)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FullBatch:
    """Let every unit take part in every step.

    Claim: a step as in :class:`Poisson` costs :meth:`loss`, for ``together`` units that change
    together, under the relation that ``neighbours`` says. The sum is divided by the public
    ``population``.

    Why: the Gaussian mechanism [BW18, Theorem 8]; one unit moves the sum by at most C where it is
    added, removed or zeroed out (it then adds 0), by 2C where it is replaced by another, and k
    units move it by at most k times as much.

    >>> FullBatch(population=5).draw(4), FullBatch(population=5).expected
    (array([0, 1, 2, 3]), 5.0)
    >>> FullBatch(population=5, neighbours="replace_one").loss(noise_multiplier=4)
    GaussianLoss(noise_multiplier=Fraction(2, 1))
    >>> FullBatch(population=5, neighbours="zero_out", together=2).loss(noise_multiplier=4)
    GaussianLoss(noise_multiplier=Fraction(2, 1))
    """

    population: int
    neighbours: Neighbours = Neighbours.add_remove
    together: int = 1
    proof: ClassVar[str] = "the Gaussian mechanism [BW18, Theorem 8]"

    def __post_init__(self) -> None:
        object.__setattr__(self, "population", whole(self.population, name="population"))
        _check_change(self)

    @property
    def expected(self) -> float:
        """The declared population."""
        return float(self.population)

    def check(self, n: int) -> None:
        """Refuse another number of units than the declared one, where that is public.

        >>> FullBatch(population=5).check(4)
        """
        _check_size(self, n)

    def loss(self, *, noise_multiplier: Number) -> Loss:
        """Return what one step costs.

        >>> FullBatch(population=5).loss(noise_multiplier=4)
        GaussianLoss(noise_multiplier=4)
        """
        one: Loss = GaussianLoss(noise_multiplier=noise_multiplier)
        if self.neighbours is Neighbours.replace_one:
            one = _halved(noise_multiplier)
        return one if self.together == 1 else one.group(self.together)

    def draw(self, n: int, *, source: Source = SYSTEM) -> Indices:
        """Take everybody; nothing is random.

        >>> FullBatch(population=2).draw(2)
        array([0, 1])
        """
        self.check(n)
        return np.arange(n, dtype=np.int64)


def _check_rate(sampling: Poisson | TruncatedPoisson) -> None:
    probability(sampling.rate, name="rate", one=True, hint="It is each unit's chance to take part.")
    object.__setattr__(sampling, "rate", plain(sampling.rate, name="rate"))
    object.__setattr__(sampling, "population", whole(sampling.population, name="population"))


def _check_change(sampling: Poisson | FullBatch) -> None:
    object.__setattr__(sampling, "neighbours", Neighbours.of(sampling.neighbours))
    object.__setattr__(sampling, "together", whole(sampling.together, name="together"))


def _check_size(sampling: Poisson | FullBatch, n: int) -> None:
    whole(n, name="n", minimum=0)
    if sampling.neighbours is not Neighbours.add_remove:
        _check_public(n, sampling.population, sampling.neighbours)


def _shown(sampling: Poisson) -> str:
    """Return its fields in words, leaving out those that are as usual."""
    told = [f"rate={sampling.rate!r}", f"population={sampling.population}"]
    if sampling.neighbours is not Neighbours.add_remove:
        told.append(f"neighbours={sampling.neighbours.value!r}")
    if sampling.together > 1:
        told.append(f"together={sampling.together}")
    return f"Poisson({', '.join(told)})"


def _check_public(n: int, population: int, relation: Neighbours) -> None:
    if n != population:
        raise ParameterError(
            f"the dataset does not have the {population} units that were declared, and under "
            f"{relation} their number is public and exact. Nothing was spent. Leave population= "
            "out, or protect by add_remove, where it may differ.",
            parameter="population",
        )


def _halved(noise_multiplier: Number) -> GaussianLoss:
    multiplier = positive(noise_multiplier, name="noise_multiplier")
    return GaussianLoss(noise_multiplier=multiplier / 2)
