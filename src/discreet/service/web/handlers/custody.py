"""What custodians do, each act an entry of the ledger."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from discreet.errors import AccountNotFound, DataError, NotAllowed, ParameterError
from discreet.ledger import Receipt
from discreet.service.identity import api_keys
from discreet.service.identity.api_keys import ApiKey
from discreet.service.identity.login import Role
from discreet.service.web.handlers.asking import dataset as described
from discreet.service.web.route import WebCall, WebReply

if TYPE_CHECKING:
    from discreet.service.web.bodies import (
        GrantBody,
        LimitBody,
        NewKeyBody,
        PolicyBody,
        ReasonBody,
        RegistrationBody,
    )

__all__ = ["grant", "keys", "limit", "make_key", "policy", "register", "reopen", "revoke_key"]

_UNFIT: Final = (
    "the declaration does not fit its files, or they cannot be read. Nothing was registered. The "
    "reason is in the gateway's log."
)


async def grant(call: WebCall) -> WebReply:
    """Widen a budget."""
    body: GrantBody = call.body
    account = call.gateway.desk.served(call.who, call.dataset).tables.account
    return await _acted(
        call,
        lambda: account.grant(
            body.guarantee(), who=call.who.who, reason=body.reason, line=body.line
        ),
    )


async def limit(call: WebCall) -> WebReply:
    """Limit an analyst, a purpose or a period."""
    body: LimitBody = call.body
    account = call.gateway.desk.served(call.who, call.dataset).tables.account
    return await _acted(
        call,
        lambda: account.limit(
            body.guarantee(),
            analyst=body.analyst,
            purpose=body.purpose,
            every=body.every,
            who=call.who.who,
        ),
    )


async def policy(call: WebCall) -> WebReply:
    """Change what happens at exhaustion."""
    body: PolicyBody = call.body
    account = call.gateway.desk.served(call.who, call.dataset).tables.account
    return await _acted(
        call, lambda: account.set_policy(body.policy, who=call.who.who, reason=body.reason)
    )


async def reopen(call: WebCall) -> WebReply:
    """Let a dataset that rests after missed deadlines answer again."""
    body: ReasonBody = call.body
    gateway, name = call.gateway, call.dataset
    account = gateway.desk.served(call.who, name).tables.account

    def reopened() -> Receipt:
        receipt = account.ledger.act(
            "dataset.reopened",
            who=call.who.who,
            subject=name,
            reason=body.reason,
            account=account.name,
        )
        gateway.misses.reopen(name)
        return receipt

    return await _acted(call, reopened)


async def register(call: WebCall) -> WebReply:
    """Protect a table in the gateway's data folder, and serve it from now on."""
    body: RegistrationBody = call.body
    gateway = call.gateway
    if call.who.datasets is not None:
        raise NotAllowed("a login for some datasets cannot add another one.")
    register = partial(gateway.shelf.register, body.declaration, who=call.who.who)
    try:
        name = await gateway.desk.free(register, call.who)
    except DataError:  # whose words, which may name places of the host, are in the log by now
        raise ParameterError(_UNFIT, parameter="declaration") from None
    shown = await described(
        WebCall(gateway=gateway, login=call.login, path={**call.path, "dataset": name})
    )
    return WebReply(document=shown.document, status=201)


async def keys(call: WebCall) -> WebReply:
    """List all API keys, without their secrets."""
    found = await call.gateway.beside(partial(api_keys.all_keys, call.gateway.records))
    return WebReply(document={"keys": [_key_document(one) for one in found if _covers(call, one)]})


def _covers(call: WebCall, key: ApiKey) -> bool:
    """Say whether a key opens nothing beyond what the caller's own login is good for."""
    mine = call.who.datasets
    return mine is None or (key.datasets is not None and key.datasets <= mine)


async def make_key(call: WebCall) -> WebReply:
    """Make an API key; its secret is shown once."""
    body: NewKeyBody = call.body
    mine = call.who.datasets
    if mine is not None and not (body.datasets and mine.issuperset(body.datasets)):
        raise NotAllowed("a key cannot open more datasets than the login that makes it.")
    expires = None if body.days is None else time.time() + 86_400 * body.days
    ledger, who = call.gateway.shelf.ledger, call.who.who

    def made() -> tuple[ApiKey, str, Receipt]:
        key, secret = api_keys.create(
            call.gateway.records,
            who=body.who,
            roles=[Role(one) for one in body.roles],
            datasets=body.datasets,
            expires=expires,
        )
        return key, secret, ledger.act("key.created", who=who, subject=key.id)

    key, secret, receipt = await call.gateway.beside(made)
    document = {"key": _key_document(key), "secret": secret, "entry": receipt.index}
    return WebReply(document=document, status=201)


async def revoke_key(call: WebCall) -> WebReply:
    """End an API key for good."""
    ledger, key, who = call.gateway.shelf.ledger, call.path["key"], call.who.who

    def revoked() -> Receipt:
        known = {one.id: one for one in api_keys.all_keys(call.gateway.records)}
        is_mine = key in known and _covers(call, known[key])
        if not is_mine or not api_keys.revoke(call.gateway.records, key):
            raise AccountNotFound("there is no such key that is not revoked.")
        return ledger.act("key.revoked", who=who, subject=key)

    return await _acted(call, revoked)


async def _acted(call: WebCall, act: Callable[[], Receipt]) -> WebReply:
    receipt = await call.gateway.beside(act)
    return WebReply(document={"entry": receipt.index})


def _key_document(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.id,
        "who": key.who,
        "roles": sorted(key.roles),
        "datasets": None if key.datasets is None else sorted(key.datasets),
        "created": _time(key.created),
        "expires": None if key.expires is None else _time(key.expires),
        "is_revoked": key.revoked is not None,
    }


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
