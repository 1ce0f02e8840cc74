"""Put a privacy loss on a lattice: from above by connecting the dots, from below by merging.

``docs/proofs/privacy_loss_distributions.md`` has the arguments.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.accounting.pairs.pairs import AtomsPair, Floats, GaussianPair, Pair

__all__ = ["Atoms", "Masses", "atoms_above", "atoms_below", "from_above", "from_below"]

Indices = npt.NDArray[np.int64]
FORGIVEN = 1e-9
_LESS = 1 - 2e-12  # more than any pair raises its masses by
_LOWERED = 2.5e-13  # more than the relative errors of the two masses of a cell
_FEW_ATOMS = 1024  # that need no merging


class Atoms(NamedTuple):
    """Masses at losses anywhere, or spread around them normally with one variance."""

    loss: Floats
    mass: Floats
    spread: float = 0.0


class Masses(NamedTuple):
    """Masses at the losses origin + place * step."""

    place: Indices
    mass: Floats
    origin: float


def from_above(
    pair: Pair, *, step: float, origin: float, bulk: tuple[float, float], cap: float, reach: float
) -> tuple[Masses, float]:
    """Return masses on the lattice whose profile is nowhere below the pair's.

    The mass of each cell is split between its two ends so that both P's and Q's masses are kept:
    the profile is then the chord of a convex function, exact at the cell's ends [DGKKM22].
    """
    points = _fine_and_coarse(pair, step, origin, bulk, cap, reach)
    ends = origin + points * step
    loss, mass = pair.nodes(ends, reach)
    lost = float(mass[loss > ends[-1]].sum())
    loss, mass = loss[loss <= ends[-1]], mass[loss <= ends[-1]]
    cell = np.clip(np.searchsorted(ends, loss, side="right") - 1, 0, ends.size - 2)
    width = ends[cell + 1] - ends[cell]
    into = np.clip(loss - ends[cell], 0.0, width)
    up = mass * (np.expm1(-into) / np.expm1(-width))
    total = np.bincount(cell + 1, up, ends.size) + np.bincount(cell, mass - up, ends.size)
    return Masses(points, total, origin), lost


def atoms_above(
    pair: Pair, *, step: float, bulk: tuple[float, float], cap: float, reach: float
) -> tuple[Atoms, float]:
    """Return losses anywhere, and the mass left out, whose profile is nowhere below the pair's."""
    if isinstance(pair, GaussianPair):
        return _normal(pair, 1 + 1e-15), 0.0
    if isinstance(pair, AtomsPair) and pair.losses.size <= _FEW_ATOMS:
        loss, mass = pair.nodes(np.zeros(0), reach)
        kept = loss <= cap
        return Atoms(loss[kept], mass[kept]), float(mass[~kept].sum())
    origin = (pair.anchors or (0.0, 0.0))[1]
    found, lost = from_above(pair, step=step, origin=origin, bulk=bulk, cap=cap, reach=reach)
    return Atoms(origin + found.place * step, found.mass), lost


def atoms_below(
    pair: Pair, *, step: float, bulk: tuple[float, float], cap: float, reach: float
) -> Atoms:
    """Return losses anywhere whose profile is nowhere above the pair's: each cell merged."""
    if isinstance(pair, GaussianPair):
        return _normal(pair, 1 - 1e-14)
    if isinstance(pair, AtomsPair) and pair.losses.size <= _FEW_ATOMS:
        loss, mass = pair.nodes(np.zeros(0), reach)
        loss = np.minimum(loss, cap)
        return Atoms(loss - 4e-15 * np.abs(loss), mass * _LESS)
    origin = (pair.anchors or (0.0, 0.0))[1]
    points = _fine_and_coarse(pair, step, origin, bulk, cap, reach)
    loss, mass = _merge(pair, origin + (points + 0.5) * step, cap, reach)
    loss, mass = loss[mass > 0], mass[mass > 0]
    return Atoms(loss - _LOWERED - 1e-15 * np.abs(loss), mass * _LESS)


def _normal(pair: GaussianPair, factor: float) -> Atoms:
    """Return the loss of Gaussian noise, which is normal, its mean half its variance."""
    variance = factor / pair.s**2
    return Atoms(np.array([variance / 2]), np.ones(1), variance)


def from_below(
    pair: Pair, *, step: float, bulk: tuple[float, float], cap: float, reach: float
) -> Masses:
    """Return masses on a lattice of about this step whose profile is nowhere above the pair's.

    Merging all outcomes of a cell into one is post-processing, and lowering its loss to the next
    lattice point lowers the profile, as does lowering losses to ``cap``. The cells are laid so that
    little is lost: a cell's merged loss should lie on its lattice point, or just above.
    """
    if pair.lattice is not None:
        origin = pair.lattice[0]
        loss, mass = pair.nodes(np.zeros(0), reach)
        return Masses(_floor(np.minimum(loss, cap), origin, step), mass * _LESS, origin)
    low, high = pair.span(reach)
    high = min(high, cap)
    start = _aligned_start(pair, max(low, min(bulk[0], high - 8 * step)) + 2 * step, step, reach)
    origin = start + step / 2
    fine = max(4, math.ceil((min(high, bulk[1]) - start) / step))
    beyond = fine + _doubling(math.ceil((high - start) / step) - fine)
    points = np.concatenate([np.arange(fine + 1), beyond])
    middle = (points[:-1] + points[1:]) / 2
    edges = start + step / 2 + step * np.concatenate([[-0.5], middle])
    most = 0.4 * step * np.append(1.0, np.diff(points))
    shift = np.zeros(edges.size)
    for attempt in range(14):
        merged, mass = _merge(pair, edges + shift, cap, reach)
        off = np.where(mass[1:] > 0, merged[1:] - (origin + step * points), 0.0)[:-1]
        if attempt < 3:
            # Moving both edges of a cell by s moves its merged loss by about s; averaging over
            # neighbours damps the alternating error that solving exactly would excite.
            shift[1:-1] -= (off[:-1] + off[1:])[: shift.size - 2] / 2
        else:
            # Then only upwards, so that no cell stays just below its point and loses a whole step.
            short = np.where(off < -FORGIVEN * step / 2, -1.05 * off + FORGIVEN * step, 0.0)
            if not short.any():
                break
            short[0] *= 2  # its lower edge is fixed
            shift[1:-1] += np.maximum(short[:-1], short[1:])[: shift.size - 2]
        np.clip(shift, -most, most, out=shift)
    merged, mass = _merge(pair, edges + shift, cap, reach)
    kept = mass > 0
    return Masses(_floor(merged[kept], origin, step), mass[kept] * _LESS, origin)


def _floor(loss: Floats, origin: float, step: float) -> Indices:
    # A billionth of a step is forgiven here and charged by whoever sums the losses.
    return np.floor((loss - origin) / step + FORGIVEN).astype(np.int64)


def _merge(pair: Pair, edges: Floats, cap: float, reach: float) -> tuple[Floats, Floats]:
    """Return the loss and the mass of each cell's outcomes taken as one outcome."""
    loss, mass = pair.nodes(edges, reach)
    loss = np.minimum(loss, cap)
    cell = np.searchsorted(edges, loss, side="right")
    p = np.bincount(cell, mass, edges.size + 1)
    q = np.bincount(cell, mass * np.exp(-loss), edges.size + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(p / q), p


def _aligned_start(pair: Pair, start: float, step: float, reach: float) -> float:
    """Move ``start`` so that all outcomes below it, merged, fall on the lattice of the cells above.

    A sampled mechanism piles much of its mass up at its lowest loss.
    """

    def distance(edge: float) -> float:
        merged, mass = _merge(pair, np.array([edge]), math.inf, reach)
        return (edge + step / 2 - merged[0]) / step if mass[0] > 1e-12 else math.nan

    near, far = distance(start), distance(start + 1.5 * step)
    if math.isnan(near) or math.isnan(far) or not math.ceil(near) <= far:
        return start
    target, left, right = math.ceil(near), start, start + 1.5 * step
    for _ in range(50):
        middle = (left + right) / 2
        if distance(middle) < target:
            left = middle
        else:
            right = middle
    return left


def _doubling(length: int) -> Floats:
    """Return increasing whole numbers that end at ``length``, 64 at each doubling stride."""
    out, at, stride = [], 0, 2
    while at < length:
        out.append(np.minimum(at + stride * np.arange(1, 65), length))
        at, stride = at + 64 * stride, 2 * stride
    return np.unique(np.concatenate(out)).astype(float) if out else np.zeros(0)


def _fine_and_coarse(
    pair: Pair, step: float, origin: float, bulk: tuple[float, float], cap: float, reach: float
) -> Indices:
    """Return lattice indices that cover the losses: all in the bulk, fewer and fewer beyond."""
    low, high = pair.span(reach)
    high = min(high, cap)
    low, high = math.floor((low - origin) / step) - 1, math.ceil((high - origin) / step) + 1
    left = max(low, math.floor((bulk[0] - origin) / step))
    right = min(high, math.ceil((bulk[1] - origin) / step))
    left, right = min(left, right - 1), max(right, left + 1)
    before = left - _doubling(max(0, left - low))
    after = right + _doubling(max(0, high - right))
    return np.concatenate([before[::-1], np.arange(left, right + 1), after]).astype(np.int64)
