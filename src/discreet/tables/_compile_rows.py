"""The rows that count, and a chain of named SELECTs that ends in an answer."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

from discreet.tables._compile_text import among, clean_key, column_list
from discreet.tables.plan import Query

__all__ = ["Chain", "start"]


@final
@dataclass(slots=True)
class Chain:
    """Named SELECTs, each reading from those before it."""

    steps: list[str] = field(default_factory=list)
    last: str = ""

    def add(self, name: str, text: str, *, keep: bool = False) -> None:
        """Add one SELECT. ``keep`` computes it once although it is read twice."""
        self.steps.append(f"{name} AS {'MATERIALIZED ' if keep else ''}(\n{text}\n)")
        self.last = name

    def ending(self, text: str) -> str:
        """Return the whole statement."""
        steps = ",\n".join(self.steps)
        return f"WITH {steps}\n{text}"


def start(
    query: Query,
    groups: Sequence[Sequence[object]] | None,
    *,
    conditions: Iterable[str] = (),
    extra: Mapping[str, str] | None = None,
) -> Chain:
    """Begin a chain with the rows of a query that belong to a unit and to one of the groups.

    ``extra`` are expressions and names of further columns; ``conditions`` must hold too.
    """
    chain = Chain()
    chain.add("source", query.rows)
    units = () if query.unit_is_row else ("unit",)
    values = tuple(f"value_{i}" for i in range(len(query.values)))
    keys = tuple(f"key_{i}" for i in range(len(query.keys)))
    cleaned = tuple(clean_key(i, key) for i, key in enumerate(query.keys))
    if cleaned != keys:
        text = f"SELECT {column_list((*units, *cleaned, *values))}\nFROM source"
        chain.add("cleaned", text)
    # A unit that is NULL would be nobody's, and joins would lose it after it was counted.
    tests = [f"{unit} IS NOT NULL" for unit in units]
    tests += among(query.keys, groups) if groups is not None else []
    tests += conditions
    named = tuple(f"{expression} AS {name}" for expression, name in (extra or {}).items())
    columns = (*units, *keys, *values, *named) or ("1 AS one",)
    where = f"\nWHERE {' AND '.join(tests)}" if tests else ""
    chain.add("counted", f"SELECT {column_list(columns)}\nFROM {chain.last}{where}")
    return chain
