"""``discreet exercise list``, ``show`` and ``check``."""

from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from discreet._exact import whole
from discreet.cli.exercise.judging import Exercise, read_answer
from discreet.cli.exercise.questions import EXERCISES
from discreet.cli.numbers import for_json, parse
from discreet.cli.options import JsonOption
from discreet.cli.output import echo_json, say, tell, tell_command
from discreet.errors import ParameterError

WRONG: Final = 1
NumberArgument = Annotated[str, typer.Argument(metavar="N", help="The number of the exercise.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    exercises = typer.Typer(rich_markup_mode="rich", no_args_is_help=True)
    exercises.callback()(exercise)
    exercises.command("list")(list_exercises)
    exercises.command()(show)
    exercises.command()(check)
    app.add_typer(exercises, name="exercise")


def exercise() -> None:
    """Learn by answering: questions with a number as their answer, and a check of it.

    The course that goes with them is in the documentation.
    """


def list_exercises(as_json: JsonOption = False) -> None:
    """List the exercises, from one coin to a training run."""
    if as_json:
        echo_json([_facts(number, one) for number, one in enumerate(EXERCISES, start=1)])
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("", justify="right")
    table.add_column("exercise")
    table.add_column("read")
    for number, one in enumerate(EXERCISES, start=1):
        table.add_row(str(number), Text(one.name), Text(f"course/{one.page}"))
    console = Console()
    console.print(table)
    tell("Next: discreet exercise show 1", console=console)


def show(
    number: NumberArgument,
    solution: Annotated[
        bool, typer.Option("--solution", help="Show the lines that compute the answer.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show one exercise.

    Example: [bold]discreet exercise show 1[/bold]
    """
    at, one = _chosen(number)
    if as_json:
        facts = _facts(at, one)
        if solution:
            facts |= {"solution": one.code(), "answer": for_json(one.solution())}
        echo_json(facts)
        return
    console = Console()
    say(console, f"{at}. {one.name.capitalize()}", bold=True)
    say(console, one.question)
    if solution:
        console.print()
        for line in one.code().splitlines():
            tell_command(line)
        console.print()
        tell(f"It returns {float(one.solution()):.6g}.", console=console)
    else:
        tell(f"Answer it: discreet exercise check {at} ANSWER", console=console)


def check(
    number: NumberArgument,
    answer: Annotated[
        str, typer.Argument(metavar="ANSWER", help="A number, such as 0.45, 45%, 9/20 or 1e-6.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Check an answer, which is right if two digits are. Ends with 1 if it is wrong.

    Example: [bold]discreet exercise check 1 1.1[/bold]
    """
    at, one = _chosen(number)
    remark = one.judge(read_answer(answer))
    if as_json:
        echo_json(_facts(at, one) | {"is_right": not remark, "remark": remark})
    elif not remark:
        tell(f"Right. The library says {float(one.solution()):.6g}.")
        if at < len(EXERCISES):
            tell(f"Next: discreet exercise show {at + 1}")
    else:
        tell(f"Not yet. {remark}")
        tell(f"It is explained in course/{one.page}; the lines that compute it: "
             f"discreet exercise show {at} --solution")  # fmt: skip
    raise typer.Exit(WRONG if remark else 0)


def _chosen(number: str) -> tuple[int, Exercise]:
    wanted = f"There are exercises 1 to {len(EXERCISES)}."
    at = whole(parse(number), name="n", hint=wanted)
    if at > len(EXERCISES):
        raise ParameterError(f"there is no exercise {at}. {wanted}", parameter="n")
    return at, EXERCISES[at - 1]


def _facts(number: int, one: Exercise) -> dict[str, object]:
    return {
        "number": number,
        "name": one.name,
        "question": one.question,
        "page": f"course/{one.page}",
    }
