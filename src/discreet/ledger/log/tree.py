"""Grow the RFC 6962 tree over the log, and read proofs out of it.

A tree of n leaves is a row of complete subtrees, one for each 1 in the binary digits of n, largest
first. Their roots, the frontier, are all that appending needs: a new leaf merges with the subtrees
behind which it is the last to arrive, like a carry in binary addition. So one entry costs two
hashes on average, and none is ever computed twice.
"""

from collections.abc import Callable
from hashlib import sha256
from typing import final

from discreet.errors import TamperingFound

__all__ = ["Tree", "append", "consistency", "inclusion", "root"]

Node = Callable[[int, int], bytes]  # hash of the complete subtree at a level, with an index in it


def append(frontier: bytes, size: int, leaf: bytes) -> tuple[bytes, bytes]:
    """Return the hashes of the complete subtrees that end with a new leaf, and the new frontier.

    >>> hashes, frontier = append(b"", 0, bytes(32))
    >>> hashes == frontier == bytes(32)
    True
    """
    end = len(frontier)
    if end != 32 * size.bit_count():
        raise TamperingFound("the stored end of the log does not fit its size.")
    top = hashes = leaf
    while size & 1:
        top = sha256(b"\x01" + frontier[end - 32 : end] + top).digest()
        hashes += top
        end -= 32
        size >>= 1
    return hashes, frontier[:end] + top


def root(frontier: bytes) -> bytes:
    """Return the root hash of the tree with this frontier.

    >>> root(b"").hex()[:8]
    'e3b0c442'
    """
    if not frontier:
        return sha256().digest()
    top = frontier[-32:]
    for end in range(len(frontier) - 32, 0, -32):
        top = sha256(b"\x01" + frontier[end - 32 : end] + top).digest()
    return top


@final
class Tree:
    """A tree that grows by many leaves; :func:`append` for when there are few.

    >>> tree = Tree()
    >>> tree.add(bytes(32)) == tree.root() == bytes(32), tree.size
    (True, 1)
    """

    __slots__ = ("_peaks", "size")

    def __init__(self, frontier: bytes = b"", size: int = 0) -> None:
        if len(frontier) != 32 * size.bit_count():
            raise TamperingFound("the stored end of the log does not fit its size.")
        self._peaks = [frontier[at : at + 32] for at in range(0, len(frontier), 32)]
        self.size = size

    def add(self, leaf: bytes) -> bytes:
        """Append a leaf hash; return the hashes of the complete subtrees that end with it."""
        # This is where a full verification spends its time, hence no helper and no checks.
        size = self.size
        self.size = size + 1
        peaks = self._peaks
        if not size & 1:
            peaks.append(leaf)
            return leaf
        top = hashes = leaf
        while size & 1:
            top = sha256(b"\x01" + peaks.pop() + top).digest()
            hashes += top
            size >>= 1
        peaks.append(top)
        return hashes

    @property
    def frontier(self) -> bytes:
        """The roots of the complete subtrees, largest first."""
        return b"".join(self._peaks)

    def root(self) -> bytes:
        """Return the root hash."""
        return root(self.frontier)


def inclusion(index: int, size: int, node: Node) -> list[bytes]:
    """Return the proof that entry ``index`` is in the tree of the first ``size`` entries.

    ``node(level, k)`` must return the hash over entries k 2^level to (k + 1) 2^level - 1; it is
    asked for complete subtrees only.

    >>> leaves = [bytes([n]) * 32 for n in range(2)]
    >>> inclusion(0, 2, lambda level, k: leaves[k]) == [leaves[1]]
    True
    """
    if not 0 <= index < size:
        raise ValueError("a proof is about an entry of the tree")
    return _path(index, 0, size, node)


def consistency(old: int, new: int, node: Node) -> list[bytes]:
    """Return the proof that the first ``old`` of ``new`` entries have not changed since.

    >>> leaves = [bytes([n]) * 32 for n in range(2)]
    >>> consistency(1, 2, lambda level, k: leaves[k]) == [leaves[1]]
    True
    """
    if not 0 <= old <= new:
        raise ValueError("a tree can only be consistent with a smaller one")
    if old in (0, new):
        return []
    level = (old & -old).bit_length() - 1
    last = (old >> level) - 1  # the last complete subtree of the old tree
    return [node(level, last)] * (last > 0) + _path(last, level, new, node)


def _path(k: int, level: int, size: int, node: Node) -> list[bytes]:
    """Return the siblings along the way from a complete subtree up to the root."""
    proof = []
    edge = (size - 1) >> level  # the last node of a level; along it subtrees may be incomplete
    while edge:
        sibling = k ^ 1
        if sibling < edge or (sibling == edge and (edge + 1) << level == size):
            proof.append(node(level, sibling))
        elif sibling == edge:
            proof.append(_rest(edge << level, size, node))
        k, edge, level = k >> 1, edge >> 1, level + 1
    return proof


def _rest(start: int, size: int, node: Node) -> bytes:
    """Return the hash of the subtree that holds all entries from ``start`` on."""
    peaks, left = [], size - start
    while left:
        level = left.bit_length() - 1
        peaks.append(node(level, start >> level))
        start, left = start + (1 << level), left - (1 << level)
    return root(b"".join(peaks))
