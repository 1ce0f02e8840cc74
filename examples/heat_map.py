"""Where are people, when nobody may know where anybody is? A sparse map of 10,368 cells.

Most cells are empty, and noise falls on all of them. Devices that trust nobody do not even show the
towns. If a shuffler is trusted to forget who sent what, towns and roads appear at the same epsilon.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import local, plotting, shuffle
from discreet.accounting import calibrate, epsilon

PEOPLE, EPSILON, DELTA = 50_000, 1, 1e-8
HIGH, WIDE = 96, 108
CELLS = HIGH * WIDE
TALL, BROAD = 6, 3  # the cells behind one character, which is about twice as high as wide
TONES = " .:-=+*#%@"

Cells = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    """A map of people by cell, what it rests on, and which cells are surely not empty."""

    name: str
    terms: str
    counts: Cells
    is_sure: Cells

    @property
    def sure(self) -> Cells:
        """How many people there are in each cell; 0 where it may be empty."""
        return np.where(self.is_sure, self.counts, 0)


def whereabouts() -> Cells:
    """Return the cells of made-up people: most in four towns, others on the roads between."""
    dice = np.random.default_rng(2026)  # the people, not the coins
    towns = np.array([[20, 24], [34, 80], [70, 40], [78, 92]])
    home = dice.choice(4, size=PEOPLE, p=[0.4, 0.25, 0.2, 0.15])
    goal = (home + dice.choice([1, 2], size=PEOPLE)) % 4
    way = np.where(dice.random(PEOPLE) < 0.3, dice.random(PEOPLE), 0)[:, None]
    spread = np.where(way > 0, 0.2, 2.5) * dice.standard_normal((PEOPLE, 2))
    place = (1 - way) * towns[home] + way * towns[goal] + spread
    row, column = np.clip(np.rint(place).astype(int), 0, [HIGH - 1, WIDE - 1]).T
    return np.asarray(row * WIDE + column)


def trusting_nobody(cells: Cells) -> Map:
    """Return what reports tell that are private before they leave the device."""
    oracle = local.choose(domain=CELLS, epsilon=EPSILON, n=PEOPLE).randomiser
    terms = f"A report has epsilon {EPSILON}, whoever sees it."
    return mapped("nobody trusted", terms, oracle.estimate(oracle.release(cells)))


def shuffled_reports(cells: Cells) -> Map:
    """Return what single reports tell that are much less private, before they are shuffled."""

    def batch(epsilon0: float) -> shuffle.Amplification:
        return shuffle.Amplification(epsilon0=epsilon0, honest=PEOPLE, delta=DELTA)

    most = calibrate(
        lambda epsilon0: batch(epsilon0).shuffled, epsilon=EPSILON, delta=DELTA, largest=True
    )
    oracle = local.choose(domain=CELLS, epsilon=most, n=PEOPLE).randomiser
    (_, half), *_ = batch(most).if_fewer()
    terms = (
        f"The batch has epsilon {EPSILON}, or {half:.2f} if half are honest.\n"
        f"Not shuffled, a report has epsilon {most:.2f}."
    )
    return mapped("shuffled, one report", terms, oracle.estimate(oracle.release(cells)))


def shuffled_dummies(cells: Cells) -> Map:
    """Return what true cells tell that are hidden among all devices' dummies."""
    protocol = shuffle.MultiMessageHistogram.calibrated(
        epsilon=EPSILON, delta=DELTA, domain=CELLS, honest=PEOPLE
    )
    messages = protocol.release(cells)  # to be permuted; counting does not look at their order
    half = epsilon(protocol.loss_if(honest=PEOPLE // 2), delta=DELTA)
    terms = (
        f"The batch has epsilon {EPSILON}, or {half:.2f} if half are honest.\n"
        f"Not shuffled, the {protocol.messages_per_device:.1f} messages of a device hide little."
    )
    return mapped("shuffled, dummies", terms, protocol.estimate(messages, n=PEOPLE))


def mapped(name: str, terms: str, estimate: Any) -> Map:
    """Return the map of an estimate: its sure cells all are, with 95% confidence."""
    low, _ = estimate.interval(confidence=0.95)
    return Map(name=name, terms=terms, counts=estimate.counts, is_sure=low > 0)


def sketched(one: Map) -> list[str]:
    """Draw the sure cells with characters, darker by the square root of how many there are."""
    blocks = one.sure.reshape(HIGH // TALL, TALL, WIDE // BROAD, BROAD).sum(axis=(1, 3))
    tones = np.ceil(np.sqrt(blocks / (PEOPLE / 25)) * (len(TONES) - 1)).clip(0, len(TONES) - 1)
    return ["".join(TONES[tone] for tone in row) for row in tones.astype(int)]


def show(maps: Sequence[Map]) -> None:
    """Print maps, two in a row."""
    for pair in zip(maps[::2], maps[1::2], strict=True):
        print("\n" + "     ".join(f"{one.name:^{WIDE // BROAD}}" for one in pair).rstrip())
        for lines in zip(*map(sketched, pair), strict=True):
            print("  |  ".join(lines).rstrip())


def draw(maps: Sequence[Map], path: Path) -> None:
    """Plot the maps beside each other, as estimated, noise and all."""
    figure, axes = plotting.panels(4, room="this example", columns=2, size=(10.0, 9.0))
    most = float(maps[0].counts.max())
    for panel, one in zip(axes, maps, strict=True):
        shown = np.sqrt(one.counts.clip(0) / most).reshape(HIGH, WIDE)
        panel.imshow(shown, cmap="magma", vmin=0, vmax=1)
        panel.grid(visible=False)
        panel.set_xticks([])
        panel.set_yticks([])
        plotting.titled(
            panel, one.name, under=f"{np.sum(one.is_sure):,} cells are surely not empty"
        )
    plotting.save(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    """Collect where people are in three ways, and show what can be seen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", type=Path, help="a file for the maps: .png, .svg or .pdf")
    said = parser.parse_args(arguments)

    cells = whereabouts()
    counts = np.bincount(cells, minlength=CELLS)
    truth = Map(name="the truth", terms="", counts=counts, is_sure=counts > 0)
    ways = [make(cells) for make in (trusting_nobody, shuffled_reports, shuffled_dummies)]
    empty = np.sum(counts == 0)
    print(f"{PEOPLE:,} people; {empty:,} of {CELLS:,} cells are empty. Delta is {DELTA:g}.")
    show([truth, *ways])
    print(f"\nOf {np.sum(counts > 0)} cells with people, of whom there are {PEOPLE:,}:\n")
    print(
        f"{'':22}{'error of a cell':>16}{'cells found':>13}{'their people':>14}{'empty ones':>12}"
    )
    for one in ways:
        error = np.sqrt(np.mean((one.counts - counts) ** 2))
        found = one.is_sure & truth.is_sure
        wrong = np.sum(one.is_sure) - np.sum(found)
        print(
            f"{one.name:22}{error:>16.1f}{np.sum(found):>13,}"
            f"{counts[found].sum() / PEOPLE:>14.0%}{wrong:>12}"
        )
    for one in ways:
        print(f"\n{one.name}:\n{one.terms}")
    if said.plot:
        draw([truth, *ways], said.plot)
        print(f"\nThe maps are in {said.plot}.")


if __name__ == "__main__":
    main()
