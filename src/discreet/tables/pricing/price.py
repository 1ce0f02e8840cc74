"""What a question costs: from a guarantee to the noise of every part, before data is touched."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal, final

from discreet.accounting import (
    ApproximateLoss,
    BoundedRangeLoss,
    GaussianLoss,
    Loss,
    calibrate,
    compose,
)
from discreet.errors import ParameterError
from discreet.tables.algorithms.noise import Noise
from discreet.tables.algorithms.quantile_draw import RANK_SHARES
from discreet.tables.model.bounds import WEIGHT_STEPS, AskedBounding, Groups, Norm, Totals
from discreet.tables.model.catalog import Catalog
from discreet.tables.model.query import Query
from discreet.tables.pricing.cell_layout import CellLayout
from discreet.tables.pricing.inferences import Inference, NoiseKind, inferences_of, known_rows

__all__ = [
    "SIZE_SHARE",
    "Beside",
    "Price",
    "best",
    "price",
    "prices",
    "size_noise",
]

INFERENCE_SHARE: Final = Fraction(1, 10)  # of epsilon, for all undeclared limits and bounds
# Without groups noise is small beside what a limit cuts off, so finding a good one is worth more.
INFERENCE_SHARE_OF_TOTALS: Final = Fraction(1, 5)
KEY_SHARE: Final = Fraction(1, 2)  # of delta, for unlisted keys beside Gaussian noise
ALL_BUT_LITTLE: Final = 1 - Fraction(1, 10**5)  # the same, for Gaussians and what is beside them
ALL_BUT_NOTHING: Final = 1 - Fraction(1, 10**6)  # leaves accountants something to round with
SIZE_SHARE: Final = Fraction(1, 10)  # of a quantile's price, to know how large a group is
MOST_GROUPS: Final = 10**6
SPREAD: Final = 16  # over how many groups a unit's rows are taken to spread, if nothing is declared

_LEAST: Final = Fraction(1, 10**100)

Beside = Callable[[Loss], Fraction]
"""From a loss to the delta that may go with it, so that an account's delta outlasts its epsilon."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """How a guarantee is spent on a question.

    Every count, sum or family of moments gets the same ``noise``, relative to how far a unit can
    move it; each quantile costs ``rank_epsilon``, and the profiles that limits and bounds are
    inferred from get ``inference_noise`` each; unlisted keys fail with chance ``key_delta`` at
    most. Of ``rank_epsilon`` a tenth tells how many rows a group has, so that intervals are given
    only where they hold.

    Claim: the release is (epsilon, delta)-DP for the catalog's unit and neighbours, from which
    every sensitivity is computed, and ``loss`` says all that is known of it.

    Why: ``loss`` is the sum of the losses of all parts (docs/proofs/norm_clipping.md,
    key_thresholds.md, weighted_quantiles.md and private_limits.md prove one each). Shares of
    epsilon add up by basic composition; all Gaussian parts together are one Gaussian, which is
    calibrated to their share of epsilon and to the delta that unlisted keys leave over.
    """

    epsilon: Fraction
    delta: Fraction
    noise: Noise
    rank_epsilon: Fraction
    inference_noise: Noise | None
    inferences: tuple[Inference, ...]
    key_delta: Fraction
    loss: Loss

    @property
    def order(self) -> Literal[1, 2]:
        """The norm in which units are bounded for this noise."""
        return 1 if self.noise.kind == "laplace" else 2


def price(
    query: Query,
    layout: CellLayout,
    catalog: Catalog,
    *,
    epsilon: Fraction,
    delta: Fraction,
    bounding: AskedBounding | None = None,
    beside: Beside | None = None,
) -> Price:
    """Return the price with the smaller error, by Laplace or by Gaussian noise."""
    found = prices(
        query, layout, catalog, epsilon=epsilon, delta=delta, bounding=bounding, beside=beside
    )
    return best(found, query, catalog, bounding)


def best(
    found: Sequence[Price], query: Query, catalog: Catalog, bounding: AskedBounding | None
) -> Price:
    """Return the price with the smallest error, where a unit's rows spread as is usual."""
    ratio = math.sqrt(_spread(query, catalog, bounding))
    return min(
        found, key=lambda one: one.noise.deviation(sensitivity=1) * (ratio if one.order == 1 else 1)
    )


def prices(
    query: Query,
    layout: CellLayout,
    catalog: Catalog,
    *,
    epsilon: Fraction,
    delta: Fraction,
    bounding: AskedBounding | None = None,
    beside: Beside | None = None,
) -> tuple[Price, ...]:
    """Return the price for each kind of noise that is possible.

    ``beside`` says how much delta unlisted keys may take beside a loss; otherwise they take what
    the noise leaves of ``delta``, however soon that uses up an account.

    >>> from discreet.privacy import Neighbours, Unit
    >>> from discreet.tables.pricing.cell_layout import lay_out
    >>> from discreet.tables.model.query import Aggregate
    >>> from discreet.tables.model.relation import Select
    >>> query = Query(rows=Select.of("people", unit="id"), tables=("people",),
    ...               aggregates=(Aggregate(kind="count"),))
    >>> catalog = Catalog(unit=Unit.column("u"), neighbours=Neighbours.add_remove, rows=1)
    >>> found = prices(query, lay_out(query), catalog, epsilon=Fraction(1), delta=Fraction(1, 9**6))
    >>> [one.noise.kind for one in found]
    ['laplace', 'gaussian']
    """
    for name, given in (("epsilon", epsilon), ("delta", delta)):
        if given and given < _LEAST:  # farther out, noise and thresholds leave the doubles
            raise ParameterError(
                f"{name} must be at least {float(_LEAST):g} for a release. Nothing was spent.",
                parameter=name,
            )
    made = tuple(
        _spent(
            kind,
            query,
            layout,
            inferences_of(kind, query, layout, catalog, bounding),
            epsilon=epsilon,
            delta=delta,
            beside=beside,
        )
        for kind in _noise_kinds(query, layout, delta, bounding)
    )
    for one in made:
        _check_noise(one, bounding)
    return made


def _noise_kinds(
    query: Query, layout: CellLayout, delta: Fraction, bounding: AskedBounding | None
) -> list[NoiseKind]:
    """Return the kinds of noise that are possible; refuse a question that none is possible for."""
    if _number_of_groups(query) > MOST_GROUPS:
        raise ParameterError(
            f"the public keys have more than {MOST_GROUPS:,} combinations, which would all appear. "
            "Nothing was spent. Group by fewer keys, or list fewer values.",
            parameter="keys",
        )
    kinds: list[NoiseKind] = ["laplace", "gaussian"]
    if isinstance(bounding, Norm | Totals):  # whose order decides
        kinds = ["laplace"] if bounding.order == 1 else ["gaussian"]
    if layout.parts == len(layout.ranks):
        kinds = ["laplace"]
    if not query.has_known_keys and delta == 0:
        raise ParameterError(
            "keys that nobody listed can only be selected privately with a delta above 0. Nothing "
            "was spent. List them, as in WHERE region IN ('north', 'south'), or declare them.",
            parameter="delta",
        )
    if delta == 0 and "laplace" not in kinds:
        raise ParameterError(
            "a norm of order 2 is for Gaussian noise, which needs a delta above 0. Nothing was "
            "spent. Bound a norm of order 1, or give a delta.",
            parameter="bounding",
        )
    return [kind for kind in kinds if kind == "laplace" or delta > 0]


def _check_noise(price: Price, bounding: AskedBounding | None) -> None:
    """Refuse noise that the grid of weights cannot hold, while nothing is spent."""
    least = Fraction(1)
    if isinstance(bounding, Norm):
        least = min(least, Fraction(bounding.limit))
    if least * Fraction(price.noise.multiplier) * WEIGHT_STEPS < 1:
        raise ParameterError(
            "so large an epsilon, or so small a limit, leaves less noise than a millionth of a "
            "row, which is below the grid on which rows are weighed. Nothing was spent.",
            parameter="epsilon",
        )


def size_noise(rank_epsilon: Fraction) -> Noise:
    """Return the noise of the sizes of groups that a quantile needs to know.

    >>> size_noise(Fraction(1, 2)).multiplier
    Fraction(20, 1)
    """
    return Noise(kind="laplace", multiplier=1 / (rank_epsilon * SIZE_SHARE))


def _spent(
    kind: NoiseKind,
    query: Query,
    layout: CellLayout,
    inferences: tuple[Inference, ...],
    *,
    epsilon: Fraction,
    delta: Fraction,
    beside: Beside | None,
) -> Price:
    noisy = layout.parts - len(layout.ranks)
    share = INFERENCE_SHARE if query.keys else INFERENCE_SHARE_OF_TOTALS
    kept = epsilon * (1 - share) if inferences else epsilon
    each = kept / layout.parts
    key_delta = Fraction(0)
    if not query.has_known_keys:
        key_delta = delta * (KEY_SHARE if kind == "gaussian" else ALL_BUT_NOTHING)
    noise, inferring = _noises(
        kind, noisy, len(inferences), each=each, share=share, delta=delta - key_delta,
        epsilon=epsilon - each * len(layout.ranks),
    )  # fmt: skip
    parts: list[tuple[Loss, int]] = []
    if noisy:
        parts.append((noise.loss, noisy))
    for i in layout.ranks:
        shares = (Fraction(1),) if query.aggregates[i].quantile is None else RANK_SHARES
        drawn = each * (1 - SIZE_SHARE)
        parts += [(BoundedRangeLoss(epsilon=drawn * one), 1) for one in shares]
        parts.append((size_noise(each).loss, 1))
    if inferring is not None:
        parts.append((inferring.loss, len(inferences)))
    if key_delta and beside is not None:
        # Where a budget has no delta at all nothing helps, and it will say so.
        key_delta = min(key_delta, beside(compose(parts)) or key_delta)
    if key_delta:
        parts.append((ApproximateLoss(epsilon=0, delta=key_delta), 1))
    return Price(
        epsilon=epsilon,
        delta=delta if kind == "gaussian" else key_delta / ALL_BUT_NOTHING,
        noise=noise,
        rank_epsilon=each,
        inference_noise=inferring,
        inferences=inferences,
        key_delta=key_delta,
        loss=compose(parts),
    )


def _noises(
    kind: NoiseKind,
    noisy: int,
    profiles: int,
    *,
    each: Fraction,
    share: Fraction,
    epsilon: Fraction,
    delta: Fraction,
) -> tuple[Noise, Noise | None]:
    """Return the noise of every noisy part, and that of every profile, if there are any.

    Laplace noise of a part is paid with ``each``; profiles share what is left of ``epsilon``. All
    Gaussian noise is one Gaussian for ``epsilon``, of whose inverse variance profiles get a share.
    """
    if kind == "laplace":
        noise = Noise(kind=kind, multiplier=1 / each)
        left = epsilon - noisy * each
        return noise, Noise(kind=kind, multiplier=profiles / left) if profiles else None
    whole = _gaussian_multiplier(epsilon * ALL_BUT_LITTLE, delta) * (1 + 1e-12)
    part = float(share) if profiles else 0.0
    noise = Noise(kind=kind, multiplier=whole * math.sqrt(max(1, noisy) / (1 - part)))
    if not profiles:
        return noise, None
    return noise, Noise(kind=kind, multiplier=whole * math.sqrt(profiles / part))


@lru_cache(maxsize=256)
def _gaussian_multiplier(epsilon: Fraction, delta: Fraction) -> float:
    return calibrate(lambda s: GaussianLoss(noise_multiplier=s), epsilon=epsilon, delta=delta)


def _number_of_groups(query: Query) -> int:
    """Return how many combinations of public keys there are."""
    return math.prod(len(key.values) for key in query.keys if key.values is not None)


def _spread(query: Query, catalog: Catalog, bounding: AskedBounding | None) -> int:
    """Return over how many groups a unit's rows are taken to spread: a guess from public facts."""
    if isinstance(bounding, Groups):
        return bounding.groups
    groups = _number_of_groups(query) if query.has_known_keys else SPREAD
    rows = known_rows(query, catalog)
    declared = [n for n in (rows, catalog.groups) if n is not None]
    return max(1, min([groups, *declared] if declared else [groups, SPREAD]))
