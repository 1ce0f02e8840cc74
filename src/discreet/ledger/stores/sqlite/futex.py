"""Sleep until a word in a file that processes share changes: futex(2) of Linux."""

import ctypes
import mmap
import os
import struct
import sys
import time
from typing import final

__all__ = ["Sleeper"]

# Whoever sleeps looks again after this time: all that happens after the holder of the lock died.
LONGEST_NAP = 20_000_000
_TIME = struct.Struct("@ll")

# futex(2) by architecture, for 64-bit processes; elsewhere sleepers queue for the lock itself.
_FUTEX_CALL = {
    "x86_64": 202,
    "aarch64": 98,
    "riscv64": 98,
    "loongarch64": 98,
    "ppc64le": 221,
    "s390x": 238,
}
_FUTEX_WAIT, _FUTEX_WAKE = 9, 10  # of those who share a bit


@final
class Sleeper:
    """Sleep until a word in a shared file changes, and wake all who do.

    Why not simply queue for the lock: the kernel wakes those who queue one after the other, each
    of them only to find its answer and unlock again, while newcomers slip in between and commit
    alone. A futex wakes all at once, and they need no lock to read their answers.
    """

    def __init__(self, page: mmap.mmap, place: int, call: int) -> None:
        self._word = ctypes.c_uint32.from_buffer(page, place)
        self._address = ctypes.addressof(self._word)
        self._call = call
        library = ctypes.CDLL(None)
        self._syscall = library.syscall
        self._syscall.restype = ctypes.c_long
        self._syscall.argtypes = [
            ctypes.c_long,
            ctypes.c_void_p,
            ctypes.c_int,
            ctypes.c_uint32,
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_uint32,
        ]

    @staticmethod
    def over(page: mmap.mmap, place: int) -> "Sleeper | None":
        """Return a sleeper over the word at a place of the page, where the system has any."""
        if sys.platform != "linux" or struct.calcsize("P") != 8:
            return None
        call = _FUTEX_CALL.get(os.uname().machine)
        return None if call is None else Sleeper(page, place, call)

    def value(self) -> int:
        """Return the word."""
        return self._word.value

    def sleep(self, seen: int, slot: int) -> None:
        """Sleep while the word is ``seen``; also wake for a signal, and after a while."""
        until = _TIME.pack(*divmod(time.monotonic_ns() + LONGEST_NAP, 1_000_000_000))
        self._syscall(self._call, self._address, _FUTEX_WAIT, seen, until, None, 1 << slot % 32)

    def wake(self, bits: int) -> None:
        """Wake those who share one of these bits."""
        self._syscall(self._call, self._address, _FUTEX_WAKE, 0x7FFFFFFF, None, None, bits)
