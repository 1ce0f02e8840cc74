"""Find a collection by its name, and its ledger."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from discreet.cli.ledger.opening import writing
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.local import Collection

__all__ = ["NameArgument", "file_of", "found", "opened", "parameters_file"]

_SUFFIX: Final = ".reports"
NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="The collection: its name, or its file.")
]


def file_of(name: str) -> Path:
    """Return the file of a collection.

    >>> file_of("emoji"), file_of("data/emoji.reports")
    (PosixPath('emoji.reports'), PosixPath('data/emoji.reports'))
    """
    return Path(name if name.endswith(_SUFFIX) else f"{name}{_SUFFIX}")


def parameters_file(path: Path) -> Path:
    """Return the file beside it with what devices are told.

    >>> parameters_file(Path("data/emoji.reports"))
    PosixPath('data/emoji.parameters.json')
    """
    return path.with_name(f"{path.name.removesuffix(_SUFFIX)}.parameters.json")


def found(name: str) -> Path:
    """Return the file of a collection that is there, or say how to make one."""
    path = file_of(name)
    if not path.exists():
        here = sorted(one.name.removesuffix(_SUFFIX) for one in Path().glob(f"*{_SUFFIX}"))
        hint = f" There is {', '.join(here)}." if here else ""
        raise ParameterError(
            f"there is no collection at {path}.{hint} Make one with: discreet collect init",
            parameter="name",
        )
    return path


@contextmanager
def opened(name: str, *, ledger: str, key: Path | None) -> "Iterator[Collection]":
    """Open a collection that is there, and its ledger."""
    from discreet.local import Collection

    path = found(name)
    with writing(ledger, key) as book, Collection.resume(book, path) as collection:
        yield collection
