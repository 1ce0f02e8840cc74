"""Tables and their account: which sources are registered, in which versions."""

from typing import Any

from discreet.errors import DataError, ParameterError
from discreet.ledger import Account, Ledger, TableContent
from discreet.tables.declarations.declaration import Declaration
from discreet.tables.engines.protocol import Engine, SamplingEngine
from discreet.tables.engines.sources import Sources
from discreet.tables.sources.source import DataSource

__all__ = ["attached"]


def attached(
    ledger: Ledger,
    declaration: Declaration,
    opened: Sources,
    engine: Engine,
    *,
    before: Sources | None = None,
    is_sampled: bool = True,
    override: str | None = None,
) -> Account:
    """Return the account of a declaration, made where there is none, with its sources registered.

    New rows, new columns and erased people make a new version of a source; the account and what
    was spent stay. Whoever protects the same data, or a copy of it, under another name is refused
    by the ledger unless ``override`` says why. ``before`` is what the tables were until now, where
    a question notices that they changed: that is never refused. Not ``is_sampled``, the samples by
    which copies are known stay those of an earlier version.
    """
    private = [one for one in opened.values() if not one.is_public]
    name, unit = declaration.account or declaration.name, declaration.unit.name
    if name not in ledger:
        return ledger.create(
            name,
            unit=declaration.unit,
            neighbours=declaration.neighbours,
            guarantee=declaration.guarantee,
            sources=[
                {**_registration(ledger, one), **_content(ledger, one, engine, unit)}
                for one in private
            ],
            override=override,
        )
    account = ledger[name]
    _check_terms(account, declaration)
    known, sketched = account.sources(), account.sketched()
    can_sample = is_sampled and isinstance(engine, SamplingEngine)
    for one in private:
        registration = _registration(ledger, one)
        is_known = known.get(one.name) == registration["version"]
        if is_known and (one.name in sketched or not can_sample):
            continue
        try:
            registration |= _content(ledger, one, engine, unit) if is_sampled else {}
        except DataError:
            if before is None:
                raise
        if before is not None and one.name in before:
            registration["identities"] += before[one.name].identities
        account.register(**registration, override=override)
    return account


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
    }


def _content(
    ledger: Ledger, source: DataSource, engine: Engine, unit: str | None
) -> dict[str, TableContent]:
    """Return samples of a table, chosen under the ledger's secret, if the engine takes any."""
    if not isinstance(engine, SamplingEngine):
        return {}
    salt = ledger.fingerprint("rows", domain="sampling")
    return {"content": engine.sample(source.name, unit=unit, salt=salt).reveal_without_noise()}
