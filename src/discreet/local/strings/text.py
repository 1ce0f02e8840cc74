"""Strings as devices hold them, as bytes that every language makes alike."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import DataError

__all__ = ["Strings", "as_bytes", "as_padded"]

Strings = Sequence[str] | Sequence[bytes] | npt.NDArray[Any]


def as_bytes(values: Strings) -> list[bytes]:
    r"""Return each string in UTF-8; bytes stay as they are.

    Half a surrogate pair, which UTF-8 cannot hold, becomes U+FFFD, as in browsers' TextEncoder: no
    device's string is refused.

    >>> as_bytes(["ü", b"raw", chr(0xD800)])
    [b'\xc3\xbc', b'raw', b'\xef\xbf\xbd']
    """
    items: Any = values.tolist() if isinstance(values, np.ndarray) else values
    if isinstance(items, str | bytes) or not isinstance(items, Sequence):
        raise DataError("values must be a list of strings, one for each device, but are no list.")
    if not all(isinstance(item, str | bytes) for item in items):
        raise DataError("values must be strings or bytes, but some are not. Convert them first.")
    return [item if isinstance(item, bytes) else _utf8(item) for item in items]


def as_padded(values: Strings, *, length: int) -> npt.NDArray[np.uint8]:
    """Return one row of ``length`` bytes a string: longer ones are cut, shorter ones end in zeros.

    The rule is the same for every string, so that none can make the call fail.

    >>> as_padded(["ab", "abcd"], length=3)
    array([[97, 98,  0],
           [97, 98, 99]], dtype=uint8)
    """
    joined = b"".join(text[:length].ljust(length, b"\0") for text in as_bytes(values))
    return np.frombuffer(joined, dtype=np.uint8).reshape(-1, length)


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return whole.encode()
