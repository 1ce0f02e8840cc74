"""What was verified, kept so that the next verification goes on from there."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, final

from discreet._json import read_json
from discreet.errors import ParameterError
from discreet.ledger.log.keys import write_file

__all__ = ["Verification"]

_FORM: Final = "discreet-verified/1"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Say what was verified, and hold what is needed to go on from there.

    Keep it where whoever could alter the ledger cannot: :meth:`save`, and later
    ``ledger.verify(since=Verification.load(path))`` checks only what came after.

    >>> from discreet.ledger import Verification
    >>> done = Verification(checkpoint="...", size=3, time="", frontier="", last="", facts={})
    >>> print(done)
    3 entries verified
    """

    checkpoint: str
    size: int
    time: str
    frontier: str
    last: str
    facts: dict[str, str] = field(repr=False)
    releases: int = 0
    start: int = 0

    def __str__(self) -> str:
        onward = f", {self.size - self.start} of them since the last time" if self.start else ""
        return f"{self.size} entries verified{onward}"

    def save(self, path: str | Path) -> None:
        """Write it to a file.

        >>> import os, tempfile
        >>> from discreet.testing import temporary_ledger
        >>> file = os.path.join(tempfile.mkdtemp(), "verified.json")
        >>> with temporary_ledger() as ledger:
        ...     ledger.verify().save(file)
        >>> Verification.load(file).size
        1
        """
        names = ("checkpoint", "size", "time", "frontier", "last", "facts", "releases")
        document = {"format": _FORM, **{name: getattr(self, name) for name in names}}
        write_file(Path(path), f"{json.dumps(document, sort_keys=True)}\n".encode(), replace=True)

    @classmethod
    def load(cls, path: str | Path) -> "Verification":
        """Read it back.

        >>> Verification.load("no such file")
        Traceback (most recent call last):
            ...
        discreet.errors.ParameterError: no such file holds no result of a verification.
        """
        try:
            document = read_json(Path(path).read_text(encoding="utf-8"), strict=True)
            if document.pop("format") == _FORM:
                return cls(**document)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass
        raise ParameterError(f"{path} holds no result of a verification.", parameter="since")
