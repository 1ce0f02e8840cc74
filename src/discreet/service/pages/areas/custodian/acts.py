"""What a custodian does to a budget: widen, limit, change the policy, reopen. Each an entry."""

from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

from discreet.errors import DiscreetError, ParameterError
from discreet.ledger import Account, standing
from discreet.privacy import Guarantee
from discreet.service.pages.areas.custodian.words import explained, line_words
from discreet.service.pages.page import PageCall, Redirect
from discreet.service.web.bodies import GrantBody, LimitBody, PolicyBody, ReasonBody
from discreet.service.web.handlers import custody
from discreet.service.web.problems import problem_of

__all__ = ["grant", "granting", "limit", "policy", "reopen"]


async def granting(call: PageCall) -> Mapping[str, Any]:
    """Show what a wider budget would mean, before it is granted."""
    account = call.gateway.desk.served(call.who, call.dataset).tables.account
    limits = await call.gateway.desk.free(partial(_limits, account), call.who)
    line = call.query.get("line", "total")
    now = limits.get(line)
    problem = wider = None
    try:
        if now is None:
            raise ParameterError(f"there is no limit {line!r} here.", parameter="line")
        wider = _wider(call, now)
    except DiscreetError as error:
        problem = problem_of(error).document
    return {
        "name": call.dataset,
        "limits": [{"name": name, "words": line_words(name)} for name in limits],
        "line": line,
        "line_words": line_words(line),
        "now": None if now is None else explained(now),
        "wider": None if wider is None else explained(wider),
        "epsilon": call.query.get("epsilon", ""),
        "delta": call.query.get("delta", ""),
        "problem": problem,
    }


def _limits(account: Account) -> Mapping[str, Guarantee]:
    return standing(account).limits


def _wider(call: PageCall, now: Guarantee) -> Guarantee | None:
    """Return the guarantee that the query asks for, None while it asks for none."""
    if not call.query.get("epsilon", "").strip():
        return None
    epsilon = call.number("epsilon", float(now.epsilon))
    delta = call.number("delta", float(now.delta), most=1)
    if epsilon < now.epsilon or delta < now.delta or (epsilon, delta) == (now.epsilon, now.delta):
        raise ParameterError(
            f"a grant only ever widens: epsilon is {float(now.epsilon):g} and delta "
            f"{float(now.delta):g} already. Give more of one of them.",
            parameter="epsilon",
        )
    return Guarantee(epsilon=epsilon, delta=delta)


async def grant(call: PageCall) -> Redirect:
    """Widen the total or a limit."""
    body = GrantBody.model_validate(
        {
            "epsilon": call.number("epsilon", 0.0),
            "delta": call.number("delta", 0.0, most=1),
            "reason": call.form.get("reason", "").strip(),
            "line": call.form.get("line", "total"),
        }
    )
    return _done(call, "grant", await call.ask(custody.grant, body))


async def limit(call: PageCall) -> Redirect:
    """Limit an analyst, a purpose or a period."""
    body = LimitBody.model_validate(
        {
            "epsilon": call.number("epsilon", 0.0),
            "delta": call.number("delta", 0.0, most=1),
            **{name: call.form.get(name, "").strip() or None for name in _WHOSE},
        }
    )
    return _done(call, "limit", await call.ask(custody.limit, body))


_WHOSE = ("analyst", "purpose", "every")


async def policy(call: PageCall) -> Redirect:
    """Change what happens at exhaustion."""
    said = {name: call.form.get(name, "").strip() for name in ("policy", "reason")}
    return _done(call, "policy", await call.ask(custody.policy, PolicyBody.model_validate(said)))


async def reopen(call: PageCall) -> Redirect:
    """Let a dataset that rests answer again."""
    body = ReasonBody.model_validate({"reason": call.form.get("reason", "").strip()})
    return _done(call, "reopen", await call.ask(custody.reopen, body))


def _done(call: PageCall, what: str, document: Mapping[str, Any]) -> Redirect:
    told = urlencode({"done": what, "entry": document["entry"]})
    return Redirect(to=f"/custody/datasets/{quote(call.dataset, safe='')}?{told}")
