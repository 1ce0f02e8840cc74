"""Put declarations and ledgers together: which account, which sources, which versions."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from discreet.errors import ParameterError
from discreet.ledger import Account, Ledger
from discreet.privacy import Guarantee, Neighbours, Unit
from discreet.tables.declarations.declaration import Declaration, DeclaredColumn, DeclaredTable
from discreet.tables.engines.sources import Sources
from discreet.tables.sources.source import DataSource

__all__ = ["attached", "declared", "pinned", "relative", "types_of", "version_of"]


def declared(
    opened: Sources,
    *,
    name: str,
    unit: Unit,
    guarantee: Guarantee,
    neighbours: Neighbours | str,
    columns: Mapping[str, Any] | None,
    limits: Mapping[str, int | None],
    ledger: str | None,
) -> Declaration:
    """Write down what a custodian said in a call."""
    said = dict(columns or {})
    unknown = sorted(set(said) - set(opened))
    if unknown:
        raise ParameterError(
            f"columns speaks of table {unknown[0]!r}; the tables are {', '.join(opened)}.",
            parameter="columns",
        )

    def table(one: DataSource) -> DeclaredTable:
        facts = {column: _column(given) for column, given in (said.get(one.name) or {}).items()}
        where = one.location
        if isinstance(where, tuple):
            where = where[0] if len(where) == 1 else None
        return DeclaredTable(source=where, columns=facts)

    said_so = Declaration(
        name=name,
        unit=unit,
        guarantee=guarantee,
        ledger=ledger,
        engine=opened.engine.name,
        neighbours=Neighbours(neighbours),
        tables={key: table(one) for key, one in opened.items() if not one.is_public},
        public={key: table(one) for key, one in opened.items() if one.is_public},
        rows=limits["rows"],
        groups=limits["groups"],
        size=limits["size"],
    )
    return pinned(said_so, opened)


def pinned(declaration: Declaration, opened: Sources) -> Declaration:
    """Write down the types of columns of CSV files, which have none of their own.

    Otherwise they would be guessed anew from the rows each time, and one row could change them.
    """

    def typed(name: str, table: DeclaredTable) -> DeclaredTable:
        if opened[name].is_typed:
            return table
        known = {column.casefold(): facts for column, facts in table.columns.items()}
        columns = {
            column: replace(known.get(column.casefold(), DeclaredColumn()), type=type_)
            for column, type_ in opened[name].columns
        }
        return replace(table, columns=columns)

    return replace(
        declaration,
        tables={name: typed(name, one) for name, one in declaration.tables.items()},
        public={name: typed(name, one) for name, one in declaration.public.items()},
    )


def types_of(declaration: Declaration) -> dict[str, dict[str, str]]:
    """Return the types that a declaration gives, by table and column."""
    tables = {**declaration.tables, **declaration.public}
    return {
        name: {column: facts.type for column, facts in one.columns.items() if facts.type}
        for name, one in tables.items()
    }


def relative(declaration: Declaration, folder: Path) -> Declaration:
    """Return a declaration with the places that lie under ``folder`` relative to it."""

    def near(place: str | None) -> str | None:
        if place is None or "://" in place:
            return place
        whole = Path(place).absolute()
        root = folder.absolute()
        return str(whole.relative_to(root)) if whole.is_relative_to(root) else str(whole)

    def moved(tables: Mapping[str, DeclaredTable]) -> dict[str, DeclaredTable]:
        return {name: replace(one, source=near(one.source)) for name, one in tables.items()}

    return replace(
        declaration,
        ledger=near(declaration.ledger),
        tables=moved(declaration.tables),
        public=moved(declaration.public),
    )


def _column(given: object) -> DeclaredColumn:
    if isinstance(given, DeclaredColumn):
        return given
    if not isinstance(given, Mapping) or set(given) - {"bounds", "keys", "type"}:
        raise ParameterError(
            'a column is declared as {"bounds": (low, high)} or {"keys": [...]}.',
            parameter="columns",
        )
    bounds, keys = given.get("bounds"), given.get("keys")
    return DeclaredColumn(
        bounds=None if bounds in (None, "infer") else tuple(bounds),
        keys=None if keys is None or keys == "select" else tuple(keys),
        type=given.get("type"),
    )


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
        if known.get(one.name) != version_of(ledger, one):
            account.register(**_registration(ledger, one))
    return account


def version_of(ledger: Ledger, source: DataSource) -> str:
    """Return a name of the data's version that tells nothing about the data.

    The digest of a frame would: whoever knows all rows but one could try that one. So the ledger's
    secret goes into it.
    """
    return ledger._fingerprint("version", source.version)[:32]


def _registration(ledger: Ledger, source: DataSource) -> dict[str, Any]:
    return {
        "name": source.name,
        "version": version_of(ledger, source),
        "identities": list(source.identities),
    }
