"""The OpenAPI document, made from the table of routes and the models of bodies."""

import re
from collections.abc import Sequence
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from discreet._version import __version__
from discreet.service.identity.login import Role
from discreet.service.web.bodies import ProblemBody
from discreet.service.web.problems import KINDS, MEDIA_TYPE
from discreet.service.web.route import Route

__all__ = ["openapi"]

_ABOUT: Final = (
    "Private answers about protected data, each paid from one budget in a signed ledger. Ask for a "
    "quote first: it is free. An answer that is paid for comes at a time that follows from public "
    "facts. Problems are documents as RFC 9457 has them; whatever they say is public."
)
_ASK_AGAIN: Final = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A request that is repeated with the same key is never charged twice.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 100, "pattern": "^[!-~]+$"},
}


def openapi(routes: Sequence[Route]) -> dict[str, Any]:
    """Describe all routes."""
    models: set[type[BaseModel]] = {ProblemBody}
    models |= {model for route in routes for model in (route.body, route.answer) if model}
    in_order = sorted(models, key=lambda model: model.__name__)
    _, schemas = models_json_schema(
        [(model, "validation") for model in in_order], ref_template="#/components/schemas/{model}"
    )
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "discreet gateway", "version": __version__, "description": _ABOUT},
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key (dk_...), or a token of a trusted issuer.",
                }
            },
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", route.path)
    ]
    parameters += [
        {
            "name": one.name,
            "in": "query",
            "required": False,
            "description": one.summary,
            "schema": {
                "type": "integer",
                "minimum": 0,
                "maximum": one.most,
                "default": one.default,
            },
        }
        for one in route.numbers
    ]
    if route.takes_key:
        parameters.append(_ASK_AGAIN)
    found: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "responses": _responses(route),
    }
    if parameters:
        found["parameters"] = parameters
    if route.roles is not None:
        found["security"] = [{"token": []}]
        needed = "anybody" if set(route.roles) == set(Role) else " or ".join(route.roles)
        found["description"] = f"For {needed} with a login."
    if route.body is not None:
        content = {"application/json": {"schema": _ref(route.body)}}
        found["requestBody"] = {"required": True, "content": content}
    return found


def _responses(route: Route) -> dict[str, Any]:
    schema = {} if route.answer is None else _ref(route.answer)
    media = route.media_type.partition(";")[0]
    good = {"description": "Done.", "content": {media: {"schema": schema}}}
    found: dict[str, Any] = {str(route.status): good}
    by_status: dict[int, list[str]] = {}
    for name in route.every_problem:
        by_status.setdefault(KINDS[name].status, []).append(name)
    for status, names in sorted(by_status.items()):
        told = "; ".join(f"{KINDS[name].title} (`{name}`)" for name in names)
        content = {MEDIA_TYPE: {"schema": _ref(ProblemBody)}}
        if route.name == "ready" and status == 503:  # the same document, whatever it says
            content = {"application/json": {"schema": schema}}
        found[str(status)] = {"description": told, "content": content}
    return found


def _ref(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{model.__name__}"}
