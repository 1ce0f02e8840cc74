"""What a custodian declares about tables, kept as a small TOML file.

Everything in such a file is public: whoever asks questions may read it. Nothing in it is taken from
the data.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Final, final

from discreet._exact import refusal, whole
from discreet.errors import ParameterError
from discreet.ledger import Policy, check_policy
from discreet.privacy import Guarantee, Neighbours, Unit
from discreet.tables.declarations.column import DeclaredColumn, types_of
from discreet.tables.declarations.joining import join
from discreet.tables.declarations.names import check_names, is_same
from discreet.tables.declarations.owners import check_owners, read_owner
from discreet.tables.declarations.writing import write
from discreet.tables.engines.named import DEFAULT_ENGINE
from discreet.tables.model.bounds import MOST
from discreet.tables.model.catalog import Catalog, ForeignKey
from discreet.tables.model.resources import Resources
from discreet.tables.sources.source import DataSource

__all__ = ["Declaration", "DeclaredTable"]

_PASSWORD: Final = re.compile(r"://[^/@]*:[^/]*@|[?&]password=|\bpassword\s*=", re.IGNORECASE)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredTable:
    """Say where a table lies, and what is public about its columns; all others are private.

    ``unit`` is the column that says whose rows they are, where it is not called as in the
    declaration, or a :class:`ForeignKey`: the key of another table that has the unit.

    >>> DeclaredTable(source="people.parquet").columns
    {}
    """

    source: str | None = None
    columns: Mapping[str, DeclaredColumn] = field(default_factory=dict)
    unit: str | ForeignKey | None = None

    def __post_init__(self) -> None:
        check_names(self.columns, "column")

    def owned_by(self, said: str) -> "DeclaredTable":
        """Return the same with another column, or ``column = table.key``, that says whose it is.

        >>> DeclaredTable().owned_by("order_id = orders.id").unit
        ForeignKey(column='order_id', table='orders', key='id')
        """
        return replace(self, unit=read_owner(said, parameter="unit"))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """Say once, and in public, what is protected and what may be assumed.

    ``tables`` are protected and ``public`` ones are not. ``rows`` and ``groups`` limit how many
    rows and groups of one unit count, ``joined_rows`` how many a join may make before that;
    ``size`` is the number of units where that is public. A ``ledger`` is where its budget is kept,
    as an ``account`` of this name unless another one is named, which other tables about the same
    people may share; ``policy`` is what it does at exhaustion. An ``engine`` opens the tables and
    runs questions, and ``resources`` is what these may use.

    >>> people = Declaration(
    ...     name="people", unit=Unit.column("user_id"), ledger="budget.db",
    ...     guarantee=Guarantee(epsilon=3, delta=1e-6),
    ...     tables={"people": DeclaredTable(source="people.parquet", columns={
    ...         "region": DeclaredColumn(keys=("north", "south"))})})
    >>> print(people.to_toml())
    # Who is protected and what may be assumed. All of it is public: it may not come from the data.
    name = "people"
    ledger = "budget.db"
    unit = "user_id"
    neighbours = "add_remove"
    <BLANKLINE>
    [guarantee]
    epsilon = 3
    delta = 1e-06
    <BLANKLINE>
    [tables.people]
    source = "people.parquet"
    <BLANKLINE>
    [tables.people.columns]
    region = { keys = ["north", "south"] }
    <BLANKLINE>
    """

    name: str
    unit: Unit
    guarantee: Guarantee
    ledger: str | None = None
    engine: str = DEFAULT_ENGINE.name
    neighbours: Neighbours = Neighbours.add_remove
    tables: Mapping[str, DeclaredTable] = field(default_factory=dict)
    public: Mapping[str, DeclaredTable] = field(default_factory=dict)
    rows: int | None = None
    groups: int | None = None
    joined_rows: int | None = None
    size: int | None = None
    account: str | None = None
    policy: Policy | None = None
    resources: Resources = field(default_factory=Resources)

    def __post_init__(self) -> None:
        for said in ("name", "account"):
            if not (getattr(self, said) or self.name).strip():
                raise ParameterError(f"{said} must be a text that is not empty.", parameter=said)
        for name in ("rows", "groups", "joined_rows", "size"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, whole(getattr(self, name), name=name))
                if name != "size" and getattr(self, name) > MOST:
                    raise refusal(name, f"at most {MOST:,}", getattr(self, name))
        if self.policy is not None:
            check_policy(self.policy, self.unit)
        if not self.tables:
            raise ParameterError("tables must hold at least one table.", parameter="tables")
        check_names((*self.tables, *self.public), "table")
        check_owners(self)
        for table, declared in self.tables.items():
            for column, facts in declared.columns.items():
                if facts.keys is not None and is_same(column, self.unit_column(table)):
                    raise ParameterError(
                        f"keys of {column!r} cannot be public: the column says whose rows "
                        "they are.",
                        parameter=f"tables.{table}.columns.{column}.keys",
                    )

    def unit_column(self, table: str) -> str | None:
        """Return the column of a protected table that is the unit's, None where it has none.

        >>> Declaration(name="p", unit=Unit.column("id"), guarantee=Guarantee(epsilon=1),
        ...             tables={"p": DeclaredTable(unit="who")}).unit_column("p")
        'who'
        """
        own = self.tables[table].unit
        return None if isinstance(own, ForeignKey) else own or self.unit.name

    def to_toml(self, types: Mapping[str, Mapping[str, str]] | None = None) -> str:
        """Write the declaration; ``types`` of columns add comments that help to go on with it.

        >>> small = Declaration(name="p", unit=Unit.record(), guarantee=Guarantee(epsilon=1),
        ...                     tables={"p": DeclaredTable()})
        >>> print(small.to_toml({"p": {"age": "INTEGER"}}).splitlines()[-1])
        # age = { bounds = [0, 100] }  # INTEGER
        """
        return write(self, types or {})

    def save(
        self, path: str | PathLike[str], types: Mapping[str, Mapping[str, str]] | None = None
    ) -> None:
        """Write the declaration to a file, from which :func:`discreet.tables.load` reads it back.

        >>> import os, tempfile
        >>> small = Declaration(name="p", unit=Unit.record(), guarantee=Guarantee(epsilon=1),
        ...                     tables={"p": DeclaredTable()})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     small.save(os.path.join(folder, "p.toml"))
        ...     os.listdir(folder)
        ['p.toml']
        """
        if self.ledger is not None and _PASSWORD.search(self.ledger):
            raise ParameterError(
                "the address of the ledger has a password in it, and the file is public. Keep "
                "passwords in ~/.pgpass or in PGPASSWORD.",
                parameter="ledger",
            )
        try:
            Path(path).write_text(self.to_toml(types), encoding="utf-8", newline="\n")
        except OSError as error:
            told = f"{Path(path).name} could not be written ({error.strerror})."
            raise ParameterError(told, parameter="path") from None

    def catalog(self, columns: Mapping[str, Mapping[str, str]]) -> Catalog:
        """Join what is declared with the types that the sources have, by table and column.

        A declared column that is gone is an error, since a question might have relied on it. A
        column that nobody declared is private: it has neither public bounds nor public keys. The
        units of all protected tables must have one type, or be integers: others could not be
        compared exactly. So must a foreign key and the key that it means.

        >>> small = Declaration(name="p", unit=Unit.record(), guarantee=Guarantee(epsilon=1),
        ...                     tables={"p": DeclaredTable()})
        >>> small.catalog({"p": {"age": "INTEGER"}}).tables[0].columns[0].bounds is None
        True
        """
        return join(self, columns)

    @property
    def types(self) -> dict[str, dict[str, str]]:
        """The types that it gives, by table and column."""
        tables = {**self.tables, **self.public}
        return types_of({name: table.columns for name, table in tables.items()})

    def pinned(self, sources: Mapping[str, DataSource]) -> "Declaration":
        """Write down the types of columns that have none: of CSV files, and of Python objects.

        Otherwise they would be guessed anew from the rows each time, and one row could change them.

        >>> small = Declaration(name="p", unit=Unit.record(), guarantee=Guarantee(epsilon=1),
        ...                     tables={"p": DeclaredTable(source="p.csv")})
        >>> found = DataSource(name="p", kind="csv", columns=(("age", "BIGINT"),), version="1",
        ...                    identities=("/data/p.csv",), untyped=("age",))
        >>> small.pinned({"p": found}).types
        {'p': {'age': 'BIGINT'}}
        """

        def typed(name: str, table: DeclaredTable) -> DeclaredTable:
            known = {column.casefold(): column for column in table.columns}
            columns = dict(table.columns)
            for column, type_ in sources[name].columns:
                if column in sources[name].untyped:
                    told = known.get(column.casefold(), column)
                    columns[told] = replace(columns.get(told, DeclaredColumn()), type=type_)
            return replace(table, columns=columns)

        return self._with_tables(typed)

    def relative_to(self, folder: Path) -> "Declaration":
        """Return a declaration with the places that lie under ``folder`` relative to it.

        >>> small = Declaration(name="p", unit=Unit.record(), guarantee=Guarantee(epsilon=1),
        ...                     tables={"p": DeclaredTable(source="/data/2026/p.csv")})
        >>> small.relative_to(Path("/data")).tables["p"].source
        '2026/p.csv'
        """

        def near(place: str | None) -> str | None:
            if place is None or "://" in place:
                return place
            whole, root = Path(place).absolute(), folder.absolute()
            return str(whole.relative_to(root)) if whole.is_relative_to(root) else str(whole)

        moved = self._with_tables(lambda _, table: replace(table, source=near(table.source)))
        return replace(moved, ledger=near(self.ledger))

    def _with_tables(self, make: Callable[[str, DeclaredTable], DeclaredTable]) -> "Declaration":
        return replace(
            self,
            tables={name: make(name, table) for name, table in self.tables.items()},
            public={name: make(name, table) for name, table in self.public.items()},
        )
