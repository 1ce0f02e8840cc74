"""Propose a declaration from names and types, never from values.

A bound or a list of keys that was read off the data is itself an answer that nobody paid for: the
largest income is somebody's income, and a diagnosis that only one person has names that person.
So the proposal knows what a schema says. The custodian adds what is public knowledge: an age lies
between 0 and 120, and the regions are those on the map.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TextIO, TypeVar

from discreet.cli.output import readable, say
from discreet.errors import ParameterError
from discreet.privacy import Guarantee, Neighbours, Unit
from discreet.tables import (
    Declaration,
    DeclaredColumn,
    DeclaredTable,
    column_kind,
    likely_units,
    read_bounds,
    read_keys,
)

T = TypeVar("T")

Schemas = Mapping[str, Mapping[str, str]]
"""Types of columns, by table and column."""

_TRIES: Final = 3


def propose(
    columns: Schemas,
    *,
    name: str,
    unit: Unit | str,
    guarantee: Guarantee,
    ledger: str | None = None,
    neighbours: Neighbours = Neighbours.add_remove,
    sources: Mapping[str, str] | None = None,
    public: Schemas | None = None,
) -> Declaration:
    """Propose what can be said without looking: booleans are false or true, and no more.

    Bounds of numbers are inferred, keys of all other columns are selected privately. Categories
    of an enumerated type come from the data, so they are not used.

    >>> made = propose({"people": {"user_id": "BIGINT", "smokes": "BOOLEAN", "age": "INTEGER"}},
    ...                name="people", unit="user_id", guarantee=Guarantee(epsilon=3))
    >>> made.tables["people"].columns["smokes"].keys, made.tables["people"].columns["age"].bounds
    ((False, True), None)
    """
    who = Unit.of(unit)
    places = sources or {}

    def tables(schemas: Schemas) -> dict[str, DeclaredTable]:
        return {
            table: DeclaredTable(source=places.get(table), columns=_columns(schema, who))
            for table, schema in schemas.items()
        }

    return Declaration(
        name=name,
        unit=who,
        guarantee=guarantee,
        ledger=ledger,
        neighbours=neighbours,
        tables=tables(columns),
        public=tables(public or {}),
    )


def _columns(schema: Mapping[str, str], unit: Unit) -> dict[str, DeclaredColumn]:
    made = {}
    for name, type_ in schema.items():
        kind = column_kind(type_)
        if name in (unit.name, unit.time) or kind not in ("boolean", "number"):
            continue
        made[name] = DeclaredColumn(keys=(False, True) if kind == "boolean" else None)
    return made


def ask(
    console: Any,
    columns: Schemas,
    *,
    name: str,
    guarantee: Guarantee,
    ledger: str | None = None,
    unit: Unit | str | None = None,
    sources: Mapping[str, str] | None = None,
    public: Schemas | None = None,
    stream: TextIO | None = None,
) -> Declaration:
    r"""Ask for the unit, for public bounds and keys of each column, and for the number of units.

    ``console`` is rich's; ``stream`` is read in place of the keyboard. An empty answer takes the
    proposal, so that pressing Enter throughout gives what :func:`propose` gives.

    >>> import io
    >>> from rich.console import Console
    >>> made = ask(Console(file=io.StringIO()), {"people": {"user_id": "BIGINT", "age": "INTEGER"}},
    ...            name="people", guarantee=Guarantee(epsilon=3),
    ...            stream=io.StringIO("user_id\n0 120\n"))
    >>> made.unit, made.tables["people"].columns["age"].bounds
    (Unit.column('user_id'), (0, 120))
    """
    if unit is None:
        unit = _ask_unit(console, columns, stream)
    proposal = propose(
        columns,
        name=name,
        unit=unit,
        guarantee=guarantee,
        ledger=ledger,
        sources=sources,
        public=public,
    )
    say(console, "Say what is public knowledge. Do not look it up in the data: that would leak it.")
    tables = {
        table: DeclaredTable(
            source=declared.source,
            columns=_ask_columns(console, table, columns[table], declared, proposal.unit, stream),
        )
        for table, declared in proposal.tables.items()
    }
    told = "How many units there are, if that is public? Enter: it is not"
    size = _asked(console, told, _read_size, default="", stream=stream)
    return replace(proposal, tables=tables, size=size)


def _read_size(answer: str) -> int | None:
    if not answer:
        return None
    if not re.fullmatch(r"\d{1,18}", answer) or not int(answer):
        raise ParameterError("size must be a whole number of at least 1.", parameter="size")
    return int(answer)


def _ask_unit(console: Any, columns: Schemas, stream: TextIO | None) -> Unit | str:
    shared = [c for c in next(iter(columns.values())) if all(c in t for t in columns.values())]
    if not shared:
        raise ParameterError(
            "unit must be a column that all tables have, and there is none.", parameter="unit"
        )
    guess = next(iter(likely_units(columns)), "")

    def read(answer: str) -> Unit | str:
        if answer == "record" and answer not in shared:
            return Unit.record()
        if answer not in shared:
            raise ParameterError(
                f"unit must be one of {', '.join([*shared, 'record'])}.", parameter="unit"
            )
        return answer

    told = "Which column says whose rows they are? record: each row is one person"
    return _asked(console, told, read, default=guess, stream=stream)


def _ask_columns(
    console: Any,
    table: str,
    schema: Mapping[str, str],
    declared: DeclaredTable,
    unit: Unit,
    stream: TextIO | None,
) -> dict[str, DeclaredColumn]:
    made = dict(declared.columns)
    for column, type_ in schema.items():
        question = _QUESTIONS.get(column_kind(type_))
        if question is None or column in (unit.name, unit.time):
            continue
        told, read = question
        prompt = f"{table}.{column} ({type_.split('(')[0]}): {told}"
        answer = _asked(console, prompt, read, default="", stream=stream)
        if answer != DeclaredColumn():
            made[column] = answer
    return made


_QUESTIONS: Final[dict[str, tuple[str, Callable[[str], DeclaredColumn]]]] = {
    "number": ("lowest and highest value? Enter: infer them privately", read_bounds),
    "text": ("all values, with commas? Enter: select them privately", read_keys),
}


def _asked(
    console: Any,
    prompt: str,
    read: Callable[[str], T],
    *,
    default: str,
    stream: TextIO | None,
) -> T:
    """Ask until the answer can be read, a few times at most: input may be at its end."""
    from rich.prompt import Prompt
    from rich.text import Text

    told = Text(readable(prompt, console))
    for left in reversed(range(_TRIES)):
        given = Prompt.ask(told, console=console, stream=stream, default=default or None)
        try:
            return read((given or default).strip())
        except ParameterError as error:
            if left == 0:
                raise
            say(console, str(error))
    raise AssertionError("unreachable")
