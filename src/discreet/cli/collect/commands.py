"""``discreet collect``: collect randomised reports of devices, on an account of the ledger.

The room is imported when a command runs, so that ``--help`` stays quick and works without it.
"""

import typer

from discreet.cli.collect.declaring import init
from discreet.cli.collect.encoding import encode
from discreet.cli.collect.estimating import estimate
from discreet.cli.collect.serving import serve
from discreet.cli.collect.showing import show

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add ``discreet collect`` to the application.

    >>> app = typer.Typer()
    >>> register(app)
    >>> [command.name for command in app.registered_groups[0].typer_instance.registered_commands]
    ['init', 'encode', 'serve', 'estimate', 'show']
    """
    collect = typer.Typer(rich_markup_mode="rich")
    collect.callback(invoke_without_command=True)(overview)
    for command in (init, encode, serve, estimate, show):
        collect.command(command.__name__)(command)
    app.add_typer(collect, name="collect")


def overview(context: typer.Context) -> None:
    """Collect counts from devices that trust nobody: each adds its noise before it reports.

    Begin with an account for devices:
    [bold]discreet ledger create devices --unit column:device --neighbours replace_one
    --epsilon 30[/bold]

    Then declare what is asked: [bold]discreet collect init emoji --account devices
    --values emoji.txt --epsilon 1 --per-day 1 --lifetime 30 --minimum 1000[/bold]
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
