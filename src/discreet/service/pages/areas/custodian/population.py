"""One dataset and its budget: how it burned down, its limits, and what custodians did."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from discreet.ledger import Account, standing
from discreet.service.identity.login import Role
from discreet.service.pages.areas.custodian.overview import burning
from discreet.service.pages.areas.custodian.words import POLICIES, explained, line_words
from discreet.service.pages.page import PageCall
from discreet.service.web.handlers import asking, books

__all__ = ["population"]

_ACTS: Final = ("account", "source", "budget", "grant", "policy", "act", "withdraw")
_LOOKED_AT: Final = 1000  # entries, of which the acts are shown
_SHOWN: Final = 20


async def population(call: PageCall) -> Mapping[str, Any]:
    """Show a budget in full."""
    gateway, login = call.gateway, call.who
    account = gateway.desk.served(login, call.dataset).tables.account
    described = await call.ask(asking.dataset)
    budgets = await call.ask(books.budgets)
    entries = (await call.ask(books.entries, query={"last": _LOOKED_AT}))["entries"]
    more = await gateway.desk.free(partial(_looked, account), login)
    misses = await gateway.beside(partial(gateway.misses.count, call.dataset))
    can_wait = account.unit.period is not None
    return {
        "dataset": described,
        "budgets": {
            **budgets,
            "budgets": [{**one, "words": line_words(one["name"])} for one in budgets["budgets"]],
        },
        **more,
        "shared_with": [
            name
            for name in gateway.desk.visible(login)
            if name != call.dataset and gateway.shelf[name].tables.account.name == account.name
        ],
        "acts": [one for one in entries if one["kind"] in _ACTS][-_SHOWN:][::-1],
        "misses": misses,
        "most_misses": gateway.settings.most_misses,
        "policies": {name: words for name, words in POLICIES.items() if name != "wait" or can_wait},
        "may_act": login.is_a(Role.CUSTODIAN),
        "can_be_monthly": not can_wait,  # else each budget is for each period of the data already
        "done": call.query.get("done"),
        "entry": call.query.get("entry"),
    }


def _looked(account: Account) -> dict[str, Any]:
    stands = standing(account)
    return {
        "burning": burning(account, points=200, height=280),
        "meaning": explained(account.guarantee),
        "filter": stands.kind,
        "limits": [
            {
                "name": name,
                "words": line_words(name),
                "epsilon": float(limit.epsilon),
                "delta": float(limit.delta),
            }
            for name, limit in stands.limits.items()
        ],
        "sources": dict(stands.sources),
        "jobs": [job._asdict() for job in stands.jobs],
    }
