"""``discreet attack reconstruct``: a secret column from counts of subsets."""

from math import sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console

from discreet._exact import Number, refusal, whole
from discreet.cli.attack.show import PlotOption, show_pair
from discreet.cli.numbers import parse
from discreet.cli.options import JsonOption
from discreet.cli.train.show import check_plot
from discreet.privacy import Guarantee

if TYPE_CHECKING:
    from discreet.attacks import AttackReport

DELTA: Final = 1e-6
MOST_PEOPLE: Final = 512
MOST_QUESTIONS: Final = 4096


def reconstruct(
    people: Annotated[str, typer.Option(metavar="N", help="How many people to generate.")] = "128",
    questions: Annotated[str, typer.Option(metavar="N", help="About how many subsets.")] = "512",
    noise: Annotated[
        str | None,
        typer.Option(
            metavar="X",
            help="Standard deviation of the noise without protection, sqrt(people) / 4 if not said "
            "(none with --each).",
        ),
    ] = None,
    epsilon: Annotated[
        str, typer.Option(metavar="E", help="The whole budget of the protected table.")
    ] = "1",
    each: Annotated[
        bool, typer.Option("--each", help="Ask about each person alone, in place of subsets.")
    ] = False,
    plot: PlotOption = None,
    as_json: JsonOption = False,
) -> None:
    """Solve for everybody's secret, from how many have it in random subsets.

    Every person has a secret bit. Without protection each count is answered, with a little
    noise; with protection questions are asked of a protected table until its budget is spent.

    Example: [bold]discreet attack reconstruct --noise 0 --plot bits.png[/bold]
    """
    check_plot(plot)
    before, after = attacked(
        people=_bounded(people, "people", MOST_PEOPLE),
        questions=_bounded(questions, "questions", MOST_QUESTIONS),
        noise=None if noise is None else parse(noise),
        epsilon=parse(epsilon),
        is_each=each,
    )
    show_pair(Console(), before, after, plot=plot, as_json=as_json)


def attacked(
    *, people: int, questions: int, noise: Number | None, epsilon: Number, is_each: bool = False
) -> "tuple[AttackReport, AttackReport]":
    """Attack generated bits without protection and with it; both reports.

    >>> before, after = attacked(people=32, questions=64, noise=0, epsilon=1)
    >>> before.success, after.success < 1
    (1.0, True)
    """
    import numpy as np

    from discreet.attacks import reconstruction
    from discreet.noise import uniform_integers
    from discreet.tables import protect

    guarantee = Guarantee(epsilon=epsilon, delta=DELTA)
    secret = np.argsort(uniform_integers(1 << 60, people)) % 2  # half have it, whoever they are
    subsets = np.eye(people, dtype=bool) if is_each else None
    usual = 0 if is_each else sqrt(people) / 4
    unprotected = reconstruction.count_subsets(secret, noise=usual if noise is None else noise)
    before = reconstruction.run(secret, unprotected, questions=questions, subsets=subsets)
    with (
        TemporaryDirectory() as place,
        protect(
            {"id": np.arange(people), "secret": secret},
            name="people",
            unit="id",
            rows=1,
            guarantee=guarantee,
            ledger=Path(place) / "budget.db",
        ) as tables,
    ):
        ask = reconstruction.through(
            tables,
            condition="secret = 1",
            by="id",
            ids=range(people),
            share=1 / (people if is_each else questions),
        )
        return before, reconstruction.run(secret, ask, questions=questions, subsets=subsets)


def _bounded(text: str, name: str, most: int) -> int:
    number = parse(text)
    count = whole(number, name=name, hint="It is a number.")
    if not 2 <= count <= most:
        raise refusal(name, f"from 2 to {most}", number)
    return count
