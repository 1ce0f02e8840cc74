"""The tour: a private count, mean and histogram, with error bars and prices.

Only noised values reach this page. Exact ones travel in ``Sensitive`` from the table to the
mechanism, and are revealed in one line, where noise is added.
"""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final, final

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from discreet._exact import Number, refusal, show, whole
from discreet.accounting import epsilon
from discreet.cli._numbers import of_100
from discreet.cli._people import People, load
from discreet.errors import ParameterError
from discreet.mechanisms import DiscreteLaplace
from discreet.privacy import Guarantee, Sensitive, odds

CONFIDENCE: Final = 0.95
ROWS: Final = 50_000
MOST_ROWS: Final = 10**8
BUDGET: Final = Fraction(1)
COUNT_SHARE, SUM_SHARE, BANDS_SHARE = Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)

# Chosen without looking at the data: bounds that depend on it would leak.
WORKING_AGE: Final = (18, 64)
HIGHEST_INCOME: Final = 100_000
BAND: Final = 10
BANDS: Final = 9  # 0-9, 10-19, ... 70-79, 80 and over

BAR_WIDTH: Final = 30
BESIDE_BARS: Final = 40  # columns that the other cells of the histogram need


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A released value, its error bar and its price.

    >>> Answer(value=10, error=3, price=0.25).value
    10
    """

    value: int
    error: int
    price: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """All that the demo releases; ``mean`` is None where the noise drowned it.

    >>> from discreet.cli._people import load
    >>> round(answer(load(None, rows=100)).price, 9)
    1.0
    """

    count: Answer
    mean: Answer | None
    bands: tuple[Answer, ...]
    price: float


def answer(people: People) -> Answers:
    """Release the three statistics for BUDGET in all.

    Claim: BUDGET-DP for one person under add/remove.

    Why: one person changes the count by at most 1, the clipped sum by at most HIGHEST_INCOME and
    one band by 1, so the three releases cost their shares, which add up. The mean is computed from
    two releases and costs nothing more: under add/remove the number of people is itself a secret,
    so the sum is divided by the noisy count.

    >>> from discreet.cli._people import load
    >>> len(answer(load(None, rows=1000)).bands)
    9
    """
    low, high = WORKING_AGE
    working = (people.age >= low) & (people.age <= high)
    clipped = np.clip(people.income, 0, HIGHEST_INCOME)[working]
    band = np.clip(people.age // BAND, 0, BANDS - 1)

    counter = DiscreteLaplace.calibrated(epsilon=COUNT_SHARE * BUDGET, sensitivity=1)
    summer = DiscreteLaplace.calibrated(epsilon=SUM_SHARE * BUDGET, sensitivity=HIGHEST_INCOME)
    binner = DiscreteLaplace.calibrated(epsilon=BANDS_SHARE * BUDGET, sensitivity=1)

    workers = Sensitive(int(working.sum()))
    earned = Sensitive(int(clipped.sum()))
    sizes = Sensitive(np.bincount(band, minlength=BANDS).astype(np.int64))

    count = counter.release(workers.reveal_without_noise())
    total = summer.release(earned.reveal_without_noise())
    bands = binner.release(sizes.reveal_without_noise())

    error = binner.error(confidence=CONFIDENCE)
    return Answers(
        count=Answer(
            value=count, error=counter.error(confidence=CONFIDENCE), price=_price(counter)
        ),
        mean=_mean(total, count, summer=summer, counter=counter),
        bands=tuple(Answer(value=int(b), error=error, price=_price(binner)) for b in bands),
        price=_price(counter) + _price(summer) + _price(binner),
    )


def _price(mechanism: DiscreteLaplace) -> float:
    return epsilon(mechanism.loss, delta=0)


def _mean(
    total: int, count: int, *, summer: DiscreteLaplace, counter: DiscreteLaplace
) -> Answer | None:
    """Divide two releases. Each may miss with half of the allowed chance, so both hold together."""
    each = (1 + CONFIDENCE) / 2
    sum_error, count_error = summer.error(confidence=each), counter.error(confidence=each)
    fewest = count - count_error
    if fewest < 1:
        return None  # the noise may be all there is
    total = max(0, total)  # as the exact sum is; free, since it looks at the release alone
    value = round(Fraction(total, count))
    # The sum is not negative, so the extremes of the quotient are at opposite corners.
    highest = Fraction(total + sum_error, fewest)
    lowest = Fraction(max(0, total - sum_error), count + count_error)
    error = max(highest - value, value - lowest)
    return Answer(value=value, error=-int(-error // 1), price=_price(summer))


def run_demo(console: Console, *, data: Path | None, rows: Number | None) -> None:
    """Load the people, release, and print.

    >>> run_demo(Console(width=80), data=None, rows=1000)  # doctest: +ELLIPSIS
    Three questions about a generated, census-like table
    ...
    """
    people = load(data, rows=_rows(rows, data=data))
    answers = answer(people)
    signs = _Signs.of(console)
    console.print(Text(f"Three questions about {people.about}", style="bold"))
    console.print(
        Text(
            "Protected: each person, added or removed. Budget: epsilon = "
            f"{show(BUDGET)}, split {show(COUNT_SHARE)} for the count, {show(SUM_SHARE)} for the "
            f"sum of incomes and {show(BANDS_SHARE)} for the histogram."
        )
    )
    console.print(_statistics(answers, signs))
    console.print(_histogram(answers, signs, width=console.width))
    _print_closing(console, answers)


def _rows(rows: Number | None, *, data: Path | None) -> int:
    """Return how many people to generate."""
    if rows is None:
        return ROWS
    count = whole(rows, name="rows", hint="It is a number of people.")
    if count > MOST_ROWS:
        raise refusal("rows", f"at most {MOST_ROWS}", rows)
    if data is not None:
        raise ParameterError(
            "rows must not be given together with data (--data or DISCREET_DATA), which is read "
            "whole: of the first N rows, removing one person would change two. Leave --rows out.",
            parameter="rows",
        )
    return count


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Signs:
    """The two characters that not every terminal can write."""

    plus_minus: str
    block: str

    @classmethod
    def of(cls, console: Console) -> "_Signs":
        if console.options.ascii_only:
            return cls(plus_minus="+/-", block="#")
        return cls(plus_minus="\N{PLUS-MINUS SIGN}", block="\N{FULL BLOCK}")


def _statistics(answers: Answers, signs: _Signs) -> Table:
    low, high = WORKING_AGE
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("question")
    table.add_column("private answer", justify="right", no_wrap=True)
    table.add_column("price", justify="right", no_wrap=True)
    table.add_row(f"People aged {low} to {high}", *_cells(answers.count, signs))
    about_mean = f"Their mean income, each clipped to 0 to {HIGHEST_INCOME:,}"
    if answers.mean is None:
        table.add_row(about_mean, "too few people", f"{float(SUM_SHARE * BUDGET):g}")
    else:
        table.add_row(about_mean, *_cells(answers.mean, signs))
    return table


def _histogram(answers: Answers, signs: _Signs, *, width: int) -> Table:
    room = max(5, min(BAR_WIDTH, width - BESIDE_BARS))
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("age", justify="right", no_wrap=True)
    table.add_column("people", no_wrap=True)
    table.add_column("private answer", justify="right", no_wrap=True)
    table.add_column("price", justify="right", no_wrap=True)
    tallest = max(1, *(band.value for band in answers.bands))
    for i, band in enumerate(answers.bands):
        last = i == BANDS - 1
        ages = f"{i * BAND}+" if last else f"{i * BAND}-{i * BAND + BAND - 1}"
        bar = signs.block * max(0, round(room * band.value / tallest))
        value, price = _cells(band, signs)
        # One person is in one band only, so the price is paid once for the whole histogram.
        table.add_row(ages, bar, value, price if i == 0 else "")
    return table


def _cells(answer: Answer, signs: _Signs) -> tuple[str, str]:
    return f"{answer.value:,} {signs.plus_minus} {answer.error:,}", f"{answer.price:g}"


def _print_closing(console: Console, answers: Answers) -> None:
    chances = odds(Guarantee(epsilon=answers.price))
    console.print(
        Text(
            "Error bars hold with 95% confidence each and show the noise alone, not the effect of "
            "clipping. The mean divides the noisy sum by the noisy count, because the number of "
            "people is a secret too."
        )
    )
    console.print()
    console.print(Text(f"Total price: epsilon = {answers.price:g}", style="bold"))
    console.print(
        Text(
            "In plain words: whoever reads all of this, knows everyone else's data and guesses "
            "whether you are in the table is right at most "
            f"{of_100(chances.with_you, up=True)} times in 100; a coin is right 50 times. "
            f"More: discreet explain --epsilon {answers.price:g}"
        )
    )
