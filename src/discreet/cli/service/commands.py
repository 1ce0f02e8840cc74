"""``discreet serve`` and ``discreet keys``.

The gateway is imported when a command runs, so that ``--help`` stays quick and works without it.
"""

import typer

from discreet.cli.service.keys import create, end, listed
from discreet.cli.service.serving import serve

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command()(serve)
    keys = typer.Typer(rich_markup_mode="rich", no_args_is_help=True)
    keys.callback()(_keys)
    keys.command("create")(create)
    keys.command("list")(listed)
    keys.command("revoke")(end)
    app.add_typer(keys, name="keys")


def _keys() -> None:
    """Make, list and revoke the API keys of a gateway, on the host that it runs on."""
