"""What was protected, opened again by name."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.numbers import parse
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.tables import Protected, Resources

__all__ = ["NameArgument", "PurposeOption", "WhoOption", "declared", "limited", "opened"]

NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="What was protected: its name, or its TOML file.")
]
WhoOption = Annotated[
    str | None, typer.Option("--who", metavar="NAME", help="Who asks; you, if not said.")
]
PurposeOption = Annotated[str, typer.Option("--purpose", metavar="TEXT", help="What for.")]


def declared(name: str) -> Path:
    """Return the file of what was protected under a name, or say how to protect something."""
    path = Path(name if name.endswith(".toml") else f"{name}.toml")
    if not path.exists():
        here = sorted(str(one.stem) for one in Path().glob("*.toml"))
        hint = f" There is {', '.join(here)}." if here else ""
        raise ParameterError(
            f"there is no {path} here.{hint} Protect data with: discreet protect FILE --name "
            f"{path.stem}",
            parameter="name",
        )
    return path


@contextmanager
def opened(
    name: str, *, who: str | None, purpose: str, limits: Sequence[str | None] = ()
) -> "Iterator[Protected]":
    """Open tables from NAME.toml, with other ``limits`` (memory, disk, seconds) where said."""
    from discreet.tables import load, open_tables

    path = declared(name)
    is_said = any(one is not None for one in limits)
    resources = limited(load(path).resources, *limits) if is_said else None
    with open_tables(path, who=who, purpose=purpose, resources=resources) as protected:
        yield protected


def limited(
    resources: "Resources", memory: str | None, disk: str | None, seconds: str | None
) -> "Resources":
    """Return resources with the limits that were typed; 0 seconds are no limit."""
    given: dict[str, Any] = {"memory": memory, "disk": disk}
    if seconds is not None:
        given["seconds"] = parse(seconds)
    said = {name: limit for name, limit in given.items() if limit is not None}
    if "seconds" in said:
        said["seconds"] = said["seconds"] or None
    return replace(resources, **said)
