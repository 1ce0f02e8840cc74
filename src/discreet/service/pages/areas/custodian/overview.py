"""All populations, and what each has left: where a custodian's day begins."""

import time
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from discreet.ledger import Account, burn_down
from discreet.service.desk.shelf import Served
from discreet.service.identity.login import Role
from discreet.service.pages.page import PageCall

__all__ = ["burning", "overview"]

_POINTS = 60


async def overview(call: PageCall) -> Mapping[str, Any]:
    """List the accounts of the ledger with the datasets that share each."""
    gateway, login = call.gateway, call.who
    served = [gateway.desk.served(login, name) for name in gateway.desk.visible(login)]

    def looked() -> dict[str, Any]:
        sharing: defaultdict[str, list[Served]] = defaultdict(list)
        for one in served:
            sharing[one.tables.account.name].append(one)
        ledger = gateway.shelf.ledger
        idle = []
        if login.datasets is None:
            idle = [one for one in ledger if one.name not in sharing]
        return {
            "populations": [_population(call, shared) for _, shared in sorted(sharing.items())],
            "idle": [{"name": one.name, "remaining": one.remaining} for one in idle],
        }

    return {
        **await gateway.desk.free(looked, login),
        "may_protect": login.is_a(Role.CUSTODIAN) and login.datasets is None,
        "may_act": login.is_a(Role.CUSTODIAN),
        "sees_all": login.datasets is None,
        "unserved": sorted(gateway.shelf.unserved) if login.datasets is None else [],
    }


def _population(call: PageCall, shared: list[Served]) -> dict[str, Any]:
    account = shared[0].tables.account
    gateway = call.gateway
    return {
        "name": account.name,
        "unit": str(account.unit),
        "epsilon": float(account.guarantee.epsilon),
        "delta": float(account.guarantee.delta),
        "policy": account.policy,
        "remaining": account.remaining,
        "datasets": [
            {
                "name": one.tables.name,
                "tables": [table.name for table in one.tables.catalog.tables],
                "misses": gateway.misses.count(one.tables.name),
                "rests": gateway.misses.count(one.tables.name) >= gateway.settings.most_misses,
            }
            for one in sorted(shared, key=lambda one: one.tables.name)
        ],
        "burning": burning(account, points=_POINTS, height=120),
    }


def burning(account: Account, *, points: int, height: int) -> dict[str, Any]:
    """Return the chart of what was left over time, up to now."""
    found = burn_down(account, points=points)
    x = [_seconds(one.time) for one in found]
    left = [100 * (1 - min(1.0, one.used)) for one in found]
    return {
        "x": [*x, max(time.time(), x[-1] + 1)],
        "series": [{"label": "left", "y": [*left, left[-1]], "steps": True}],
        "time": True,
        "y_range": [0, 102],
        "y_label": "left, %",
        "height": height,
    }


def _seconds(told: str) -> float:
    return datetime.fromisoformat(told).timestamp()
