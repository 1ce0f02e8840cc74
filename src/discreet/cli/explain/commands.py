"""The command: a guarantee in, plain words and numbers out."""

from typing import Annotated

import typer
from rich.console import Console

from discreet.cli.explain.facts import explanation
from discreet.cli.explain.page import print_explanation
from discreet.cli.numbers import parse, parse_exactly
from discreet.cli.options import JsonOption
from discreet.cli.output import echo_json


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(explain)


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
