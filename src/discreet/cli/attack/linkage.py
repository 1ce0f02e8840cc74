"""``discreet attack linkage``: who is alone with their values, and what that tells."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console

from discreet._exact import whole
from discreet.cli.attack.generated import EPSILON, protected
from discreet.cli.attack.show import PlotOption, show_pair
from discreet.cli.numbers import parse
from discreet.cli.options import FILE, EpsilonOption, JsonOption
from discreet.cli.train.show import check_plot
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet._exact import Number
    from discreet.attacks import AttackReport

PEOPLE: Final = 20_000
ASKED: Final = 30  # people whose secret is looked for: a question each
QUASI: Final = ("zip", "birth_date", "sex")
LOOKED_FOR: Final = "diagnosis"


def linkage(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="A .parquet or .csv; generated if not said."),
    ] = None,
    quasi: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="Columns that others know of people.")
    ] = None,
    worst: Annotated[
        str | None,
        typer.Option(metavar="N", help="Find the N columns that single out the most, of --quasi."),
    ] = None,
    auxiliary: Annotated[
        Path | None, FILE(help="A second table, of known people: join it by --quasi.")
    ] = None,
    truth: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Tells who is who in both tables, to score the join."),
    ] = None,
    epsilon: EpsilonOption = EPSILON,
    plot: PlotOption = None,
    as_json: JsonOption = False,
) -> None:
    """Single people out by columns that look harmless, or join names back.

    Generated patients are looked up in a register of voters, once in a table without names and
    once through a protected one, where each question is paid for.

    Example: [bold]discreet attack linkage people.parquet --worst 3[/bold]
    """
    check_plot(plot)
    if truth is not None and auxiliary is None:
        raise ParameterError("--truth needs --auxiliary: it scores a join.", parameter="truth")
    if worst is not None and auxiliary is not None:
        raise ParameterError("--worst and --auxiliary do not go together.", parameter="worst")
    if file is None:
        for name, said in (("quasi", quasi), ("worst", worst), ("auxiliary", auxiliary)):
            if said is not None:
                raise ParameterError(f"--{name} needs a FILE to look at.", parameter=name)
        before, after = _generated(parse(epsilon))
        show_pair(Console(), before, after, plot=plot, as_json=as_json)
        return
    if epsilon != EPSILON:
        raise ParameterError(
            "--epsilon is for generated data, without a FILE.", parameter="epsilon"
        )
    from discreet.attacks import linkage as attack

    columns = None if quasi is None else [one.strip() for one in quasi.split(",")]
    if auxiliary is not None:
        if columns is None:
            raise ParameterError("--quasi must name the columns to join by.", parameter="quasi")
        found = attack.match(file, auxiliary, on=columns, truth=truth)
    elif columns is None and worst is None:
        found = attack.run(file, worst=3)
    else:
        size = None if worst is None else whole(parse(worst), name="worst")
        found = attack.run(file, columns, worst=size)
    show_pair(Console(), found, None, plot=plot, as_json=as_json)


def _generated(epsilon: "Number") -> "tuple[AttackReport, AttackReport]":
    from discreet.attacks import linkage as attack
    from discreet.datasets import voters

    register = voters(PEOPLE)
    hospital = {name: column for name, column in register.items() if name != "voter"}
    keys = sorted(set(register[LOOKED_FOR].tolist()))
    with protected(
        register,
        name="patients",
        unit="voter",
        epsilon=epsilon,
        columns={LOOKED_FOR: {"keys": keys}},
    ) as tables:
        before, after = (
            attack.run(data, QUASI, auxiliary=register, secret=LOOKED_FOR, people=ASKED)
            for data in (hospital, tables)
        )
    return before, after
