"""Commands that read: the accounts, one of them, and what happened."""

from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from discreet.cli.ledger import views
from discreet.cli.ledger.fitting import fitting
from discreet.cli.ledger.opening import reading
from discreet.cli.options import BUDGET, FILE, JsonOption, LedgerOption
from discreet.cli.output import echo_json, tell

LONG: Final = 200  # entries that a page shows unless more are asked for


def accounts(ledger: LedgerOption = BUDGET, as_json: JsonOption = False) -> None:
    """List the accounts, their terms, and how much of each is used.

    Example: [bold]discreet ledger accounts --ledger budget.db[/bold]
    """
    with reading(ledger) as book:
        if as_json:
            echo_json(views.ledger_facts(book))
        else:
            views.print_accounts(Console(), book)


def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The account.")],
    who: Annotated[str | None, typer.Option(help="As seen by this analyst.")] = None,
    purpose: Annotated[str | None, typer.Option(help="For this purpose.")] = None,
    plot: Annotated[
        Path | None, FILE(help="Draw the burn-down into a .png, .svg or .pdf file.")
    ] = None,
    ledger: LedgerOption = BUDGET,
    as_json: JsonOption = False,
) -> None:
    """Show an account: its terms, budgets, sources, open jobs, what still fits, its burn-down.

    Example: [bold]discreet ledger show salaries --who ana --plot salaries.png[/bold]
    """
    from discreet.ledger import burn_down, plot_burn_down, standing

    with reading(ledger) as book:
        account = book[name]
        if plot is not None:
            written = plot_burn_down(account, path=plot)
            if not as_json:
                tell(f"Wrote {written}.")
                return
        fits = fitting(account, who=who, purpose=purpose)
        now, points = standing(account), burn_down(account)
        if as_json:
            echo_json(views.show_facts(account, now, fits, points))
        else:
            views.print_show(Console(), account, now, fits, points, ledger=book)


def history(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The account; all if not said.")
    ] = None,
    last: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Only the last N entries.")
    ] = None,
    ledger: LedgerOption = BUDGET,
    as_json: JsonOption = False,
) -> None:
    """List entries, oldest first: who paid what, what for, and how much was used after it.

    Shares are of today's limits. A page shows the last 200, --json all, unless --last says.

    Example: [bold]discreet ledger history salaries --last 20[/bold]
    """
    from discreet.ledger import shares
    from discreet.tables import asked_by_charge

    wanted = LONG + 1 if last is None and not as_json else last
    with reading(ledger) as book:
        entries = book.history(last=wanted) if name is None else book[name].history(last=wanted)
        if last is None and not as_json and len(entries) > LONG:
            tell(f"The last {LONG} entries; say --last N for more.")
            entries = entries[-LONG:]
        known = {account.name: account for account in book}
        asked = asked_by_charge(book, entries)
        facts = [
            views.history_facts(
                entry,
                shares(known[entry["account"]], entry) if "after" in entry else {},
                asked.get(entry["index"]),
            )
            for entry in entries
        ]
    if as_json:
        echo_json(facts)
    else:
        views.print_history(Console(), facts, with_account=name is None)
