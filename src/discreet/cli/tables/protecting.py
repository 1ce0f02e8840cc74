"""Protect tables: what is declared, on the command line or question by question."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from discreet.cli.ledger import budgets
from discreet.cli.ledger.files import write_file
from discreet.cli.ledger.opening import is_server
from discreet.cli.numbers import parse
from discreet.cli.options import BUDGET, EpsilonOption
from discreet.cli.output import say, tell
from discreet.cli.tables import options
from discreet.cli.tables.opening import limited
from discreet.errors import ParameterError
from discreet.privacy import weaknesses

if TYPE_CHECKING:
    from collections.abc import Mapping

    from discreet.privacy import Neighbours, Unit
    from discreet.tables import Declaration, DeclaredTable
    from discreet.tables.engines import Sources

__all__ = ["protect"]


def protect(
    sources: options.SourcesArgument,
    name: options.BudgetOption,
    epsilon: EpsilonOption,
    delta: options.PromisedDeltaOption,
    unit: options.UnitOption = None,
    unit_of: options.UnitOfOption = None,
    per: options.PerOption = None,
    ledger: options.LedgerOption = BUDGET,
    rows: options.RowsOption = None,
    bounds: options.BoundsOption = None,
    keys: options.KeysOption = None,
    joined_rows: options.JoinedRowsOption = None,
    size: options.UnitsOption = None,
    policy: options.PolicyOption = None,
    memory: options.MemoryOption = None,
    disk: options.DiskOption = None,
    seconds: options.SecondsOption = None,
    neighbours: options.NeighboursOption = "add_remove",
    engine: options.EngineOption = "duckdb",
    account: options.AccountOption = None,
    override: options.OverrideOption = None,
    ask: options.AskOption = False,
    dry_run: options.DryRunOption = False,
) -> None:
    """Protect tables: who is protected, and how much may ever be told.

    Writes NAME.toml, a small file that says what is public about the tables: say bounds of columns
    and public keys, or fill them in, to get better answers. Nothing in it is read off the data.

    A copy of data that has a budget in the ledger gets no other one: share it with --account. What
    was protected by mistake is taken back with discreet unprotect, while nothing was asked.

    Example: [bold]discreet protect people.parquet --name people --unit person_id --epsilon 3
    --delta 1e-6[/bold]
    """
    from discreet.cli.tables.saying import with_said
    from discreet.privacy import Guarantee
    from discreet.tables.engines import engine_named, open_sources

    console = Console()
    opened = open_sources(_named(sources, name), engine=engine_named(engine))
    facts: dict[str, Any] = {
        "name": name, "guarantee": Guarantee(epsilon=parse(epsilon), delta=parse(delta)),
        "ledger": ledger, "sources": _located(opened),
    }  # fmt: skip
    proposed = _proposed(console, opened.columns, unit, per, facts, ask=ask)
    proposed = with_said(proposed, opened.columns, bounds=bounds, keys=keys)
    declaration = replace(
        proposed,
        tables=_owned(proposed.tables, unit_of or []),
        engine=engine,
        neighbours=_neighbours(neighbours),
        rows=rows or proposed.rows,
        joined_rows=joined_rows,
        size=size or proposed.size,
        account=account,
        policy=None if policy is None else policy.value,
        resources=limited(proposed.resources, memory, disk, seconds),
    ).pinned(opened)
    declaration.catalog(opened.columns)  # refuses a unit that is no column, before anything else
    if dry_run:
        _shown(declaration, opened.columns, console)
    else:
        _saved(declaration, opened.columns, console, override=override)
    _show_guesses(opened, console)
    _show_limits(declaration, console)
    if not dry_run:
        first = f"'SELECT COUNT(*) FROM {next(iter(opened))}'"  # noqa: S608  # printed, not run
        tell(f"Now ask: discreet quote {name} {first} --epsilon 0.1", console=console)


def _proposed(
    console: Console,
    columns: Any,
    unit: str | None,
    per: str | None,
    facts: dict[str, Any],
    *,
    ask: bool,
) -> "Declaration":
    from discreet.cli.tables import wizard

    if ask and unit is None:
        return wizard.ask(console, columns, **facts)
    who = _unit(unit, columns)
    who = who if per is None else who.per(per)
    if ask:
        return wizard.ask(console, columns, unit=who, **facts)
    return wizard.propose(columns, unit=who, **facts)


def _owned(tables: "Mapping[str, DeclaredTable]", said: list[str]) -> "dict[str, DeclaredTable]":
    """Return tables with what was said of whose rows they have."""
    made = dict(tables)
    for one in said:
        table, _, owner = (part.strip() for part in one.partition("="))
        if table not in made:
            raise ParameterError(
                f"--unit-of speaks of table {table!r}; the tables are {', '.join(made)}.",
                parameter="unit_of",
            )
        made[table] = made[table].owned_by(owner)
    return made


def _show_guesses(opened: "Sources", console: Console) -> None:
    for table, one in opened.items():
        if one.untyped:
            kinds = ", ".join(f"{c} {kind}" for c, kind in one.columns if c in one.untyped)
            told = f"Types guessed from the rows of {table}, and public now: {kinds}."
            say(console, told)


def _show_limits(declaration: "Declaration", console: Console) -> None:
    """Say which rows count nowhere, and what is weak about the guarantee."""
    if declaration.unit.name is not None:
        say(console, f"Rows without {declaration.unit.name} belong to nobody, and count nowhere.")
    for weakness in weaknesses(declaration.guarantee, n=declaration.size):
        say(console, f"Warning: {weakness}")


def _saved(
    declaration: "Declaration",
    columns: dict[str, dict[str, str]],
    console: Console,
    *,
    override: str | None,
) -> None:
    """Write the declaration beside the budget, and show that it opens; else leave no file."""
    from discreet.tables import open_tables

    path = _free(declaration)
    declaration.save(path, columns)
    try:
        with open_tables(path, override=override) as protected:
            say(console, str(protected))
            vkey = protected.account.ledger.vkey
    except BaseException:
        path.unlink()
        raise
    say(console, f"Declared in {path}; look at it, and fill in bounds and public keys.")
    _tell_keys(str(declaration.ledger), vkey, console)


def _free(declaration: "Declaration") -> Path:
    path = Path(f"{declaration.name}.toml")
    if path.exists():
        raise ParameterError(
            f"{path} is there already. Ask it with: discreet query {declaration.name} "
            "'SELECT ...'. If it was a mistake and nothing was asked, take it back with: discreet "
            f"unprotect {declaration.name}. Otherwise what is spent stays spent, also if you move "
            "the file away and protect anew.",
            parameter="name",
        )
    return path


def _tell_keys(ledger: str, vkey: str, console: Console) -> None:
    """Say where the keys are; the public one is written beside the ledger where it is not yet."""
    if is_server(ledger):
        say(console, "Public key: write it with discreet ledger checkpoint --public FILE.")
        return
    public = Path(f"{ledger}.pub")
    if not public.exists():
        write_file(public, f"{vkey}\n", over=False)
    say(console, f"Budget in {ledger}. Back up its secret key, {ledger}.key; hand out the public")
    say(console, f"one, {public}, with which discreet verify checks receipts.")


def _shown(declaration: "Declaration", columns: Any, console: Console) -> None:
    """Show what would be declared, and what the ledger has of that name."""
    from discreet.ledger import Ledger

    path = _free(declaration)
    say(console, f"Nothing was written. {path} would say:", bold=True)
    for line in declaration.to_toml(columns).splitlines():
        tell(line, console=console)
    ledger, name = str(declaration.ledger), declaration.account or declaration.name
    if is_server(ledger) or not Path(ledger).exists():
        return
    with Ledger.open(ledger, create=False, read_only=True) as book:
        if name in book:
            has = book[name]
            terms = f"{has.unit}, {has.neighbours}, {has.guarantee}"
            say(console, f"{ledger} has an account {name!r} already, for {terms}. It would be")
            say(console, "used on if all of that is the same, and refused otherwise.")


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


def _located(opened: "Sources") -> dict[str, str]:
    """Return where tables are: those of a database are written down otherwise than typed."""
    return {table: str(one.location or one.given) for table, one in opened.items()}


def _unit(unit: str | None, columns: Any) -> "Unit":
    """Return the unit, or ask for it with a guess by name."""
    from discreet.privacy import Unit
    from discreet.tables import likely_units

    if unit is None:
        likely = likely_units(columns)
        hint = f" By its name it may be {likely[0]}." if likely else ""
        raise ParameterError(
            f"unit must be given: the column that says whose row it is.{hint} Where each row is "
            "one person, it is record.",
            parameter="unit",
        )
    known = {column.casefold() for table in columns.values() for column in table}
    if unit.casefold() in known and unit != "record":
        return Unit.column(unit)
    if unit == "record" and unit in known:
        raise ParameterError(
            "unit may be the column 'record' or each row by itself. Say column:record for the "
            "column, or rename it.",
            parameter="unit",
        )
    kind = unit.partition(":")[0]
    return (
        budgets.unit_of(unit, None)
        if kind in ("record", "column", "household")
        else Unit.column(unit)
    )


def _neighbours(text: str) -> "Neighbours":
    from discreet.privacy import Neighbours

    try:
        return Neighbours(text)
    except ValueError:
        raise ParameterError(
            f"neighbours must be one of {', '.join(Neighbours)}.", parameter="neighbours"
        ) from None
