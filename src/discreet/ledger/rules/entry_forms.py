"""Which members an entry of each kind has, and of what form: nothing else is ever written."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, final

from discreet.errors import LedgerError
from discreet.ledger.rules.definition import EACH, FOLDED, POLICIES, Line
from discreet.ledger.rules.entry import FORMAT, Entry
from discreet.privacy import Neighbours

__all__ = [
    "ACCOUNT_NAME",
    "NAME",
    "PAID",
    "REASON",
    "SUBJECT",
    "check_form",
    "is_act",
    "is_line",
    "is_name",
    "is_time",
]

NAME: Final = 200  # characters at most
ACCOUNT_NAME: Final = 100
REASON: Final = 1000
SUBJECT: Final = 128
_ACT_NAME: Final = 40

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}")
_CALL = re.compile(r"[0-9a-f]{32}")
_ACT = re.compile(r"[a-z]+\.[a-z]+", re.ASCII)
Check = Callable[[Any], bool]


@lru_cache(maxsize=8192)
def _is_text(value: str, longest: int) -> bool:
    is_plain = value.isprintable() and value == value.strip() and value != EACH
    return 1 <= len(value) <= longest and is_plain


def is_name(value: object, longest: int = NAME) -> bool:
    """Say whether this can stand in a log: not empty, not long, on one line.

    >>> is_name("ana"), is_name(""), is_name("*"), is_name(3)
    (True, False, False, False)
    """
    return type(value) is str and _is_text(value, longest)


def is_line(value: object) -> bool:
    """Say whether this names a limit, the only way it can be named.

    >>> is_line("analyst=ana"), is_line("total"), is_line("analyst=ana,x=1")
    (True, True, False)
    """
    if type(value) is not str:
        return False
    try:
        line = Line.read(value)
        named = (line.analyst, line.purpose)
        return line.name == value and all(one in (None, EACH) or is_name(one) for one in named)
    except ValueError:
        return False


def is_act(value: object) -> bool:
    """Say whether this names what a custodian did: what it was about, a dot, what was done.

    >>> is_act("key.revoked"), is_act("revoked"), is_act("Key.revoked")
    (True, False, False)
    """
    is_short = type(value) is str and len(value) <= _ACT_NAME
    return is_short and _ACT.fullmatch(str(value)) is not None


def _is_account(value: object) -> bool:
    return is_name(value, ACCOUNT_NAME) and "/" not in str(value)


def _is_key(value: object) -> bool:
    return type(value) is str and 1 <= len(value) <= 400 and value.isprintable()


def _is_call(value: object) -> bool:
    return type(value) is str and _CALL.fullmatch(value) is not None


def _is_hash(value: object) -> bool:
    return type(value) is str and _HASH.fullmatch(value) is not None


def is_time(value: object) -> bool:
    """Say whether this is a moment, written the only way it can be.

    >>> is_time("2026-11-15T08:00:00.000000Z"), is_time("2026-11-15")
    (True, False)
    """
    return type(value) is str and _TIME.fullmatch(value) is not None


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_dict(value: object) -> bool:
    return type(value) is dict


def _is_string(value: object) -> bool:
    return type(value) is str


def _is_reason(value: object) -> bool:
    return is_name(value, REASON)


def _is_subject(value: object) -> bool:
    return is_name(value, SUBJECT)


def _are_periods(value: Any) -> bool:
    labels = type(value) is list and value and all(type(one) is str for one in value)
    return bool(labels) and value == sorted(set(value))


def _is_source(value: Any) -> bool:
    return (
        type(value) is dict
        and value.keys() - {"content", "types"} == {"name", "version", "identities"}
        and _is_hash(value.get("content", "0" * 64))
        and _are_types(value.get("types", {}))
        and is_name(value["name"])
        and is_name(value["version"])
        and type(value["identities"]) is list
        and len(value["identities"]) > 0
        and all(_is_hash(one) for one in value["identities"])
    )


def _are_types(value: Any) -> bool:
    return type(value) is dict and all(_is_hash(c) and is_name(t) for c, t in value.items())


def _are_sources(value: Any) -> bool:
    return type(value) is list and all(_is_source(one) for one in value)


def _are_accounts(value: Any) -> bool:
    are_names = type(value) is list and value and all(_is_account(one) for one in value)
    return bool(are_names) and value == sorted(set(value))


def _are_steps(value: Any) -> bool:
    return type(value) is list and all(_is_count(one) for one in value) and any(value)


def _are_balances(value: Any) -> bool:
    return type(value) is dict and all(map(_is_string, value.values()))


def _one_of(*allowed: object) -> Check:
    kinds = {type(one) for one in allowed}
    return lambda value: type(value) in kinds and value in allowed


@final
class _Form:
    """The members of a kind: those it needs, of which the rules add some, and those it may have."""

    def __init__(
        self, needed: Mapping[str, Check], allowed: Mapping[str, Check] | None = None
    ) -> None:
        self.allowed = allowed or {}
        self.checks = tuple(needed.items())
        self.names = frozenset(needed)
        self.names_before = self.names - {"after", "holds"}


_EVERY: Final[Mapping[str, Check]] = {
    "index": _is_count,
    "key": _is_key,
    "kind": _is_string,
    "previous": _is_hash,
    "time": is_time,
}
_OF_ACCOUNT: Final[Mapping[str, Check]] = {**_EVERY, "account": _is_account}
PAID: Final[Mapping[str, Check]] = {
    **_OF_ACCOUNT,
    "after": _are_balances,
    "loss": _is_dict,
    "noise": _one_of("secure", "seeded"),
    "pricing": _is_count,
    "purpose": is_name,
    "who": is_name,
}

_FORMS: Final[Mapping[str, _Form]] = {
    "act": _Form(
        {**_EVERY, "act": is_act, "subject": _is_subject, "who": is_name},
        {"account": _is_account, "reason": _is_reason},
    ),
    "account": _Form(
        {
            **_EVERY,
            "filter": _is_dict,
            "name": _is_account,
            "neighbours": _one_of(*(one.value for one in Neighbours)),
            "policy": _one_of(*POLICIES),
            "sources": _are_sources,
            "unit": _is_dict,
        },
        {
            "matches": _are_accounts,
            "names": _one_of(FOLDED),
            "override": _is_reason,
            "who": is_name,
        },
    ),
    "budget": _Form({**_OF_ACCOUNT, "filter": _is_dict, "line": is_line}, {"who": is_name}),
    "charge": _Form(PAID, {"call": _is_call, "periods": _are_periods, "query": _is_hash}),
    "clock": _Form({**_EVERY, "reason": _is_reason, "who": is_name}),
    "grant": _Form(
        {
            **_OF_ACCOUNT,
            "filter": _is_dict,
            "line": is_line,
            "reason": _is_reason,
            "who": is_name,
        }
    ),
    "ledger": _Form(
        {
            **_EVERY,
            "format": _one_of(FORMAT),
            "origin": _is_string,
            "testing": _one_of(True, False),
            "vkey": _is_string,
        }
    ),
    "policy": _Form(
        {**_OF_ACCOUNT, "policy": _one_of(*POLICIES), "reason": _is_reason, "who": is_name}
    ),
    "reask": _Form(
        {
            **_OF_ACCOUNT,
            "pricing": _is_count,
            "purpose": is_name,
            "query": _is_hash,
            "release": _is_count,
            "who": is_name,
        },
        {"after": _are_balances},
    ),
    "release": _Form(
        {
            **_OF_ACCOUNT,
            "answer": _is_hash,
            "charge": _is_count,
            "code": is_name,
            "plan": _is_hash,
        },
        {"once": _one_of(True)},
    ),
    "reserve": _Form(
        {**PAID, "by_steps": _one_of(True, False), "holds": _is_dict},
        {"call": _is_call, "periods": _are_periods},
    ),
    "rollback": _Form(
        {**_EVERY, "reason": _is_reason, "root": _is_hash, "size": _is_count, "who": is_name}
    ),
    "rotate": _Form({**_EVERY, "by_new": _is_string, "by_old": _is_string, "vkey": _is_string}),
    "settle": _Form({**_OF_ACCOUNT, "after": _are_balances, "job": _is_count}),
    "source": _Form(
        {**_OF_ACCOUNT, "source": _is_source},
        {"matches": _are_accounts, "override": _is_reason, "who": is_name},
    ),
    "spend": _Form({**_OF_ACCOUNT, "after": _are_balances, "job": _is_count, "steps": _are_steps}),
    "withdraw": _Form({**_OF_ACCOUNT, "opened": _is_count, "reason": _is_reason, "who": is_name}),
    "witness": _Form({**_EVERY, "note": _is_string, "vkey": _is_string}),
}


def check_form(entry: Entry, *, is_new: bool) -> None:
    """Raise unless an entry has just the members of its kind, each of its form.

    A new entry does not have what the rules will add to it yet.

    >>> check_form({"kind": "charge", "who": ""}, is_new=True)
    Traceback (most recent call last):
        ...
    discreet.errors.LedgerError: an entry of kind 'charge' lacks 'account'.
    """
    kind = entry.get("kind")
    form = _FORMS.get(kind) if type(kind) is str else None
    if form is None:
        raise LedgerError("an entry is of no known kind.")
    needed = form.names_before if is_new else form.names
    if entry.keys() != needed:
        _check_others(entry, form, needed)
    for name, check in form.checks:
        if name in needed and not check(entry[name]):
            raise LedgerError(f"an entry of kind {kind!r} has a bad {name!r}.")


def _check_others(entry: Entry, form: _Form, needed: frozenset[str]) -> None:
    kind = entry["kind"]
    for name in sorted(needed - entry.keys()):
        raise LedgerError(f"an entry of kind {kind!r} lacks {name!r}.")
    for name in sorted(entry.keys() - needed):
        if name not in form.allowed or not form.allowed[name](entry[name]):
            raise LedgerError(f"an entry of kind {kind!r} has no {name!r} like this.")
