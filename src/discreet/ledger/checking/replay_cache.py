"""Replay quickly what was replayed before: charges that differ from an earlier one in their place.

Most entries of a long log are charges by the same people, for the same purposes, of the same
losses. Their form, their budgets and their prices were worked out when the first of them was
replayed by the rules. Another one like it differs in its balances, its number, its key, the hash
before it and its time, all of which are known or computed; so its text can be written down and
compared, without reading it. Whatever is out of the ordinary is left to the rules, and so is every
complaint.
"""

import json
from typing import final

from discreet.accounting import FilterRules
from discreet.accounting.filters import FilterSums
from discreet.ledger.rules.entry import Entry
from discreet.ledger.rules.entry_forms import PAID, is_time
from discreet.ledger.rules.state import State, Value, price
from discreet.ledger.stores.protocol import Row

__all__ = ["ReplayCache"]

_REMEMBERED = 65_536
_TIME = '"time":"'
_LENGTH = len("2026-11-15T08:00:00.000000Z")
_Parts = tuple[str, str, str, str]
_Draw = tuple[str, str, FilterRules, FilterSums]  # budget as JSON, its fact, its rules, its cost


@final
class ReplayCache:
    """Charges that were replayed by the rules, without what is different each time."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._known: dict[_Parts, tuple[str, str, Value, tuple[_Draw, ...]]] = {}

    def replay(self, row: Row, last: str, time: str) -> str | None:
        """Replay a charge if there was one like it and all is well; then return its time.

        ``last`` and ``time`` are the hash and the time of the entry before.
        """
        split = _split(row, last)
        known = None if split is None else self._known.get(split[2])
        if split is None or known is None:
            return None
        head, now, _ = split
        opening, account, definition, draws = known
        state = self._state
        if state.get(account) is not definition or not (
            now == time or (now > time and is_time(now))
        ):
            return None
        facts: dict[str, Value] = {}
        told = []
        for budget, fact, rules, cost in draws:
            after = facts[fact] = state.balance(fact, rules).after_charge(cost)
            if not rules.fits(after.total):
                return None
            told.append(f'{budget}:"{after.text}"')
        if head != f'{opening}{",".join(told)}}},"index":{row.index},"key":"':
            return None
        state.put(facts)
        return now

    def learn(self, entry: Entry, row: Row, last: str) -> None:
        """Remember a charge that the rules have just accepted."""
        split = _split(row, last)
        definition = self._state.definition(entry["account"])
        drawn = definition.budgets(
            who=entry["who"], purpose=entry["purpose"], periods=(), time=entry["time"]
        )
        is_plain = len(entry) == len(PAID) and not any("every=" in line for _, line, _ in drawn)
        if split is None or not is_plain:
            return  # which budgets it draws on is another matter each time
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        name = definition.name
        draws = tuple(
            (json.dumps(budget), f"budget/{name}/{budget}", rules, price(entry["loss"], rules))
            for budget, _, rules in sorted(drawn, key=lambda one: one[0])
        )
        opening, account = f'{{"account":{json.dumps(name)},"after":{{', f"account/{name}"
        self._known[split[2]] = (opening, account, self._state.get(account), draws)


def _split(row: Row, last: str) -> tuple[str, str, _Parts] | None:
    """Return what comes before an entry's key, its time, and the parts that charges share."""
    body, key = row.body, row.key
    if type(key) is not str or type(row.account) is not str:
        return None
    middle = body.find(last)
    start = body.find(key)
    if not 0 < start < middle:
        return None
    before, _, rest = body[middle + 64 :].partition(_TIME)
    parts = (row.account, body[start + len(key) : middle], before, rest[_LENGTH:])
    return body[:start], rest[:_LENGTH], parts
