"""What the ledger's pages show: tables for people, plain keys for programs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from discreet._words import percent
from discreet.cli.ledger.burn_down import bar, colour, print_burn_down
from discreet.cli.ledger.fitting import fits_words
from discreet.cli.ledger.words import about, asked_words, counted
from discreet.cli.numbers import for_json, shown
from discreet.cli.output import is_plain, readable, say

if TYPE_CHECKING:
    from discreet.ledger import Account, Ledger, Point, Standing
    from discreet.privacy import Guarantee

Facts = dict[str, Any]
_NARROW = 80  # columns; below, a table would break its words
_UNBROKEN = ("entry", "time", "kind", "used", "policy", "neighbours")


def account_facts(account: "Account") -> Facts:
    """Return what ``accounts --json`` says of one account."""
    guarantee, used = account.guarantee, account.used
    return {
        "name": account.name,
        "unit": account.unit.to_dict(),
        "neighbours": account.neighbours.value,
        "epsilon": for_json(guarantee.epsilon),
        "delta": for_json(guarantee.delta),
        "policy": account.policy,
        "used": used,
        "remaining": max(0.0, 1.0 - used),
    }


def ledger_facts(ledger: "Ledger") -> Facts:
    """Return what ``accounts --json`` says."""
    return {
        "origin": ledger.origin,
        "size": ledger.size,
        "testing": ledger.is_testing,
        "accounts": [account_facts(account) for account in ledger],
    }


def print_accounts(console: Console, ledger: "Ledger") -> None:
    """Print every account with its terms and its bar."""
    _print_heading(console, ledger, f"{ledger.origin}, {counted(ledger.size, 'entry', 'entries')}")
    accounts = list(ledger)
    if not accounts:
        say(console, "No account yet. Open one with: discreet ledger create NAME --unit record ...")
        return
    rows = [
        (
            account.name,
            str(account.unit),
            account.neighbours.value,
            guarantee_words(account.guarantee),
            account.policy,
            _used(console, account.used),
        )
        for account in accounts
    ]
    _print_rows(console, ("account", "protects", "neighbours", "guarantee", "policy", "used"), rows)


def show_facts(
    account: "Account", now: "Standing", fits: Facts, points: "Sequence[Point]"
) -> Facts:
    """Return what ``show --json`` says."""
    return {
        **account_facts(account),
        "kind": now.kind,
        "budgets": [
            {
                "name": name,
                "epsilon": for_json(limit.epsilon),
                "delta": for_json(limit.delta),
                "used": used,
            }
            for name, limit, used in _budgets(account, now)
        ],
        "sources": [{"name": name, "version": v} for name, v in now.sources.items()],
        "jobs": [job._asdict() for job in now.jobs],
        "fits": fits,
        "burn_down": [point._asdict() for point in points],
    }


def print_show(
    console: Console,
    account: "Account",
    now: "Standing",
    fits: Facts,
    points: "Sequence[Point]",
    *,
    ledger: "Ledger",
) -> None:
    """Print one account: its terms, budgets, sources, jobs, what fits, and how it burned down."""
    _print_heading(console, ledger, account.name)
    terms = f"{account.unit}, {account.neighbours.value}, {guarantee_words(account.guarantee)}"
    say(console, f"Protects {terms}. Counts by a {now.kind} filter; at the end: {account.policy}.")
    rows = [
        (unquote(name), guarantee_words(limit), _used(console, used))
        for name, limit, used in _budgets(account, now)
    ]
    _print_rows(console, ("budget", "limit", "used"), rows)
    for name, version in now.sources.items():
        say(console, f"Source {name}, version {version}.")
    for job in now.jobs:
        left = counted(job.left, "step", "steps")
        say(console, f"Open job {job.entry}: {job.who}, {job.purpose}, {left} not begun.")
    say(console, fits_words(fits))
    console.print()
    of = "the total" if account.unit.period is None else f"the {account.unit.period} drawn on"
    print_burn_down(console, points, of=of)


def history_facts(
    entry: Mapping[str, Any], shares: Mapping[str, float], asked: Mapping[str, Any] | None = None
) -> Facts:
    """Return what ``history --json`` says of one entry: never its keys or fingerprints.

    ``asked`` is the question that a charge paid for, and its epsilon and delta, where known.

    >>> history_facts({"index": 9, "time": "2026", "kind": "settle", "job": 5}, {})["about"]
    'job 5 ended'
    """
    names = ("index", "time", "kind", "account", "who", "purpose", "loss")
    account = entry.get("name") if entry["kind"] == "account" else entry.get("account")
    return {name: entry.get(name) for name in names} | {
        "account": account,
        "about": asked_words(asked) if asked and "question" in asked else about(entry),
        **{name: (asked or {}).get(name) for name in ("question", "epsilon", "delta")},
        "used_after": dict(shares),
    }


def print_history(console: Console, facts: Sequence[Facts], *, with_account: bool) -> None:
    """Print entries, oldest first."""
    rows = []
    for fact in facts:
        rows.append(
            (
                str(fact["index"]),
                fact["time"][:16].replace("T", " "),
                *([fact["account"] or ""] if with_account else []),
                fact["kind"],
                ", ".join(fact[name] for name in ("who", "purpose") if fact[name]),
                fact["about"],
                _used_after(fact["used_after"]),
            )
        )
    titles = ["entry", "time", *(["account"] if with_account else []), "kind"]
    _print_rows(console, (*titles, "who, purpose", "what", "used after"), rows)


def guarantee_words(guarantee: "Guarantee") -> str:
    """Write a guarantee in few words.

    >>> from discreet.privacy import Guarantee
    >>> guarantee_words(Guarantee(epsilon=5, delta=1e-6))
    'epsilon 5, delta 1e-06'
    """
    delta = "" if guarantee.is_pure else f", delta {shown(guarantee.delta)}"
    return f"epsilon {shown(guarantee.epsilon)}{delta}"


def _budgets(account: "Account", now: "Standing") -> "list[tuple[str, Guarantee, float]]":
    """Return every budget in use, and every limit that nobody has drawn on."""
    used = [(budget.name, budget.used) for budget in account.budgets()]
    drawn = {name.partition(":")[0] for name, _ in used}
    idle = [(line, 0.0) for line in now.limits if line not in drawn]
    return [(name, now.limits[name.partition(":")[0]], share) for name, share in used + idle]


def _used_after(shares: Mapping[str, float]) -> str:
    """Say how full the total is, or where an entry drew on others only, the fullest of them."""
    totals = {name: share for name, share in shares.items() if name.partition(":")[0] == "total"}
    drawn = totals or shares
    if not drawn:
        return ""
    name = max(drawn, key=lambda one: drawn[one])
    whose = "" if name == "total" else f" {unquote(name.removeprefix('total:'))}"
    return percent(min(drawn[name], 1.0), up=True) + whose


def _print_heading(console: Console, ledger: "Ledger", text: str) -> None:
    say(console, text, bold=True)
    if ledger.is_testing:
        say(console, "This ledger is for tests: its budgets protect nobody.")


def _used(console: Console, share: float) -> Text:
    width = 10 if console.width >= _NARROW else 8
    drawn = bar(share, width=width, is_plain=is_plain(console))
    return Text.assemble((drawn, colour(share)), f" {percent(min(share, 1.0), up=True)}")


def _print_rows(
    console: Console, titles: Sequence[str], rows: Sequence[Sequence[str | Text]]
) -> None:
    """Print a table, or where it would not fit one block of lines for each row."""
    cells = [[_cell(console, cell) for cell in row] for row in rows]
    if console.width < _NARROW:
        for row in cells:
            for title, cell in zip(titles, row, strict=True):
                if cell.plain:
                    indent = "" if title == titles[0] else "  "
                    console.print(Text.assemble(f"{indent}{title} ", cell))
        return
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for title in titles:
        table.add_column(title, overflow="fold", no_wrap=title in _UNBROKEN)
    for row in cells:
        table.add_row(*row)
    console.print(table)


def _cell(console: Console, cell: str | Text) -> Text:
    return cell if isinstance(cell, Text) else Text(readable(cell, console))
