"""What a guarantee means: the facts, and the page that tells them."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from discreet._exact import Number, exact, float_up, probability, refusal, show, whole
from discreet.cli.numbers import for_json, of_100
from discreet.privacy import (
    Guarantee,
    Neighbours,
    Odds,
    advantage,
    advised_delta,
    convert,
    odds,
    posterior_bound,
    strength,
    success,
)

GROUPS: Final = (2, 5, 10)
PRIORS: Final = (Fraction(1, 100), Fraction(1, 10), Fraction(1, 2))
EVEN: Final = Fraction(1, 2)
MOST_PEOPLE: Final = 10**18


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaRisk:
    """What delta allows among n people.

    >>> DeltaRisk.among(1000, Guarantee(epsilon=1, delta=1e-6)).is_far_below
    True
    """

    n: int
    exposed: float  # expected number of people published outright, at worst
    chance: float  # that it is anyone at all, when each is published independently
    advised: float
    is_far_below: bool
    cautious: float  # 1/n^2, what many take
    is_cautious: bool

    @classmethod
    def among(cls, n: int, guarantee: Guarantee) -> "DeltaRisk":
        """Work it out for a guarantee."""
        delta = exact(guarantee.delta, name="delta")
        none = -math.inf if delta == 1 else n * math.log1p(-float(delta))
        return cls(
            n=n,
            exposed=float(delta * n),
            chance=-math.expm1(none),
            advised=float(advised_delta(n=n)),
            is_far_below=delta <= float_up(advised_delta(n=n)),  # as typed: 1e-4 is above 1/10000
            cautious=float(Fraction(1, n * n)),
            is_cautious=delta <= float_up(Fraction(1, n * n)),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Everything ``discreet explain`` says, as data.

    >>> explanation(epsilon=1).strength
    'strong'
    """

    guarantee: Guarantee
    beliefs: tuple[tuple[Number, Fraction], ...]  # before, and at most after
    delta_risk: DeltaRisk | None

    @property
    def strength(self) -> str:
        """The usual band of epsilon."""
        return strength(self.guarantee)

    @property
    def either_answer(self) -> Guarantee:
        """The same promise about *what* somebody answered rather than whether they did."""
        return convert(self.guarantee, source=Neighbours.add_remove, target=Neighbours.replace_one)

    @property
    def groups(self) -> tuple[tuple[int, Guarantee], ...]:
        """The promise to groups of several people."""
        return tuple((k, self.guarantee.group(k)) for k in GROUPS)

    def to_dict(self) -> dict[str, object]:
        """Return the facts as JSON-ready data."""
        risk = self.delta_risk
        return {
            **_plain(self.guarantee),
            "neighbours": str(Neighbours.add_remove),
            "strength": self.strength,
            "odds": odds(self.guarantee)._asdict(),
            "attacker": {
                "prior": 0.5,
                "success": success(self.guarantee, prior=EVEN),
                "advantage": advantage(self.guarantee),
            },
            "beliefs": [
                {"prior": for_json(before), "posterior": float_up(after)}
                for before, after in self.beliefs
            ],
            "replace_one": _with_odds(self.either_answer),
            "groups": [{"size": k, **_with_odds(group)} for k, group in self.groups],
            "delta_risk": None
            if risk is None
            else {
                "n": risk.n,
                "expected_exposed": risk.exposed,
                "chance_of_any": risk.chance,
                "advised_delta": risk.advised,
                "is_far_below": risk.is_far_below,
                "cautious_delta": risk.cautious,
                "is_cautious": risk.is_cautious,
            },
        }


def explanation(
    *, epsilon: Number, delta: Number = 0, n: Number | None = None, prior: Number | None = None
) -> Explanation:
    """Gather what a guarantee means; refuse bad numbers by name.

    >>> explanation(epsilon=1, prior=0.1).beliefs[0][1] < 0.2320
    True
    """
    guarantee = Guarantee(epsilon=epsilon, delta=delta)
    priors: tuple[Number, ...] = PRIORS
    if prior is not None:
        probability(prior, name="prior", zero=True, one=True)
        priors = (prior,)
    risk = None
    if n is not None:
        people = whole(n, name="n", hint="It is the number of people in the data.")
        if people > MOST_PEOPLE:
            raise refusal("n", "at most 10**18, a number of people", n)
        risk = DeltaRisk.among(people, guarantee)
    return Explanation(
        guarantee=guarantee,
        beliefs=tuple(
            (p, posterior_bound(guarantee, prior=exact(p, name="prior"))) for p in priors
        ),
        delta_risk=risk,
    )


def _plain(guarantee: Guarantee) -> dict[str, object]:
    return {"epsilon": for_json(guarantee.epsilon), "delta": for_json(guarantee.delta)}


def _with_odds(guarantee: Guarantee) -> dict[str, object]:
    return {**_plain(guarantee), "odds": odds(guarantee)._asdict()}


def print_explanation(console: Console, facts: Explanation) -> None:
    """Print the facts as a page that a person reads from top to bottom.

    >>> print_explanation(Console(width=72), explanation(epsilon=1))  # doctest: +ELLIPSIS
    epsilon = 1, delta = 0: strong protection
    ...
    """
    guarantee = facts.guarantee
    say = _Page(console)
    say.title(
        f"epsilon = {show(guarantee.epsilon)}, delta = {show(guarantee.delta)}: "
        f"{facts.strength} protection"
    )
    say.text("The usual bands: epsilon up to 1 is strong, up to 10 moderate, above 10 weak.")
    _print_odds(say, odds(guarantee))
    _print_attacker(say, guarantee)
    _print_beliefs(say, facts)
    _print_delta(say, facts)
    _print_groups(say, facts)
    say.text(
        "These are limits for the worst mechanism and the best observer: what you run may leak "
        "less, never more. The unit here is added or removed as a whole (add_remove)."
    )


class _Page:
    """Paragraphs with air between them."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def title(self, text: str) -> None:
        self.console.print(Text(text, style="bold"))

    def heading(self, text: str) -> None:
        self.console.print()
        self.console.print(Text(text, style="bold cyan"))

    def text(self, text: str) -> None:
        self.console.print(Text(text))

    def point(self, text: str) -> None:
        self.console.print(Padding(Text(text), (0, 0, 0, 2)))

    def table(self, table: Table) -> None:
        self.console.print(table)


def _print_odds(say: _Page, chances: Odds) -> None:
    say.heading("If you take part, and if you do not")
    say.text(
        "Somebody who knows everyone else's data sees what is released and decides whether you "
        "are in it."
    )
    say.point(
        f"If you take part, at most {of_100(chances.with_you, up=True)} of 100 possible "
        "releases make them believe that you did."
    )
    say.point(
        f"If you do not, {of_100(chances.without_you, up=False)} of 100 make them believe it "
        "all the same."
    )


def _print_attacker(say: _Page, guarantee: Guarantee) -> None:
    say.heading("The best attacker, starting from 50:50")
    right = of_100(success(guarantee, prior=EVEN), up=True)
    gain = of_100(advantage(guarantee), up=True)
    say.text(
        f"Guesses right at most {right} times in 100, where a coin is right 50 times. "
        f"That is {gain}% of the way from guessing to knowing."
    )


def _print_beliefs(say: _Page, facts: Explanation) -> None:
    say.heading("How far a belief about you can rise")
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("believed before", justify="right")
    table.add_column("believed after, at most", justify="right")
    for before, after in facts.beliefs:
        table.add_row(
            f"{of_100(exact(before, name='prior'), up=False)}%", f"{of_100(after, up=True)}%"
        )
    say.table(table)
    if not facts.guarantee.is_pure:
        say.text(f"Outside an accident whose chance is at most {show(facts.guarantee.delta)}.")
    other = odds(facts.either_answer)
    say.text(
        "That was about whether you took part. About which of two answers you gave, epsilon "
        f"counts twice ({show(facts.either_answer.epsilon)}): at most "
        f"{of_100(other.with_you, up=True)} of 100 against {of_100(other.without_you, up=False)}."
    )


def _print_delta(say: _Page, facts: Explanation) -> None:
    delta, risk = facts.guarantee.delta, facts.delta_risk
    say.heading("What delta risks")
    if delta == 0:
        say.text("Nothing: delta is 0, so the limits above hold without exception.")
        return
    say.text(
        f"A mechanism that publishes each record outright with chance {show(delta)} would keep "
        "this promise."
    )
    if risk is None:
        say.text("So delta must be far below 1/n for n people. Say --n to have it checked.")
        return
    people = "person" if risk.n == 1 else "people"
    say.text(
        f"Among {risk.n:,} {people} that is {risk.exposed:.3g} exposed on average, and a chance "
        f"of {of_100(risk.chance, up=True)}% that it is anyone at all."
    )
    if not risk.is_far_below:
        say.text(
            f"Too much: use delta of at most 1/(10 n) = {risk.advised:.3g}; many take 1/n^2 = "
            f"{risk.cautious:.3g}."
        )
    elif risk.is_cautious:
        say.text(f"Good: delta is at most 1/n^2 = {risk.cautious:.3g}.")
    else:
        say.text(
            f"Acceptable: delta is at most 1/(10 n) = {risk.advised:.3g}; 1/n^2 = "
            f"{risk.cautious:.3g} is better."
        )


def _print_groups(say: _Page, facts: Explanation) -> None:
    say.heading("Groups whose data goes together, such as families")
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("people", justify="right")
    table.add_column("epsilon", justify="right")
    table.add_column("delta", justify="right")
    table.add_column("of 100, taking part", justify="right")
    table.add_column("of 100, not", justify="right")
    for k, group in facts.groups:
        chances = odds(group)
        table.add_row(
            str(k),
            show(group.epsilon),
            show(group.delta),
            f"at most {of_100(chances.with_you, up=True)}",
            of_100(chances.without_you, up=False),
        )
    say.table(table)
