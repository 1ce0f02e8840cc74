"""``discreet shuffle``: devices send sealed reports, a shuffler mixes them, an analyser counts.

The room is imported when a command runs, so that ``--help`` stays quick and works without it.
"""

from collections.abc import Callable

import typer

from discreet.cli.shuffle.looking import estimate, show
from discreet.cli.shuffle.making import admit, new_analyser, new_shuffler
from discreet.cli.shuffle.running import analyse, serve
from discreet.cli.shuffle.sending import send

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add ``discreet shuffle`` to the application.

    >>> app = typer.Typer()
    >>> register(app)
    >>> app.registered_groups[0].name
    'shuffle'
    """
    shuffle = typer.Typer(rich_markup_mode="rich")
    shuffle.callback(invoke_without_command=True)(overview)
    commands: tuple[Callable[..., None], ...] = (
        *(new_analyser, new_shuffler, admit, serve, send, analyse, estimate, show),
    )
    for command in commands:
        shuffle.command(command.__name__.replace("_", "-"))(command)
    app.add_typer(shuffle, name="shuffle")


def overview(context: typer.Context) -> None:
    """Hide each report among many: two people who do not work together run the two halves.

    The analyst begins, and hands the key that this prints to the shuffler's operator:
    [bold]discreet shuffle new-analyser analyser.db --collection emoji.json --minimum 1000
    --honest 0.9 --delta 1e-8[/bold]

    The operator sets up the shuffler, and runs it:
    [bold]discreet shuffle new-shuffler shuffler.db --collection emoji.json --minimum 1000
    --analyser KEY[/bold], then [bold]discreet shuffle serve shuffler.db[/bold]
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
