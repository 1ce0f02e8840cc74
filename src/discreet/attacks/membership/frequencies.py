"""Who was in a study, from the frequencies that it published."""

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet._exact import Number, whole
from discreet.attacks.membership.certifying import reported
from discreet.attacks.membership.observations import Floats, floats
from discreet.attacks.report import AttackReport
from discreet.errors import DataError
from discreet.mechanisms import DiscreteGaussian
from discreet.noise import SYSTEM, Source
from discreet.privacy import Guarantee

__all__ = [
    "Genomes",
    "frequencies",
    "generated_genomes",
    "homer",
    "inner_product",
    "likelihood_ratio",
    "private_frequencies",
    "run_on_frequencies",
]

Genomes: TypeAlias = NDArray[np.int8]
"""A row for each person and a column for each position: how many of two alleles are the rare one"""

Statistic: TypeAlias = Callable[[Genomes, Floats, Floats], Floats]
_EDGE = 1e-3  # frequencies are kept as far from 0 and 1, where logarithms end


def generated_genomes(n: int, *, positions: int, seed: int = 0, population: int = 0) -> Genomes:
    """Generate people who do not exist: independent positions, frequencies from 5% to 50%.

    The same ``population`` has the same frequencies, whatever the ``seed`` of its people.

    >>> generated_genomes(3, positions=1000).shape
    (3, 1000)
    """
    places = whole(positions, name="positions")
    rare = np.random.default_rng([1, population]).uniform(0.05, 0.5, places).astype(np.float32)
    dice = np.random.default_rng([2, population, seed])
    shape = (whole(n, name="n"), places)
    return sum(
        ((dice.random(shape, dtype=np.float32) < rare).astype(np.int8) for _ in range(2)),
        np.zeros(shape, np.int8),
    )


def frequencies(genomes: Genomes) -> Floats:
    """Return how frequent the rare allele is at each position: as studies published it.

    >>> frequencies(np.array([[0, 2], [1, 2]], dtype=np.int8))
    array([0.25, 1.  ])
    """
    return np.asarray(_checked(genomes).mean(axis=0) / 2, dtype=np.float64)


def private_frequencies(
    genomes: Genomes, *, epsilon: Number, delta: Number, source: Source = SYSTEM
) -> Floats:
    """Release the same frequencies with privacy for each person.

    Claim: (epsilon, delta)-DP for one person under replace_one; how many take part is public.

    Why: somebody else in a person's place changes each count by at most 2, so all of them by at
    most 2 sqrt(positions) in L2 norm, for which the discrete Gaussian is calibrated. Dividing
    by a public number and cutting off below 0 and above 1 needs no data.

    >>> people = generated_genomes(1000, positions=4)
    >>> private_frequencies(people, epsilon=1, delta=1e-6).shape
    (4,)
    """
    people, positions = _checked(genomes).shape
    mechanism = DiscreteGaussian.calibrated(
        epsilon=epsilon, delta=delta, sensitivity=math.nextafter(2 * math.sqrt(positions), math.inf)
    )
    counts = mechanism.release(genomes.sum(axis=0, dtype=np.int64), source=source)
    return np.asarray(np.clip(counts / (2 * people), 0, 1), dtype=np.float64)


def homer(people: Genomes, released: Floats, reference: Floats) -> Floats:
    """Score by how much nearer a person is to the release than to the reference [HSRDTMPSNC08].

    >>> homer(np.array([[2], [0]], dtype=np.int8), np.array([0.6]), np.array([0.4]))
    array([ 0.2, -0.2])
    """
    scores = np.zeros(len(people))
    for alleles in range(3):
        nearer = np.abs(alleles / 2 - reference) - np.abs(alleles / 2 - released)
        scores += _sums(people == alleles, nearer)
    return scores


def likelihood_ratio(people: Genomes, released: Floats, reference: Floats) -> Floats:
    """Score by the likelihood of a person under the release and the reference [SOJH09].

    >>> people = np.array([[2], [0]], dtype=np.int8)
    >>> likelihood_ratio(people, np.array([0.6]), np.array([0.4])).round(3)
    array([ 0.811, -0.811])
    """
    ours, usual = (np.clip(each, _EDGE, 1 - _EDGE) for each in (released, reference))
    absent = np.log1p(-ours) - np.log1p(-usual)
    present = np.log(ours) - np.log(usual)
    return np.asarray(_sums(people, present - absent) + 2 * absent.sum())


def inner_product(people: Genomes, released: Floats, reference: Floats) -> Floats:
    """Score by a product that noise in the release does not mislead [DSSUV15].

    >>> inner_product(np.array([[2], [0]], dtype=np.int8), np.array([0.6]), np.array([0.4]))
    array([ 0.12, -0.08])
    """
    change = released - reference
    return np.asarray(_sums(people, change) / 2 - reference @ change)


def run_on_frequencies(
    released: Floats,
    *,
    members: Genomes,
    others: Genomes,
    reference: Floats,
    statistic: Statistic | None = None,
    false_positive_rate: Number = 0.001,
    guarantee: Guarantee | None = None,
    confidence: Number = 0.95,
) -> AttackReport:
    """Find out whose genomes are in published frequencies.

    The attacker has somebody's genome, the release, and the frequencies of a ``reference``
    population. ``others`` took no part; they certify the rate of false positives.

    >>> people = generated_genomes(3000, positions=1000)
    >>> report = run_on_frequencies(
    ...     frequencies(people[:50]), members=people[:50], others=people[500:],
    ...     reference=frequencies(people[50:500]), false_positive_rate=0.01,
    ... )
    >>> report.success > 0.9
    True
    """
    places = _checked(members).shape[1]
    released, reference = floats(released, "released"), floats(reference, "reference")
    if any(each.shape != (places,) for each in (released, reference)):
        raise DataError(f"released and reference must be frequencies of the {places} positions.")
    if _checked(others).shape[1] != places:
        raise DataError(f"others must have the same {places} positions as the members.")
    statistic = likelihood_ratio if statistic is None else statistic
    name = getattr(statistic, "__name__", type(statistic).__name__)
    inside, outside = (
        floats(statistic(each, released, reference), f"scores of {name}")
        for each in (members, others)
    )
    if inside.shape != members.shape[:1] or outside.shape != others.shape[:1]:
        raise DataError(f"{name} must give one score to each person.")
    return reported(
        inside,
        outside,
        subject=f"{name} on {places:,} published frequencies",
        false_positive_rate=false_positive_rate,
        confidence=confidence,
        guarantee=guarantee,
        facts={"attack": name, "positions": places},
    )


def _checked(genomes: Genomes) -> Genomes:
    if getattr(genomes, "ndim", 0) != 2 or not genomes.size or genomes.dtype != np.int8:
        raise DataError(
            "genomes must be a matrix of type int8 with a row for each person, holding 0, 1 or 2."
        )
    if genomes.min() < 0 or genomes.max() > 2:
        raise DataError("genomes must hold 0, 1 or 2: the number of rare alleles.")
    return genomes


def _sums(people: "NDArray[np.int8] | NDArray[np.bool_]", weights: Floats) -> Floats:
    """Return the weighted sum of each row, some at a time: floats take four times the memory."""
    sums = np.empty(len(people))
    for start in range(0, len(people), 1000):
        sums[start : start + 1000] = people[start : start + 1000].astype(np.float32) @ weights
    return sums
