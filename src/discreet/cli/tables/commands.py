"""Protect tables and ask them, from a terminal."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from discreet.cli.numbers import parse
from discreet.cli.options import BUDGET, EpsilonOption, JsonOption
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.tables import Protected

__all__ = ["register"]

NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="What was protected: its name, or its TOML file.")
]
QuestionArgument = Annotated[str, typer.Argument(metavar="SQL", help="The question, in SQL.")]
PriceOption = Annotated[
    str | None,
    typer.Option("--epsilon", metavar="E", help="Pay so much: the guarantee of this answer alone."),
]
DeltaOption = Annotated[
    str | None,
    typer.Option("--delta", metavar="D", help="Its delta; 1% of the account's if not said."),
]
ShareOption = Annotated[
    str | None, typer.Option("--share", metavar="S", help='Or a share of the budget, as "5%".')
]
WithinOption = Annotated[
    str | None,
    typer.Option("--within", metavar="W", help="Or whatever gives an error of at most this."),
]
ConfidenceOption = Annotated[
    str, typer.Option(metavar="C", help="How sure the error bars shall be.")
]
SizeOption = Annotated[
    int | None, typer.Option(metavar="N", help="How many rows a group has, if you know.")
]
WhoOption = Annotated[
    str | None, typer.Option("--who", metavar="NAME", help="Who asks; you, if not said.")
]
PurposeOption = Annotated[str, typer.Option("--purpose", metavar="TEXT", help="What for.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the application.

    >>> app = typer.Typer()
    >>> register(app)
    >>> [command.name for command in app.registered_commands]
    ['protect', 'quote', 'query']
    """
    app.command("protect")(protect)
    app.command("quote")(quote)
    app.command("query")(query)


def protect(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="A Parquet or CSV file, or DATABASE.duckdb::TABLE; NAME=FILE for several tables.",
        ),
    ],
    name: Annotated[str, typer.Option(metavar="NAME", help="The name of the budget.")],
    epsilon: EpsilonOption,
    delta: Annotated[str, typer.Option(metavar="D", help="Such as 1e-6; 0 needs listed keys.")],
    unit: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column that says whose row it is."),
    ] = None,
    ledger: Annotated[
        str,
        typer.Option(metavar="WHERE", envvar="DISCREET_LEDGER", help="The ledger of all budgets."),
    ] = BUDGET,
    rows: Annotated[
        int | None,
        typer.Option(metavar="N", help="How many rows of one unit shall count at most."),
    ] = None,
    neighbours: Annotated[
        str, typer.Option(metavar="RELATION", help="add_remove or replace_one.")
    ] = "add_remove",
    engine: Annotated[
        str, typer.Option(metavar="NAME", help="What reads the tables and runs the questions.")
    ] = "duckdb",
    ask: Annotated[
        bool, typer.Option("--ask", help="Ask for bounds and public keys, column by column.")
    ] = False,
) -> None:
    """Protect tables: who is protected, and how much may ever be told.

    Writes NAME.toml, a small file that says what is public about the tables: fill in bounds of
    columns and public keys to get better answers. Nothing in it is read off the data.

    Example: [bold]discreet protect people.parquet --name people --unit user_id --epsilon 3
    --delta 1e-6[/bold]
    """
    from discreet.cli.tables import wizard
    from discreet.privacy import Guarantee
    from discreet.tables import open_tables
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
    if ask:
        declaration = wizard.ask(console, columns, unit=unit, **facts)
    else:
        declaration = wizard.propose(columns, unit=_unit(unit, columns), **facts)
    declaration = replace(
        declaration, engine=engine, neighbours=relation, rows=rows or declaration.rows
    )
    declaration = declaration.pinned(opened)
    declaration.catalog(columns)  # refuses a unit that is no column, before anything is written
    path = Path(f"{name}.toml")
    if path.exists():
        raise ParameterError(
            f"{path} is there already. Ask it with: discreet query {name} 'SELECT ...'. Move the "
            "file away to protect anew; the budget that is spent stays spent.",
            parameter="name",
        )
    declaration.save(path, columns)
    try:
        with open_tables(path) as protected:
            console.print(Text(str(protected)))
    except BaseException:
        path.unlink()
        raise
    console.print(Text(f"Declared in {path}; look at it, and fill in bounds and public keys."))
    first = f"'SELECT COUNT(*) FROM {next(iter(tables))}'"  # noqa: S608  # printed, not run
    console.print(Text(f"Now ask: discreet quote {name} {first} --epsilon 0.1"))


def quote(
    name: NameArgument,
    question: QuestionArgument,
    epsilon: PriceOption = None,
    delta: DeltaOption = None,
    share: ShareOption = None,
    within: WithinOption = None,
    confidence: ConfidenceOption = "0.95",
    size: SizeOption = None,
    who: WhoOption = None,
    purpose: PurposeOption = "analysis",
) -> None:
    """Say what a question costs and how far off its answer would be. Nothing is spent.

    Example: [bold]discreet quote people 'SELECT region, COUNT(*) FROM people GROUP BY region'
    --within 100[/bold]
    """
    with _opened(name, who=who, purpose=purpose) as protected:
        terms = _terms(epsilon, delta, share, within, confidence, size)
        Console().print(Text(str(protected.quote(question, **terms))), soft_wrap=True)


def query(
    name: NameArgument,
    question: QuestionArgument,
    epsilon: PriceOption = None,
    delta: DeltaOption = None,
    share: ShareOption = None,
    within: WithinOption = None,
    confidence: ConfidenceOption = "0.95",
    size: SizeOption = None,
    who: WhoOption = None,
    purpose: PurposeOption = "analysis",
    explain: Annotated[
        bool, typer.Option("--explain", help="Say in plain words what was done.")
    ] = False,
    receipt: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the receipt there: discreet verify checks it."),
    ] = None,
    card: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the release card there, for the record."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Answer a question privately, and pay for it.

    Example: [bold]discreet query people 'SELECT COUNT(*) AS n FROM people' --epsilon 0.1[/bold]
    """
    with _opened(name, who=who, purpose=purpose) as protected:
        terms = _terms(epsilon, delta, share, within, confidence, size)
        result = protected.sql(question, **terms)
        if as_json:
            typer.echo(json.dumps(result.to_dicts(), default=str, allow_nan=False))
        else:
            Console().print(result)
            if explain:
                Console().print(Text(result.explain()))
        if receipt is not None:
            protected.account.ledger.prove(result.receipt).save(receipt)
        if card is not None:
            card.write_text(json.dumps(result.card(), indent=2, default=str) + "\n")


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


def _neighbours(text: str) -> Any:
    from discreet.privacy import Neighbours

    try:
        return Neighbours(text)
    except ValueError:
        raise ParameterError(
            f"neighbours must be one of {', '.join(Neighbours)}.", parameter="neighbours"
        ) from None


def _terms(
    epsilon: str | None,
    delta: str | None,
    share: str | None,
    within: str | None,
    confidence: str,
    size: int | None,
) -> dict[str, Any]:
    return {
        "epsilon": None if epsilon is None else parse(epsilon),
        "delta": None if delta is None else parse(delta),
        "share": share,
        "within": None if within is None else parse(within),
        "confidence": parse(confidence),
        "size": size,
    }


@contextmanager
def _opened(name: str, *, who: str | None, purpose: str) -> "Iterator[Protected]":
    from discreet.tables import open_tables

    path = Path(name if name.endswith(".toml") else f"{name}.toml")
    if not path.exists():
        raise ParameterError(
            f"there is no {path} here. Protect data with: discreet protect FILE --name {path.stem}",
            parameter="name",
        )
    with open_tables(path, who=who, purpose=purpose) as protected:
        yield protected
