"""Neighbouring inputs worth auditing."""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from discreet._exact import Number, whole
from discreet.errors import ParameterError

__all__ = ["neighbouring_pairs"]

Kind = Literal["answers", "records"]
Vectors = tuple[list[Number], list[Number]]


def neighbouring_pairs(
    kind: Kind,
    *,
    size: int,
    low: Number = 0,
    high: Number = 1,
) -> list[tuple[list[Number], list[Number]]]:
    """Return pairs of neighbouring inputs on which broken mechanisms tend to break.

    ``kind="answers"``: inputs are ``size`` answers of queries, each of which one person moves by at
    most ``high`` - ``low``. All shift, one shifts, all but one shift, half shift one way and half
    the other, and long runs of small answers before a large one.

    ``kind="records"``: inputs are data sets of up to ``size`` numbers between ``low`` and ``high``;
    one has a record more. Empty data, duplicates, an extreme record among small ones, and one
    among large ones.

    They are hints: pass those that are neighbours for your mechanism to :func:`search`.

    >>> for one, other in neighbouring_pairs("records", size=2):
    ...     print(one, other)
    [] [0]
    [] [1]
    [0] [0, 0]
    [0] [0, 1]
    [1] [1, 0]
    [1] [1, 1]
    [0, 0] [0, 0, 0]
    [0, 0] [0, 0, 1]
    [1, 1] [1, 1, 0]
    [1, 1] [1, 1, 1]
    >>> neighbouring_pairs("answers", size=3)[0]
    ([0, 0, 0], [1, 1, 1])
    """
    count = whole(size, name="size", minimum=1)
    if not low < high:
        message = f"low must be below high, got low={low} and high={high}."
        raise ParameterError(message, parameter="low")
    makers: dict[str, Callable[[int, Number, Number], Iterator[Vectors]]]
    makers = {"answers": _answers, "records": _records}
    if kind not in makers:
        message = f"kind must be 'answers' or 'records', got {kind!r}."
        raise ParameterError(message, parameter="kind")
    return _distinct(list(makers[kind](count, low, high)))


def _answers(size: int, low: Number, high: Number) -> Iterator[Vectors]:
    for run in sorted({size, min(size, 1 + size // 2), min(size, 2)}, reverse=True):
        zeros, ones = [low] * run, [high] * run
        half = run // 2
        yield zeros, ones
        yield zeros, [high, *zeros[1:]]
        yield zeros, [*zeros[1:], high]
        yield [*zeros[1:], high], [*ones[1:], low]  # negatives, then a positive: opposite shifts
        yield [*zeros[half:], *ones[:half]], [*ones[half:], *zeros[:half]]
        # A positive after negatives that are far below.
        depth = low - 5 * (high - low)
        yield [*[depth] * (run - 1), high], [*[depth + high - low] * (run - 1), low]


def _records(size: int, low: Number, high: Number) -> Iterator[Vectors]:
    for count in sorted({0, 1, 2, max(1, size // 2), size}):
        if count > size:
            continue
        for common in (low, high):
            for extra in (low, high):
                yield [common] * count, [*[common] * count, extra]


def _distinct(pairs: Sequence[Vectors]) -> list[Vectors]:
    found: list[Vectors] = []
    for pair in pairs:
        if pair[0] != pair[1] and pair not in found:
            found.append(pair)
    return found
