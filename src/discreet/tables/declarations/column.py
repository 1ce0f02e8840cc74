"""What is public about one column."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, time
from typing import Any, Final, final

from discreet._exact import Number, exact, plain, positive
from discreet.errors import ParameterError
from discreet.tables.model.query import KeyValue

__all__ = ["DeclaredColumn", "key_kind", "types_of"]

_TYPE: Final = re.compile(r"[A-Z][A-Z0-9_ ]*(\(\d+(, ?\d+)?\))?")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredColumn:
    """Say what is public about a column: ``bounds`` of its numbers, ``keys`` it may have.

    ``total`` is how much of one unit's sum of it counts at most: no fact, but a limit that is
    enforced where sums are asked for by themselves. ``type`` is its type in SQL, for files that
    have no types: CSV.

    Bounds that are None are inferred privately where they are needed, keys that are None are
    selected privately. Dates are ISO texts. A None among the keys stands for NULL and comes last.

    >>> DeclaredColumn(keys=(None, "north", "south")).keys
    ('north', 'south', None)
    >>> DeclaredColumn(bounds=(5, 1))
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: bounds must be two finite numbers, the lower one first,
    got [5, 1].
    """

    bounds: tuple[Number, Number] | None = None
    keys: tuple[KeyValue, ...] | None = None
    type: str | None = None
    total: Number | None = None

    def __post_init__(self) -> None:
        if self.total is not None:
            positive(self.total, name="total")
            object.__setattr__(self, "total", plain(self.total, name="total"))
        if self.type is not None and not _TYPE.fullmatch(self.type):
            raise ParameterError(
                "type must be the name of a type, such as BIGINT or DECIMAL(10, 2).",
                parameter="type",
            )
        if self.bounds is not None:
            _check_bounds(self.bounds)
            ends = tuple(plain(bound, name="bounds") for bound in self.bounds)
            object.__setattr__(self, "bounds", ends)
        if self.keys is not None:
            keys = tuple(_plain(key) for key in self.keys)
            _check_keys(keys)
            present = [key for key in keys if key is not None]
            object.__setattr__(self, "keys", (*present, None) if None in keys else tuple(present))


def _plain(key: Any) -> Any:
    """Turn numpy's values into Python's, and dates into ISO texts."""
    if isinstance(key, date | time):
        return key.isoformat()
    return key.item() if hasattr(key, "item") else key


def _check_bounds(bounds: tuple[Number, Number]) -> None:
    told = ", ".join(str(bound) for bound in bounds)
    wrong = ParameterError(
        f"bounds must be two finite numbers, the lower one first, got [{told}].",
        parameter="bounds",
    )
    try:
        low, high = (exact(bound, name="bounds") for bound in bounds)
    except (TypeError, ValueError):
        raise wrong from None
    if not low < high:
        raise wrong


def _check_keys(keys: tuple[KeyValue, ...]) -> None:
    present = [key for key in keys if key is not None]
    kinds = {key_kind(key) for key in present}
    if len(kinds) > 1 or not kinds <= {"text", "number", "boolean"}:
        raise ParameterError(
            "keys must be all texts (dates in ISO form), all finite numbers, or all booleans.",
            parameter="keys",
        )
    if not keys or len(set(keys)) != len(keys):
        raise ParameterError("keys must be at least one, each listed once.", parameter="keys")


def key_kind(key: object) -> str:
    """Sort a key into text, number, boolean or other.

    >>> key_kind(True), key_kind(float("inf"))
    ('boolean', 'other')
    """
    if isinstance(key, bool):
        return "boolean"
    if isinstance(key, int):
        return "number"
    if isinstance(key, float):
        return "number" if math.isfinite(key) else "other"
    return "text" if isinstance(key, str) else "other"


def types_of(
    tables: Mapping[str, Mapping[str, DeclaredColumn]],
) -> dict[str, dict[str, str]]:
    """Return the types that are declared, by table and column.

    >>> types_of({"people": {"age": DeclaredColumn(type="BIGINT"), "name": DeclaredColumn()}})
    {'people': {'age': 'BIGINT'}}
    """
    return {
        table: {column: facts.type for column, facts in columns.items() if facts.type}
        for table, columns in tables.items()
    }
