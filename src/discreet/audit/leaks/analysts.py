"""Find answers that reach the wrong analyst."""

import math
import tempfile
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

from discreet._exact import Number, probability
from discreet.audit.leaks.canaries import Canary, Planted, plant, secret_text
from discreet.audit.leaks.reading import read_value
from discreet.audit.leaks.report import Leak, LeakReport
from discreet.audit.leaks.searching import Search

__all__ = ["scan_analysts"]

Desk: TypeAlias = Callable[[Planted, Path], Callable[[str], object]]
_MOST_ROUNDS = 60


def scan_analysts(
    make: Desk, *, planted: Planted | None = None, false_alarm: Number = 1e-9
) -> LeakReport:
    """Let two analysts ask the same, each for themselves, and compare what they are handed.

    ``make(planted, folder)`` builds a fresh surface with all its state in the empty ``folder`` and
    returns ``ask(analyst)``, which asks one question in the name of that analyst, who pays for it,
    and returns the answer: without what all may share, such as a ledger's key or the time. The
    names are new in every round, so that somebody else's receipt shows.

    Claim: if every answer has noise of its own, answers that are found alike are so by accident
    with probability at most ``false_alarm``, whatever the noise is, and so are names.

    Why: if n answers of the second are independent draws of one law, they equal those of the first
    one by one with the product of the probabilities of those values. The n! / (m1! m2! ...) orders
    of the same values are equally likely and disjoint, so it is at most (m1! m2! ...) / n!, where
    the m count equal ones. The scan stops as soon as the first analyst's answers make that small
    enough, which the second one's do not influence.

    >>> def make(planted, folder):
    ...     import secrets
    ...     cached = secrets.randbelow(1000)
    ...     return lambda analyst: cached
    >>> print(scan_analysts(make).leaks[0])
    an answer as equal for two analysts in ... rounds, in result
    """
    here = plant() if planted is None else planted
    alarm = float(probability(false_alarm, name="false_alarm"))
    share = alarm / 3
    mine: Counter[bytes] = Counter()
    is_alike, rounds, size, found = True, 0, 0, []
    names: list[list[Canary]] = [[], []]
    handed: list[list[bytes]] = [[], []]
    while rounds < _MOST_ROUNDS and is_alike and _accident(mine) > share:
        rounds += 1
        who = [secret_text(), secret_text()]
        with tempfile.TemporaryDirectory() as folder:
            ask = make(here, Path(folder))
            answers = [_answer(ask, one) for one in who]
        for side, (name, answer) in enumerate(zip(who, answers, strict=True)):
            label = f"name of the {('first', 'second')[side]} analyst"
            names[side].append(Canary(label=label, family="analyst", kind="text", value=name))
            handed[side].append(answer)
            size += len(answer)
        bare = [one.replace(name.encode(), b"") for one, name in zip(answers, who, strict=True)]
        mine[bare[0]] += 1
        is_alike = bare[0] == bare[1]
    if is_alike and _accident(mine) <= share:
        form = f"equal for two analysts in {rounds} rounds"
        chance = _accident(mine)
        found.append(Leak(what="an answer", form=form, where=("result",), chance=chance))
    for side in range(2):
        search = Search(names[side], epsilon=0, false_alarm=share)
        for answer in handed[1 - side]:
            search.feed(f"the answer to the {('second', 'first')[side]} analyst", answer)
        found += search.leaks()
    return LeakReport(
        leaks=tuple(found),
        outputs=2 * rounds,
        size=size,
        false_alarm=alarm,
        scanned=f"the answers of two analysts in {rounds} rounds",
    )


def _accident(values: Counter[bytes]) -> float:
    """Return m1! m2! ... / n!."""
    orders = math.factorial(values.total())
    return float(Fraction(math.prod(map(math.factorial, values.values())), orders))


def _answer(ask: Callable[[str], object], analyst: str) -> bytes:
    try:
        return read_value(ask(analyst))
    except Exception as error:
        return read_value(error)
