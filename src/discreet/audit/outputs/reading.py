"""Read outputs as a table of numbers, a table of words, and one code for the whole.

What is looked for is settled on the samples that a reader is fitted on; any later output is read
with the same eyes. Reading is post-processing, which privacy survives, so a bound proved for what
was read holds for the mechanism.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.audit.outputs.flattening import PRECISE, identity, parts

__all__ = ["Reader", "ReadOutputs", "fit_reader"]

Codes: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

_NUMBERS, _WORDS = 400, 150  # parts of irregular outputs, the most frequent first
_ITEMS = ("output", "the low digits of output")
_UNKNOWN = -1
_ODD = np.uint64(0x9E3779B97F4A7C15)


@final
@dataclass(frozen=True, slots=True)
class ReadOutputs:
    """Outputs as read: a row for each, NaN and -1 where a part is missing or new."""

    numbers: Floats
    words: Codes
    wholes: Codes

    def __len__(self) -> int:
        return len(self.numbers)


class Reader(Protocol):
    """Reads outputs the way it learned to."""

    @property
    def number_names(self) -> Sequence[str]:
        """What the columns of numbers are called."""
        ...

    @property
    def word_names(self) -> Sequence[str]:
        """What the columns of words are called."""
        ...

    @property
    def items(self) -> Codes:
        """Which numbers are entries of the output itself, so that their sum means something."""
        ...

    def read(self, outputs: Any) -> ReadOutputs:
        """Read outputs."""
        ...

    def whole(self, code: int) -> object:
        """Return the output that a code of the whole stands for."""
        ...

    def word(self, column: int, code: int) -> object:
        """Return the word that a code stands for."""
        ...


def fit_reader(first: Any, second: Any) -> Reader:
    """Return a reader for outputs such as these."""
    one, two = _numeric(first), _numeric(second)
    if one is not None and two is not None and one.shape[1:] == two.shape[1:]:
        return ArrayReader(one.shape[1:], np.concatenate([one, two]))
    return ObjectReader([*_listed(first), *_listed(second)])


@final
class ArrayReader:
    """Reads numbers, or arrays of one shape."""

    word_names: Sequence[str] = ()

    def __init__(self, shape: tuple[int, ...], known: NDArray[Any]) -> None:
        self._shape = shape
        self._is_integer = known.dtype.kind in "iu"
        places = list(np.ndindex(shape))
        self.number_names = [f"output[{', '.join(map(str, p))}]" if p else "output" for p in places]
        self.items: Codes = np.arange(len(places))
        rows = self._rows(known)
        codes, at = np.unique(_row_codes(rows), return_index=True)
        self._examples = dict(zip(codes.tolist(), at.tolist(), strict=True))
        self._known = rows

    def read(self, outputs: Any) -> ReadOutputs:
        array = _numeric(outputs)
        if array is None or array.shape[1:] != self._shape:
            array = np.array([_fitted(output, self._shape) for output in outputs])
        numbers = self._rows(array)
        return ReadOutputs(numbers, np.empty((len(numbers), 0), np.int64), _row_codes(numbers))

    def whole(self, code: int) -> object:
        row = (self._known[self._examples[code]] + 0.0).tolist()
        row = [int(v) if self._is_integer else v for v in row]
        return row if self._shape else row[0]

    def word(self, column: int, code: int) -> object:
        raise AssertionError("arrays have no words")

    def _rows(self, array: NDArray[Any]) -> Floats:
        # Integers beyond 53 bits lose their low bits here: post-processing like any other.
        return np.asarray(array.reshape(len(array), -1), dtype=np.float64)


@final
class ObjectReader:
    """Reads anything: texts, sequences of any length, sets, mappings, failures."""

    def __init__(self, outputs: Sequence[Any]) -> None:
        self._wholes: dict[Hashable, int] = {}
        self._labels: list[object] = []
        numbers: Counter[str] = Counter()
        words: Counter[str] = Counter()
        vocabulary: dict[str, dict[Hashable, int]] = {}
        for output in outputs:
            key = identity(output)
            if key in self._wholes:
                continue
            self._wholes[key] = len(self._wholes)
            self._labels.append(output)
            for name, part in parts(output):
                if isinstance(part, float):
                    numbers[name] += 1
                else:
                    words[name] += 1
                    known = vocabulary.setdefault(name, {})
                    known.setdefault(identity(part), len(known))
        self.number_names = [name for name, _ in numbers.most_common(_NUMBERS)]
        self.word_names = [name for name, _ in words.most_common(_WORDS)]
        self._vocabulary = [vocabulary[name] for name in self.word_names]
        self._columns = {name: i for i, name in enumerate(self.number_names)}
        self._word_columns = {name: i for i, name in enumerate(self.word_names)}
        self.items = np.array(
            [i for i, name in enumerate(self.number_names) if name.startswith(_ITEMS)], np.int64
        )

    def read(self, outputs: Any) -> ReadOutputs:
        rows: dict[Hashable, int] = {}
        distinct: list[Any] = []
        places = np.empty(len(outputs), np.int64)
        for i, output in enumerate(_listed(outputs)):
            key = identity(output)
            place = rows.setdefault(key, len(rows))
            places[i] = place
            if place == len(distinct):
                distinct.append(output)
        wholes = np.array([self._wholes.get(key, _UNKNOWN) for key in rows], np.int64)
        numbers, words = self._tables(distinct)
        return ReadOutputs(numbers[places], words[places], wholes[places])

    def whole(self, code: int) -> object:
        return self._labels[code] if code != _UNKNOWN else "an unknown outcome"

    def word(self, column: int, code: int) -> object:
        return next((w for w, c in self._vocabulary[column].items() if c == code), "a new one")

    def _tables(self, outputs: Iterable[Any]) -> tuple[Floats, Codes]:
        outputs = list(outputs)
        numbers = np.full((len(outputs), len(self.number_names)), np.nan)
        words = np.full((len(outputs), len(self.word_names)), _UNKNOWN, np.int64)
        for row, output in enumerate(outputs):
            for name, part in parts(output):
                if isinstance(part, float):
                    column = self._columns.get(name)
                    if column is not None:
                        numbers[row, column] = part
                else:
                    column = self._word_columns.get(name)
                    if column is not None:
                        known = self._vocabulary[column]
                        words[row, column] = known.get(identity(part), len(known))
        return numbers, words


def _listed(outputs: Any) -> Sequence[Any]:
    """Return outputs as plain Python has them, which is how people know them."""
    return outputs.tolist() if isinstance(outputs, np.ndarray) else outputs  # type: ignore[no-any-return]


def _numeric(outputs: Any) -> NDArray[Any] | None:
    """Return numbers, or arrays of them that have one shape, as an array; anything else as None."""
    try:
        array = np.asarray(outputs)
    except ValueError:  # of several shapes
        return None
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag], axis=-1)
    if array.dtype.kind == "b" and array.ndim > 1:
        return array.astype(np.int64)
    if array.dtype.kind in "iu" and array.size and _is_beyond_doubles(array):
        return None  # read one by one, where the low digits are not lost
    is_numeric = array.dtype.kind in "iuf" and array.size > 0
    return array if is_numeric else None


def _is_beyond_doubles(array: NDArray[Any]) -> bool:
    return int(array.max()) > PRECISE or int(array.min()) < -PRECISE


def _fitted(output: Any, shape: tuple[int, ...]) -> Floats:
    """Return one output in the shape of the others, NaN where it does not fit."""
    try:
        array = np.asarray(output, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        array = np.empty(0)
    return array if array.shape == shape else np.full(shape, np.nan)


def _row_codes(rows: Floats) -> Codes:
    """Return one number for each row, equal for equal rows."""
    bits = np.ascontiguousarray(rows + 0.0).view(np.uint64)  # no -0.0, which equals 0.0
    code = np.zeros(len(rows), np.uint64)
    with np.errstate(over="ignore"):
        for column in range(bits.shape[1]):
            code = (code ^ bits[:, column]) * _ODD
            code ^= code >> np.uint64(29)
    return code.view(np.int64)
