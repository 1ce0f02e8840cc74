"""Draw the pictures of the course: attacks that succeed, bounds on them, laws of noise, accounts.

`python docs/make_pictures.py` draws all of them, light and dark, with a name only that one. Attacks
are run and epsilons computed for them; nothing is drawn from numbers that are kept.
"""

import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from discreet import Guarantee, plotting, protect
from discreet.accounting import GaussianLoss, Loss, PureLoss, compare
from discreet.attacks import AttackReport, differencing, linkage, membership, reconstruction
from discreet.datasets import salaries, voters
from discreet.mechanisms import DiscreteLaplace
from discreet.privacy import detection, posterior, success

FOLDER: Final = Path(__file__).parent / "course/pictures"
BLUE, RED, GREEN, PINK, YELLOW, SKY = range(6)  # places among the colours of a look
PROMISE: Final = Guarantee(epsilon=1, delta=1e-6)
STAFF: Final = range(20)
PEOPLE: Final = 128
SPREADS: Final = (0, 0.1, 0.25, 0.5, 1, 2, 4, 8)  # in square roots of PEOPLE
STEPS: Final = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000)
RUNS: Final[dict[str, Loss]] = {
    "Releases of epsilon = 0.1": PureLoss(epsilon=0.1),
    "Training: rate 0.01, noise 4": GaussianLoss(noise_multiplier=4).sampled(rate=0.01),
}
METHODS: Final = {
    "basic": (PINK, "-."),
    "advanced": (YELLOW, "--"),
    "optimal": (GREEN, "--"),
    "zcdp": (RED, ":"),
    "renyi": (SKY, "-"),
    "moments": (RED, "-"),
    "pld": (BLUE, "-"),
}

_panels = partial(plotting.panels, room="docs")


def _legend(axes: Any, *listed: Any, **where: Any) -> None:
    axes.legend(*listed, frameon=False, fontsize=9, labelcolor=plotting.look().ink, **where)


@cache
def singled_out() -> dict[str, float]:
    """Attack a register by sets of its columns: the share of people who are alone."""
    register = voters(20_000)
    sets = [["zip"], ["birth_date"], ["zip", "sex"], ["birth_date", "sex"], ["zip", "birth_date"]]
    return {
        " + ".join(names).replace("_", " "): 100 * linkage.run(register, names).success
        for names in [*sets, ["zip", "birth_date", "sex"]]
    }


@cache
def differences() -> tuple[Any, Any, Any]:
    """Attack a payroll by two sums a person: the truth, and guesses without and with noise."""
    payroll = salaries(100)
    wanted = [f"employee_id = {one}" for one in STAFF]
    desk = differencing.Guarded(payroll, name="payroll", minimum=10)
    exact = differencing.grouped(desk, "SUM(salary)", table="payroll")
    found = [differencing.difference(exact, one) for one in wanted]
    with (
        TemporaryDirectory() as place,
        protect(
            payroll,
            name="payroll",
            unit="employee_id",
            rows=1,
            guarantee=PROMISE,
            ledger=Path(place) / "budget.db",
            columns={"salary": {"bounds": (0, 200_000)}},
        ) as table,
    ):
        paid = differencing.paid(table, epsilon=1 / (2 * len(STAFF)))
        noisy = differencing.grouped(paid, "SUM(salary)", table="payroll")
        guessed = [differencing.difference(noisy, one) for one in wanted]
    return payroll["salary"][: len(STAFF)], np.array(found, float), np.array(guessed, float)


@cache
def bits_found() -> list[AttackReport]:
    """Attack counts of random groups, with more and more noise."""
    secret = np.random.default_rng(1).integers(0, 2, size=PEOPLE)
    asked = [reconstruction.count_subsets(secret, noise=one * PEOPLE**0.5) for one in SPREADS]
    return [reconstruction.run(secret, ask, questions=512) for ask in asked]


@cache
def members_found() -> dict[str, Any]:
    """Attack the frequencies of a study, exact and private: the rates of both kinds of claims."""
    people = membership.generated_genomes(6_150, positions=5_000)
    study, panel, others = np.split(people, [150, 1_150])
    reference = membership.frequencies(panel)
    releases = {
        "exact frequencies": membership.frequencies(study),
        "epsilon = 1": membership.private_frequencies(study, epsilon=1, delta=1e-6),
    }
    scored = {
        name: [membership.likelihood_ratio(one, released, reference) for one in (study, others)]
        for name, released in releases.items()
    }
    return {name: 100 * np.array(membership.roc(*scores)) for name, scores in scored.items()}


@cache
def accounts() -> dict[str, list[dict[str, float | None]]]:
    """Compute epsilon by each method, for each run and number of steps."""
    return {
        title: [{m.name: m.epsilon for m in compare(step * k, delta=1e-5)} for k in STEPS]
        for title, step in RUNS.items()
    }


def draw_linkage() -> Any:
    """Draw how many people are alone with what is left when names are gone."""
    figure, (axes,) = _panels(size=(7.5, 3.4))
    colours, shares = plotting.look().colours, singled_out()
    bars = axes.barh(list(shares), list(shares.values()))
    for bar in bars:
        bar.set_color(colours[SKY])
    bars[-1].set_color(colours[RED])
    labels = [f"{share:.3g}%" for share in shares.values()]
    axes.bar_label(bars, labels=labels, padding=4, color=plotting.look().ink)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set(xlim=(0, 112), xlabel="people who are the only one with these values, %")
    plotting.titled(axes, "Without names, people are still alone", under="20,000 voters, made up")
    return figure


def draw_differencing() -> Any:
    """Draw what two sums over crowds tell of one salary, without and with a budget."""
    figure, panels = _panels(2, size=(7.5, 3.8), columns=2)
    truth, found, guessed = differences()
    for axes, told, scale, colour, title, under in (
        (panels[0], found, 1e3, RED, "Exact sums", "over ten people or more"),
        (panels[1], guessed, 1e6, BLUE, "The same questions", "paid from epsilon = 1 in all"),
    ):
        axes.plot(STAFF, told / scale, "o", mfc="none", mew=1.6, label="what the attacker gets",
                  color=plotting.look().colours[colour])  # fmt: skip
        axes.plot(STAFF, truth / scale, ".", color=plotting.look().ink, label="the salary")
        axes.set(xlabel="employee", xticks=range(0, 20, 5))
        plotting.titled(axes, title, under=under)
    panels[0].set(ylabel="thousands", ylim=(0, None))
    panels[1].set_ylabel("millions: mind the scale")
    _legend(panels[0], loc="lower left")
    return figure


def draw_reconstruction() -> Any:
    """Draw the share of secret bits that counts with little noise give away."""
    figure, (axes,) = _panels(size=(7.5, 3.9))
    places = np.maximum(SPREADS, 0.05)  # exact answers have no place on a logarithmic axis
    middle = np.array([100 * one.success for one in bits_found()])
    ends = np.array([[100 * end for end in one.interval] for one in bits_found()]).T
    colour = plotting.look().colours[RED]
    axes.plot(places, middle, "o-", color=colour, label="found by least squares")
    plotting.interval(axes, places, middle, np.abs(ends - middle), ecolor=colour)
    axes.axhline(50, ls="--", color=plotting.look().quiet, lw=1.2, label="guessing")
    axes.set_xscale("log")
    axes.set_xticks(places, ["none", *(f"{one:g}" for one in SPREADS[1:])])
    axes.minorticks_off()
    axes.set(xlabel="noise of an answer, in square roots of the number of people",
             ylabel="secret bits found, %", ylim=(35, 103))  # fmt: skip
    under = "512 counts of random groups of 128 people"
    plotting.titled(axes, "Close to the truth is too close", under=under)
    _legend(axes)
    return figure


def draw_membership() -> Any:
    """Draw who is found in a study from published frequencies, exact and private."""
    figure, (axes,) = _panels(size=(7.5, 3.9))
    now = plotting.look()
    for (name, rates), colour in zip(members_found().items(), (RED, BLUE), strict=True):
        axes.plot(rates[:, 0], rates[:, 1], "o-", color=now.colours[colour], label=name)
    alarms = np.geomspace(2e-4, 1, 60)
    bound = [100 * detection(PROMISE, false_alarms=float(alarm)) for alarm in alarms]
    told = "the most that epsilon = 1 allows any attack"
    axes.plot(100 * alarms, bound, ":", color=now.colours[GREEN], label=told)
    axes.plot(100 * alarms, 100 * alarms, "--", color=now.quiet, lw=1.2, label="guessing")
    axes.set(xscale="log", xlim=(0.02, 50), ylim=(-2, 103),
             xlabel="other people accused wrongly, %", ylabel="members found, %")  # fmt: skip
    axes.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
    under = "150 patients among strangers, by 5,000 published frequencies"
    plotting.titled(axes, "Frequencies remember who was there", under=under)
    _legend(axes, loc="center left")
    return figure


def draw_guesses() -> Any:
    """Draw how often the best attacker is right, starting from 50:50."""
    figure, (axes,) = _panels(size=(7.5, 3.4))
    now, epsilons = plotting.look(), np.linspace(0, 6, 121)[1:]

    def right(epsilon: float) -> float:
        return 100 * success(Guarantee(epsilon=epsilon), prior=0.5)

    axes.plot(epsilons, [right(float(one)) for one in epsilons], color=now.colours[BLUE])
    for one in (0.1, 1, 2, 4):
        axes.plot(one, right(one), "o", color=now.colours[BLUE])
        place = (7, -13 if one >= 1 else -18)
        axes.annotate(f"{right(one):.1f}%", (one, right(one)), place, color=now.ink,
                      textcoords="offset points")  # fmt: skip
    axes.axhline(50, ls="--", lw=1.2, color=now.quiet)
    axes.set(xlim=(0, 6), ylim=(42, 103), xlabel="epsilon", ylabel="right guesses, at most, %")
    plotting.titled(axes, "Were you in the data?", under="the best attacker, against a coin")
    return figure


def draw_neighbours() -> Any:
    """Draw the laws of a noisy count for two neighbours, and the ratio between them."""
    figure, (laws, ratios) = _panels(2, size=(7.5, 3.8), columns=2)
    now, law = plotting.look(), DiscreteLaplace.calibrated(epsilon=1, sensitivity=1)
    outputs = np.arange(34, 50)
    chances = []
    for count, colour, shift in ((41, BLUE, -0.2), (42, YELLOW, 0.2)):
        weights = np.exp([float(law.log_weight(k - count)) for k in range(-60, 150)])
        chances.append(weights[outputs + 60] / weights.sum())
        laws.bar(outputs + shift, 100 * chances[-1], 0.4, color=now.colours[colour],
                 label=f"true count {count}")  # fmt: skip
    laws.set(xlabel="released", ylabel="chance, %", xticks=outputs[::3])
    plotting.titled(laws, "What is released", under="a count with noise for epsilon = 1")
    _legend(laws)
    ratios.axhspan(np.exp(-1), np.exp(1), color=now.colours[GREEN], alpha=0.2, lw=0,
                   label="allowed")  # fmt: skip
    ratios.plot(outputs, chances[0] / chances[1], "o", color=now.ink)
    ratios.set(yscale="log", ylim=(0.2, 5), xlabel="released", xticks=outputs[::3])
    ratios.set_yticks([0.25, 0.5, 1, 2, 4], ["1/4", "1/2", "1", "2", "4"])
    ratios.minorticks_off()
    plotting.titled(ratios, "How much likelier", under="chance with 41 over chance with 42")
    _legend(ratios, loc="upper right")
    return figure


def draw_beliefs() -> Any:
    """Draw how far a belief can rise, and the bands of epsilon."""
    figure, (axes,) = _panels(size=(7.5, 4.1))
    now, ends = plotting.look(), (0.01, 1, 10, 100, 1000)
    for place, name in enumerate(("strong", "moderate", "weak", "negligible")):
        low, high = ends[place], ends[place + 1]
        axes.axvspan(low, high, color=now.ink, alpha=0.04 + 0.06 * place, lw=0)
        axes.text((low * high) ** 0.5, 106, name, ha="center", va="center", color=now.ink)
    epsilons = np.geomspace(0.01, 1000, 200)
    for prior, colour in ((0.5, BLUE), (0.1, YELLOW), (0.01, GREEN), (1e-6, RED)):
        risen = [100 * posterior(Guarantee(epsilon=float(one)), prior=prior) for one in epsilons]
        axes.plot(epsilons, risen, color=now.colours[colour], label=f"{100 * prior:g}% before")
    axes.set(xscale="log", xlim=(0.01, 1000), ylim=(0, 112), yticks=range(0, 101, 25),
             xlabel="epsilon", ylabel="belief after, at most, %")  # fmt: skip
    axes.set_xticks([0.01, 0.1, 1, 10, 100, 1000], ["0.01", "0.1", "1", "10", "100", "1,000"])
    plotting.titled(axes, "How far a release can raise what somebody believes of you")
    _legend(axes, loc="upper left", bbox_to_anchor=(0, 0.92))
    return figure


def draw_accountants() -> Any:
    """Draw epsilon against the number of steps, by accountant."""
    figure, panels = _panels(2, size=(9, 4.4), columns=2)
    listed: dict[str, Any] = {}
    for axes, (title, found) in zip(panels, accounts().items(), strict=True):
        for name, (colour, style) in METHODS.items():
            points = [one[name] or np.nan for one in found]
            if not np.all(np.isnan(points)):
                (listed[name],) = axes.plot(STEPS, points, style, lw=3 if name == "pld" else 1.8,
                                            color=plotting.look().colours[colour])  # fmt: skip
        axes.set(xscale="log", yscale="log", xlabel="steps")
        plotting.titled(axes, title, under="epsilon at delta = 1e-5")
    shown = [name for name in METHODS if name in listed]
    _legend(panels[1], [listed[name] for name in shown], shown, loc="upper left")
    return figure


PICTURES: Final[dict[str, Callable[[], Any]]] = {
    "linkage": draw_linkage,
    "differencing": draw_differencing,
    "reconstruction": draw_reconstruction,
    "membership": draw_membership,
    "guesses": draw_guesses,
    "neighbours": draw_neighbours,
    "beliefs": draw_beliefs,
    "accountants": draw_accountants,
}


def draw(name: str, folder: Path) -> tuple[Path, Path]:
    """Draw one picture into a folder, light and dark."""
    light = plotting.save(PICTURES[name](), folder / f"{name}.png")
    with plotting.dark():
        return light, plotting.save(PICTURES[name](), folder / f"{name}-dark.png")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for chosen in sys.argv[1:] or PICTURES:
        print(*draw(chosen, FOLDER))
