"""The pages of the budget explorer."""

from discreet.service.pages.areas.explorer.actions import ask, reveal, set_policy, start_over
from discreet.service.pages.areas.explorer.views import explorer
from discreet.service.pages.page import Action, Page, PageArea

__all__ = ["PAGES"]

PAGES: PageArea = (
    Page(
        path="/explorer", name="explorer", title="Spend a privacy budget, and see what it buys",
        roles=None, view=explorer, template="explorer/explorer.html", nav="Explorer",
    ),
    Action(path="/explorer/ask", name="explorer_ask", roles=None, act=ask),
    Action(path="/explorer/policy", name="explorer_policy", roles=None, act=set_policy),
    Action(path="/explorer/reveal", name="explorer_reveal", roles=None, act=reveal),
    Action(path="/explorer/start-over", name="explorer_start_over", roles=None, act=start_over),
)  # fmt: skip
