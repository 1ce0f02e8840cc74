"""Several requests, or answers, in one value, and told apart again."""

import struct
from collections.abc import Iterable

__all__ = ["join", "split"]

_LENGTH = struct.Struct("<I")


def join(items: Iterable[bytes]) -> bytes:
    """Write items behind each other, each behind its length.

    >>> split(join([b"a", b"", b"bc"]))
    [b'a', b'', b'bc']
    """
    return b"".join([piece for item in items for piece in (_LENGTH.pack(len(item)), item)])


def split(joined: bytes) -> list[bytes] | None:
    """Return the items, or None where nobody has joined them.

    >>> print(split(join([b"abc"])[:-1]))
    None
    """
    items, at = [], 0
    while at + 4 <= len(joined):
        end = at + 4 + _LENGTH.unpack_from(joined, at)[0]
        items.append(joined[at + 4 : end])
        at = end
    return items if at == len(joined) else None
