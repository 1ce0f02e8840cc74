"""The front page, and the way in and out."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from discreet.service.pages.page import Action, Page, PageArea, PageCall, Redirect
from discreet.service.pages.serving.door import local_address

__all__ = ["PAGES"]


async def front(call: PageCall) -> Mapping[str, Any]:
    """Say what this is, and what the login may do here."""
    login = call.login
    return {
        "who": None if login is None else login.who,
        "roles": [] if login is None else sorted(login.roles),
        "datasets": [] if login is None else call.gateway.desk.visible(login),
    }


async def sign_in(call: PageCall) -> Mapping[str, Any]:
    """Ask for an API key or a token; ``refused`` says that one opened nothing."""
    return {
        "next": local_address(call.query.get("next", "/")),
        "refused": "refused" in call.query,
        "issuers": [one.name for one in call.gateway.settings.issuers],
    }


async def begin(call: PageCall) -> Redirect:
    """Sign in; where it fails, it is told and can be tried again."""
    to = local_address(call.form.get("next", "/"))
    return Redirect(
        to=to,
        token=call.form.get("token", "").strip(),
        otherwise=f"/sign-in?refused=yes&next={quote(to, safe='/')}",
    )


async def end(call: PageCall) -> Redirect:
    """Sign out."""
    return Redirect(to="/", signs_out=True)


PAGES: PageArea = (
    Page(
        path="/", name="front", title="One privacy budget for people's data", roles=None,
        view=front, template="front/front.html",
    ),
    Page(
        path="/sign-in", name="sign_in", title="Sign in", roles=None, view=sign_in,
        template="front/sign_in.html",
    ),
    Action(path="/sign-in", name="begin_session", roles=None, act=begin),
    Action(path="/sign-out", name="end_session", roles=None, act=end),
)  # fmt: skip
