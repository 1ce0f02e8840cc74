"""Where real data lies, if you have some."""

import os
from pathlib import Path
from typing import Final

from discreet.errors import ParameterError

VARIABLE: Final = "DISCREET_DATA"


def folder(path: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of real data: ``path`` if given, else what DISCREET_DATA names.

    Nothing is downloaded and nothing is read; what lies in the folder is up to you.

    >>> folder(".").is_dir()
    True
    >>> folder("no/such/folder")
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: the data folder 'no/such/folder' does not exist. Give another \
with --data or DISCREET_DATA, or use the generated tables of discreet.datasets.
    """
    chosen = os.environ.get(VARIABLE, "") if path is None else os.fspath(path)
    if not chosen:
        raise ParameterError(
            f"no data folder was given. Name one with --data or {VARIABLE}, or use the generated "
            "tables of discreet.datasets.",
            parameter="data",
        )
    found = Path(chosen).expanduser()
    if not found.is_dir():
        problem = "is not a folder" if found.exists() else "does not exist"
        raise ParameterError(
            f"the data folder {chosen!r} {problem}. Give another with --data or {VARIABLE}, "
            "or use the generated tables of discreet.datasets.",
            parameter="data",
        )
    return found
