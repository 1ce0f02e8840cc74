"""Reports as bytes: a header that says where they belong, and a payload of fixed length."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from discreet.local.wire.kinds import kind_of
from discreet.local.wire.layouts import Bytes
from discreet.local.wire.parameters import Parameters
from discreet.noise import SYSTEM, Source

__all__ = ["HEADER", "TOKEN", "VERSION", "Sorted", "encode", "report_length", "sort_out"]

VERSION: Final = 1
TOKEN: Final = 16  # random bytes, by which a report that comes twice is recognised
_HOME: Final = 1 + 8 + 8  # version, collection, digest of the parameters
HEADER: Final = _HOME + TOKEN


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sorted:
    """Hold the reports that may be counted, and how many others came.

    ``reports`` is what the randomiser's ``estimate`` takes. ``tokens`` belong to them, in their
    order: keep them, and hand them to the next ``sort_out``. ``positions`` are where the reports
    stood among all that came.
    """

    reports: npt.NDArray[Any]
    tokens: list[bytes]
    positions: npt.NDArray[np.int64]
    malformed: int
    foreign: int
    out_of_range: int
    replayed: int

    @property
    def accepted(self) -> int:
        """How many reports may be counted."""
        return len(self.tokens)

    @property
    def dropped(self) -> int:
        """How many may not, for whichever reason."""
        return self.malformed + self.foreign + self.out_of_range + self.replayed


def report_length(parameters: Parameters) -> int:
    """Return how many bytes every report of a collection has."""
    return HEADER + kind_of(parameters.randomiser).layout.width(parameters.randomiser)


def encode(parameters: Parameters, reports: Any, *, source: Source = SYSTEM) -> list[bytes]:
    """Return the bytes of reports that the collection's randomiser released.

    >>> from discreet import local
    >>> from discreet.local.wire import parameters_of
    >>> million = local.HadamardResponse(domain=1_000_000, epsilon=1)
    >>> parameters = parameters_of(million, name="pages", a_day=1, lifetime=1)
    >>> [len(one) for one in encode(parameters, million.release([7, 0]))]    # 33 + 3
    [36, 36]
    """
    layout = kind_of(parameters.randomiser).layout
    payloads = layout.pack(reports, parameters.randomiser)
    rows = np.empty((len(payloads), report_length(parameters)), dtype=np.uint8)
    rows[:, :_HOME] = np.frombuffer(_home(parameters), dtype=np.uint8)
    tokens = np.frombuffer(source.read(len(payloads) * TOKEN), dtype=np.uint8)
    rows[:, _HOME:HEADER] = tokens.reshape(-1, TOKEN)
    rows[:, HEADER:] = payloads
    return _cut(rows)


def sort_out(
    parameters: Parameters, raw: Iterable[bytes], *, seen: Collection[bytes] = frozenset()
) -> Sorted:
    """Tell the reports of a collection from whatever else came, whichever bytes that are.

    Each is counted once, as the first that fits of: *malformed* (shorter than a header, of another
    version, or of the right collection and the wrong length), *foreign* (of another collection or
    other parameters), *out of range* (a payload that the randomiser cannot give) and *replayed*
    (its token is in ``seen`` or came before).

    >>> from discreet import local
    >>> from discreet.local.wire import parameters_of
    >>> randomiser = local.DirectResponse(domain=4, epsilon=1)
    >>> parameters = parameters_of(randomiser, name="a question", a_day=1, lifetime=1)
    >>> one, two = encode(parameters, [3, 1])
    >>> found = sort_out(parameters, [one, b"?", two, one])
    >>> found.reports, found.malformed, found.replayed
    (array([3, 1]), 1, 1)
    """
    came = list(raw)
    length = report_length(parameters)
    headed = _those(came, [len(one) >= HEADER for one in came])
    homes = _matrix([came[i][:_HOME] for i in headed], _HOME)
    known = headed[homes[:, 0] == VERSION]
    ours = headed[(homes == np.frombuffer(_home(parameters), dtype=np.uint8)).all(axis=1)]
    whole = _those(ours, [len(came[i]) == length for i in ours])

    layout = kind_of(parameters.randomiser).layout
    payloads = _matrix([came[i][HEADER:] for i in whole], length - HEADER)
    reports, possible = layout.unpack(payloads, parameters.randomiser)
    tokens = [came[i][_HOME:HEADER] for i in whole[possible]]
    fresh = _first_seen(tokens, seen)
    return Sorted(
        reports=reports[possible][fresh],
        tokens=[tokens[i] for i in fresh],
        positions=whole[possible][fresh],
        malformed=(len(came) - len(known)) + (len(ours) - len(whole)),
        foreign=len(known) - len(ours),
        out_of_range=len(whole) - len(tokens),
        replayed=len(tokens) - len(fresh),
    )


def _home(parameters: Parameters) -> bytes:
    return bytes([VERSION]) + bytes.fromhex(parameters.collection) + parameters.digest


def _matrix(pieces: list[bytes], width: int) -> Bytes:
    return np.frombuffer(b"".join(pieces), dtype=np.uint8).reshape(len(pieces), width)


def _cut(rows: Bytes) -> list[bytes]:
    whole, length = rows.tobytes(), rows.shape[1]
    return [whole[start : start + length] for start in range(0, len(whole), length)]


def _those(positions: Any, chosen: list[bool]) -> npt.NDArray[np.int64]:
    mask = np.asarray(chosen, dtype=np.bool_)
    return np.flatnonzero(mask) if isinstance(positions, list) else np.asarray(positions[mask])


def _first_seen(tokens: list[bytes], seen: Collection[bytes]) -> npt.NDArray[np.int64]:
    """Return where tokens stand that neither were seen nor came before."""
    first = {token: i for i, token in reversed(list(enumerate(tokens)))}
    return np.array(sorted(i for token, i in first.items() if token not in seen), dtype=np.int64)
