"""Values and reports as they come: whole numbers below a public bound, or a clear refusal."""

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet._exact import refusal, whole
from discreet.errors import DataError

__all__ = ["MOST", "as_code_rows", "as_codes", "as_domain", "as_rows", "as_values", "code_bytes"]

MOST = 1 << 31  # values in a domain; reports number them in 64 bits with room for coins

_DROP = "Drop those that another collection, or nobody, made: a collector counts and drops them."


def as_domain(domain: object) -> int:
    """Return the number of possible values, or refuse it.

    >>> as_domain(5)
    5
    """
    hint = "It is the number of possible values, numbered from 0 and known beforehand."
    size = whole(domain, name="domain", minimum=2, hint=hint)
    if size > MOST:
        hint = "Hash the values to fewer, or look for unknown strings with local.HeavyHitters."
        raise refusal("domain", f"at most {MOST}", domain, hint)
    return size


def as_values(values: object, *, domain: int) -> npt.NDArray[np.int64]:
    """Return the devices' values as int64 from 0 to domain - 1.

    >>> as_values([0, 2], domain=3)
    array([0, 2])
    >>> as_values([0, 3], domain=3)
    Traceback (most recent call last):
        ...
    discreet.errors.DataError: values must be whole numbers from 0 to 2, but some are not. Number...
    """
    hint = "Number the possible values in a fixed public order."
    return _below(values, domain, "values", hint).astype(np.int64)


def as_codes(reports: object, *, below: int) -> npt.NDArray[np.int64]:
    """Return reports as int64 codes from 0 to below - 1.

    >>> as_codes(np.array([7], dtype=np.uint8), below=8)
    array([7])
    """
    return _below(reports, below, "reports", _DROP).astype(np.int64, copy=False)


def as_code_rows(reports: object, *, width: int, below: int) -> npt.NDArray[np.int64]:
    """Return reports of ``width`` numbers each as rows of int64 codes from 0 to below - 1.

    >>> as_code_rows([[1, 2], [0, 3]], width=2, below=4)
    array([[1, 2],
           [0, 3]])
    """
    array = np.asarray(reports)
    if array.ndim != 2 or array.shape[1] != width:
        raise DataError(f"reports must be rows of {width} whole numbers, but they are not. {_DROP}")
    return as_codes(array.ravel(), below=below).reshape(array.shape)


def as_rows(reports: object, *, width: int) -> npt.NDArray[np.uint8]:
    """Return reports of ``width`` bits as rows of bytes, the first value in the lowest bit.

    >>> as_rows(np.array([[5]], dtype=np.uint8), width=3)
    array([[5]], dtype=uint8)
    """
    rows = np.asarray(reports)
    size, spare = -(-width // 8), -width % 8
    shaped = rows.dtype == np.uint8 and rows.ndim == 2 and rows.shape[1] == size
    if not shaped or (spare and rows.size and rows[:, -1].max() >= 1 << (8 - spare)):
        found = "some have bits beyond" if shaped else "they are not"
        raise DataError(
            f"reports must be rows of {width} bits in {size} bytes (uint8), but {found}. {_DROP}"
        )
    return rows


def code_bytes(outputs: int) -> int:
    """Return how many bytes hold any whole number below ``outputs``.

    >>> code_bytes(256), code_bytes(257), code_bytes(1 << 21)
    (1, 2, 3)
    """
    return ((outputs - 1).bit_length() + 7) // 8


def _below(given: object, bound: int, name: str, hint: str) -> npt.NDArray[Any]:
    try:
        array = np.asarray(given)
    except (ValueError, TypeError, OverflowError):
        array = np.empty(0, dtype=object)
    if array.size == 0 and array.ndim == 1 and array.dtype.kind == "f":
        return array.astype(np.int64)  # an empty list
    whole_numbers = array.dtype.kind in "iub" and array.ndim == 1
    if not whole_numbers or (array.size and not (array.min() >= 0 and array.max() < bound)):
        found = "some are not" if whole_numbers else f"they are {_kind(array)}"
        wanted = f"whole numbers from 0 to {bound - 1}"
        raise DataError(f"{name} must be {wanted}, but {found}. {hint}")
    return array


def _kind(array: npt.NDArray[Any]) -> str:
    return f"of {array.ndim} dimensions" if array.dtype.kind in "iub" else "no whole numbers"
