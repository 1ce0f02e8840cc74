"""Turn whatever a surface hands out into bytes to search."""

import dataclasses
import traceback
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path

import numpy as np

from discreet.audit.leaks.views import MOST

__all__ = ["read_error", "read_files", "read_value", "snapshot"]

_DEEPEST = 12
_PLAIN = (str, int, float, complex, bool, type(None), date)


def read_value(value: object) -> bytes:
    """Return what can be seen of a value: its text, its parts, and the bytes of its arrays.

    >>> read_value({"n": [1, b"raw"]}).split()
    [b'n', b'1', b'raw']
    """
    return b"\n".join(_parts(value, 0, set()))


def _parts(value: object, depth: int, known: set[int]) -> Iterator[bytes]:
    if isinstance(value, bytes | bytearray | memoryview):
        yield bytes(value)
    elif isinstance(value, BaseException):
        yield read_error(value)
    elif isinstance(value, _PLAIN):
        yield str(value).encode("utf-8", "surrogateescape")
    elif depth < _DEEPEST and id(value) not in known:
        known.add(id(value))
        if isinstance(value, Mapping):
            for pair in value.items():
                for part in pair:
                    yield from _parts(part, depth + 1, known)
        elif isinstance(value, list | tuple | set | frozenset):
            for part in value:
                yield from _parts(part, depth + 1, known)
        else:
            yield from _of_object(value, depth, known)


def _of_object(value: object, depth: int, known: set[int]) -> Iterator[bytes]:
    for show in (str, repr):
        try:
            yield show(value).encode("utf-8", "surrogateescape")
        except Exception as error:
            yield read_error(error)
    detach = getattr(value, "detach", None) if hasattr(value, "cpu") else None  # no file's
    if hasattr(value, "getvalue"):  # a file in memory
        yield from _parts(value.getvalue(), depth + 1, known)
    elif hasattr(value, "__array__") or detach:
        try:
            array = np.asarray(detach().cpu() if detach else value)
        except Exception:
            return  # a tensor without content, for one: its text was all there is
        yield array.tobytes() if array.dtype != object else b""
        yield from _parts(array.tolist(), depth + 1, known)
    elif isinstance(value, Iterator):
        for part in value:
            yield from _parts(part, depth + 1, known)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            if not field.name.startswith("_"):
                yield from _parts(getattr(value, field.name, None), depth + 1, known)
    elif type(value).__module__ != "builtins" and not callable(value):
        for name, part in list(getattr(value, "__dict__", {}).items()):
            if not str(name).startswith("_"):
                yield from _parts(part, depth + 1, known)


def read_error(error: BaseException) -> bytes:
    """Return all that an exception tells: its traceback page, arguments, notes, causes.

    Local variables are left out: whoever prints those has the data anyway.
    """
    told, parts = set(), []
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in told:
            continue
        told.add(id(one))
        parts += traceback.format_exception(one)
        public = {k: v for k, v in vars(one).items() if not k.startswith("_")}
        parts += [repr(one.args), repr(public), *map(str, getattr(one, "__notes__", ()))]
        waiting += [one.__cause__, one.__context__]  # also where `from None` hides the latter
        waiting += getattr(one, "exceptions", ())
    return "\n".join(parts).encode("utf-8", "surrogateescape")


def snapshot(folders: Iterable[Path], *, excluded: Iterable[Path] = ()) -> dict[Path, object]:
    """Return the state of each file, to see later which were written."""
    left_out = {path.resolve() for path in excluded}
    found: dict[Path, object] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")) if folder.is_dir() else [folder]:
            try:
                state = path.lstat()
            except OSError:
                continue  # gone in the meantime
            if path.resolve() not in left_out:
                found[path] = (state.st_mtime_ns, state.st_size, state.st_ino)
    return found


def read_files(
    paths: Iterable[Path], *, folders: Iterable[Path]
) -> Iterator[tuple[str, bytes | None]]:
    """Yield names and contents of files and folders; what is not to be read has None."""
    roots = list(folders)
    for path in paths:
        root = next((one for one in roots if path.is_relative_to(one)), path.parent)
        name = path.relative_to(root).as_posix() if path != root else path.name
        yield "name of a file", name.encode("utf-8", "surrogateescape")
        if path.is_symlink():
            yield f"link {name}", str(path.readlink()).encode("utf-8", "surrogateescape")
        elif path.is_file():
            try:
                yield f"file {name}", path.read_bytes() if path.stat().st_size <= MOST else None
            except OSError:
                yield f"file {name}", None
