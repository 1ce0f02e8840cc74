"""Sketches: what a ledger keeps of a table's content, under its secret, to know it again.

Sampled values are kept as keyed hashes of 64 bits and what stands beside them as keyed hashes of
16 bits. Without the ledger's key they tell which values are equal, and nothing else; with it,
whoever guesses a value can try whether it was sampled.
"""

import json
import math
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, final

from discreet._json import read_json
from discreet.errors import ParameterError
from discreet.ledger.recognition.content import ColumnSample, TableContent

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["SampleSketch", "TableSketch", "read_sketch", "write_sketch"]

_FORM: Final = 1
_ALL: Final = 1 << 64  # no hash is as high
_DENSE: Final = 8  # numbers that fill an eighth of their range are counted through
_IN_STEP: Final = 0.95  # rank correlation of a column that goes along with the numbers beside it
_DIGITS: Final = re.compile(r"\d+")
Keyed = Callable[[str], str]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSketch:
    """Sampled values of one column by their hashes, all those below ``limit``.

    ``is_serial`` says that they are numbers, dates or texts that are counted through, so that
    other people may well have the same ones; ``chance`` bounds how many of them as many other
    people would have, were they drawn from the same distribution.
    """

    keys: "npt.NDArray[np.uint64]"
    limit: int
    is_unit: bool
    is_serial: bool
    chance: float
    beside: "tuple[npt.NDArray[np.uint16], ...]"

    def __repr__(self) -> str:
        return "SampleSketch(<redacted>)"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TableSketch:
    """The sketches of a table's samples, and of a small table a digest of all of it."""

    samples: tuple[SampleSketch, ...]
    whole: str

    def __repr__(self) -> str:
        return "TableSketch(<redacted>)"


def write_sketch(content: TableContent, *, keyed: Keyed) -> str:
    """Return the sketch of a content as text; ``keyed`` hashes under the ledger's secret."""
    if len(content.samples) > content.MOST_SAMPLES or len(content.rows) > content.MOST_ROWS:
        raise ParameterError(
            f"content has at most {content.MOST_SAMPLES} samples and {content.MOST_ROWS} rows.",
            parameter="content",
        )
    return json.dumps(
        {
            "form": _FORM,
            "samples": [_written(sample, keyed) for sample in content.samples],
            "whole": _whole(content.rows, keyed),
        },
        sort_keys=True,
        separators=(",", ":"),
    )


def read_sketch(text: str) -> TableSketch:
    """Read a sketch back."""
    import numpy as np

    found = read_json(text)
    if found["form"] != _FORM:
        return TableSketch(samples=(), whole="")
    samples = tuple(
        SampleSketch(
            keys=np.frombuffer(b64decode(one["keys"]), dtype=">u8").astype(np.uint64),
            limit=one["limit"],
            is_unit=one["unit"],
            is_serial=one["serial"],
            chance=one["chance"],
            beside=tuple(np.frombuffer(b64decode(each), dtype=">u2") for each in one["beside"]),
        )
        for one in found["samples"]
    )
    return TableSketch(samples=samples, whole=found["whole"])


def _written(sample: ColumnSample, keyed: Keyed) -> dict[str, Any]:
    import numpy as np

    count = len(sample.values)
    others = [len(one) for one in (sample.hashes, sample.times, *sample.beside)]
    most, most_beside = sample.MOST_VALUES, sample.MOST_BESIDE
    if count > most or len(sample.beside) > most_beside or {*others, count} != {count}:
        raise ParameterError(
            f"a sample has at most {most} values and {most_beside} columns beside them, all of "
            "the same length.",
            parameter="content",
        )
    limit = _ALL if sample.limit is None else int(sample.limit, 16)
    numbers = _numbers(sample.values)
    is_serial = count < 2 or (numbers is not None and _is_dense(numbers, count * _ALL / limit))
    known: dict[str, int] = {}
    beside = []
    for column in sample.beside:
        if len({*column}) > 1 and not (is_serial and _goes_along(column, numbers)):
            hashes = [_short(value, keyed, known) for value in column]
            beside.append(_packed(np.array(hashes, dtype=">u2")))
    return {
        "beside": beside,
        "chance": 1 - sum(one == 1 for one in sample.times) / max(1, sum(sample.times)),
        "keys": _packed(np.array([int(one, 16) for one in sample.hashes], dtype=">u8")),
        "limit": limit,
        "serial": is_serial,
        "unit": sample.is_unit,
    }


def _packed(array: "npt.NDArray[Any]") -> str:
    return b64encode(array.tobytes()).decode()


def _short(value: str | None, keyed: Keyed, known: dict[str, int]) -> int:
    """Return 16 bits that a value is known by; 0 for none."""
    if value is None:
        return 0
    if value not in known:
        known[value] = int(keyed(value)[:4], 16) or 1
    return known[value]


def _whole(rows: Sequence[Sequence[str | None]], keyed: Keyed) -> str:
    """Return what all rows together are known by, in whatever order they and their cells are."""
    lines = sorted("\x1f".join(sorted(cell for cell in row if cell)) for row in rows)
    return keyed("\x1e".join(lines)) if any(lines) else ""


def _numbers(values: Sequence[str | None]) -> list[float] | None:
    """Return the numbers that values are, or are told apart by; None where that is not so."""
    present = [value for value in values if value is not None]
    for read in (float, lambda text: datetime.fromisoformat(text).timestamp() * 1e6):
        try:
            found = [read(value) for value in present]
        except (ValueError, OverflowError, OSError):
            continue
        return found if all(map(math.isfinite, found)) else None
    if len({_DIGITS.sub("#", value) for value in present}) != 1:
        return None
    parts = [_DIGITS.findall(value) for value in present]
    return [float(found[0][:300]) for found in parts] if len(parts[0]) == 1 else None


def _is_dense(numbers: Sequence[float], distinct: float) -> bool:
    """Say whether so many distinct numbers are most of those that there are in their range."""
    if not all(number.is_integer() for number in numbers):
        return False
    whole = sorted(map(int, numbers))
    step = math.gcd(*(b - a for a, b in pairwise(whole))) or 1
    places = (whole[-1] - whole[0]) // step + 1
    return places <= _DENSE * distinct


def _goes_along(column: Sequence[str | None], numbers: Sequence[float] | None) -> bool:
    """Say whether a column rises or falls with the numbers that it is beside: numbers, too."""
    import numpy as np

    mine = _numbers(column)
    if mine is None or numbers is None or len(mine) != len(numbers) or len(mine) < 3:
        return False
    ours, theirs = (np.unique(one, return_inverse=True)[1] for one in (mine, numbers))
    if not ours.any() or not theirs.any():
        return True
    return bool(abs(np.corrcoef(ours, theirs)[0, 1]) >= _IN_STEP)
