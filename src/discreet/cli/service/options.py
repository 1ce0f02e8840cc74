"""Options that the gateway's commands share."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["ConfigOption", "place_of"]

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        envvar="DISCREET_CONFIG",
        help="Its settings, a TOML file; gateway.toml here if there is one.",
    ),
]


def place_of(config: Path | None) -> Path | None:
    """Return the file of the settings: the one that was named, or the usual one if it is there."""
    usual = Path("gateway.toml")
    return usual if config is None and usual.exists() else config
