"""What ``discreet protect`` and ``discreet query`` can be told."""

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.ledger.budgets import Policy
from discreet.cli.options import FILE

SourcesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE...",
        help="A Parquet or CSV file, or DATABASE.duckdb::TABLE; NAME=FILE for several tables.",
    ),
]
BudgetOption = Annotated[str, typer.Option("--name", metavar="NAME", help="The budget's name.")]
PromisedDeltaOption = Annotated[
    str, typer.Option("--delta", metavar="D", help="Such as 1e-6; 0 needs listed keys.")
]
UnitOption = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="The column that says whose row it is; record, where each row is one person; or "
        "household:COLUMN.",
    ),
]
UnitOfOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TABLE=COLUMN",
        help="Another column of one table that says it, or a foreign key of a table that has it: "
        "items=order_id=orders.id.",
    ),
]
PerOption = Annotated[
    str | None, typer.Option(help="Protect each day, week, month or year by itself.")
]
LedgerOption = Annotated[
    str,
    typer.Option(metavar="WHERE", envvar="DISCREET_LEDGER", help="The ledger of all budgets."),
]
RowsOption = Annotated[
    int | None, typer.Option(metavar="N", help="How many rows of one unit shall count at most.")
]
BoundsOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=LOW,HIGH", help="Public bounds of a column's numbers; once per column."
    ),
]
KeysOption = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN=A,B", help="All values of a column, where public; likewise."),
]
JoinedRowsOption = Annotated[
    int | None,
    typer.Option(metavar="N", help="How many rows of one unit a join may make; 1000000."),
]
UnitsOption = Annotated[
    int | None,
    typer.Option("--size", metavar="N", help="How many units there are, if that is public."),
]
NeighboursOption = Annotated[
    str, typer.Option(metavar="RELATION", help="add_remove, replace_one or zero_out.")
]
PolicyOption = Annotated[
    Policy | None,
    typer.Option(
        help="What happens at exhaustion: deny, offer more noise, or wait for the next period; "
        "deny if not said."
    ),
]
EngineOption = Annotated[
    str, typer.Option(metavar="NAME", help="What reads the tables and runs the questions.")
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
AskOption = Annotated[
    bool, typer.Option("--ask", help="Ask for bounds and public keys, column by column.")
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Only show what would be declared; write nothing.")
]
MemoryOption = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Memory of all questions together, as 4GB.")
]
DiskOption = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Disk for what does not fit into it, as 20GB.")
]
SecondsOption = Annotated[
    str | None,
    typer.Option(
        metavar="N", help="How long a question may run; 0 for no limit, 3600 if not said."
    ),
]
CsvOption = Annotated[Path | None, FILE(help="Write the answer there, for any program.")]
XlsxOption = Annotated[Path | None, FILE(help="Write the answer there, for a spreadsheet.")]
PlotOption = Annotated[Path | None, FILE(help="Draw the answer into a .png, .svg or .pdf file.")]
ReceiptOption = Annotated[
    Path | None, FILE(help="Write the receipt there: discreet verify checks it.")
]
CardOption = Annotated[Path | None, FILE(help="Write the release card there, for the record.")]
