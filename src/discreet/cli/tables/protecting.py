"""Protect tables: what is declared, on the command line or question by question."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from discreet.cli.numbers import parse
from discreet.cli.options import BUDGET, EpsilonOption
from discreet.cli.output import readable
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.privacy import Neighbours
    from discreet.tables import Declaration
    from discreet.tables.engines import Sources

__all__ = ["protect"]

SourcesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE...",
        help="A Parquet or CSV file, or DATABASE.duckdb::TABLE; NAME=FILE for several tables.",
    ),
]
UnitOption = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="The column that says whose row it is.")
]
LedgerOption = Annotated[
    str,
    typer.Option(metavar="WHERE", envvar="DISCREET_LEDGER", help="The ledger of all budgets."),
]
RowsOption = Annotated[
    int | None, typer.Option(metavar="N", help="How many rows of one unit shall count at most.")
]
JoinedRowsOption = Annotated[
    int | None,
    typer.Option(metavar="N", help="How many rows of one unit a join may make; 1000000."),
]
AccountOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The account of these people, if not one of this name."),
]
OverrideOption = Annotated[
    str | None,
    typer.Option(
        metavar="REASON",
        help="Why these are other people, though the data looks like that of another account.",
    ),
]

MemoryOption = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Memory of all questions together, as 4GB.")
]
DiskOption = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Disk for what does not fit into it, as 20GB.")
]
SecondsOption = Annotated[
    str, typer.Option(metavar="N", help="How long a question may run; 0 for no limit.")
]


def protect(
    sources: SourcesArgument,
    name: Annotated[str, typer.Option(metavar="NAME", help="The name of the budget.")],
    epsilon: EpsilonOption,
    delta: Annotated[str, typer.Option(metavar="D", help="Such as 1e-6; 0 needs listed keys.")],
    unit: UnitOption = None,
    ledger: LedgerOption = BUDGET,
    rows: RowsOption = None,
    joined_rows: JoinedRowsOption = None,
    memory: MemoryOption = None,
    disk: DiskOption = None,
    seconds: SecondsOption = "3600",
    neighbours: Annotated[
        str, typer.Option(metavar="RELATION", help="add_remove or replace_one.")
    ] = "add_remove",
    engine: Annotated[
        str, typer.Option(metavar="NAME", help="What reads the tables and runs the questions.")
    ] = "duckdb",
    account: AccountOption = None,
    override: OverrideOption = None,
    ask: Annotated[
        bool, typer.Option("--ask", help="Ask for bounds and public keys, column by column.")
    ] = False,
) -> None:
    """Protect tables: who is protected, and how much may ever be told.

    Writes NAME.toml, a small file that says what is public about the tables: fill in bounds of
    columns and public keys to get better answers. Nothing in it is read off the data.

    A copy of data that has a budget in the ledger gets no other one: share it with --account.

    Example: [bold]discreet protect people.parquet --name people --unit user_id --epsilon 3
    --delta 1e-6[/bold]
    """
    from discreet.cli.tables import wizard
    from discreet.privacy import Guarantee
    from discreet.tables import Resources
    from discreet.tables.engines import engine_named, open_sources

    console = Console()
    tables = _named(sources, name)
    opened = open_sources(tables, engine=engine_named(engine))
    columns = opened.columns
    guarantee = Guarantee(epsilon=parse(epsilon), delta=parse(delta))
    facts: dict[str, Any] = {
        "name": name, "guarantee": guarantee, "ledger": ledger, "sources": tables,
    }  # fmt: skip
    relation = _neighbours(neighbours)
    resources = Resources(memory=memory, disk=disk, seconds=parse(seconds) or None)
    if ask:
        declaration = wizard.ask(console, columns, unit=unit, **facts)
    else:
        declaration = wizard.propose(columns, unit=_unit(unit, columns), **facts)
    declaration = replace(
        declaration,
        engine=engine,
        neighbours=relation,
        rows=rows or declaration.rows,
        joined_rows=joined_rows,
        account=account,
        resources=resources,
    )
    declaration = declaration.pinned(opened)
    declaration.catalog(columns)  # refuses a unit that is no column, before anything is written
    path = _saved(declaration, columns, console, override=override)
    _show_guesses(opened, console)
    console.print(Text(f"Declared in {path}; look at it, and fill in bounds and public keys."))
    first = f"'SELECT COUNT(*) FROM {next(iter(tables))}'"  # noqa: S608  # printed, not run
    console.print(Text(f"Now ask: discreet quote {name} {first} --epsilon 0.1"))


def _show_guesses(opened: "Sources", console: Console) -> None:
    for table, one in opened.items():
        if one.untyped:
            kinds = ", ".join(f"{c} {kind}" for c, kind in one.columns if c in one.untyped)
            told = f"Types guessed from the rows of {table}, and public now: {kinds}."
            console.print(Text(readable(told, console)))


def _saved(
    declaration: "Declaration",
    columns: dict[str, dict[str, str]],
    console: Console,
    *,
    override: str | None,
) -> Path:
    """Write the declaration beside the budget, and show that it opens; else leave no file."""
    from discreet.tables import open_tables

    path = Path(f"{declaration.name}.toml")
    if path.exists():
        raise ParameterError(
            f"{path} is there already. Ask it with: discreet query {declaration.name} "
            "'SELECT ...'. Move the file away to protect anew; the budget that is spent stays "
            "spent.",
            parameter="name",
        )
    declaration.save(path, columns)
    try:
        with open_tables(path, override=override) as protected:
            console.print(Text(str(protected)))
    except BaseException:
        path.unlink()
        raise
    return path


def _named(sources: list[str], name: str) -> dict[str, str]:
    """Read NAME=FILE, or one plain FILE that gets the budget's name."""
    if len(sources) == 1 and "=" not in sources[0]:
        return {name: sources[0]}
    named = {}
    for source in sources:
        table, _, place = source.partition("=")
        if not place:
            raise ParameterError(
                "several tables are given as NAME=FILE, such as people=people.parquet.",
                parameter="sources",
            )
        named[table] = place
    return named


def _unit(unit: str | None, columns: Any) -> str:
    """Return the unit, or ask for it with a guess by name."""
    from discreet.cli.tables.wizard import likely_units

    if unit is not None:
        return unit
    likely = likely_units(columns)
    hint = f" By its name it may be {likely[0]}." if likely else ""
    raise ParameterError(
        f"unit must be given: the column that says whose row it is.{hint}", parameter="unit"
    )


def _neighbours(text: str) -> "Neighbours":
    from discreet.privacy import Neighbours

    try:
        return Neighbours(text)
    except ValueError:
        raise ParameterError(
            f"neighbours must be one of {', '.join(Neighbours)}.", parameter="neighbours"
        ) from None
