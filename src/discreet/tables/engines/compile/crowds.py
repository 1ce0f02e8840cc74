"""Rows of crowded units, cut before they are joined: see ``most`` of ``Select``."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from discreet.tables.engines.compile.column_types import Scope
from discreet.tables.engines.compile.dialect import Dialect, Hashed
from discreet.tables.engines.compile.scalars import scalar_sql
from discreet.tables.engines.compile.text import column_list, identifier, number, quoted
from discreet.tables.model.relation import UNIT, Joined, Rows, Scan, Select, UnionRows, partner_keys

__all__ = ["cut"]

# No table has a quote in its name, so none is hidden.
_BUSY, _CROWDS = quoted('busy"'), quoted('crowds"')
_FEW, _MANY = 1 << 14, 1 << 16  # buckets; the fewer fit into a processor's own cache
_FEW_DO: Final = 10**6  # joined rows of a unit from which on few buckets tell enough
# Of a root. Those of different whole numbers up to 10**9 are further apart, and so are quotients.
_ROUNDING: Final = 1 + 1e-12
_COUNT: Final = "CAST(COUNT(*) AS DOUBLE) AS n"


def cut(
    parts: tuple[Joined, ...], texts: Sequence[str], most: int, dialect: Dialect, scope: Scope
) -> tuple[str, list[str]]:
    """Return a WITH clause, and SELECTs of the parts in which no unit is too crowded.

    ``texts`` are the parts' own SELECTs, and ``scope`` has the types of their columns.
    """
    steps, whole = [], list(texts)
    most = max(1, most >> sum(part.kind == "full" for part in parts))
    for index, part in enumerate(parts):
        if not _is_scan(part.rows):
            # It is read three times: joins inside joins would be carried out over and over.
            name = quoted(f'{part.alias}"')
            steps.append(f"{name} AS MATERIALIZED ({texts[index]})")
            whole[index] = f"SELECT * FROM {name}"  # noqa: S608
    units = [index for index, part in enumerate(parts) if UNIT in part.rows.names]
    public = {
        index: _partners(parts, whole, index, dialect, scope)
        for index in range(len(parts))
        if index not in units
    }
    # Rows before a right or full join are not needed for a row of it.
    ids = "FULL" if any(part.kind in ("right", "full") for part in parts) else "LEFT"
    # All parts have it in one form, or it could not be compared.
    unit = Hashed("r.unit", scope[parts[units[0]].alias][UNIT])
    bucket = _bucket(most, dialect.hash([unit]))
    own = (whole, units, public, ids, most, bucket)
    steps.append(f"{_BUSY} AS MATERIALIZED ({_busy(*own)})")
    steps.append(f"{_CROWDS} AS MATERIALIZED ({_crowds(*own)})")
    for index in units:
        whole[index] = _kept(whole[index], scope[parts[index].alias], index, dialect)
    return f"WITH {', '.join(steps)} ", whole


def _is_scan(rows: Rows) -> bool:
    """Whether rows are those of one table or of several, perhaps not all of them."""
    if isinstance(rows, UnionRows):
        return all(map(_is_scan, rows.parts))
    if not isinstance(rows, Select):
        return False
    if isinstance(rows.source, Scan):
        return True
    return len(rows.source) == 1 and _is_scan(rows.source[0].rows)


def _busy(
    texts: Sequence[str],
    units: list[int],
    public: Mapping[int, str],
    ids: str,
    most: int,
    bucket: str,
) -> str:
    """Write the buckets of units that could have too many rows together: nearly always none.

    Counting a few buckets takes much less than counting the rows of every unit.
    """
    counts = {
        index: f"SELECT {bucket} AS id, {_COUNT} FROM ({texts[index]}) AS r GROUP BY 1"  # noqa: S608
        for index in units
    }
    source, id_, sizes = _sizes(counts, public, ids)
    return f"SELECT {id_} AS id FROM {source} WHERE {' * '.join(sizes.values())} > {number(most)}"  # noqa: S608


def _crowds(
    texts: Sequence[str],
    units: list[int],
    public: Mapping[int, str],
    ids: str,
    most: int,
    bucket: str,
) -> str:
    """Write the units that could have too many rows, with how many to keep in each part."""
    busy = f"WHERE {bucket} IN (SELECT id FROM {_BUSY})"  # noqa: S608
    counts = {
        index: f"SELECT unit AS id, {_COUNT} FROM ({texts[index]}) AS r {busy} GROUP BY unit"  # noqa: S608
        for index in units
    }
    source, id_, sizes = _sizes(counts, public, ids)
    root = _root(most, [sizes[index] for index in public], len(units))
    caps = []
    for index in units:
        others = " * ".join(size for other, size in sizes.items() if other != index)
        share = f"FLOOR({number(most)} / ({others}))"
        caps.append(f"GREATEST({root}, {share}) AS c{index}")
    return (
        f"SELECT {column_list([f'{id_} AS unit', *caps])} FROM {source} "  # noqa: S608
        f"WHERE {' * '.join(sizes.values())} > {number(most)}"
    )


def _bucket(most: int, rank: str) -> str:
    """Write the bucket of a unit: the first bits of a hash of 64."""
    width = 2.0**64 / (_FEW if most >= _FEW_DO else _MANY)
    return f"CAST(FLOOR({rank} / {number(width)}) AS INTEGER)"


def _sizes(
    counts: Mapping[int, str], public: Mapping[int, str], ids: str
) -> tuple[str, str, dict[int, str]]:
    """Put counts of the same id side by side; return that, the id, and each part's count.

    The ids are those of the first part (LEFT), or of any (FULL). Parts that are the same rows, of a
    table that is joined with itself, are counted once.
    """
    named = {text: f"c{index}" for index, text in reversed([*counts.items()])}
    once = dict.fromkeys(counts.values())
    first, *others = (f"({text}) AS {named[text]}" for text in once)
    id_, *rights = (f"{named[text]}.id" for text in once)
    items = [first]
    for other, right in zip(others, rights, strict=True):
        items.append(f"{ids} JOIN {other} ON {id_} = {right}")
        id_ = f"COALESCE({id_}, {right})" if ids == "FULL" else id_
    items += [f"CROSS JOIN {text} AS c{index}" for index, text in public.items()]
    names = {index: named[text] for index, text in counts.items()}
    names |= {index: f"c{index}" for index in public}
    sizes = {index: f"COALESCE({name}.n, 1e0)" for index, name in names.items()}
    return " ".join(items), id_, sizes


def _partners(
    parts: tuple[Joined, ...], texts: Sequence[str], index: int, dialect: Dialect, scope: Scope
) -> str:
    """Write how many partners rows can have in a public part, NULL if none."""
    keys = [scalar_sql(node, dialect, scope) for node in partner_keys(parts, index)]
    by = f" GROUP BY {column_list(keys)}" if keys else ""
    count = f"SELECT COUNT(*) AS n FROM ({texts[index]}) AS {parts[index].alias}{by}"  # noqa: S608
    most = "CAST(NULLIF(MAX(n), 0) AS DOUBLE)"
    return f"(SELECT {most} AS n FROM ({count}) AS r)"  # noqa: S608


def _root(most: int, public: Sequence[str], count: int) -> str:
    """Write the root that all parts may have, at least 1."""
    if not public:
        return number(max(1, math.floor(most ** (1 / count) * _ROUNDING)))
    left = f"FLOOR({number(most)} / ({' * '.join(public)}))"
    return f"GREATEST(1e0, FLOOR(POWER({left}, {number(1 / count)}) * {number(_ROUNDING)}))"


def _kept(text: str, types: Mapping[str, str], index: int, dialect: Dialect) -> str:
    """Write the rows that are joined: all of most units, some of each crowded one.

    Rows of the same hash are told apart by their columns, and rows that are the same are the same.
    """
    # A planner that takes crowds to be many may turn an outer join around, and look up each of the
    # crowds among all rows; this question it can only ask of each row.
    others = f"NOT EXISTS (SELECT 1 FROM {_CROWDS} AS c WHERE c.unit = r.unit)"  # noqa: S608
    hashed = [Hashed(f"r.{identifier(name)}", type_) for name, type_ in types.items()]
    columns = [one.text for one in hashed]
    rank = column_list([dialect.hash(hashed), *columns])
    rows = f"SELECT {column_list(columns)} FROM ({text}) AS r"  # noqa: S608
    place = f"ROW_NUMBER() OVER (PARTITION BY r.unit ORDER BY {rank})"
    if dialect.qualifies:
        crowded = f"{rows} JOIN {_CROWDS} AS c ON r.unit = c.unit QUALIFY {place} <= c.c{index}"
    else:
        ranked = f"SELECT {column_list(columns)}, {place} AS own_place, c.c{index} AS own_most"
        joined = f"({text}) AS r JOIN {_CROWDS} AS c ON r.unit = c.unit"
        names = column_list(identifier(name) for name in types)
        crowded = f"SELECT {names} FROM ({ranked} FROM {joined}) AS r WHERE own_place <= own_most"  # noqa: S608
    return f"{rows} WHERE {others} UNION ALL {crowded}"
