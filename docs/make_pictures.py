"""Draw the pictures of the course: attacks that succeed, bounds on them, laws of noise, accounts.

`python docs/make_pictures.py` draws all of them, with a name only that one. Attacks are run and
epsilons computed for each picture; nothing is drawn from numbers that are kept.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from discreet import Guarantee, protect
from discreet.accounting import GaussianLoss, Loss, PureLoss, compare
from discreet.attacks import differencing, linkage, membership, reconstruction
from discreet.datasets import salaries, voters
from discreet.mechanisms import DiscreteLaplace
from discreet.privacy import detection, posterior, success

FOLDER: Final = Path(__file__).parent / "course/pictures"
# Okabe and Ito's colours, which colour-blind people can tell apart.
BLACK, ORANGE, SKY, GREEN, BLUE, RED = (
    "#1a1a1a", "#e69f00", "#56b4e9", "#009e73", "#0072b2", "#d55e00",
)  # fmt: skip
PEOPLE: Final = 128
LOOK: Final = {
    "axes.titlelocation": "left",
    "axes.titlesize": "medium",
    "axes.titleweight": "bold",
    "legend.frameon": False,
    "legend.fontsize": "small",
}


def _figure(*, columns: int = 1, wide: float = 7.5, high: float = 3.8) -> tuple[Figure, Any]:
    figure = Figure(figsize=(wide, high), layout="constrained", facecolor="white")
    axes = figure.subplots(1, columns, squeeze=False)[0]
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
        one.grid(visible=True, alpha=0.25)
        one.set_axisbelow(True)
    return figure, axes


def linked() -> Figure:
    """Draw how many people are alone with what is left when names are gone."""
    register = voters(20_000)
    sets = [["zip"], ["birth_date"], ["zip", "sex"], ["birth_date", "sex"],
            ["zip", "birth_date"], ["zip", "birth_date", "sex"]]  # fmt: skip
    shares = [100 * linkage.run(register, names).success for names in sets]
    figure, (axes,) = _figure(high=3.2)
    names = [" + ".join(one).replace("_", " ") for one in sets]
    bars = axes.barh(names, shares, color=[SKY] * (len(sets) - 1) + [RED])
    axes.bar_label(bars, labels=[f"{share:.3g}%" for share in shares], padding=4)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set(xlim=(0, 112), xlabel="people who are the only one with these values, %")
    axes.set_title("How many of 20,000 people are alone with what is left without names")
    return figure


def differenced() -> Figure:
    """Draw what two sums over crowds tell of one salary, without and with a budget."""
    payroll = salaries(100)
    staff = range(20)
    desk = differencing.Guarded(payroll, name="payroll", minimum=10)
    total = differencing.grouped(desk, "SUM(salary)", table="payroll")
    found = [differencing.difference(total, f"employee_id = {one}") for one in staff]
    with TemporaryDirectory() as place, protect(
        payroll, name="payroll", unit="employee_id", rows=1,
        guarantee=Guarantee(epsilon=1, delta=1e-6), ledger=Path(place) / "budget.db",
        columns={"salary": {"bounds": (0, 200_000)}},
    ) as table:  # fmt: skip
        paid = differencing.paid(table, epsilon=1 / (2 * len(staff)))
        noisy = differencing.grouped(paid, "SUM(salary)", table="payroll")
        guessed = [differencing.difference(noisy, f"employee_id = {one}") for one in staff]
    figure, axes = _figure(columns=2, high=3.6)
    truth = payroll["salary"][: len(staff)]
    for one, told, scale, colour, title in (
        (axes[0], found, 1e3, RED, "Exact sums over ten people or more"),
        (axes[1], guessed, 1e6, BLUE, "The same, epsilon = 1 in all"),
    ):
        values = [np.nan if value is None else value / scale for value in told]
        one.plot(
            staff,
            values,
            "o",
            mfc="none",
            mew=1.6,
            color=colour,
            label="what the attacker gets",
        )
        one.plot(staff, truth / scale, ".", color=BLACK, label="the salary")
        one.set(xlabel="employee", xticks=range(0, 20, 5))
        one.set_title(title)
    axes[0].set(ylabel="salary, thousands", ylim=(0, None))
    axes[1].set_ylabel("millions: mind the scale")
    axes[0].legend(loc="lower left")
    return figure


def reconstructed() -> Figure:
    """Draw the share of secret bits that counts with little noise give away."""
    secret = np.random.default_rng(1).integers(0, 2, size=PEOPLE)
    spreads = np.array([0, 0.1, 0.25, 0.5, 1, 2, 4, 8])
    rates = []
    for spread in spreads:
        ask = reconstruction.count_subsets(secret, noise=float(spread * PEOPLE**0.5))
        rates.append(reconstruction.run(secret, ask, questions=512))
    figure, (axes,) = _figure()
    shown = np.maximum(spreads, 0.05)  # exact answers have no place on a logarithmic axis
    middle = np.array([100 * rate.success for rate in rates])
    arms = np.abs(np.array([[100 * end for end in rate.interval] for rate in rates]).T - middle)
    axes.errorbar(
        shown, middle, yerr=arms, fmt="o-", capsize=4, color=RED, label="found by least squares"
    )
    axes.axhline(50, ls="--", color=BLACK, lw=1, label="guessing")
    axes.set_xscale("log")
    axes.set_xticks(
        [0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8], ["none", "0.1", "0.25", "0.5", "1", "2", "4", "8"]
    )
    axes.minorticks_off()
    axes.set(xlabel="noise of an answer, in square roots of the number of people",
             ylabel="secret bits found, %", ylim=(40, 103))  # fmt: skip
    axes.set_title("512 counts of random groups of 128 people: close to the truth is too close")
    axes.legend()
    return figure


def told_apart() -> Figure:
    """Draw who is found in a study from published frequencies, exact and private."""
    guarantee = Guarantee(epsilon=1, delta=1e-6)
    people = membership.generated_genomes(6_150, positions=5_000)
    study, panel, others = np.split(people, [150, 1_150])
    reference = membership.frequencies(panel)
    figure, (axes,) = _figure()
    for released, colour, label in (
        (membership.frequencies(study), RED, "exact frequencies"),
        (membership.private_frequencies(study, epsilon=1, delta=1e-6), BLUE, "epsilon = 1"),
    ):
        scores = (membership.likelihood_ratio(one, released, reference) for one in (study, others))
        rates = np.array(membership.roc(*scores))
        axes.plot(
            100 * rates[:, 0],
            100 * rates[:, 1],
            "o-",
            color=colour,
            lw=2,
            label=label,
        )
    alarms = np.geomspace(2e-4, 1, 60)
    bound = [100 * detection(guarantee, false_alarms=float(alarm)) for alarm in alarms]
    axes.plot(
        100 * alarms,
        bound,
        ":",
        color=GREEN,
        lw=2,
        label="the most that epsilon = 1 allows any attack",
    )
    axes.plot(100 * alarms, 100 * alarms, "--", color=BLACK, lw=1, label="guessing")
    axes.set(xscale="log", xlim=(0.02, 50), ylim=(-2, 103),
             xlabel="other people accused wrongly, %", ylabel="members found, %")  # fmt: skip
    axes.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
    axes.set_title("150 patients among strangers, by the frequencies that their study published")
    axes.legend(loc="center left")
    return figure


def neighbours() -> Figure:
    """Draw the laws of a noisy count for two neighbours, and the ratio between them."""
    figure, axes = _figure(columns=2)
    law = DiscreteLaplace.calibrated(epsilon=1, sensitivity=1)
    outputs = np.arange(34, 50)
    chances = {}
    for count, colour, shift in ((41, BLUE, -0.2), (42, ORANGE, 0.2)):
        weights = np.exp([float(law.log_weight(int(k) - count)) for k in range(-60, 150)])
        chances[count] = (
            np.exp([float(law.log_weight(int(k) - count)) for k in outputs]) / weights.sum()
        )
        axes[0].bar(
            outputs + shift, 100 * chances[count], 0.4, color=colour, label=f"true count {count}"
        )
    axes[0].set(xlabel="released", ylabel="chance, %", xticks=outputs[::3])
    axes[0].set_title("What is released")
    axes[0].legend()
    ratio = chances[41] / chances[42]
    axes[1].axhspan(np.exp(-1), np.exp(1), color=GREEN, alpha=0.15, label="allowed by epsilon = 1")
    axes[1].plot(outputs, ratio, "o", color=BLACK)
    axes[1].set(yscale="log", ylim=(0.2, 5), xlabel="released", ylabel="ratio", xticks=outputs[::3])
    axes[1].set_yticks([0.25, 0.5, 1, 2, 4], ["1/4", "1/2", "1", "2", "4"])
    axes[1].minorticks_off()
    axes[1].set_title("Chance with 41 over chance with 42")
    axes[1].legend(loc="upper right")
    return figure


def beliefs() -> Figure:
    """Draw how far a belief can rise, and the bands of epsilon."""
    figure, (axes,) = _figure()
    epsilons = np.geomspace(0.01, 1000, 200)
    for low, high, name, shade in (
        (0.01, 1, "strong", 0.03), (1, 10, "moderate", 0.09), (10, 100, "weak", 0.16),
        (100, 1000, "negligible", 0.24),
    ):  # fmt: skip
        axes.axvspan(low, high, color=BLACK, alpha=shade, lw=0)
        axes.text((low * high) ** 0.5, 106, name, ha="center", va="center")
    for prior, colour in ((0.5, BLUE), (0.1, ORANGE), (0.01, GREEN), (1e-6, RED)):
        risen = [100 * posterior(Guarantee(epsilon=float(one)), prior=prior) for one in epsilons]
        axes.plot(epsilons, risen, lw=2, color=colour, label=f"{100 * prior:g}% before")
    axes.set(xscale="log", xlim=(0.01, 1000), ylim=(0, 112), yticks=range(0, 101, 25),
             xlabel="epsilon", ylabel="belief after, at most, %")  # fmt: skip
    axes.set_xticks([0.01, 0.1, 1, 10, 100, 1000], ["0.01", "0.1", "1", "10", "100", "1,000"])
    axes.set_title("How far a release can raise what somebody believes of you")
    axes.legend(loc="upper left", bbox_to_anchor=(0, 0.92))
    return figure


METHODS: Final = {
    "basic": (BLACK, "-."), "advanced": (ORANGE, "--"), "optimal": (GREEN, "--"),
    "zcdp": (RED, ":"), "renyi": (SKY, "-"), "moments": (RED, "-"), "pld": (BLUE, "-"),
}  # fmt: skip


def accounted() -> Figure:
    """Draw epsilon against the number of steps, by accountant."""
    figure, axes = _figure(columns=2, wide=9, high=4.2)
    steps = [1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000]
    runs: tuple[tuple[Loss, str], ...] = (
        (PureLoss(epsilon=0.1), "Releases of epsilon = 0.1"),
        (
            GaussianLoss(noise_multiplier=4).sampled(rate=0.01),
            "Training: rate 0.01, noise multiplier 4",
        ),
    )
    for one, (step, title) in zip(axes, runs, strict=True):
        found = [{m.name: m.epsilon for m in compare(step * k, delta=1e-5)} for k in steps]
        for name, (colour, style) in METHODS.items():
            points = [epsilons.get(name) or np.nan for epsilons in found]
            if not all(np.isnan(points)):
                one.plot(
                    steps, points, style, color=colour, label=name, lw=3 if name == "pld" else 1.8
                )
        one.set(xscale="log", yscale="log", xlabel="steps")
        one.set_title(title)
    axes[0].set_ylabel("epsilon at delta = 1e-5")
    handles = {
        label: line
        for one in axes
        for line, label in zip(*one.get_legend_handles_labels(), strict=True)
    }
    shown = [name for name in METHODS if name in handles]
    axes[1].legend([handles[name] for name in shown], shown, loc="upper left")
    return figure


def guesses() -> Figure:
    """Draw how often the best attacker is right, starting from 50:50."""
    figure, (axes,) = _figure(high=3.2)
    epsilons = np.linspace(0, 6, 121)[1:]
    right = [100 * success(Guarantee(epsilon=float(one)), prior=0.5) for one in epsilons]
    axes.plot(epsilons, right, color=BLUE, lw=2)
    for one in (0.1, 1, 2, 4):
        rate = 100 * success(Guarantee(epsilon=one), prior=0.5)
        axes.plot(one, rate, "o", color=BLUE)
        place = (7, -13 if one >= 1 else -20)
        axes.annotate(f"{rate:.1f}%", (one, rate), place, textcoords="offset points")
    axes.axhline(50, ls="--", lw=1, color=BLACK)
    axes.set(xlim=(0, 6), ylim=(42, 103), xlabel="epsilon", ylabel="right guesses, at most, %")
    axes.set_title("Were you in the data? The best attacker against a coin")
    return figure


PICTURES: Final[dict[str, Callable[[], Figure]]] = {
    "linkage": linked,
    "differencing": differenced,
    "reconstruction": reconstructed,
    "membership": told_apart,
    "guesses": guesses,
    "neighbours": neighbours,
    "beliefs": beliefs,
    "accountants": accounted,
}


def draw(name: str, folder: Path) -> Path:
    """Draw one picture into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.png"
    with rc_context(LOOK):
        PICTURES[name]().savefig(path, dpi=130)
    return path


if __name__ == "__main__":
    for chosen in sys.argv[1:] or PICTURES:
        print(draw(chosen, FOLDER))
