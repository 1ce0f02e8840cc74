"""What was protected, opened again by name."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.tables import Protected

__all__ = ["NameArgument", "PurposeOption", "WhoOption", "opened"]

NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="What was protected: its name, or its TOML file.")
]
WhoOption = Annotated[
    str | None, typer.Option("--who", metavar="NAME", help="Who asks; you, if not said.")
]
PurposeOption = Annotated[str, typer.Option("--purpose", metavar="TEXT", help="What for.")]


@contextmanager
def opened(name: str, *, who: str | None, purpose: str) -> "Iterator[Protected]":
    """Open tables from NAME.toml, or say how to protect some."""
    from discreet.tables import open_tables

    path = Path(name if name.endswith(".toml") else f"{name}.toml")
    if not path.exists():
        raise ParameterError(
            f"there is no {path} here. Protect data with: discreet protect FILE --name {path.stem}",
            parameter="name",
        )
    with open_tables(path, who=who, purpose=purpose) as protected:
        yield protected
