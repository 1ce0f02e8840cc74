"""``discreet attack ...``, one command for each family of attacks."""

import typer

from discreet.cli.attack.difference import difference
from discreet.cli.attack.linkage import linkage
from discreet.cli.attack.membership import membership
from discreet.cli.attack.reconstruct import reconstruct


def register(app: typer.Typer) -> None:
    """Add the attacks to the application."""
    attacks = typer.Typer(rich_markup_mode="rich", no_args_is_help=True)
    attacks.callback()(attack)
    attacks.command()(linkage)
    attacks.command()(difference)
    attacks.command()(membership)
    attacks.command()(reconstruct)
    app.add_typer(attacks, name="attack")


def attack() -> None:
    """Attack data or an interface that you have: without protection, and with it.

    Everything is generated where no data is named.
    """
