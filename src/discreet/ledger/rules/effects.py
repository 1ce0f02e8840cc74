"""What an entry does to the state, and what it costs: the words that all rules share."""

from collections.abc import Callable
from typing import final

from discreet.accounting import FilterRules
from discreet.accounting.filters import FilterSums
from discreet.ledger.rules.balance import Balance
from discreet.ledger.rules.entry import Entry
from discreet.ledger.rules.state import State, Value

__all__ = ["Cost", "Effects", "Rule"]

Cost = Callable[[Entry, str, FilterRules], FilterSums]
"""What an entry's loss costs by a line's rules. Whoever asks may know it already."""


@final
class Effects:
    """Facts to set, balances that the entry records, and fields that the rules add to it."""

    __slots__ = ("after", "facts", "fields")

    def __init__(
        self,
        facts: dict[str, Value] | None = None,
        after: dict[str, Balance] | None = None,
        fields: dict[str, object] | None = None,
    ) -> None:
        self.facts = {} if facts is None else facts
        self.after = {} if after is None else after
        self.fields = {} if fields is None else fields


Rule = Callable[[Entry, State, Cost], Effects]
