"""Tables and their account: which sources are registered, in which versions."""

from typing import Any

from discreet.errors import DataError, ParameterError
from discreet.ledger import Account, Ledger, TableContent, rehearse_account, rehearse_source
from discreet.tables.declarations.declaration import Declaration
from discreet.tables.engines.protocol import Connection, SamplingConnection
from discreet.tables.engines.sources import Sources
from discreet.tables.sources.source import DataSource

__all__ = ["attached", "recalled", "rehearsed"]


def recalled(ledger: Ledger, declaration: Declaration, opened: Sources) -> Sources:
    """Give columns that have no types those that they had when they were first protected.

    Guessed anew, they could change with any one row. What is declared goes before.
    """
    account = declaration.account or declaration.name
    known = ledger[account].registered() if account in ledger else {}
    types: dict[str, dict[str, str]] = {}
    for one in opened.values():
        if one.is_public or one.name not in known:
            continue
        kept = known[one.name].types
        said = {column.casefold() for column in declaration.types.get(one.name, {})}
        marks = {column: _mark(ledger, one, column) for column in one.untyped}
        types[one.name] = {
            column: kept[mark]
            for column, mark in marks.items()
            if mark in kept and column.casefold() not in said
        }
    return opened.retyped(types)


def attached(
    ledger: Ledger,
    declaration: Declaration,
    opened: Sources,
    connection: Connection,
    *,
    before: Sources | None = None,
    is_sampled: bool = True,
    override: str | None = None,
    who: str | None = None,
) -> Account:
    """Return the account of a declaration, made where there is none, with its sources registered.

    New rows, new columns and erased people make a new version of a source; the account and what
    was spent stay. Whoever protects the same data, or a copy of it, under another name is refused
    by the ledger unless ``override`` says why. ``before`` is what the tables were until now, where
    a question notices that they changed: that is never refused. Not ``is_sampled``, the samples by
    which copies are known stay those of an earlier version. ``who`` protects them is put on record
    with what is registered, where somebody does and says so.

    What happens at exhaustion is for the ledger to say: a custodian may change it. A declaration
    states what it was when the data was protected, so it may state any policy that the account has
    had; one that it never had is a mistake, and refused.
    """
    private = [one for one in opened.values() if not one.is_public]
    name = declaration.account or declaration.name
    if name not in ledger:
        terms = _opening(ledger, declaration, private, connection)
        return ledger.create(name, **terms, override=override, who=who)
    account = ledger[name]
    _check_terms(account, declaration)
    known = account.registered()
    can_sample = is_sampled and isinstance(connection, SamplingConnection)
    for one in private:
        registration, last = _registration(ledger, one), known.get(one.name)
        new = registration["types"].items() - (last.types.items() if last else set())
        if last and before is not None:  # a question only adds types, of columns that are new
            new = {(mark, type_) for mark, type_ in new if mark not in last.types}
        registration["types"] = dict(new)
        is_known = last is not None and last.version == registration["version"]
        is_sketched = last is not None and last.is_sketched
        if is_known and not new and (is_sketched or not can_sample):
            continue
        try:
            unit = declaration.unit_column(one.name)
            registration |= _content(ledger, one, connection, unit) if is_sampled else {}
        except DataError:
            if before is None:
                raise
        if before is not None and one.name in before:
            registration["identities"] += before[one.name].identities
        account.register(**registration, override=override, who=who)
    return account


def rehearsed(
    ledger: Ledger,
    declaration: Declaration,
    opened: Sources,
    connection: Connection,
    *,
    override: str | None = None,
    who: str | None = None,
) -> None:
    """Raise what :func:`attached` would raise for data that is protected now; write nothing."""
    private = [one for one in opened.values() if not one.is_public]
    name = declaration.account or declaration.name
    if name not in ledger:
        terms = _opening(ledger, declaration, private, connection)
        rehearse_account(ledger, name, **terms, override=override, who=who)
        return
    account = ledger[name]
    _check_terms(account, declaration)
    for one in private:
        content = _content(ledger, one, connection, declaration.unit_column(one.name))
        rehearse_source(account, **_registration(ledger, one), **content)


def _opening(
    ledger: Ledger, declaration: Declaration, private: list[DataSource], connection: Connection
) -> dict[str, Any]:
    """Return the terms of an account that a declaration opens, and the sources that it has."""
    return {
        "unit": declaration.unit,
        "neighbours": declaration.neighbours,
        "guarantee": declaration.guarantee,
        "policy": declaration.policy or "deny",
        "sources": [
            {
                **_registration(ledger, one),
                **_content(ledger, one, connection, declaration.unit_column(one.name)),
            }
            for one in private
        ],
    }


def _check_terms(account: Account, declaration: Declaration) -> None:
    for what, said, found in (
        ("unit", declaration.unit, account.unit),
        ("neighbours", declaration.neighbours, account.neighbours),
        ("guarantee", declaration.guarantee, account.guarantee),
    ):
        if said != found:
            raise ParameterError(
                f"account {account.name!r} has the {what} {found}, not {said}. What is "
                "protected, and how strongly, is fixed when data is first protected; an owner can "
                "widen the budget with: discreet ledger grant",
                parameter=what,
            )
    stated = declaration.policy
    if stated is not None and stated not in account.policies:
        raise ParameterError(
            f"account {account.name!r} has the policy {account.policy}, not {stated}. The ledger "
            "says what happens at exhaustion; a custodian can change it with: discreet ledger "
            "policy",
            parameter="policy",
        )


def _version(ledger: Ledger, source: DataSource) -> str:
    """Return a name of the data's version that tells nothing about the data.

    The digest of a frame would: whoever knows all rows but one could try that one. So the ledger's
    secret goes into it.
    """
    return ledger.fingerprint(source.version, domain="version")[:32]


def _registration(ledger: Ledger, source: DataSource) -> dict[str, Any]:
    return {
        "name": source.name,
        "version": _version(ledger, source),
        "identities": list(source.identities),
        "types": {_mark(ledger, source, c): t for c, t in source.columns if c in source.untyped},
    }


def _mark(ledger: Ledger, source: DataSource, column: str) -> str:
    """Return what stands for a column in the log, where its name is not shown."""
    return ledger.fingerprint(f"{source.name}\0{column.casefold()}", domain="column")


def _content(
    ledger: Ledger, source: DataSource, connection: Connection, unit: str | None
) -> dict[str, TableContent]:
    """Return samples of a table, chosen under the ledger's secret, if the connection takes any."""
    if not isinstance(connection, SamplingConnection):
        return {}
    salt = ledger.fingerprint("rows", domain="sampling")
    return {"content": connection.sample(source.name, unit=unit, salt=salt).reveal_without_noise()}
