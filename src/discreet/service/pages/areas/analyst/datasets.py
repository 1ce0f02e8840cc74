"""The datasets that a login may see."""

from collections.abc import Mapping
from typing import Any

from discreet.service.pages.page import PageCall

__all__ = ["datasets"]


async def datasets(call: PageCall) -> Mapping[str, Any]:
    """List them, with what is left of their budgets."""
    desk = call.gateway.desk
    names = desk.visible(call.who)

    def looked() -> list[dict[str, Any]]:
        return [
            {
                "name": name,
                "unit": str(served.tables.catalog.unit),
                "remaining": served.tables.remaining,
                "epsilon": float(served.tables.account.guarantee.epsilon),
                "tables": [one.name for one in served.tables.catalog.tables],
            }
            for name in names
            for served in [desk.served(call.who, name)]
        ]

    return {"datasets": await desk.free(looked, call.who)}
