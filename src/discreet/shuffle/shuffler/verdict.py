"""What becomes of an envelope."""

from enum import StrEnum
from typing import NamedTuple

__all__ = ["Arrival", "Verdict"]


class Arrival(NamedTuple):
    """An envelope, and the token of who brought it.

    >>> Arrival("", b"?").envelope
    b'?'
    """

    token: str
    envelope: bytes


class Verdict(StrEnum):
    """Say what became of an arrival; all but ``waiting`` were dropped, and counted.

    ``waiting``: it is kept, and leaves with a batch. ``known``: the same bytes came before, so a
    sender that had no answer may send them again. ``stranger``: no token of ours. ``malformed``:
    not of the collection's length and version. ``foreign``: of another collection or other
    parameters. ``excess``: the sender has given enough for this batch. ``full``: too many wait.

    >>> Verdict.waiting.value
    'waiting'
    """

    waiting = "waiting"
    known = "known"
    stranger = "stranger"
    malformed = "malformed"
    foreign = "foreign"
    excess = "excess"
    full = "full"
