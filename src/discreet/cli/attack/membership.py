"""``discreet attack membership``: who was in the data of a model, a study or a text model."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console

from discreet._exact import refusal, whole
from discreet.cli.attack.show import PlotOption, show_pair
from discreet.cli.numbers import parse
from discreet.cli.options import JsonOption
from discreet.cli.train.runs import need_torch
from discreet.cli.train.show import check_plot
from discreet.privacy import Guarantee

if TYPE_CHECKING:
    from discreet.attacks import AttackReport

MOST_ROWS: Final = 10**5
SHARE: Final = 0.2  # of the examples that a model is trained on
FALSE_ALARMS: Final = 0.001


class Against(StrEnum):
    """What is attacked: a classifier, frequencies, or a text model."""

    model = "model"
    frequencies = "frequencies"
    text = "text"


def membership(
    against: Annotated[
        Against,
        typer.Option(help="A classifier, published genome frequencies, or a text model's secrets."),
    ] = Against.model,
    epsilon: Annotated[str, typer.Option(metavar="E", help="The protection's epsilon.")] = "2",
    delta: Annotated[str, typer.Option(metavar="D", help="The protection's delta.")] = "1e-5",
    rows: Annotated[
        str | None,
        typer.Option(
            metavar="N", help="How many examples, people or lines to generate, if not the usual."
        ),
    ] = None,
    plot: PlotOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find out who was in the data, without protection and with it.

    Generates data, trains an ordinary and a private model (or publishes frequencies), and attacks
    both in the same way: LiRA on the classifier, a likelihood ratio on the frequencies,
    and asking for planted codes on the text model. Takes less than a minute.

    Example: [bold]discreet attack membership --plot members.png[/bold]
    """
    guarantee = Guarantee(epsilon=parse(epsilon), delta=parse(delta))
    count = None if rows is None else whole(parse(rows), name="rows", hint="It is a number.")
    if count is not None and count > MOST_ROWS:
        raise refusal("rows", f"at most {MOST_ROWS}", count)
    check_plot(plot)
    if against is not Against.frequencies:
        need_torch()
    if guarantee.is_pure or guarantee.epsilon == 0:
        raise refusal("delta", "above 0, and epsilon too: the noise is Gaussian", guarantee.delta)
    before, after = _ATTACKS[against](guarantee, count)
    show_pair(Console(), before, after, plot=plot, as_json=as_json)


def _on_model(guarantee: Guarantee, rows: int | None) -> "tuple[AttackReport, AttackReport]":
    from discreet.attacks import membership as attacks

    count = 13_000 if rows is None else rows
    points, labels = attacks.labelled_points(count)
    ordinary = attacks.observe(
        attacks.networks(points, labels),
        examples=count, shadows=40, share=SHARE, together=True, classes=labels,
    )  # fmt: skip
    before = attacks.run(ordinary, false_positive_rate=FALSE_ALARMS)
    population = max(1, round(SHARE * count))
    trainer = attacks.private_network(
        points, labels,
        guarantee=guarantee, population=population, batch_size=max(1, population // 10),
    )  # fmt: skip
    private = attacks.observe(trainer, examples=count, shadows=8, share=SHARE, classes=labels)
    return before, attacks.run(private, false_positive_rate=FALSE_ALARMS, guarantee=guarantee)


def _on_frequencies(guarantee: Guarantee, rows: int | None) -> "tuple[AttackReport, AttackReport]":
    import numpy as np

    from discreet.attacks import membership as attacks

    study = 150 if rows is None else rows
    people = attacks.generated_genomes(study + 5_000, positions=5_000)
    members, panel, others = np.split(people, [study, study + 1_000])
    reference = attacks.frequencies(panel)
    private = attacks.private_frequencies(members, epsilon=guarantee.epsilon, delta=guarantee.delta)
    before, after = (
        attacks.run_on_frequencies(
            released,
            members=members,
            others=others,
            reference=reference,
            false_positive_rate=FALSE_ALARMS,
            guarantee=promise,
        )
        for released, promise in ((attacks.frequencies(members), None), (private, guarantee))
    )
    return before, after


def _on_text(guarantee: Guarantee, rows: int | None) -> "tuple[AttackReport, AttackReport]":
    from discreet.attacks import membership as attacks

    text = attacks.planted_text(lines=300 if rows is None else rows)
    ordinary = attacks.train_text_model(text.lines, seed=0)
    private = attacks.train_text_model(text.lines, seed=0, guarantee=guarantee)
    before = attacks.run_on_text(ordinary, text)
    return before, attacks.run_on_text(private, text, guarantee=guarantee)


_ATTACKS: Final = {
    Against.model: _on_model,
    Against.frequencies: _on_frequencies,
    Against.text: _on_text,
}
