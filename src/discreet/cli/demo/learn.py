"""``discreet demo learn``: the same small model with and without privacy, on generated digits."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import numpy as np
from rich.console import Console
from rich.text import Text

from discreet._exact import Number, refusal, show, whole
from discreet._words import of_100
from discreet.accounting import GaussianLoss, risk
from discreet.cli.output import tell
from discreet.cli.train import show as shown
from discreet.cli.train.evaluations import OnPublic
from discreet.cli.train.runs import Experiment, Run, carry_out, need_torch, one_thread
from discreet.datasets import digits
from discreet.privacy import Guarantee, Neighbours, Unit, detection, success

if TYPE_CHECKING:
    from discreet.learn.recipes import EncodedRows

ROWS: Final = 8_000
MOST_ROWS: Final = 10**6
HELD_OUT: Final = 2_000
EPOCHS: Final = 6
EPSILONS: Final = (0.5, 2, 8)
DELTA: Final = 1e-5
# What the three runs may cost together, with room to spare: the ledger adds them up.
GUARANTEE: Final = Guarantee(epsilon=11, delta=1e-4)
EVEN: Final = Fraction(1, 2)
FALSE_ALARMS: Final = Fraction(1, 100)

STORY: Final = (
    "The same small network learns to read generated digits, once as usual and then privately: "
    "each picture's influence on a step is clipped, noise is added, and every step is paid for "
    "in a ledger before its pictures are drawn. A smaller epsilon promises each picture more and "
    "costs accuracy, least where there is much data."
)


def run_demo_learn(console: Console, *, rows: Number | None = None, plot: Path | None) -> None:
    """Train, compare and verify; all in a folder that is gone afterwards."""
    need_torch()
    from discreet.learn.recipes import CNN
    from discreet.ledger import Ledger

    count = ROWS if rows is None else whole(rows, name="rows", hint="It is a number of pictures.")
    if count > MOST_ROWS:
        raise refusal("rows", f"at most {MOST_ROWS}", rows)
    shown.check_plot(plot)
    console.print(Text(STORY), soft_wrap=True)
    with (
        one_thread(),
        TemporaryDirectory() as place,
        Ledger.open(Path(place) / "budget.db") as ledger,
    ):
        account = ledger.create(
            "digits",
            unit=Unit.record(),
            neighbours=Neighbours.add_remove,
            guarantee=GUARANTEE,
        )
        experiment = Experiment(
            recipe=CNN,
            classes=10,
            epochs=EPOCHS,
            batch_size=max(1, count // 15),
            # Generated: everybody knows how many there are.
            training={"delta": DELTA, "account": account, "population": count},
        )
        evaluation = OnPublic(
            rows=_rows(HELD_OUT, seed=1), words=f"{HELD_OUT:,} other generated digits"
        )
        on = f"{count:,} generated digits"
        runs = carry_out(
            experiment, _rows(count, seed=0), epsilons=EPSILONS, twin=True, evaluation=evaluation
        )
        if plot is not None:
            shown.draw_runs(plot, runs, on=on)
        shown.print_runs(console, runs, experiment, evaluation, on=on, is_generated=True)
        _print_meaning(console, runs, rate=Fraction(experiment.batch_size, count))
        console.print(Text(f"The ledger: {ledger.verify()}"), soft_wrap=True)
    if plot is None:
        console.print(Text("Draw it: discreet demo learn --plot gap.png"), soft_wrap=True)
    console.print(Text("Next, on your own data: discreet train --help"), soft_wrap=True)


def _print_meaning(console: Console, runs: Sequence[Run], *, rate: Fraction) -> None:
    """Say what the final epsilon and delta of each run tell about its model.

    The guarantee alone must cover the worst training that has it. The account knows every step of
    this one, so it can promise more.
    """
    told = "What that says of somebody who has the model and knows every picture but one, at most:"
    tell(told, console=console, bold=True)
    for run in runs:
        if run.certified is None or run.delta is None or run.noise_multiplier is None:
            continue
        steps = GaussianLoss(noise_multiplier=run.noise_multiplier).sampled(rate=rate) * run.steps
        promise = Guarantee(epsilon=run.certified, delta=run.delta)
        right = success(promise, prior=EVEN), risk.success(steps, prior=EVEN)
        found = (
            detection(promise, false_alarms=FALSE_ALARMS),
            risk.detection(steps, false_alarms=FALSE_ALARMS),
        )
        rights, founds = ([of_100(each, up=True) for each in pair] for pair in (right, found))
        tell(
            f"  epsilon {show(run.epsilon)}: guesses right whether it was used {rights[0]} times "
            f"in 100, where a coin is right 50 times; accusing 1 of 100 unused pictures, finds "
            f"{founds[0]} of 100 used ones. By the account of all steps: {rights[1]} and "
            f"{founds[1]}.",
            console=console,
        )
    tell(f"More: discreet explain --epsilon 2 --delta {show(DELTA)}", console=console)


def _rows(n: int, *, seed: int) -> "EncodedRows":
    from discreet.learn.recipes import EncodedRows

    table = digits(n, seed=seed)
    pictures = table["image"].astype(np.float32)[:, None]
    return EncodedRows(
        names=(),
        matrix=pictures / np.float32(127.5) - np.float32(1),
        labels=table["label"].astype(np.int64),
    )
