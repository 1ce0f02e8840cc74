"""The application: its commands put together, and every error told in one line."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from discreet._version import __version__
from discreet.cli.accounting.commands import register as register_accounting
from discreet.cli.explain import explanation, print_explanation
from discreet.cli.ledger.commands import register as register_ledger
from discreet.cli.numbers import parse, parse_exactly
from discreet.cli.options import JsonOption
from discreet.cli.output import echo_json
from discreet.cli.tables.commands import register as register_tables
from discreet.cli.train.commands import register as register_train
from discreet.errors import DiscreetError, ParameterError, TamperingFound

NOT_PROVEN = 1
BAD_INPUT = 2


class OneLineErrors(TyperGroup):
    """Answer bad input with one line on stderr and exit code 2, never with a traceback.

    Exit code 1 says that something was checked and found not to be what it claims.
    """

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command line; see the class."""
        run = partial(
            super().main, args, prog_name, complete_var, False, windows_expand_args, **extra
        )
        if not standalone_mode:
            return run()
        try:
            code = run()
        except typer.Abort:
            sys.exit(1)
        except DiscreetError as error:
            _complain(str(error))
            sys.exit(NOT_PROVEN if isinstance(error, TamperingFound) else BAD_INPUT)
        except Exception as error:
            # The parser's own errors. Their class has moved between releases of Typer, but it has
            # always known how to say what is wrong.
            say = getattr(error, "format_message", None)
            if say is None:
                raise
            _complain(say())
            sys.exit(BAD_INPUT)
        sys.exit(code if isinstance(code, int) else 0)


def _complain(message: str) -> None:
    typer.echo("discreet: " + " ".join(message.split()), err=True)


app = typer.Typer(
    cls=OneLineErrors,
    no_args_is_help=False,
    add_completion=False,
    rich_markup_mode="rich",
    # Typer's pretty tracebacks print local variables, and those may hold private values.
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"discreet {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """One privacy budget for everything you do with people's data.

    Begin with [bold]discreet demo[/bold], or ask what a guarantee means:
    [bold]discreet explain --epsilon 1 --delta 1e-6 --n 10000[/bold]
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


demos = typer.Typer(rich_markup_mode="rich")
app.add_typer(demos, name="demo")


@demos.callback(invoke_without_command=True)
def demo(
    context: typer.Context,
    data: Annotated[
        Path | None,
        typer.Option(
            envvar="DISCREET_DATA",
            help="Folder with a CSV of people (age, income) to use in place of generated ones. "
            "All of it is read.",
        ),
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(
            metavar="N", help="How many people to generate, 50000 if not said. Not with --data."
        ),
    ] = None,
) -> None:
    """Answer three questions about a census-like table privately.

    A count, a mean and a histogram, each with its error bar and its price in epsilon.

    Example: [bold]discreet demo --rows 200000[/bold]

    Private training, in a minute: [bold]discreet demo learn[/bold]
    """
    if context.invoked_subcommand is not None:
        if rows is not None:
            raise ParameterError(
                f"--rows belongs behind {context.invoked_subcommand}.", parameter="rows"
            )
        return
    # Imported here so that `explain` and `--help` need neither mechanisms nor their libraries.
    from discreet.cli.demo.tables import run_demo

    run_demo(Console(), data=data, rows=None if rows is None else parse(rows))


@demos.command("learn")
def demo_learn(
    rows: Annotated[
        str | None,
        typer.Option(metavar="N", help="How many digits to generate, 8000 if not said."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw accuracy against epsilon: a .png, say."),
    ] = None,
) -> None:
    """Train the same small model with and without privacy, on generated digits.

    Shows held-out accuracy, certified epsilon and the ledger's entry, in less than a minute.

    Example: [bold]discreet demo learn --plot gap.png[/bold]
    """
    from discreet.cli.demo.learn import run_demo_learn

    run_demo_learn(Console(), rows=None if rows is None else parse(rows), plot=plot)


@app.command()
def explain(
    epsilon: Annotated[str, typer.Option(metavar="E", help="The privacy loss, such as 1 or 1/3.")],
    delta: Annotated[
        str, typer.Option(metavar="D", help="The chance of an exception, such as 1e-6.")
    ] = "0",
    n: Annotated[
        str | None, typer.Option(metavar="N", help="How many people are in the data.")
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(metavar="P", help="What an observer believes beforehand, from 0 to 1."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say in plain words and numbers what a guarantee means for one person.

    Example: [bold]discreet explain --epsilon 1 --delta 1e-6 --n 10000 --prior 0.1[/bold]
    """
    facts = explanation(
        epsilon=parse(epsilon),
        delta=parse(delta),
        n=None if n is None else parse(n),
        prior=None if prior is None else parse_exactly(prior),
    )
    if as_json:
        echo_json(facts.to_dict())
    else:
        print_explanation(Console(), facts)


register_tables(app)
register_train(app)
register_accounting(app)
register_ledger(app)


def main() -> None:
    """Run the command line and exit.

    >>> from unittest import mock
    >>> with mock.patch("sys.argv", ["discreet", "--version"]):  # doctest: +ELLIPSIS
    ...     try:
    ...         main()
    ...     except SystemExit as stop:
    ...         print(stop.code)
    discreet ...
    0
    """
    app(prog_name="discreet")
