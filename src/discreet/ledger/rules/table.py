"""What each kind of entry does to the state: one pure function each.

The same functions decide whether a new entry is accepted and replay old ones when the log is
verified. They read a :class:`State`, raise if the entry must not be, and return the facts that
change and the balances after it. Nothing here reads a clock, a key or a database.
"""

from collections.abc import Mapping
from typing import Final

from discreet.ledger.rules import administration, releases, spending, withdrawal
from discreet.ledger.rules.effects import Rule

__all__ = ["RULES"]

RULES: Final[Mapping[str, Rule]] = {
    "account": administration.account,
    "act": administration.act,
    "budget": administration.budget,
    "charge": spending.charge,
    "clock": administration.clock,
    "grant": administration.grant,
    "ledger": administration.ledger,
    "policy": administration.policy,
    "reask": releases.reask,
    "release": releases.release,
    "reserve": spending.reserve,
    "rollback": administration.rollback,
    "rotate": administration.rotate,
    "settle": spending.settle,
    "source": administration.source,
    "spend": spending.spend,
    "withdraw": withdrawal.withdraw,
    "witness": administration.witness,
}
