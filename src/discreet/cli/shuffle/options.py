"""Arguments and options that the commands share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.local.wire import Parameters

__all__ = [
    "AnalyserFile",
    "CollectionOption",
    "MinimumOption",
    "ShufflerFile",
    "parameters_in",
    "text_of",
]

AnalyserFile = Annotated[Path, typer.Argument(metavar="FILE", help="The analyser's state.")]
ShufflerFile = Annotated[Path, typer.Argument(metavar="FILE", help="The shuffler's state.")]
CollectionOption = Annotated[
    Path, typer.Option(metavar="FILE", help="The collection's parameters, as devices get them.")
]
MinimumOption = Annotated[
    int, typer.Option(metavar="N", help="Different senders, at least, in every batch.")
]


def parameters_in(collection: Path) -> "Parameters":
    """Return the parameters that a file has."""
    from discreet.local.wire import read_parameters

    return read_parameters(collection.read_bytes())


def text_of(file: Path) -> str:
    """Return the text of a file."""
    try:
        return file.read_text()
    except UnicodeDecodeError:
        raise ParameterError(f"{file} is no text.", parameter="file") from None
