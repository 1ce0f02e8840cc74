"""How the reports of one randomiser lie in a payload of fixed length."""

from typing import Any, Protocol, final

import numpy as np
import numpy.typing as npt

from discreet.local.laws.numbers import as_code_rows, as_codes, as_rows, code_bytes

__all__ = ["Layout", "OneNumber", "PackedBits", "SomeValues"]

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]


class Layout(Protocol):
    """Turns reports into rows of bytes and back; a row that is no report is told, never raised."""

    def width(self, randomiser: Any, /) -> int:
        """Return how many bytes the payload of a report has."""
        ...

    def pack(self, reports: Any, randomiser: Any, /) -> Bytes:
        """Return one row of ``width`` bytes for each report."""
        ...

    def unpack(self, payloads: Bytes, randomiser: Any, /) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Return a report for each row, and whether it is one that the randomiser can give."""
        ...


@final
class OneNumber:
    """A whole number below the randomiser's ``outputs``, its low byte first, in as few as hold it.

    >>> from types import SimpleNamespace
    >>> large = SimpleNamespace(outputs=2**21)
    >>> OneNumber().pack([258], large)
    array([[2, 1, 0]], dtype=uint8)
    >>> OneNumber().unpack(np.array([[2, 1, 0], [0, 0, 32]], dtype=np.uint8), large)
    (array([    258, 2097152]), array([ True, False]))
    """

    def width(self, randomiser: Any, /) -> int:
        return code_bytes(randomiser.outputs)

    def pack(self, reports: Any, randomiser: Any, /) -> Bytes:
        codes = as_codes(reports, below=randomiser.outputs)
        return codes.astype("<i8").view(np.uint8).reshape(-1, 8)[:, : self.width(randomiser)]

    def unpack(self, payloads: Bytes, randomiser: Any, /) -> tuple[Array, npt.NDArray[np.bool_]]:
        wide = np.zeros((len(payloads), 8), dtype=np.uint8)
        wide[:, : payloads.shape[1]] = payloads
        codes = wide.view("<u8").reshape(-1)
        return codes.astype(np.int64), codes < np.uint64(randomiser.outputs)


@final
class PackedBits:
    """One bit for each value of the domain, value v in bit v % 8 of byte v // 8, lowest bit first.

    The bits behind the last value are 0.

    >>> from types import SimpleNamespace
    >>> ten = SimpleNamespace(domain=10)
    >>> PackedBits().unpack(np.array([[255, 3], [0, 4]], dtype=np.uint8), ten)[1]
    array([ True, False])
    """

    def width(self, randomiser: Any, /) -> int:
        return int(-(-randomiser.domain // 8))

    def pack(self, reports: Any, randomiser: Any, /) -> Bytes:
        return as_rows(reports, width=randomiser.domain)

    def unpack(self, payloads: Bytes, randomiser: Any, /) -> tuple[Array, npt.NDArray[np.bool_]]:
        fits = np.asarray(payloads[:, -1] <= 255 >> (-randomiser.domain % 8), dtype=np.bool_)
        if (size := getattr(randomiser, "size", None)) is not None:  # of the sets that it gives
            fits &= np.bitwise_count(payloads).sum(axis=1, dtype=np.int64) == size
        return payloads, fits


@final
class SomeValues:
    """A few values with a bit each, as numbers 2 value + bit in rising order, each as OneNumber.

    >>> from types import SimpleNamespace
    >>> two = SimpleNamespace(outputs=8, bits=2)
    >>> SomeValues().unpack(np.array([[1, 6], [4, 5]], dtype=np.uint8), two)[1]
    array([ True, False])
    """

    def width(self, randomiser: Any, /) -> int:
        return int(randomiser.bits * code_bytes(randomiser.outputs))

    def pack(self, reports: Any, randomiser: Any, /) -> Bytes:
        codes = as_code_rows(reports, width=randomiser.bits, below=randomiser.outputs)
        return OneNumber().pack(codes.reshape(-1), randomiser).reshape(len(codes), -1)

    def unpack(self, payloads: Bytes, randomiser: Any, /) -> tuple[Array, npt.NDArray[np.bool_]]:
        numbers = payloads.reshape(-1, code_bytes(randomiser.outputs))
        codes, possible = OneNumber().unpack(numbers, randomiser)
        shape = len(payloads), int(randomiser.bits)
        rows = codes.reshape(shape)
        fits = np.c_[possible.reshape(shape), np.diff(rows >> 1, axis=1) > 0]
        return rows, np.asarray(fits.all(axis=1))
