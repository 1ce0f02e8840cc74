"""Category numbers as they come: one or many, booleans or integers."""

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import DataError
from discreet.mechanisms.values.arrays import as_integers

__all__ = ["as_categories", "as_yes_no", "count_reports"]


def as_categories(values: object, *, categories: int) -> npt.NDArray[Any]:
    """Return booleans (two categories only) or integers from 0 to categories - 1.

    >>> as_categories([0, 2], categories=3), as_categories(True, categories=2)
    (array([0, 2]), array(True))
    """
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, OverflowError):
        array = as_integers(values)  # refuses it and says why
    if array.dtype.kind == "b":
        if categories != 2:
            raise DataError(
                f"values must be category numbers from 0 to {categories - 1}, got booleans, which "
                "have two categories. Use categories=2, or number the categories."
            )
        return array
    if array.dtype.kind not in "iu":
        array = as_integers(array)
    if array.size and not (array.min() >= 0 and array.max() < categories):
        raise DataError(
            f"values must be category numbers from 0 to {categories - 1}, but some are not. "
            "Number the categories in a fixed public order."
        )
    return array


def as_yes_no(values: object) -> npt.NDArray[np.bool_]:
    """Return booleans, also from the integers 0 and 1.

    >>> as_yes_no([1, 0])
    array([ True, False])
    """
    return as_categories(values, categories=2).astype(np.bool_)


def count_reports(reports: object, *, categories: int) -> npt.NDArray[np.int64]:
    """Count how often each category was reported.

    >>> count_reports([0, 2, 2], categories=3)
    array([1, 0, 2])
    """
    array = as_categories(reports, categories=categories)
    if array.size == 0:
        raise DataError("reports must hold at least one report, got none.")
    if array.dtype.kind == "b":
        yes = int(np.count_nonzero(array))
        return np.array([array.size - yes, yes], dtype=np.int64)
    return np.bincount(array.ravel().astype(np.int64, copy=False), minlength=categories)
