"""Tables and their account: which sources are registered, in which versions."""

from typing import Any

from discreet.errors import ParameterError
from discreet.ledger import Account, Ledger
from discreet.tables.declarations.declaration import Declaration
from discreet.tables.engines.sources import Sources
from discreet.tables.sources.source import DataSource

__all__ = ["attached"]


def attached(ledger: Ledger, declaration: Declaration, opened: Sources) -> Account:
    """Return the account of a declaration, made where there is none, with its sources registered.

    New rows, new columns and erased people make a new version of a source; the account and what
    was spent stay. Whoever protects the same data under another name is refused by the ledger.
    """
    private = [one for one in opened.values() if not one.is_public]
    if declaration.name not in ledger:
        return ledger.create(
            declaration.name,
            unit=declaration.unit,
            neighbours=declaration.neighbours,
            guarantee=declaration.guarantee,
            sources=[_registration(ledger, one) for one in private],
        )
    account = ledger[declaration.name]
    for what, said, found in (
        ("unit", declaration.unit, account.unit),
        ("neighbours", declaration.neighbours, account.neighbours),
        ("guarantee", declaration.guarantee, account.guarantee),
    ):
        if said != found:
            raise ParameterError(
                f"account {declaration.name!r} has the {what} {found}, not {said}. What is "
                "protected, and how strongly, is fixed when data is first protected; an owner can "
                "widen the budget with: discreet ledger grant",
                parameter=what,
            )
    known = account.sources()
    for one in private:
        if known.get(one.name) != _version(ledger, one):
            account.register(**_registration(ledger, one))
    return account


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
