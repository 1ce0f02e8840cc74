"""The audit of every mechanism, as it was kept when this version was released."""

from collections.abc import Mapping
from typing import Any

from discreet.audit import kept_catalogue
from discreet.service.pages.page import PageCall

__all__ = ["mechanisms"]


async def mechanisms(call: PageCall) -> Mapping[str, Any]:
    """Show the figures, with where they are from."""
    kept = kept_catalogue()
    return {
        "day": kept.day,
        "made_with": kept.version,
        "command": kept.command,
        "most": max(line.samples for line in kept.report.lines),
        **kept.report.to_dict(),
    }
