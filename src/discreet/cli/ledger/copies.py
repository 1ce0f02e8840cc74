"""``discreet ledger export``, ``import`` and ``backup``: the whole ledger, somewhere else."""

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.ledger.files import read_vkey
from discreet.cli.ledger.opening import check_new, place, progress, reading, refusals
from discreet.cli.options import BUDGET, FILE, KeyOption, LedgerOption
from discreet.cli.output import tell

FileArgument = Annotated[Path, typer.Argument(help="A new file.")]


def export(file: FileArgument, ledger: LedgerOption = BUDGET) -> None:
    """Write the whole log to a text file that verifies on its own.

    Example: [bold]discreet ledger export budget.ndjson[/bold], and
    [bold]discreet ledger verify budget.ndjson[/bold] wherever it is sent.
    """
    with reading(ledger) as book, progress("exporting") as told:
        size = book.export(file, progress=told)
    tell(f"Wrote {size} entries to {file}.")


def import_(
    file: Annotated[Path, typer.Argument(help="What export wrote.")],
    ledger: LedgerOption = BUDGET,
    key: KeyOption = None,
    public: Annotated[
        Path | None, FILE(help="A public key that the ledger must have been signed with.")
    ] = None,
    pinned: Annotated[Path | None, FILE(help="A checkpoint that the export must extend.")] = None,
) -> None:
    """Make a ledger from an export, once every entry of it was verified.

    An old export would bring back what was spent since: say with [bold]--pinned[/bold] which
    checkpoint it must extend.

    Example: [bold]discreet ledger import budget.ndjson --ledger restored.db[/bold]
    """
    from discreet.ledger import Ledger

    check_new(ledger)
    vkey = None if public is None else read_vkey(public)
    with refusals(), progress("verifying") as told:
        book = Ledger.imported(file, ledger, key=key, vkey=vkey, pinned=pinned, progress=told)
        with book:
            size = book.size
    tell(f"Made {place(ledger)} of {size} verified entries.")
    if not (Path(f"{ledger}.key") if key is None else key).exists():
        tell("To write to it, put its secret key in place: the export has none.")


def backup(file: FileArgument, ledger: LedgerOption = BUDGET) -> None:
    """Copy a ledger that is a file, while others use it. Its secret key is not copied.

    Example: [bold]discreet ledger backup /backups/budget-2026-11-15.db[/bold]
    """
    with reading(ledger) as book:
        book.backup(file)
    tell(f"Copied the ledger to {file}. Its secret key is not in it.")
