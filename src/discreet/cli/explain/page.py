"""The page that tells what a guarantee means, from top to bottom."""

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from discreet._exact import exact, show
from discreet._words import of_100
from discreet.cli.explain.facts import EVEN, Explanation
from discreet.privacy import Guarantee, Odds, advantage, odds, success


def print_explanation(console: Console, facts: Explanation) -> None:
    """Print the facts as a page that a person reads from top to bottom.

    >>> from discreet.cli.explain.facts import explanation
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
    say.text(
        "The usual bands: epsilon up to 1 is strong, up to 10 moderate, up to 100 weak; beyond, "
        "the promise says next to nothing."
    )
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
