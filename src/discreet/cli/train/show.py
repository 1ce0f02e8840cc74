"""What ``discreet train`` shows, draws and writes."""

import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import discreet.plotting as plotting
from discreet._exact import show
from discreet.cli.output import fitted
from discreet.cli.train.runs import NOT_PRIVATE, Run, gap
from discreet.errors import MissingExtra, ParameterError

if TYPE_CHECKING:
    from discreet.cli.train.evaluations import Evaluation
    from discreet.cli.train.runs import Experiment

WARNING = (
    "NOT PRIVATE: the model without privacy was trained on the data as it is. It and its accuracy "
    "may tell anything about anybody in it: keep both to yourself."
)


def check_plot(path: Path | None) -> None:
    """Refuse a picture that could not be drawn, before anything is paid for it."""
    if path is None:
        return
    check_place(path, "plot")
    try:
        figure = import_module("matplotlib.figure").Figure()
    except ImportError:
        raise MissingExtra(room="discreet.cli", needs="matplotlib", extra="plot") from None
    kinds = figure.canvas.get_supported_filetypes()
    if path.suffix.removeprefix(".").lower() not in kinds:
        raise ParameterError(
            f"{path.name} is no picture that can be written: end it with .png, .svg or .pdf.",
            parameter="plot",
        )


def check_place(path: Path | None, name: str) -> None:
    """Refuse a file whose folder is not there, before anything is paid for it."""
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise ParameterError(
            f"{path} cannot be written: it is a folder, or its folder is missing.", parameter=name
        )


def print_runs(
    console: Console,
    runs: Sequence[Run],
    experiment: "Experiment",
    evaluation: "Evaluation | None",
    *,
    on: str,
    is_generated: bool = False,
) -> None:
    """Print the runs as a table, and what the numbers mean."""
    has_gap = any(gap(run, runs) is not None for run in runs)
    table = Table(title=f"{experiment.recipe.name} on {on}", title_justify="left")
    table.add_column("epsilon", justify="right")
    table.add_column(f"certified at delta={show(experiment.training['delta'])}", justify="right")
    if evaluation is not None:
        table.add_column("accuracy", justify="right")
    if has_gap:
        table.add_column("lost to privacy", justify="right")
    table.add_column("noise", justify="right")
    table.add_column("ledger entry", justify="right")
    for run in runs:
        cells = [
            NOT_PRIVATE if run.epsilon is None else show(run.epsilon),
            "-" if run.certified is None else f"{run.certified:.4g}",
        ]
        if evaluation is not None:
            cells.append(str(run.accuracy))
        if has_gap:
            lost = gap(run, runs)
            cells.append("-" if lost is None else f"{100 * lost:.1f} points")
        cells.append("-" if run.noise_multiplier is None else f"{run.noise_multiplier:.3g}")
        cells.append("-" if run.entry is None else str(run.entry))
        table.add_row(*(_plain(cell, console) for cell in cells))
    console.print(table)
    if evaluation is not None:
        _say(console, f"Accuracy on {evaluation.words}.")
    if not is_generated and not all(run.is_private for run in runs):
        _say(console, WARNING)
    for note in dict.fromkeys(note for run in runs for note in run.notes):
        _say(console, f"Note: {note}.")
    whose = next((run for run in runs if run.is_private), None)
    if whose is not None:
        _say(console, f"Protected: {whose.unit}, under {whose.neighbours}.")
    account = experiment.account
    if account is None:
        _say(console, "No account was charged: nobody counts what these runs spent together.")
    else:
        _say(console, f"{account.remaining:.1%} of the budget of {account.name!r} is left.")


def echo_runs(
    runs: Sequence[Run], experiment: "Experiment", evaluation: "Evaluation | None", *, on: str
) -> None:
    """Print the runs as JSON."""
    account = experiment.account
    document = {
        "data": on,
        "model": experiment.recipe.name,
        "account": None if account is None else account.name,
        "remaining": None if account is None else account.remaining,
        "evaluated_on": None if evaluation is None else evaluation.words,
        "runs": [{**run.to_dict(), "lost_to_privacy": gap(run, runs)} for run in runs],
        "notes": list(dict.fromkeys(note for run in runs for note in run.notes)),
    }
    if not all(run.is_private for run in runs):
        document["warning"] = WARNING
    typer.echo(json.dumps(document, indent=2, allow_nan=False))


def draw_runs(path: Path, runs: Sequence[Run], *, on: str) -> None:
    """Draw accuracy against epsilon, with the model without privacy as a line across."""
    figure, (axes,) = plotting.panels(room="discreet.cli")
    judged = [run for run in runs if run.accuracy is not None and run.accuracy.value is not None]
    points = sorted((run for run in judged if run.is_private), key=_budget)
    plotting.interval(
        axes,
        [_budget(run) for run in points],
        [100 * (run.accuracy.value or 0.0) for run in points if run.accuracy],
        [100 * (run.accuracy.error or 0.0) for run in points if run.accuracy],
        fmt="o-",
        label="private",
    )
    for run in judged:
        if not run.is_private and run.accuracy and run.accuracy.value is not None:
            value = 100 * run.accuracy.value
            label, colour = f"{NOT_PRIVATE}: {value:.1f}%", plotting.look().colours[1]
            axes.axhline(value, color=colour, linestyle="--", label=label)
    delta = next((run.delta for run in points), None)
    if points:
        axes.set_xscale("log")
        axes.set_xticks([_budget(run) for run in points], [show(run.epsilon) for run in points])
        axes.minorticks_off()
    axes.set(xlabel=f"epsilon at delta={show(delta)}", ylabel="accuracy in %")
    plotting.legend(axes)
    plotting.titled(axes, "What privacy costs in accuracy", under=on)
    plotting.save(figure, path, parameter="plot")


def write_model(path: Path, run: Run, experiment: "Experiment", facts: dict[str, Any]) -> None:
    """Write a private model and how to feed it: ``discreet.learn.recipes.load`` reads it."""
    from discreet.learn.recipes import save

    privacy = {
        "epsilon": run.certified,
        "delta": float(experiment.training["delta"]),
        "account": None if experiment.account is None else experiment.account.name,
        "ledger_entry": run.entry,
    }
    save(path, run.model, experiment.recipe, classes=experiment.classes, privacy=privacy, **facts)


def _budget(run: Run) -> float:
    return float(run.epsilon or 0)


def _say(console: Console, words: str) -> None:
    console.print(Text(fitted(_plain(words, console), console)), soft_wrap=True)


def _plain(words: str, console: Console) -> str:
    if not console.options.ascii_only:
        return words
    return words.replace("±", "+/-").encode("ascii", "replace").decode()
