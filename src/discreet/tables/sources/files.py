"""Parquet and CSV files: which they are, and whether they changed."""

import glob
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from discreet.errors import DataError

__all__ = ["expand", "fingerprint", "format_of", "inodes"]

_ENDINGS: dict[str, Literal["parquet", "csv"]] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".csv.gz": "csv",
    ".tsv.gz": "csv",
}


def expand(given: object, *, name: str) -> tuple[str, ...] | None:
    """Return the files that a path, glob, folder or list of them names; None for anything else.

    >>> expand(3, name="people") is None
    True
    >>> expand("nowhere/*.parquet", name="people")
    Traceback (most recent call last):
        ...
    discreet.errors.DataError: table 'people': there is no file 'nowhere/*.parquet'.
    """
    if isinstance(given, str | os.PathLike):
        given = (given,)
    if not isinstance(given, list | tuple) or not given:
        return None
    if not all(isinstance(item, str | os.PathLike) for item in given):
        return None
    found: list[str] = []
    for item in given:
        found += _files_of(os.fspath(item), name)
    return tuple(dict.fromkeys(found))


def _files_of(item: str, name: str) -> list[str]:
    path = Path(item).expanduser()
    if path.is_file():
        matches = [path]
    elif path.is_dir():
        matches = [file for file in path.rglob("*") if file.is_file() and _ending(file) is not None]
        matches = [file for file in matches if not file.name.startswith((".", "_"))]
    else:
        matches = [Path(file) for file in glob.glob(str(path), recursive=True)]
        matches = [file for file in matches if file.is_file()]
    if not matches:
        raise DataError(f"table {name!r}: there is no file {item!r}.")
    absolute = sorted(str(file.resolve()) for file in matches)
    if any(set(file) & set("*?[]\0") for file in absolute):
        raise DataError(
            f"table {name!r}: a file's path has one of the signs * ? [ ], which are read as "
            "patterns. Rename it."
        )
    return absolute


def _ending(path: Path) -> Literal["parquet", "csv"] | None:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return _ENDINGS.get("".join(suffixes[-2:])) or _ENDINGS.get("".join(suffixes[-1:]))


def format_of(paths: Sequence[str], *, name: str) -> Literal["parquet", "csv"]:
    """Tell Parquet from CSV by the files' endings.

    >>> format_of(["a.csv.gz", "b.csv"], name="people")
    'csv'
    """
    kinds = {_ending(Path(path)) for path in paths}
    if kinds == {"parquet"}:
        return "parquet"
    if kinds == {"csv"}:
        return "csv"
    raise DataError(
        f"table {name!r}: files must all end in .parquet or all in .csv (.csv.gz, .tsv)."
    )


def fingerprint(paths: Sequence[str], names: Sequence[str], *, with_footers: bool) -> str:
    """Digest the paths, sizes and times of files, and Parquet's footers; rows are not read.

    ``names`` are those by which the files are opened.
    """
    digest = hashlib.sha256()
    for path, name in zip(paths, names, strict=True):
        state = os.stat(name)
        digest.update(f"{path}\0{state.st_size}\0{state.st_mtime_ns}\0".encode())
        if with_footers:
            digest.update(_footer(name, state.st_size))
    return digest.hexdigest()


def _footer(path: str, size: int) -> bytes:
    with open(path, "rb") as file:
        file.seek(max(0, size - 8))
        tail = file.read(8)
        length = int.from_bytes(tail[:4], "little") + 8
        file.seek(max(0, size - length))
        return hashlib.sha256(file.read(min(length, size))).digest()


def inodes(paths: Sequence[str], *within: str) -> Iterator[str]:
    """Tell files by where they are on the disk, so that a second name of one is noticed."""
    for path in paths:
        state = os.stat(path)
        yield ":".join(map(str, ("inode", state.st_dev, state.st_ino, *within)))
