"""How a table's rows reach training: as numbers made from public facts alone.

Training knows nothing about tables, and tables nothing about training. Whoever joins them says
what is public about each column (:class:`Scaled`, :class:`Choice`) and hands over the columns;
what comes out are rows that training takes (:class:`LabelledRows`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, exact
from discreet.errors import DataError, ParameterError

__all__ = ["Choice", "EncodedRows", "Encoding", "LabelledRows", "NO_LABEL", "Scaled"]

NO_LABEL = -100
"""The label of a row whose class is none of the declared ones: it has no loss, so no weight."""


class LabelledRows(Protocol):
    """Rows to learn from: numbers, the class of each row, and whose row it is."""

    @property
    def names(self) -> tuple[str, ...]:
        """What the columns of the matrix are called; empty for images."""
        ...

    @property
    def matrix(self) -> npt.NDArray[np.float32]:
        """The numbers, one row for each example; images have more axes."""
        ...

    @property
    def labels(self) -> npt.NDArray[np.int64]:
        """The class of each row, from 0, or NO_LABEL."""
        ...

    @property
    def units(self) -> npt.NDArray[np.int64] | None:
        """Whose row it is, None where every row is a unit of its own."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EncodedRows:
    """Hold rows to learn from. As private as the data they were made from.

    >>> rows = EncodedRows(names=("age",), matrix=np.zeros((3, 1), np.float32),
    ...                    labels=np.zeros(3, np.int64))
    >>> rows
    EncodedRows(1 column)
    """

    names: tuple[str, ...]
    matrix: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int64]
    units: npt.NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        lengths = {len(self.matrix), len(self.labels)}
        if len(lengths | ({len(self.units)} if self.units is not None else set())) != 1:
            raise DataError("matrix, labels and units must have one entry for each row.")

    def __repr__(self) -> str:  # without the number of rows, which is private
        return f"EncodedRows({len(self.names)} column{'' if len(self.names) == 1 else 's'})"

    def take(self, chosen: npt.NDArray[Any]) -> "EncodedRows":
        """Return some of the rows.

        >>> rows = EncodedRows(names=("age",), matrix=np.zeros((3, 1), np.float32),
        ...                    labels=np.arange(3))
        >>> rows.take(np.array([True, False, True])).labels
        array([0, 2])
        """
        units = None if self.units is None else self.units[chosen]
        return EncodedRows(
            names=self.names, matrix=self.matrix[chosen], labels=self.labels[chosen], units=units
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Scaled:
    """Scale a number from its public bounds to -1..1; what lies outside is moved to the end.

    What is missing becomes 0, the middle: no mean of the data is used. That makes it a function
    of one row alone, as privacy needs.

    >>> Scaled(name="age", low=0, high=100).encode(np.array([0, 50, 75, 900, np.nan]))[:, 0]
    array([-1. ,  0. ,  0.5,  1. ,  0. ], dtype=float32)
    """

    name: str
    low: Number
    high: Number

    def __post_init__(self) -> None:
        if not exact(self.low, name="low") < exact(self.high, name="high"):
            raise ParameterError(f"{self.name}: low must be below high.", parameter="low")

    @property
    def names(self) -> tuple[str, ...]:
        """The column it makes."""
        return (self.name,)

    def encode(self, column: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Return the numbers as a column of a matrix.

        >>> Scaled(name="age", low=0, high=100).encode(np.array([25])).shape
        (1, 1)
        """
        low, high = float(Fraction(self.low)), float(Fraction(self.high))
        values = np.clip(np.asarray(column, dtype=np.float64), low, high)
        # Halved first, so that no bounds are too far apart.
        scaled = (values / 2 - (low / 4 + high / 4)) / (high / 4 - low / 4)
        return np.nan_to_num(scaled, nan=0.0)[:, None].astype(np.float32)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Turn one of the public keys of a column into a 1 in its place; any other value into zeros.

    >>> Choice(name="sex", keys=("female", "male")).encode(np.array(["male", "other"], object))
    array([[0., 1.],
           [0., 0.]], dtype=float32)
    """

    name: str
    keys: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not self.keys or len(set(self.keys)) != len(self.keys):
            raise ParameterError(
                f"{self.name}: keys must be at least one, each listed once.", parameter="keys"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The columns it makes."""
        return tuple(f"{self.name}={key}" for key in self.keys)

    def encode(self, column: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Return one column of a matrix for each key.

        >>> Choice(name="n", keys=(1, 2, 3)).encode(np.array([3], object))
        array([[0., 0., 1.]], dtype=float32)
        """
        places = self.places(column, other=len(self.keys))
        return np.eye(len(self.keys) + 1, len(self.keys), dtype=np.float32)[places]

    def places(self, column: npt.NDArray[Any], *, other: int) -> npt.NDArray[np.int64]:
        """Return the place of each value among the keys, ``other`` for one that is not there.

        >>> Choice(name="n", keys=("a", "b")).places(np.array(["b", None], object), other=-1)
        array([ 1, -1])
        """
        known = {key: place for place, key in enumerate(self.keys)}
        # What is missing is None among texts and NaN among numbers, which differs from itself.
        found = (known.get(value if value == value else None, other) for value in column.tolist())
        return np.fromiter(found, dtype=np.int64, count=len(column))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """Turn columns into rows to learn from, by what is public about them.

    Claim: a row of the result depends on that row of the columns and on declared facts only, and
    whatever is in it, nothing is raised. So neighbouring tables make neighbouring rows.

    Why: :class:`Scaled` and :class:`Choice` are functions of one value each.

    >>> encoding = Encoding(features=(Scaled(name="age", low=0, high=100),),
    ...                     target=Choice(name="rich", keys=(False, True)))
    >>> rows = encoding.encode({"age": np.array([25.0]), "rich": np.array([True])})
    >>> rows.matrix, rows.labels
    (array([[-0.5]], dtype=float32), array([1]))
    """

    features: tuple[Scaled | Choice, ...]
    target: Choice

    def __post_init__(self) -> None:
        names = [one.name for one in (*self.features, self.target)]
        if not self.features:
            raise ParameterError("features must be at least one column.", parameter="features")
        doubled = next((name for name in names if names.count(name) > 1), None)
        if doubled is not None:
            raise ParameterError(
                f"column {doubled!r} is named twice among the features and the target.",
                parameter="features",
            )
        if len(self.target.keys) < 2:
            raise ParameterError(
                f"the target {self.target.name!r} must have at least two keys.", parameter="target"
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read, the target last."""
        return (*(one.name for one in self.features), self.target.name)

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return len(self.target.keys)

    def encode(
        self, columns: Mapping[str, npt.NDArray[Any]], *, units: npt.ArrayLike | None = None
    ) -> EncodedRows:
        """Encode columns of the same length; ``units`` says whose row it is.

        >>> encoding = Encoding(features=(Choice(name="sex", keys=("f", "m")),),
        ...                     target=Choice(name="group", keys=(0, 1)))
        >>> one = {"sex": np.array(["f"], object), "group": np.array([7])}
        >>> encoding.encode(one).labels.item() == NO_LABEL
        True
        """
        parts = [one.encode(columns[one.name]) for one in self.features]
        return EncodedRows(
            names=tuple(name for one in self.features for name in one.names),
            matrix=np.ascontiguousarray(np.concatenate(parts, axis=1)),
            labels=self.target.places(columns[self.target.name], other=NO_LABEL),
            units=None if units is None else np.asarray(units, dtype=np.int64),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the encoding as plain data, to be kept beside a model.

        >>> Encoding(features=(Scaled(name="age", low=0, high=100),),
        ...          target=Choice(name="rich", keys=(False, True))).to_dict()["target"]
        {'name': 'rich', 'keys': [False, True]}
        """
        return {
            "features": [
                {"name": one.name, "keys": list(one.keys)}
                if isinstance(one, Choice)
                else {"name": one.name, "low": float(one.low), "high": float(one.high)}
                for one in self.features
            ],
            "target": {"name": self.target.name, "keys": list(self.target.keys)},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Encoding":
        """Read back what :meth:`to_dict` wrote.

        >>> encoding = Encoding(features=(Scaled(name="age", low=0.0, high=100.0),),
        ...                     target=Choice(name="rich", keys=(False, True)))
        >>> Encoding.from_dict(encoding.to_dict()) == encoding
        True
        """
        features = tuple(
            Choice(name=one["name"], keys=tuple(one["keys"])) if "keys" in one else Scaled(**one)
            for one in data["features"]
        )
        target = data["target"]
        return cls(
            features=features, target=Choice(name=target["name"], keys=tuple(target["keys"]))
        )
