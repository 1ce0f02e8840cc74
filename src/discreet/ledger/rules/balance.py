"""What a budget has spent and what it holds for jobs under way, as exact sums."""

import math
import operator
from functools import lru_cache
from typing import final

from discreet.accounting import FilterRules
from discreet.accounting.filters import FilterSums
from discreet.errors import TamperingFound

__all__ = ["Balance", "add", "read_sums", "unreadable", "write_sums"]


def add(a: FilterSums, b: FilterSums) -> FilterSums:
    """Add two sums; infinity stays infinity.

    >>> add((1, 2), (10, math.inf))
    (11, inf)
    """
    try:
        return tuple(map(operator.add, a, b))
    except OverflowError:  # a sum beyond the floats meets infinity, the only float there is
        return tuple(math.inf if math.inf in (x, y) else x + y for x, y in zip(a, b, strict=True))


def write_sums(sums: FilterSums) -> str:
    """Write sums as decimal numbers.

    >>> write_sums((3, math.inf))
    '3 inf'
    """
    return " ".join(map(str, sums))


def read_sums(text: str) -> FilterSums:
    """Read back what :func:`write_sums` wrote.

    >>> read_sums("3 inf")
    (3, inf)
    """
    return tuple(math.inf if word == "inf" else int(word) for word in text.split(" "))


@final
class Balance:
    """One budget's sums. ``held`` is set aside for the steps of open jobs that have not begun.

    >>> Balance((3, 0), (2, 0)).text
    '3 0|2 0'
    >>> Balance.read("3 0").after_charge((1, 1)).total
    (4, 1)
    """

    __slots__ = ("_text", "held", "spent")

    def __init__(self, spent: FilterSums, held: FilterSums | None = None) -> None:
        self.spent = spent
        self.held = held
        self._text: str | None = None

    @property
    def total(self) -> FilterSums:
        """Everything that is taken."""
        return self.spent if self.held is None else add(self.spent, self.held)

    @property
    def text(self) -> str:
        """The balance as entries and facts write it."""
        if self._text is None:  # written out once, though several places keep it
            spent = write_sums(self.spent)
            self._text = spent if self.held is None else f"{spent}|{write_sums(self.held)}"
        return self._text

    @classmethod
    def read(cls, text: str) -> "Balance":
        """Read it back."""
        return _read(text)

    @classmethod
    def empty(cls, rules: FilterRules) -> "Balance":
        """Return the balance of a budget that nobody has used."""
        return cls((0,) * len(rules.units))

    def checked(self, rules: FilterRules) -> "Balance":
        """Return it, if it is one of these rules."""
        if len(self.spent) != len(rules.units) or (self.held and len(self.held) != len(self.spent)):
            raise unreadable("a budget")
        return self

    def after_charge(self, cost: FilterSums) -> "Balance":
        """Return the balance once ``cost`` was spent."""
        return Balance(add(self.spent, cost), self.held)

    def moved(self, *, to_held: FilterSums, to_spent: FilterSums) -> "Balance":
        """Return the balance after changes of both parts; what is held may shrink."""
        held = add(self.held or (0,) * len(self.spent), to_held)
        if any(amount < 0 for amount in held):
            raise ValueError("more would be returned than is held")
        return Balance(add(self.spent, to_spent), held if any(held) else None)


@lru_cache(maxsize=4096)
def _read(text: str) -> Balance:
    try:
        spent, _, held = text.partition("|")
        return Balance(read_sums(spent), read_sums(held) if held else None)
    except (ValueError, TypeError, AttributeError) as error:
        raise unreadable("a budget") from error


def unreadable(kind: str) -> TamperingFound:
    """Build the error for stored state that nobody here has written."""
    whose = f" of {kind}" if kind else ""
    return TamperingFound(
        f"the stored state{whose} cannot be read. Find out what was altered with: discreet ledger "
        "verify"
    )
