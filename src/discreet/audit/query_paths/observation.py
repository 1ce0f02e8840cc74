"""What somebody sees who asks a question: the answer, and everything that comes with it."""

import json
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

from discreet.tables import Result

__all__ = ["CHANNELS", "Columns", "Observation", "Seen", "numbers", "observe"]

Columns: TypeAlias = dict[str, list[Any]]
Seen: TypeAlias = dict[str, Any]  # by channel

#: What is told apart, each by itself. ``time`` is measured only where it is asked for.
CHANNELS: Final = (
    "fails", "error", "price", "answer", "keys", "columns", "rows", "bytes", "error bars", "notes",
    "facts", "receipt", "left",
)  # fmt: skip

_DIGITS = 6  # of an error bar; the last ones follow from how an interval was asked for


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Hold what an interface showed besides its answer, so that it is told apart too.

    A path may return one of these, or the bare answer. The ``answer`` is a number, a mapping of
    keys to numbers, a list of rows as mappings, or a :class:`discreet.Result`; the rest is anything
    that can be compared: the ``price`` asked, the ``error_bars``, ``notes`` and ``facts`` told, the
    public part of a ``receipt``, and what ``left`` the budget.

    >>> Observation(answer={"north": 12.0}, price="epsilon=1", left=0.5).price
    'epsilon=1'
    """

    answer: object = None
    price: object = None
    error_bars: object = None
    notes: object = None
    facts: object = None
    receipt: object = None
    left: object = None
    failure: Exception | None = None


def observe(ask: Callable[[Columns], object], table: Columns) -> Seen:
    """Ask once and return what was seen, by channel."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = ask(table)
        except Exception as failure:  # whether it fails is an output
            found = Observation(failure=failure)
    shown = found if isinstance(found, Observation) else Observation(answer=found)
    warned = [str(one.message) for one in caught]
    return _channels(shown, warned)


def _channels(shown: Observation, warned: Sequence[str]) -> Seen:
    failure, answer = shown.failure, shown.answer
    is_answered = failure is None
    return {
        "fails": "answered" if failure is None else type(failure).__name__,
        "error": "" if failure is None else str(failure),
        "price": _text(shown.price),
        "answer": numbers(answer) if is_answered else {},
        "keys": _keys(answer) if is_answered else (),
        "columns": _column_names(answer),
        "rows": len(answer) if isinstance(answer, Result | Mapping | list) else int(is_answered),
        "bytes": _bytes(answer) if is_answered else 0,
        "error bars": _text(_bars(answer) if shown.error_bars is None else shown.error_bars),
        "notes": _text([shown.notes, warned]),
        "facts": _text(shown.facts),
        "receipt": _text(shown.receipt),
        "left": _text(shown.left),
    }


def numbers(answer: object) -> dict[Hashable, float]:
    """Return the numbers of an answer by where they stand in it.

    >>> numbers({"north": 3}), numbers(2.5), numbers([{"sex": "f", "n": 4}])
    ({('north', ''): 3.0}, {('', ''): 2.5}, {("('f',)", 'n'): 4.0})
    """
    if isinstance(answer, Result):
        answer = answer.to_dicts(errors=False)
    if isinstance(answer, Mapping):
        return {(str(key), ""): float(value) for key, value in answer.items() if _is_number(value)}
    if isinstance(answer, list | tuple):
        return {
            (_key_of(row), name): float(value)
            for row in answer
            if isinstance(row, Mapping)
            for name, value in row.items()
            if _is_number(value)
        }
    return {("", ""): float(answer)} if _is_number(answer) else {}  # type: ignore[arg-type]


def _keys(answer: object) -> tuple[str, ...]:
    if isinstance(answer, Result):
        columns = [answer[name].tolist() for name in answer.keys]
        return tuple(sorted(repr(key) for key in zip(*columns, strict=True)))
    if isinstance(answer, Mapping):
        return tuple(sorted(map(repr, answer)))
    if isinstance(answer, list):
        return tuple(sorted(_key_of(row) for row in answer if isinstance(row, Mapping)))
    return ()


def _key_of(row: Mapping[str, object]) -> str:
    """Return what names a row: all of it that is no number."""
    named = tuple(value for value in row.values() if not _is_number(value))
    return repr(named) if named else ""


def _column_names(answer: object) -> tuple[str, ...]:
    if isinstance(answer, Result):
        return answer.columns
    is_rows = isinstance(answer, list) and answer and isinstance(answer[0], Mapping)
    return tuple(answer[0]) if is_rows else ()  # type: ignore[index]


def _bytes(answer: object) -> int:
    return len(answer.to_json() if isinstance(answer, Result) else _text(answer))


def _bars(answer: object) -> object:
    if not isinstance(answer, Result):
        return None
    widths = {n: (answer.highs[n] - answer.lows[n]).tolist() for n in answer.measures}
    return [{n: [f"{w:.{_DIGITS}g}" for w in column] for n, column in widths.items()}]


def _is_number(value: object) -> bool:
    import numpy as np

    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _text(value: object) -> str:
    """Write anything so that it can be compared."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
