"""Make a hierarchy of answers add up: total, regions, cities. Free post-processing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from discreet.errors import ParameterError
from discreet.tables.results.adjust import FREE
from discreet.tables.results.apportion import apportioned
from discreet.tables.results.columns import Array, python
from discreet.tables.results.columns import whole as rounded

if TYPE_CHECKING:
    from discreet.tables.results.result import Result

__all__ = ["consistent"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_MOST: Final = 2.0**52


def consistent(
    results: "Sequence[Result]", *, column: str, nonnegative: bool = False, whole: bool = False
) -> "list[Result]":
    """Adjust answers from coarse to fine so that the parts of everything add up to the whole.

    Claim: each result keeps its guarantee, since only released values are looked at. Of all tables
    that add up, the one returned is closest to the values given, in squares weighted by
    1 / standard error^2. If errors of different cells are independent and have mean zero, it is
    unbiased and no linear unbiased combination has a smaller variance (Gauss and Markov); the
    standard errors returned are the true ones then. Cells of one release that share their noise
    are not independent: the values still add up, and the errors are those of independent ones.

    Why: the sum of squares is quadratic along the tree. Going up, a node's own value is averaged
    with the sum of its parts, weighted by inverse variances; going down, what is left between a
    node and the sum of its parts is shared among them in proportion to their variances. For equal
    variances this is [HRMS10, Section 4]. Variances are found in the same two passes.

    The keys of each result must be among those of the next, finer one, and every group must have
    its parent. Cells without a standard error are taken as unknown: they follow from the others,
    and those that do not are refused. With ``nonnegative``, values are then brought to the nearest
    table that adds up without a negative value, from the top down; that is biased, as every such
    step, and the standard errors are not changed by it. With ``whole``, they are brought to whole
    numbers that add up *exactly*, level by level: the top is rounded, and the parts of everything
    are the nearest ones to what least squares gave, in the sense of
    :func:`~discreet.tables.results.apportion.apportioned`. What a parent was moved
    by is shared among its parts as least squares shares it, and each is moved by less than one
    besides. Intervals are those of the
    unbiased values, cut at zero and widened to whole numbers and to the value shown.

    Takes a few numbers of memory for each cell and a few seconds for each million cells.

    >>> from discreet.tables.results.example import region_counts
    >>> total = region_counts(columns=("n",), keys=(), values={"n": [12400.0]}, facts={},
    ...     errors={"n": [29.1]}, lows={}, highs={}, reliable={})
    >>> whole, parts = consistent([total, region_counts()], column="n")
    >>> whole.value, parts["n"].sum(), parts.errors["n"].round(1)
    (12374.1, np.float64(12374.1), array([23.8, 23.8]))
    >>> people = consistent([total, region_counts()], column="n", nonnegative=True, whole=True)
    >>> people[0].value, people[1]["n"]
    (12374, array([12366,     8]))
    """
    levels = [_Level.of(result, column) for result in _checked(results, column)]
    parents = [_parents(coarse, fine) for coarse, fine in pairwise(results)]
    up = _gather(levels, parents)
    values, variances = _spread(up, parents)
    told = f"{column}: adjusted so that parts add up to the whole {FREE}."
    made = [
        _updated(result, column, value, variance, told)
        for result, value, variance in zip(results, values, variances, strict=True)
    ]
    if not (nonnegative or whole):
        return made
    shown = _stepwise(values, variances, parents, nonnegative=nonnegative, whole=whole)
    return [
        _shown(result, column, value, nonnegative=nonnegative, whole=whole)
        for result, value in zip(made, shown, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Level:
    """The cells of one result, or what the two passes have made of them."""

    values: Floats
    variances: Floats  # inf where nothing is known

    @classmethod
    def of(cls, result: "Result", column: str) -> "_Level":
        values = result.values[column].astype(np.float64)
        errors = result.errors[column]
        unknown = np.isnan(values) | ~np.isfinite(errors)
        variances = np.where(unknown, np.inf, np.where(unknown, 0, errors) ** 2)
        return cls(values=np.where(unknown, 0.0, values), variances=variances)


def _checked(results: "Sequence[Result]", column: str) -> "Sequence[Result]":
    if len(results) < 2:
        raise _refused("results must be at least two, from coarse to fine.")
    for result in results:
        if column not in result.measures or result.values[column].dtype.kind not in "if":
            raise ParameterError(
                f"column must be a column of numbers in every result, and {column!r} is not.",
                parameter="column",
            )
    for coarse, fine in pairwise(results):
        if not set(coarse.keys) < set(fine.keys):
            raise _refused(
                "results must go from coarse to fine: the keys of each must be among those of "
                f"the next, which has more, and {list(coarse.keys)} is not so for "
                f"{list(fine.keys)}."
            )
    return results


def _refused(message: str) -> ParameterError:
    return ParameterError(message, parameter="results")


def _parents(coarse: "Result", fine: "Result") -> Integers:
    """Return for each row of the finer result which row of the coarser one it belongs to."""
    codes = _codes(coarse, fine)
    own, others = np.split(codes, [len(coarse)])
    places = np.full(len(codes), -1, dtype=np.int64)  # by code
    places[own] = np.arange(len(own))
    if (places[own] != np.arange(len(own))).any():
        raise _refused("results must have each group once.")
    found = places[others]
    if orphans := int((found < 0).sum()):
        raise _refused(
            f"results must have a parent for each group, and {orphans} groups have none. "
            "Groups that were selected privately may be missing in one result: ask for public keys."
        )
    if missing := int((np.bincount(found, minlength=len(own)) == 0).sum()):
        raise _refused(
            f"results must have parts for each group, and {missing} groups have none. Leave those "
            "rows out, or ask for public keys."
        )
    return found


def _codes(coarse: "Result", fine: "Result") -> Integers:
    """Number the rows of both results by the coarser one's keys: equal keys, equal numbers."""
    codes = np.zeros(len(coarse) + len(fine), dtype=np.int64)
    for name in coarse.keys:
        own = _numbered(coarse.values[name], fine.values[name])
        # Numbered anew, they stay below the number of rows, and the next product below 2**63.
        codes = np.unique(codes * (own.max(initial=0) + 1) + own, return_inverse=True)[1]
    return codes


def _numbered(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> Integers:
    """Number the values of two columns, equal ones alike."""
    if one.dtype == other.dtype and one.dtype.kind != "O":
        return np.unique(np.concatenate([one, other]), return_inverse=True)[1]
    listed = [*python(one), *python(other)]
    numbers = {value: number for number, value in enumerate(dict.fromkeys(listed))}
    return np.fromiter(map(numbers.__getitem__, listed), dtype=np.int64, count=len(listed))


def _gather(levels: list[_Level], parents: list[Integers]) -> list[tuple[_Level, _Level]]:
    """Go up: pair each level's best estimate from below, and joined with its own value."""
    finest = levels[-1]
    pairs = [(finest, finest)]
    for level, parent in zip(reversed(levels[:-1]), reversed(parents), strict=True):
        best = pairs[-1][1]
        size = len(level.values)
        sums = _Level(
            values=_sums(parent, best.values, size),
            variances=_sums(parent, best.variances, size),
        )
        pairs.append((sums, _joined(level, sums)))
    return pairs[::-1]


def _sums(parent: Integers, parts: npt.NDArray[Any], size: int) -> Floats:
    """Add up the parts of each family."""
    return np.bincount(parent, weights=parts, minlength=size).astype(np.float64)


def _joined(one: _Level, other: _Level) -> _Level:
    """Average two independent estimates, weighted by inverse variances."""
    share = _share(one.variances, other.variances)
    # An infinite variance has share 0, which must not meet it as 0 * inf.
    variances = np.where(
        np.isinf(one.variances),
        other.variances,
        np.where(share == 0, 0.0, share) * np.where(np.isinf(one.variances), 0, one.variances),
    )
    return _Level(values=share * one.values + (1 - share) * other.values, variances=variances)


def _share(one: Floats, other: Floats) -> Floats:
    """Return the weight of the first: other / (one + other), also where some are 0 or infinite."""
    both_zero, inf_one, inf_other = (one == 0) & (other == 0), np.isinf(one), np.isinf(other)
    low = np.where(inf_one | inf_other | both_zero, 1.0, one + other)
    usual = np.where(inf_other, 0.0, other) / low
    return np.where(inf_one, 0.0, np.where(inf_other, 1.0, np.where(both_zero, 0.5, usual)))


def _spread(
    pairs: list[tuple[_Level, _Level]], parents: list[Integers]
) -> tuple[list[Floats], list[Floats]]:
    """Go down: share what is left between a node and its parts among them."""
    top = pairs[0][1]
    if not np.isfinite(top.variances).all():
        raise _no_error()
    values, variances = [top.values], [top.variances]
    for (sums, _), (_, best), parent in zip(pairs[:-1], pairs[1:], parents, strict=True):
        part = _portion(best.variances, sums.variances, parent)
        rest = values[-1] - sums.values
        values.append(best.values + part * rest[parent])
        # Of a part's error, the share that its siblings have too is replaced by its parent's:
        # var = v - v^2 / s + (v / s)^2 var(parent), written without cancelling infinities.
        variances.append(_after(best.variances, part, sums.variances, variances[-1], parent))
    return values, variances


def _portion(own: Floats, total: Floats, parent: Integers) -> Floats:
    """Return v / s for each part; an unknown part takes all that is left."""
    unknown = np.isinf(own)
    many = _sums(parent, unknown, len(total))
    if (many > 1).any():
        raise _no_error()
    sums = total[parent]
    usual = np.where(unknown, 0.0, own) / np.where((sums == 0) | np.isinf(sums), 1.0, sums)
    counts = np.bincount(parent, minlength=len(total))[parent]
    known = np.where(sums == 0, 1.0 / counts, usual)
    return np.where(unknown, 1.0, np.where(np.isinf(sums), 0.0, known))


def _after(own: Floats, part: Floats, total: Floats, above: Floats, parent: Integers) -> Floats:
    unknown = np.isinf(own)
    others = _sums(parent, np.where(unknown, 0.0, own), len(total))
    known = np.where(unknown, 0.0, own)
    usual = known * (1 - part) + part**2 * above[parent]
    return np.where(unknown, others[parent] + above[parent], np.maximum(usual, 0.0))


def _no_error() -> ParameterError:
    return _refused("results must have standard errors: too many are unknown for one solution.")


def _stepwise(
    values: list[Floats],
    variances: list[Floats],
    parents: list[Integers],
    *,
    nonnegative: bool,
    whole: bool,
) -> list[Array]:
    """Make values non-negative or whole numbers from the top down, keeping sums."""
    if whole and max(np.abs(level).max(initial=0.0) for level in values) >= _MOST:
        raise ParameterError(
            "whole is for numbers below 2**52, and some are larger: doubles of that size are whole "
            "already. Leave whole out.",
            parameter="whole",
        )
    top = np.maximum(values[0], 0.0) if nonnegative else values[0]
    made: list[Array] = [rounded(top) if whole else top]
    for own, variance, parent in zip(values[1:], variances[1:], parents, strict=True):
        near = _project(own, variance, parent, made[-1], nonnegative=nonnegative)
        made.append(apportioned(near, variance, parent, made[-1]) if whole else near)
    return made


def _project(
    values: Floats, variances: Floats, parent: Integers, totals: Array, *, nonnegative: bool = True
) -> Floats:
    """Return the nearest values with the given sum in each family, non-negative if so asked.

    In squares weighted by 1 / variance the nearest point moves all by a multiple of their
    variances and cuts at zero; those that are cut are found by repeating, one more at least in
    each round, as in the projection onto a simplex.
    """
    size = len(totals)
    active = np.ones(len(values), dtype=bool)
    made = values.copy()
    for _ in range(len(values) + 1):
        weights = np.where(active, np.maximum(variances, 1e-300), 0.0)
        sums = _sums(parent, np.where(active, values, 0.0), size)
        spread = _sums(parent, weights, size)
        step = (totals - sums) / np.where(spread > 0, spread, 1.0)
        made = np.where(active, values + step[parent] * weights, 0.0)
        if not nonnegative:
            return made
        negative = active & (made < 0)
        if not negative.any():
            break
        active &= ~negative
    return np.maximum(made, 0.0)


def _updated(
    result: "Result", column: str, values: Floats, variances: Floats, note: str
) -> "Result":
    """Put new values into a result; intervals keep how many errors wide they were."""
    errors = np.sqrt(variances)
    old, before = result.values[column], result.errors[column]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(before > 0, errors / before, 1.0)
        lows = values - (old - result.lows[column]) * ratio
        highs = values + (result.highs[column] - old) * ratio
    return replace(
        result,
        values={**result.values, column: values},
        errors={**result.errors, column: errors},
        lows={**result.lows, column: lows},
        highs={**result.highs, column: highs},
        notes=(*result.notes, note),
    )


def _shown(
    result: "Result", column: str, values: Array, *, nonnegative: bool, whole: bool
) -> "Result":
    """Show biased values, in intervals of the unbiased ones: these cover as they are said to."""
    lows, highs = result.lows[column], result.highs[column]
    if nonnegative:
        lows, highs = np.maximum(lows, 0), np.maximum(highs, 0)
    if whole:
        lows, highs = np.floor(lows), np.ceil(highs)
    lows, highs = np.minimum(lows, values), np.maximum(highs, values)
    steps = [("negative values were raised to zero", nonnegative), ("rounded together", whole)]
    told = f"{column}: {' and '.join(step for step, is_done in steps if is_done)} {FREE}."
    return replace(
        result,
        values={**result.values, column: values},
        lows={**result.lows, column: lows},
        highs={**result.highs, column: highs},
        notes=(*result.notes, told),
    )
