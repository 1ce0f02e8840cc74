"""``discreet ledger``: keep one budget for a population, from the command line.

The ledger is imported when a command runs, so that ``--help`` stays quick.
"""

from collections.abc import Callable

import typer

from discreet.cli.ledger import budgets, copies, custody, pages, proofs
from discreet.cli.ledger.witness import witness


def register(app: typer.Typer) -> None:
    """Add ``discreet ledger`` and ``discreet verify`` to the application.

    >>> app = typer.Typer()
    >>> register(app)
    >>> app.registered_groups[0].name
    'ledger'
    """
    ledger = typer.Typer(rich_markup_mode="rich")
    ledger.callback(invoke_without_command=True)(overview)
    commands: tuple[Callable[..., None], ...] = (
        *(custody.init, budgets.create, budgets.limit, budgets.grant, budgets.policy),
        *(pages.accounts, pages.show, pages.history),
        *(proofs.verify, proofs.prove, proofs.checkpoint, witness),
        *(custody.rotate, custody.clock, custody.rollback),
        *(copies.export, copies.import_, copies.backup),
    )
    for command in commands:
        ledger.command(command.__name__.rstrip("_"))(command)
    app.add_typer(ledger, name="ledger")
    app.command("verify")(proofs.verify_receipt)


def overview(context: typer.Context) -> None:
    """Keep one budget for everything that is released about a population.

    Begin with [bold]discreet ledger init[/bold], then open an account:
    [bold]discreet ledger create salaries --unit record --epsilon 5 --delta 1e-6[/bold]
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
