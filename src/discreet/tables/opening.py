"""Protect tables, and open what was protected before."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from discreet.errors import ParameterError
from discreet.ledger import Ledger, Policy
from discreet.privacy import Guarantee, Neighbours, Unit
from discreet.tables.declarations.column import DeclaredColumn, types_of
from discreet.tables.declarations.declaration import Declaration, DeclaredTable
from discreet.tables.declarations.owners import read_owner
from discreet.tables.declarations.reading import load
from discreet.tables.declarations.registration import attached, recalled
from discreet.tables.engines.named import DEFAULT_ENGINE, engine_named
from discreet.tables.engines.protocol import Engine, limited
from discreet.tables.engines.sources import Sources, open_sources
from discreet.tables.model.catalog import ForeignKey
from discreet.tables.model.resources import Resources
from discreet.tables.protected import Protected
from discreet.tables.sources.source import DataSource

__all__ = ["open_tables", "protect"]


def protect(
    source: object,
    *,
    name: str,
    unit: Unit | str,
    guarantee: Guarantee,
    ledger: "Ledger | str | PathLike[str]" = "budget.db",
    neighbours: Neighbours | str = Neighbours.add_remove,
    public: Mapping[str, object] | None = None,
    columns: Mapping[str, Any] | None = None,
    units: Mapping[str, str | ForeignKey] | None = None,
    rows: int | None = None,
    groups: int | None = None,
    joined_rows: int | None = None,
    size: int | None = None,
    who: str | None = None,
    purpose: str = "analysis",
    engine: Engine = DEFAULT_ENGINE,
    account: str | None = None,
    policy: Policy | None = None,
    override: str | None = None,
    resources: Resources | None = None,
) -> Protected:
    """Protect one table, or several about the same people, with one budget.

    ``source`` is a Parquet or CSV file (or several), an Arrow, pandas or Polars frame, a table of a
    DuckDB database, a dict of arrays; or a dict of such sources by name. ``unit`` names the column
    that says whose row it is; ``units`` says it of tables that have another one, as in
    ``{"orders": "customer"}``, or a foreign key of a table that has it, as in
    ``{"items": "order_id = orders.id"}`` (:class:`ForeignKey`). The budget is an account of that
    ``name`` in the ``ledger``; where it
    exists already it is used on, with what is left of it. Tables about the same people that are
    protected by themselves share a budget by naming the same ``account``. A copy of data that has
    a budget in this ledger is refused another one, also if it was moved, written in another
    format, cut or extended; a custodian who knows that they are other people says why with
    ``override``, which stays on record. ``policy`` is what happens at exhaustion: ``"deny"``, which
    is usual, ``"degrade"``, which offers the least noise that still fits, or ``"wait"``, for units
    that have a period; a custodian may change it later, and then what the ledger says counts.
    ``who`` asks is on record with all that is paid, and where it is said also as who protected the
    data. A weak guarantee (epsilon above 10, or a delta that is not far below 1 / ``size``) is
    taken with a :class:`PrivacyWarning`.

    What else is declared is public, and must not be read off the data: ``columns`` gives bounds and
    keys, as in ``{"income": {"bounds": (0, 200_000)}, "region": {"keys": ["north", "south"]}}``
    (by table first, where there are several), and the ``type`` in SQL of columns that have none, in
    CSV files and among Python objects; ``rows`` and ``groups`` limit how many rows and
    groups of one unit count, and ``joined_rows`` how many a join may make of one unit's (a million,
    if not said: of a unit that could have more, rows chosen at random are joined); ``size`` is the
    number of units, if that is public; ``public`` are tables that are about nobody. What is not
    declared is private, and found out privately where it is needed. The ``engine`` opens the tables
    and runs the questions, and ``resources`` limits what these may use of the machine.

    >>> import numpy as np, os, tempfile
    >>> from discreet.privacy import Guarantee
    >>> folder = tempfile.TemporaryDirectory()
    >>> people = {"person": np.arange(1000), "age": np.arange(1000) % 80}
    >>> T = protect(people, name="people", unit="person", rows=1,
    ...             guarantee=Guarantee(epsilon=3, delta=1e-6),
    ...             ledger=os.path.join(folder.name, "budget.db"))
    >>> T.quote("SELECT COUNT(*) AS n FROM people", epsilon=1).expected[0].words
    'within 3'
    >>> answer = T.sql("SELECT COUNT(*) AS n FROM people", epsilon=1)
    >>> abs(answer.value - 1000) < 25
    True
    >>> T.close(); folder.cleanup()
    """
    is_several = _is_several(source)
    tables = dict(source) if is_several else {name: source}  # type: ignore[call-overload]
    by_table = (columns or {}) if is_several else {name: columns}
    said = _said(by_table, [*tables, *(public or {})])
    opened = open_sources(
        tables,
        public=public,
        types=types_of(said),
        engine=limited(engine, resources or Resources()),
    )
    owners = _owners(units or {}, tables)
    declared = {
        table: DeclaredTable(
            source=_location(one), columns=said.get(table, {}), unit=owners.get(table)
        )
        for table, one in opened.items()
    }
    declaration = Declaration(
        name=name,
        unit=Unit.of(unit),
        guarantee=guarantee,
        ledger=None if isinstance(ledger, Ledger) else fspath(ledger),
        engine=engine.name,
        neighbours=Neighbours(neighbours),
        tables={table: one for table, one in declared.items() if table in tables},
        public={table: one for table, one in declared.items() if table not in tables},
        rows=rows,
        groups=groups,
        joined_rows=joined_rows,
        size=size,
        account=account,
        policy=policy,
        resources=resources or Resources(),
    )
    guarantee.warn_if_weak(n=size, stacklevel=2)
    return _protected(declaration, opened, ledger, who=who, purpose=purpose, override=override)


def _is_several(source: object) -> bool:
    """Tell a dict of sources from a dict of columns."""
    if not isinstance(source, Mapping) or not source:
        return False
    return not all(
        hasattr(column, "dtype") or isinstance(column, list) for column in source.values()
    )


def _said(columns: Mapping[str, Any], known: list[str]) -> dict[str, dict[str, DeclaredColumn]]:
    """Return what was said about columns, by table."""
    unknown = sorted(set(columns) - set(known))
    if unknown:
        raise ParameterError(
            f"columns speaks of table {unknown[0]!r}; the tables are {', '.join(known)}.",
            parameter="columns",
        )
    return {
        table: {column: _column(given) for column, given in (told or {}).items()}
        for table, told in columns.items()
    }


def _owners(
    units: Mapping[str, str | ForeignKey], tables: Mapping[str, object]
) -> dict[str, str | ForeignKey]:
    """Return what was said of whose rows tables have."""
    unknown = sorted(set(units) - set(tables))
    if unknown:
        raise ParameterError(
            f"units speaks of table {unknown[0]!r}; protected are {', '.join(tables)}.",
            parameter="units",
        )
    return {table: read_owner(one, parameter="units") for table, one in units.items()}


def _column(given: object) -> DeclaredColumn:
    if isinstance(given, DeclaredColumn):
        return given
    if not isinstance(given, Mapping) or set(given) - {"bounds", "keys", "type", "total"}:
        raise ParameterError(
            'a column is declared as {"bounds": (low, high)}, also with "total": limit, or as '
            '{"keys": [...]}.',
            parameter="columns",
        )
    bounds, keys = given.get("bounds"), given.get("keys")
    return DeclaredColumn(
        bounds=None if bounds in (None, "infer") else tuple(bounds),
        keys=None if keys is None or keys == "select" else tuple(keys),
        type=given.get("type"),
        total=given.get("total"),
    )


def _location(source: DataSource) -> str | None:
    """Return where a table is, if that is one place that a declaration can name."""
    where = source.location
    if isinstance(where, tuple):
        return where[0] if len(where) == 1 else None
    return where


def open_tables(
    path: "str | PathLike[str]",
    *,
    ledger: "Ledger | str | PathLike[str] | None" = None,
    sources: Mapping[str, object] | None = None,
    who: str | None = None,
    purpose: str = "analysis",
    engine: Engine | None = None,
    override: str | None = None,
    resources: Resources | None = None,
) -> Protected:
    """Open what was protected before, from the declaration that :meth:`Protected.save` wrote.

    Places in it are relative to the file. ``sources`` replaces where tables come from, and gives
    frames, which no file can. ``engine`` gives an engine with other settings than the usual ones,
    ``resources`` other limits than the declared ones. ``override`` is as in :func:`protect`, and
    puts ``who`` gives it on record; who only opens tables to ask did not change the data, so a new
    version of it is registered in nobody's name. Where a custodian has changed the policy since the
    declaration was written, what the ledger says counts.

    >>> open_tables("nowhere.toml")
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: ...
    """
    declaration, folder = load(Path(path)), Path(path).parent
    declaration = replace(declaration, resources=resources or declaration.resources)
    given = {
        table: (sources or {}).get(table, _beside(folder, facts.source))
        for table, facts in {**declaration.tables, **declaration.public}.items()
    }
    missing = [table for table, where in given.items() if where is None]
    if missing:
        raise ParameterError(
            f"the declaration does not say where table {missing[0]!r} is. Give it with "
            f"sources={{{missing[0]!r}: ...}}.",
            parameter="sources",
        )
    opened = open_sources(
        {table: given[table] for table in declaration.tables},
        public={table: given[table] for table in declaration.public},
        types=declaration.types,
        engine=limited(engine or engine_named(declaration.engine), declaration.resources),
    )
    place = ledger if ledger is not None else _beside(folder, declaration.ledger)
    if place is None:
        raise ParameterError("say where the ledger is, with ledger=.", parameter="ledger")
    return _protected(
        declaration, opened, place, who=who, purpose=purpose, override=override,
        is_custodian=override is not None,
    )  # fmt: skip


def _beside(folder: Path, place: str | None) -> str | None:
    """Return a place that a declaration names, from where the declaration is."""
    return place if place is None or "://" in place else str(folder / place)


def _is_there(ledger: "str | PathLike[str]") -> bool:
    return "://" in fspath(ledger) or Path(ledger).exists()


def _protected(
    declaration: Declaration,
    opened: Sources,
    ledger: "Ledger | str | PathLike[str]",
    *,
    who: str | None,
    purpose: str,
    override: str | None,
    is_custodian: bool = True,
) -> Protected:
    own = not isinstance(ledger, Ledger)
    if not isinstance(ledger, Ledger) and not _is_there(ledger):
        declaration.pinned(opened).catalog(opened.columns)  # a mistake leaves no ledger behind
    book = Ledger.open(ledger) if not isinstance(ledger, Ledger) else ledger
    with ExitStack() as stack:
        if own:
            stack.callback(book.close)
        opened = recalled(book, declaration, opened)
        declaration = declaration.pinned(opened)
        catalog = declaration.catalog(opened.columns)
        run = opened.connected()
        stack.callback(run.close)
        by = who if is_custodian else None
        account = attached(book, declaration, opened, run, override=override, who=by)
        protected = Protected(
            declaration, catalog, opened, account, run, who=who, purpose=purpose, owns_ledger=own
        )
        stack.pop_all()
        return protected
