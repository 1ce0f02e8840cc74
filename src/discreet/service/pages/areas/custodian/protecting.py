"""Protect a table step by step: every step is an address, and only the last one does something."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import quote, urlencode

from discreet.errors import DiscreetError, NotAllowed
from discreet.ledger import Account
from discreet.service.desk.gateway import Gateway
from discreet.service.pages.areas.custodian.drafts import RECORD, STEPS, TableDraft, step_of
from discreet.service.pages.areas.custodian.trial import tried
from discreet.service.pages.areas.custodian.words import POLICIES, explained
from discreet.service.pages.page import PageCall, Redirect
from discreet.service.web.bodies import RegistrationBody
from discreet.service.web.handlers import custody
from discreet.service.web.problems import problem_of
from discreet.tables import column_kind, likely_units

__all__ = ["protect", "protecting"]

_MOST_COLUMNS: Final = 80  # that are asked for: a form has a limit
_PROPOSED: Final = {"epsilon": "3", "delta": "1e-6", "policy": "deny"}


async def protecting(call: PageCall) -> Mapping[str, Any]:
    """Show the step that was asked for, or the first one before it with something wrong."""
    _check_may_add(call)
    desk, login = call.gateway.desk, call.who
    return await desk.free(partial(_shown, call.gateway, dict(call.query), login.who), login)


async def protect(call: PageCall) -> Redirect:
    """Protect it, as POST /v1/datasets does."""
    _check_may_add(call)
    desk, login = call.gateway.desk, call.who

    def declared() -> tuple[str, str]:
        draft = _draft(call.gateway, dict(call.form))
        account = _account(call.gateway, draft)
        return draft.name, draft.declaration(account).to_toml()

    name, text = await desk.free(declared, login)
    await call.ask(custody.register, RegistrationBody(declaration=text))
    return Redirect(to=f"/custody/datasets/{quote(name, safe='')}?done=protected")


def _check_may_add(call: PageCall) -> None:
    if call.who.datasets is not None:
        raise NotAllowed("a login for some datasets cannot add another one.")


def _draft(gateway: Gateway, said: Mapping[str, str]) -> TableDraft:
    """Read the fields; the columns are those of the file, where it is one that may be protected."""
    source = said.get("source", "")
    columns = gateway.shelf.folder.columns(source) if source else {}
    return TableDraft(said=said, columns=columns)


def _shown(gateway: Gateway, query: Mapping[str, str], who: str) -> dict[str, Any]:
    files = gateway.shelf.folder.files() if gateway.shelf.folder.is_there else []
    wanted = query.get("step", "source")
    wanted = wanted if wanted in STEPS else "source"
    draft, trial = TableDraft(said=query), None
    step = problem = None
    try:
        for step in _until(wanted):  # the step at which something is wrong is the one to show
            if step == "source":
                draft.check_source(files, gateway.shelf.names)
                draft = _draft(gateway, query)
            _check(step, draft, gateway)
        step = wanted
        if wanted == "check":
            trial = tried(gateway.shelf, draft, _account(gateway, draft), who=who)
        elif wanted == "budget" and draft.text("epsilon"):
            _check("budget", draft, gateway)
    except DiscreetError as error:
        problem = problem_of(error).document
        if step == "check":
            problem["detail"] = _for_pages(problem["detail"])
    return _view(gateway, draft, step or wanted, files, problem, trial)


def _until(wanted: str) -> Iterator[str]:
    names = list(STEPS)
    yield from names[: names.index(wanted)]


def _check(step: str, draft: TableDraft, gateway: Gateway) -> None:
    """Refuse what a step was told, in its own words."""
    if step == "people":
        draft.unit()
        for name in ("rows", "groups", "size"):
            draft.count(name)
    elif step == "columns":
        draft.declared()
    elif step == "budget":
        draft.declaration(_account(gateway, draft))


def _account(gateway: Gateway, draft: TableDraft) -> Account | None:
    """Return the account that is shared, None where a new one is opened."""
    name = draft.text("account")
    return gateway.shelf.ledger[name] if name else None


def _view(
    gateway: Gateway,
    draft: TableDraft,
    step: str,
    files: list[str],
    problem: dict[str, Any] | None,
    trial: dict[str, Any] | None,
) -> dict[str, Any]:
    known = {name: told for name, told in draft.said.items() if told and _is_known(name, draft)}
    asked = draft.asked()
    units = likely_units({"table": dict(draft.columns)}) if draft.columns else []
    said = {**_PROPOSED, **draft.said}
    return {
        "step": step,
        "steps": _steps(step, known),
        "files": files,
        "takes_files": gateway.shelf.folder.is_there,
        "said": {name: said.get(name, "") for name in _SHOWN},
        "kept": {name: told for name, told in known.items() if step_of(name) != step},
        "name": draft.name,
        "columns": dict(draft.columns),
        "units": [*units, *(name for name in draft.columns if name not in units), RECORD],
        "record": RECORD,
        "times": [name for name, type_ in draft.columns.items() if column_kind(type_) == "time"],
        "asked": asked[:_MOST_COLUMNS],
        "unasked": len(asked[_MOST_COLUMNS:]),
        "accounts": [_account_view(one) for one in gateway.shelf.ledger]
        if step == "budget"
        else [],
        "policies": {
            name: words for name, words in POLICIES.items() if name != "wait" or said.get("period")
        },
        "meaning": _meaning(gateway, draft, said) if step in ("budget", "check") else None,
        "problem": problem,
        "trial": trial,
    }


_SHOWN: Final = (
    "source", "name", "unit", "period", "time", "rows", "groups", "size", "account", "epsilon",
    "delta", "policy",
)  # fmt: skip


def _steps(step: str, known: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return all steps: those before the one that is shown lead back, with all that was said."""
    names = list(STEPS)
    at = names.index(step)
    return [
        {
            "name": name,
            "title": title,
            "is_now": name == step,
            "back": f"/custody/protect?{urlencode({**known, 'step': name})}" if i < at else None,
        }
        for i, (name, title) in enumerate(STEPS.items())
    ]


def _is_known(name: str, draft: TableDraft) -> bool:
    """Keep the fields of this form, and of columns that the file has."""
    step, (_, dot, column) = step_of(name), name.partition(".")
    return step is not None and (
        step != "columns" or not draft.columns or (bool(dot) and column in draft.columns)
    )


def _account_view(account: Account) -> dict[str, Any]:
    return {
        "name": account.name,
        "unit": str(account.unit),
        "epsilon": float(account.guarantee.epsilon),
    }


def _meaning(gateway: Gateway, draft: TableDraft, said: Mapping[str, str]) -> dict[str, Any] | None:
    try:
        account = _account(gateway, draft)
        if account is not None:
            return explained(account.guarantee, units=draft.count("size"))
        proposed = TableDraft(said=said, columns=draft.columns)
        return explained(proposed.guarantee(), units=draft.count("size"))
    except DiscreetError:
        return None


def _for_pages(told: str) -> str:
    """Say in the words of this page what is otherwise said to the command line."""
    return told.replace(" (--account)", "").replace(" (--override)", "")
