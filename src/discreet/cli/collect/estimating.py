"""``discreet collect estimate``: publish what the reports say, with its errors."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from discreet._json import read_json
from discreet.cli.collect.opening import NameArgument, opened
from discreet.cli.options import BUDGET, FILE, JsonOption, KeyOption, LedgerOption
from discreet.cli.output import echo_json, readable, tell
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.local import Collection, Publication

__all__ = ["estimate"]

_TOP: Final = 20


def estimate(
    name: NameArgument,
    reports: Annotated[
        list[Path] | None, FILE(help="Take these reports first; several times if wished.")
    ] = None,
    top: Annotated[int, typer.Option(metavar="N", min=1, help="Show so many values.")] = _TOP,
    receipt: Annotated[Path | None, FILE(help="Write the proven receipt there.")] = None,
    answer: Annotated[Path | None, FILE(help="Write what it proves there, byte by byte.")] = None,
    card: Annotated[Path | None, FILE(help="Write the release card there: .json or .md.")] = None,
    ledger: LedgerOption = BUDGET,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Publish an estimate of all reports so far: free, and on record in the ledger.

    Where fewer reports are new than the minimum, it is the last estimate again.

    Example: [bold]discreet collect estimate emoji --receipt receipt.json --card card.md[/bold]
    """
    with opened(name, ledger=ledger, key=key) as collection:
        for one in reports or ():
            _take(collection, one)
        published = collection.publish()
        if receipt is not None:
            collection.prove(published).save(receipt)
        if answer is not None:
            answer.write_bytes(published.document)
        if card is not None:
            from discreet.tables import write_card

            write_card(published.card(), card)
        if as_json:
            echo_json(read_json(published.document))
        else:
            _print(Console(), collection, published, top=top)


def _take(collection: "Collection", path: Path) -> None:
    from discreet.local.wire import report_length

    try:
        raw = path.read_bytes()
    except OSError:
        raise ParameterError(f"{path} cannot be read.", parameter="reports") from None
    length = report_length(collection.parameters)
    collection.take(raw[start : start + length] for start in range(0, len(raw), length))


def _print(
    console: Console, collection: "Collection", published: "Publication", *, top: int
) -> None:
    told = published.numbers
    entry = published.receipt.entries[-1]["index"]
    title = f"{collection.parameters.name}: {published.n} reports, entry {entry} of the ledger"
    tell(title, console=console, bold=True)
    if "counts" in told:
        console.print(_table(console, collection, told, top=top))
    else:
        for part, value in told.items():
            tell(f"  {part.replace('_', ' ')}  {value:.6g}", console=console)
    dropped = {what: n for what, n in published.rejects.items() if n}
    if dropped:
        words = ", ".join(f"{n} {what.replace('_', ' ')}" for what, n in dropped.items())
        tell(f"Not counted: {words}.", console=console)
    new = collection.counts["accepted"] - published.n
    if new:
        more = collection.terms.minimum - new
        tell(f"{new} reports are new; the next estimate needs {more} more.", console=console)


def _table(console: Console, collection: "Collection", told: dict[str, Any], *, top: int) -> Table:
    counts, errors = told["counts"], told["standard_error"]
    labels = collection.parameters.values
    order = sorted(range(len(counts)), key=lambda i: -counts[i])
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("value", overflow="fold")
    table.add_column("count", justify="right", no_wrap=True)
    table.add_column("± standard error", justify="right", no_wrap=True)
    for code in order[:top]:
        label = str(code) if labels is None else labels[code]
        table.add_row(
            Text(readable(label, console)), f"{counts[code]:,.0f}", f"{errors[code]:,.3g}"
        )
    if len(order) > top:
        table.add_row(f"... {len(order) - top} more", "", "")
    return table
