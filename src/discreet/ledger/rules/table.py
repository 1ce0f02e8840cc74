"""What each kind of entry does to the state: one pure function each.

The same functions decide whether a new entry is accepted and replay old ones when the log is
verified. They read a :class:`View`, raise if the entry must not be, and return the facts that
change and the balances after it. Nothing here reads a clock, a key or a database.
"""

from collections.abc import Mapping
from typing import Final

from discreet.ledger.rules import administration as terms
from discreet.ledger.rules import releases, spending
from discreet.ledger.rules.effects import Rule

__all__ = ["RULES"]

RULES: Final[Mapping[str, Rule]] = {
    "account": terms.account,
    "budget": terms.budget,
    "charge": spending.charge,
    "clock": terms.clock,
    "grant": terms.grant,
    "ledger": terms.ledger,
    "reask": releases.reask,
    "release": releases.release,
    "reserve": spending.reserve,
    "rotate": terms.rotate,
    "settle": spending.settle,
    "source": terms.source,
    "spend": spending.spend,
    "witness": terms.witness,
}
