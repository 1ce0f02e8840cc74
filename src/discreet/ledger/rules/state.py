"""The ledger's present state as the rules see it: facts read on demand, changes pending."""

from collections.abc import Callable, Sequence
from typing import Any

from discreet.accounting import FilterRules, Loss, from_json
from discreet.accounting.filters import FilterSums
from discreet.errors import AccountNotFound
from discreet.ledger.rules.balance import Balance
from discreet.ledger.rules.definition import Definition
from discreet.ledger.rules.entry import Entry, encode

__all__ = ["State", "Value", "loss_of", "price"]

Value = str | Balance | None

_losses: dict[str, Loss] = {}
_prices: dict[object, FilterSums] = {}
_REMEMBERED = 65_536


def loss_of(document: object) -> Loss:
    """Return the loss that an entry writes down; the same one again is looked up.

    >>> loss_of({"kind": "pure", "epsilon": 1, "version": 1})
    PureLoss(epsilon=1)
    """
    text = encode(document) if isinstance(document, dict) else ""
    known = _losses.get(text)
    if known is None:
        known = from_json(text)
        if len(_losses) >= _REMEMBERED:
            _losses.clear()
        _losses[text] = known
    return known


class State:
    """Facts by name, parsed once. Nothing is written before :meth:`take` hands out the changes.

    ``read`` fetches facts, ``entry`` an earlier entry.
    """

    def __init__(
        self,
        *,
        read: Callable[[Sequence[str]], dict[str, str]],
        entry: Callable[[int], Entry],
    ) -> None:
        self._read = read
        self.entry = entry
        self._known: dict[str, Value] = {}
        self._changed: set[str] = set()

    def __len__(self) -> int:
        return len(self._known)

    def get(self, name: str) -> Value:
        """Return a fact, or None."""
        try:
            return self._known[name]
        except KeyError:
            found = self._known[name] = self._read([name]).get(name)
            return found

    def text(self, name: str) -> str | None:
        """Return a fact that is no balance."""
        value = self.get(name)
        return value.text if isinstance(value, Balance) else value

    def pending(self) -> dict[str, str | None]:
        """Return all facts that changed and were not taken; None stands for one that is gone."""
        values = {name: self._known[name] for name in self._changed}
        return {n: v.text if isinstance(v, Balance) else v for n, v in values.items()}

    def definition(self, account: object) -> Definition:
        """Return an account's definition."""
        text = self.text(f"account/{account}")
        if text is None:
            raise AccountNotFound(
                f"this ledger has no account {account!r}. discreet ledger accounts lists them."
            )
        return Definition.read(text)

    def balance(self, name: str, rules: FilterRules) -> Balance:
        """Return a budget's balance; one that nobody used yet is empty."""
        value = self.get(name)
        if value is None:
            return Balance.empty(rules)
        return value if isinstance(value, Balance) else Balance.read(value).checked(rules)

    def put(self, facts: dict[str, Value]) -> None:
        """Set facts; None removes one."""
        self._known.update(facts)
        self._changed.update(facts)

    def take(self) -> dict[str, str | None]:
        """Hand out what changed since the last time, to be written."""
        changes = self.pending()
        self._changed.clear()
        return changes


def price(document: Any, rules: FilterRules) -> FilterSums:
    """Return what the loss of an entry costs, once its relation was found to agree."""
    try:
        key: object = (rules, *document.items())
        known = _prices.get(key)
    except TypeError:  # it holds other losses
        key = (rules, encode(document))
        known = _prices.get(key)
    if known is None:
        loss = loss_of(document)
        rules.relation(loss, rules.neighbours)
        known = rules.price(loss)
        if len(_prices) >= _REMEMBERED:
            _prices.clear()
        _prices[key] = known
    return known
