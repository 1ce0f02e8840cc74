"""What tools may know of a dataset: names and types, all of them public."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

from discreet.service.wire.values.types import TYPES, declared_type

__all__ = ["DatasetMetadata"]

_FIRST_OID: Final = 16_384  # below it are PostgreSQL's own objects
_OWNER: Final = 10
_USER: Final = 16_383
_CATALOG, _PUBLIC, _SCHEMA = 11, 2200, 13_000  # the oids of the three schemas
_HEAP: Final = 2

Row = Mapping[str, Any]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetMetadata:
    """A dataset as its catalogue shows it, and what else its reader sees.

    ``tables`` has the columns of every table, with the names of their types in DuckDB.

    >>> shown = DatasetMetadata(dataset="people", who="ana", datasets=("people",),
    ...                         tables={"people": {"age": "BIGINT"}})
    >>> [row["relname"] for row in shown.rows()["pg_catalog.pg_class"]]
    ['people']
    """

    dataset: str
    who: str
    datasets: tuple[str, ...]
    tables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def rows(self) -> dict[str, list[Row]]:
        """Return what the relations of the catalogue hold: columns left out are empty or zero."""
        filled = {**self._server(), **self._types(), **self._relations(), **self._standard()}
        return {name: list(rows) for name, rows in filled.items()}

    def oids(self) -> dict[str, int]:
        """Return the number of each table: the same in every process, whatever else is there."""
        found: dict[str, int] = {}
        for name in sorted(self.tables):
            oid = _FIRST_OID + zlib.crc32(name.encode()) % (1 << 30)
            while oid in found.values():
                oid += 1
            found[name] = oid
        return found

    def _server(self) -> dict[str, list[Row]]:
        roles: list[Row] = [
            {"oid": _OWNER, "rolname": "discreet", "rolconnlimit": -1},
            {"oid": _USER, "rolname": self.who, "rolcanlogin": True, "rolconnlimit": -1},
        ]
        schemas = {_CATALOG: "pg_catalog", _PUBLIC: "public", _SCHEMA: "information_schema"}
        return {
            "pg_catalog.pg_roles": roles,
            "pg_catalog.pg_user": [{"usename": self.who, "usesysid": _USER}],
            "pg_catalog.pg_namespace": [
                {"oid": oid, "nspname": name, "nspowner": _OWNER} for oid, name in schemas.items()
            ],
            "pg_catalog.pg_database": [
                {
                    "oid": _FIRST_OID + i, "datname": name, "datdba": _OWNER, "encoding": 6,
                    "datlocprovider": "c", "datallowconn": True, "datconnlimit": -1,
                    "datcollate": "C.UTF-8", "datctype": "C.UTF-8", "dattablespace": 1663,
                }
                for i, name in enumerate(sorted(self.datasets))
            ],
            "pg_catalog.pg_am": [{"oid": _HEAP, "amname": "heap", "amtype": "t"}],
            "pg_catalog.pg_tablespace": [
                {"oid": 1663, "spcname": "pg_default", "spcowner": _OWNER}
            ],
            "pg_catalog.pg_settings": [
                {"name": "max_index_keys", "setting": "32"},
                {"name": "server_version_num", "setting": "160000"},
            ],
        }  # fmt: skip

    def _types(self) -> dict[str, list[Row]]:
        return {
            "pg_catalog.pg_type": [
                {
                    "oid": one.oid, "typname": one.name, "typnamespace": _CATALOG,
                    "typowner": _OWNER, "typlen": one.size, "typbyval": 0 < one.size <= 8,
                    "typtype": "b", "typcategory": one.category, "typisdefined": True,
                    "typdelim": ",", "typelem": one.element, "typarray": one.array,
                    "typinput": "array_in" if one.category == "A" else f"{one.name}in",
                    "typtypmod": -1, "typcollation": 100 if one.category == "S" else 0,
                }
                for one in TYPES
            ]
        }  # fmt: skip

    def _relations(self) -> dict[str, list[Row]]:
        oids = self.oids()
        classes: list[Row] = [
            {
                "oid": oids[table], "relname": table, "relnamespace": _PUBLIC, "relkind": "r",
                "relowner": _OWNER, "relam": _HEAP, "relnatts": len(columns), "reltuples": -1,
                "relpersistence": "p", "relreplident": "d", "relispopulated": True,
            }
            for table, columns in self.tables.items()
        ]  # fmt: skip
        attributes: list[Row] = [
            {
                "attrelid": oids[table], "attname": column, "attnum": place, "atttypmod": -1,
                "atttypid": type_.oid, "attlen": type_.size, "attstattarget": -1,
                "attcollation": 100 if type_.category == "S" else 0, "attislocal": True,
                "attidentity": "", "attgenerated": "", "attcompression": "",
                "attstorage": "p" if type_.size > 0 else "x",
            }
            for table, columns in self.tables.items()
            for place, (column, type_) in enumerate(_typed(columns), start=1)
        ]  # fmt: skip
        return {"pg_catalog.pg_class": classes, "pg_catalog.pg_attribute": attributes}

    def _standard(self) -> dict[str, list[Row]]:
        place = {"table_catalog": self.dataset, "table_schema": "public"}
        schemas = ("pg_catalog", "public", "information_schema")
        return {
            "pg_catalog.pg_tables": [
                {"schemaname": "public", "tablename": table, "tableowner": "discreet"}
                for table in self.tables
            ],
            "information_schema.schemata": [
                {"catalog_name": self.dataset, "schema_name": name, "schema_owner": "discreet"}
                for name in schemas
            ],
            "information_schema.information_schema_catalog_name": [{"catalog_name": self.dataset}],
            "information_schema.enabled_roles": [{"role_name": self.who}],
            "information_schema.tables": [
                {**place, "table_name": table, "table_type": "BASE TABLE",
                 "is_insertable_into": "NO", "is_typed": "NO"}
                for table in self.tables
            ],
            "information_schema.columns": [
                {**place, "table_name": table, "column_name": column, "ordinal_position": i,
                 "is_nullable": "YES", "data_type": type_.shown, "udt_catalog": self.dataset,
                 "udt_schema": "pg_catalog", "udt_name": type_.name, "is_identity": "NO",
                 "is_generated": "NEVER", "is_updatable": "NO"}
                for table, columns in self.tables.items()
                for i, (column, type_) in enumerate(_typed(columns), start=1)
            ],
        }  # fmt: skip


def _typed(columns: Mapping[str, str]) -> list[tuple[str, Any]]:
    return [(name, declared_type(type_)) for name, type_ in columns.items()]
