"""``discreet demo attack``: four attacks as one story, each without protection and with it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

import discreet.plotting as plotting
from discreet._words import percent
from discreet.cli.attack.reconstruct import attacked
from discreet.cli.output import say
from discreet.cli.train.show import check_plot
from discreet.datasets import salaries, voters
from discreet.errors import MissingExtra
from discreet.privacy import Guarantee

if TYPE_CHECKING:
    from discreet.attacks import AttackReport
    from discreet.tables import Protected

GUARANTEE: Final = Guarantee(epsilon=1, delta=1e-6)
ACCUSED: Final = 0.01  # of those who were not in the training


class Scene(NamedTuple):
    """One attack: what it is called and about, and how both reports are made."""

    name: str
    words: str
    play: "Callable[[], tuple[AttackReport, AttackReport]]"


def run_demo_attack(console: Console, *, plot: Path | None) -> None:
    """Play the scenes, and put them side by side."""
    check_plot(plot)
    say(
        console,
        "Four attacks on people who do not exist: on data as it is, and on the same data with a "
        f"budget of epsilon={GUARANTEE.epsilon}. Everything asked of a protected table is paid "
        "from its account.",
    )
    played: dict[str, tuple[AttackReport, AttackReport]] = {}
    for number, scene in enumerate(SCENES, start=1):
        console.print()
        say(console, f"{number}. {scene.name.capitalize()}", bold=True)
        say(console, scene.words)
        try:
            before, after = played[scene.name] = scene.play()
        except MissingExtra as error:
            say(console, f"Left out: {error}")
            continue
        say(console, f"  before: {before.summary}")
        say(console, f"  after:  {after.summary}")
    console.print()
    console.print(_table(played))
    say(
        console,
        "Allowed is what the guarantee lets anybody reach, with any attack. Smaller epsilon, less.",
    )
    if plot is not None:
        _draw(played, plot)
        say(console, f"Wrote {plot}.")
    say(console, "Next, one by one: discreet attack --help")


def _linked() -> "tuple[AttackReport, AttackReport]":
    from discreet.attacks import linkage

    register = voters(3_000)
    looks = ["zip", "birth_date", "sex"]
    hospital = {name: register[name] for name in (*looks, "diagnosis")}
    known: dict[str, Any] = {"auxiliary": register, "secret": "diagnosis", "people": 100}
    before = linkage.run(hospital, looks, **known)
    numbered = {"row": np.arange(3_000), **hospital}
    diagnoses = sorted(set(hospital["diagnosis"].tolist()))
    with _protected(numbered, "row", columns={"diagnosis": {"keys": diagnoses}}) as tables:
        return before, linkage.run(tables, looks, **known)


def _differenced() -> "tuple[AttackReport, AttackReport]":
    from discreet.attacks import differencing

    payroll = salaries(200)
    targets = {number: int(payroll["salary"][number]) for number in range(20)}
    facts: dict[str, Any] = {
        "table": "data", "key": "employee_id", "keys": (0, 199), "secret": "salary",
        "bounds": (0, 200_000), "tolerance": 500,
    }  # fmt: skip
    desk = differencing.Guarded(payroll, name="data", minimum=10, is_two_sided=True)
    before = differencing.run(desk, targets, **facts)
    with _protected(payroll, "employee_id", columns={"salary": {"bounds": (0, 200_000)}}) as tables:
        return before, differencing.run(tables, targets, **facts)


def _reconstructed() -> "tuple[AttackReport, AttackReport]":
    return attacked(people=128, questions=512, noise=None, epsilon=GUARANTEE.epsilon)


def _told_apart() -> "tuple[AttackReport, AttackReport]":
    from discreet.attacks import membership

    size = 4_000
    points, labels = membership.labelled_points(size)
    guarantee = Guarantee(epsilon=GUARANTEE.epsilon, delta=1e-5)
    usual = membership.networks(points, labels)
    private = membership.private_network(
        points, labels, guarantee=guarantee, population=size // 2, epochs=4
    )
    seen = membership.observe(usual, examples=size, shadows=16, together=True)
    guarded = membership.observe(private, examples=size, shadows=4)
    before = membership.run(seen, false_positive_rate=ACCUSED)
    return before, membership.run(guarded, false_positive_rate=ACCUSED, guarantee=guarantee)


SCENES: Final = (
    Scene(
        "names removed",
        "A hospital removes the names. A public register has zip, birth date and sex, too.",
        _linked,
    ),
    Scene(
        "salaries differenced",
        "A payroll desk answers about groups of ten or more only. Two groups that differ by one "
        "person tell that person's salary.",
        _differenced,
    ),
    Scene(
        "a column reconstructed",
        "128 people have a secret bit. 512 counts of random groups, each a little off, are 512 "
        "equations.",
        _reconstructed,
    ),
    Scene(
        "members told",
        "A network was trained on half of 4,000 people, and is surer of those.",
        _told_apart,
    ),
)


@contextmanager
def _protected(
    source: object, unit: str, *, columns: Mapping[str, Mapping[str, Any]]
) -> "Iterator[Protected]":
    from discreet.tables import protect

    with (
        TemporaryDirectory() as place,
        protect(
            source,
            name="data",
            unit=unit,
            rows=1,
            guarantee=GUARANTEE,
            ledger=Path(place) / "budget.db",
            columns=columns,
        ) as tables,
    ):
        yield tables


def _table(played: "Mapping[str, tuple[AttackReport, AttackReport]]") -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("attack")
    table.add_column("measure")
    for name in ("before", "after", "guessing", "allowed"):
        table.add_column(name, justify="right")
    for name, (before, after) in played.items():
        rates = (before.success, after.success, after.baseline)
        shown = [percent(rate, up=False) for rate in rates]
        shown.append("" if after.allowed is None else percent(after.allowed, up=True))
        table.add_row(Text(name), Text(before.measure), *shown)
    return table


def _draw(played: "Mapping[str, tuple[AttackReport, AttackReport]]", path: Path) -> None:
    """Draw both bars of every attack, with guessing across."""
    figure, (axes,) = plotting.panels(room="discreet.cli", size=(8.0, 4.6))
    colours = plotting.look().colours
    for place, pair in enumerate(played.values()):
        for side, (report, label) in enumerate(zip(pair, ("before", "after"), strict=True)):
            low, high = report.interval
            at, rate = place + 0.4 * side - 0.2, report.success
            error = [[100 * max(0.0, rate - low)], [100 * max(0.0, high - rate)]]
            axes.bar(at, 100 * rate, width=0.36, color=colours[1 - side], alpha=0.8,
                     label=label if place == 0 else None)  # fmt: skip
            plotting.interval(axes, [at], [100 * rate], error)
        level = 100 * pair[1].baseline
        axes.plot([place - 0.4, place + 0.4], [level] * 2, "--", color=plotting.look().ink,
                  label="guessing" if place == 0 else None)  # fmt: skip
    names = [f"{name}\n({pair[0].measure})" for name, pair in played.items()]
    axes.set_xticks(range(len(names)), [name.replace(" at ", "\nat ") for name in names])
    axes.tick_params(axis="x", labelsize="small")
    axes.set(ylabel="success, %", ylim=(0, 105))
    plotting.legend(axes)
    plotting.titled(axes, "Four attacks, before and after protection", under="with 95% intervals")
    plotting.save(figure, path, parameter="plot")
