"""``discreet demo``, ``discreet demo learn`` and ``discreet demo attack``, on generated data.

What they show is imported when they run, so that ``--help`` needs neither mechanisms nor torch.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from discreet.cli.numbers import parse
from discreet.cli.options import FILE
from discreet.errors import ParameterError


def register(app: typer.Typer) -> None:
    """Add the demos to the application."""
    demos = typer.Typer(rich_markup_mode="rich")
    demos.callback(invoke_without_command=True)(demo)
    demos.command("learn")(learn)
    demos.command("attack")(attack)
    app.add_typer(demos, name="demo")


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
    write: Annotated[
        Path | None,
        FILE(help="Only write the generated people to a .parquet or .csv file, to play with."),
    ] = None,
) -> None:
    """Answer three questions about a census-like table privately.

    A count, a mean and a histogram, each with its error bar and its price in epsilon.

    Example: [bold]discreet demo --rows 200000[/bold], or a file to try everything on:
    [bold]discreet demo --write people.parquet[/bold]

    Private training, in a minute: [bold]discreet demo learn[/bold]. What all of it is good for:
    [bold]discreet demo attack[/bold]
    """
    if context.invoked_subcommand is not None:
        for name, said in (("rows", rows), ("write", write)):
            if said is not None:
                told = f"--{name} belongs behind {context.invoked_subcommand}."
                raise ParameterError(told, parameter=name)
        return
    from discreet.cli.demo.tables import run_demo, write_people

    many = None if rows is None else parse(rows)
    if write is None:
        run_demo(Console(), data=data, rows=many)
    else:
        write_people(Console(), write, rows=many)


def learn(
    rows: Annotated[
        str | None, typer.Option(metavar="N", help="How many digits to generate, 8000 if not said.")
    ] = None,
    plot: Annotated[Path | None, FILE(help="Draw accuracy against epsilon: a .png, say.")] = None,
) -> None:
    """Train the same small model with and without privacy, on generated digits.

    Shows held-out accuracy, certified epsilon and the ledger's entry, in less than a minute.

    Example: [bold]discreet demo learn --plot gap.png[/bold]
    """
    from discreet.cli.demo.learn import run_demo_learn

    run_demo_learn(Console(), rows=None if rows is None else parse(rows), plot=plot)


def attack(
    plot: Annotated[Path | None, FILE(help="Draw before and after as bars: a .png, say.")] = None,
) -> None:
    """Attack generated people in four ways, without protection and with it.

    Names removed and linked again, salaries differenced, a secret column reconstructed, the
    members of a training set told: in less than a minute.

    Example: [bold]discreet demo attack --plot attacks.png[/bold]
    """
    from discreet.cli.demo.attack import run_demo_attack

    run_demo_attack(Console(), plot=plot)
