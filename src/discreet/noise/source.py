"""Where all randomness comes from: an AES-CTR keystream keyed by the operating system.

A side door: samplers of other rooms read their words here, and whatever must not survive a fork
asks for the process it lives in.
"""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Protocol, final, runtime_checkable

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

__all__ = ["SYSTEM", "SecureSource", "Source", "bits", "in_parts", "process_identity", "words"]

_LONGEST_READ: Final = 1 << 20
_REKEY_AFTER: Final = 1 << 24  # bytes; a stolen key reveals at most this much past noise
_PART: Final = 1 << 17  # entries; keeps what is made on the way in the processor's cache
# Entries. The cipher and a search hold the interpreter's lock, so that two threads which fill what
# the cache holds wait for each other; from here on fresh memory is what takes the time.
_PER_THREAD: Final = 1 << 22
_ZEROS: Final = memoryview(bytes(_LONGEST_READ))

_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_count_fork)


def process_identity() -> tuple[int, int]:
    """Return something that differs between a process and everything forked from it.

    The process id alone can come back to life in a grandchild; the counter alone misses a fork
    made by a C library that bypasses Python's hooks. Together they cover both.

    >>> process_identity() == process_identity()
    True
    """
    return os.getpid(), _forks


@runtime_checkable
class Source(Protocol):
    """Uniform random bytes; the only way randomness enters.

    >>> isinstance(SYSTEM, Source)
    True
    """

    @property
    def is_secure(self) -> bool:
        """Whether the bytes are unpredictable to everybody."""
        ...

    def read(self, n: int, /) -> bytes:
        """Return ``n`` fresh uniform bytes.

        >>> len(SYSTEM.read(3))
        3
        """
        ...


class _Keystream(threading.local):
    """One thread's cipher. Threads share nothing, so nothing needs a lock."""

    def __init__(self) -> None:
        self.left = 0
        self.identity: tuple[int, int] | None = None
        self.cipher: Any = None

    def rekey(self) -> None:
        """Start a new keystream from fresh operating-system entropy."""
        seed = os.urandom(32)
        self.cipher = Cipher(algorithms.AES(seed[:16]), modes.CTR(seed[16:])).encryptor()
        self.identity = process_identity()
        self.left = _REKEY_AFTER


@final
class SecureSource:
    """Expand operating-system entropy with AES-128 in counter mode.

    Claim: the bytes are indistinguishable from uniform ones to anybody who cannot break AES-128
    or read this process's memory, in every thread and in every process forked from this one.

    Why: AES-CTR is a pseudorandom generator if AES is a pseudorandom permutation
    [BDJR97, Theorem 11]. Each thread has its own key from ``os.urandom``; a fork is noticed before
    the next byte is given out and leads to a new key; a key is replaced after 16 MiB.
    A read is a single call into the cipher, so a signal handler that interrupts one and reads
    itself cannot be given the same bytes.

    >>> len(SecureSource().read(5))
    5
    """

    __slots__ = ("_keystream",)

    def __init__(self) -> None:
        self._keystream = _Keystream()

    @property
    def is_secure(self) -> bool:
        """True: nobody can predict these bytes."""
        return True

    def read(self, n: int, /) -> bytes:
        """Return ``n`` fresh bytes.

        >>> SYSTEM.read(16) == SYSTEM.read(16)
        False
        """
        if n > _LONGEST_READ:
            starts = range(0, n, _LONGEST_READ)
            return b"".join(self.read(min(_LONGEST_READ, n - start)) for start in starts)
        stream = self._keystream
        if stream.left < n or stream.identity != process_identity():
            stream.rekey()
        stream.left -= n
        result: bytes = stream.cipher.update(_ZEROS[:n])
        return result

    def __reduce__(self) -> tuple[object, ...]:
        # A pickled source arrives as the receiver's own: keys never travel.
        return (SecureSource, ())

    def __repr__(self) -> str:
        return "SecureSource(AES-128-CTR)"


SYSTEM: Final[Source] = SecureSource()


def words(source: Source, count: int, dtype: str) -> npt.NDArray[Any]:
    """Read ``count`` little-endian unsigned words, such as ``"<u2"``, as a read-only array.

    >>> words(SYSTEM, 3, "<u8").shape
    (3,)
    """
    size = np.dtype(dtype).itemsize
    return np.frombuffer(source.read(count * size), dtype=dtype)


def bits(source: Source, count: int) -> int:
    """Read ``count`` random bits as one integer.

    >>> bits(SYSTEM, 3) < 8
    True
    """
    size = (count + 7) // 8
    return int.from_bytes(source.read(size), "little") & ((1 << count) - 1)


def in_parts(work: Callable[[slice], None], count: int, *, source: Source) -> None:
    """Call ``work`` for slices that make up ``range(count)``, on all processors where it pays.

    Each thread has a keystream of its own in the secure source. Another source is read by one
    thread, in order, so what a seed gives does not depend on the machine.

    >>> done = []
    >>> in_parts(done.append, 3, source=SYSTEM)
    >>> done
    [slice(0, 3, None)]
    """
    threads = min(_processors(), count // _PER_THREAD) if isinstance(source, SecureSource) else 1
    share = count if threads <= 1 else -(-count // (threads * _PART)) * _PART

    def run(first: int, end: int) -> None:
        for start in range(first, end, _PART):
            work(slice(start, min(start + _PART, end)))

    firsts = range(0, count, max(1, share))
    if len(firsts) > 1:
        try:
            # Made anew each time: threads that wait in a pool would not survive a fork.
            with ThreadPoolExecutor(len(firsts)) as pool:
                list(pool.map(run, firsts, [min(first + share, count) for first in firsts]))
            return
        except RuntimeError:  # no thread to be had, as at the end of a process: do it all here
            pass
    run(0, count)


def _processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1
