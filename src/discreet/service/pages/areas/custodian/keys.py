"""API keys: made, with the secret shown once, listed, and ended."""

import json
from collections.abc import Mapping
from typing import Any

from discreet._json import read_json
from discreet.errors import ParameterError
from discreet.service.identity.login import Role
from discreet.service.pages.page import PageCall, Redirect
from discreet.service.web.bodies import NewKeyBody
from discreet.service.web.handlers import custody

__all__ = ["keys", "make_key", "revoke_key"]


async def keys(call: PageCall) -> Mapping[str, Any]:
    """List keys; ``made`` is the one that was made a moment ago, with its secret, once."""
    listed = (await call.ask(custody.keys))["keys"]
    return {
        "keys": sorted(listed, key=lambda one: (one["is_revoked"], one["who"], one["created"])),
        "mine": call.who.key,
        "made": None if call.told is None else read_json(call.told),
        "done": call.query.get("done"),
        "roles": [str(role) for role in Role],
        "datasets": call.gateway.desk.visible(call.who),
        "may_open_all": call.who.datasets is None,
    }


async def make_key(call: PageCall) -> Redirect:
    """Make a key. Its secret goes to the next page in a sealed cookie, and in no address."""
    form = call.form
    named = [name.partition(".")[2] for name in form if name.startswith("dataset.")]
    is_for_all = form.get("scope") == "all"
    if not is_for_all and not named:
        raise ParameterError(
            "say which datasets the key opens: tick at least one, or all of them.",
            parameter="datasets",
        )
    body = NewKeyBody.model_validate(
        {
            "who": form.get("who", "").strip(),
            "roles": [str(role) for role in Role if f"role.{role}" in form],
            "datasets": None if is_for_all else named,
            "days": call.number("days", 0.0, most=3660) or None,
        }
    )
    made = await call.ask(custody.make_key, body)
    told = json.dumps({"id": made["key"]["id"], "who": body.who, "secret": made["secret"]})
    return Redirect(to="/custody/keys", told=told)


async def revoke_key(call: PageCall) -> Redirect:
    """End a key for good."""
    await call.ask(custody.revoke_key)
    return Redirect(to="/custody/keys?done=revoked")
