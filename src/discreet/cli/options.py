"""Options that several commands take."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

BUDGET = "budget.db"
FILE = partial(typer.Option, metavar="FILE")
LedgerOption = Annotated[
    str,
    typer.Option(
        metavar="WHERE",
        envvar="DISCREET_LEDGER",
        help="The ledger: a file, or postgresql://...",
    ),
]
KeyOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        envvar="DISCREET_LEDGER_KEY",
        help="Its secret key; beside the ledger if not said.",
    ),
]
EpsilonOption = Annotated[str, typer.Option(metavar="E", help="The privacy loss, such as 5.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
