"""``discreet ledger``: keep one budget for a population, from the command line.

The ledger is imported when a command runs, so that ``--help`` stays quick. Commands for those who
verify, witness and copy it are beside, in ``_ledger_proofs``, ``_witness`` and ``_copies``.
"""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, cast
from urllib.parse import unquote

import typer
from rich.console import Console

from discreet.cli.ledger import copies, proofs, views
from discreet.cli.ledger.opening import (
    BUDGET,
    EpsilonOption,
    JsonOption,
    KeyOption,
    LedgerOption,
    check_new,
    echo_json,
    guarantee_of,
    is_server,
    place,
    reading,
    refusals,
    tell,
    write_file,
    writing,
)
from discreet.cli.ledger.witness import witness
from discreet.errors import LedgerUnavailable, ParameterError

if TYPE_CHECKING:
    from discreet.accounting.filters.rules import Kind as FilterKind
    from discreet.privacy import Unit


class Policy(StrEnum):
    """What happens at exhaustion.

    >>> Policy("deny").name
    'deny'
    """

    deny = "deny"
    degrade = "degrade"
    wait = "wait"


class Kind(StrEnum):
    """How a filter counts.

    >>> Kind("combined").name
    'combined'
    """

    basic = "basic"
    zcdp = "zcdp"
    renyi = "renyi"
    combined = "combined"


LONG: Final = 200  # entries that a page shows unless more are asked for

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The account.")]
WhoOption = Annotated[str | None, typer.Option(help="As seen by this analyst.")]
DeltaOption = Annotated[str, typer.Option(metavar="D", help="The chance of an exception: 1e-6.")]


def register(app: typer.Typer) -> None:
    """Add ``discreet ledger`` and ``discreet verify`` to the application.

    >>> app = typer.Typer()
    >>> register(app)
    >>> app.registered_groups[0].name
    'ledger'
    """
    ledger = typer.Typer(rich_markup_mode="rich")
    ledger.callback(invoke_without_command=True)(overview)
    commands: tuple[Callable[..., None], ...] = (
        *(init, create, limit, grant, accounts, show, history),
        *(proofs.verify, proofs.prove, proofs.checkpoint, witness, rotate, clock),
        *(copies.export, copies.import_, copies.backup),
    )
    for command in commands:
        ledger.command(command.__name__.rstrip("_"))(command)
    app.add_typer(ledger, name="ledger")
    app.command("verify")(proofs.verify_receipt)


def overview(context: typer.Context) -> None:
    """Keep one budget for everything that is released about a population.

    Begin with [bold]discreet ledger init[/bold], then open an account:
    [bold]discreet ledger create salaries --unit record --epsilon 5 --delta 1e-6[/bold]
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def init(
    ledger: LedgerOption = BUDGET,
    key: KeyOption = None,
    name: Annotated[
        str | None, typer.Option(help="Its name in checkpoints, such as example.com/budget.")
    ] = None,
    public: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write its public key.")
    ] = None,
    testing: Annotated[
        bool, typer.Option("--testing", help="Take charges for seeded noise. For tests only.")
    ] = False,
) -> None:
    """Make a new ledger with its secret key and its public key.

    Example: [bold]discreet ledger init --ledger budget.db --name example.com/budget[/bold]
    """
    from discreet.ledger import Ledger

    check_new(ledger)
    if is_server(ledger):
        _check_empty(ledger)
        if key is None:
            raise ParameterError(
                "say where the secret key of a ledger in a server shall be kept: --key FILE.",
                parameter="key",
            )
    secret = Path(f"{ledger}.key") if key is None else key
    beside = secret.with_suffix(".pub") if is_server(ledger) else Path(f"{ledger}.pub")
    target = beside if public is None else public
    if target.exists():
        raise ParameterError(
            f"{target} exists already, and a public key is never overwritten. Nothing was made.",
            parameter="public",
        )
    with refusals(), Ledger.open(ledger, key=key, testing=testing, name=name) as book:
        write_file(target, f"{book.vkey}\n", over=False)
        tell(f"Made the ledger {book.origin}.", bold=True)
    tell(f"ledger      {place(ledger)}")
    tell(f"secret key  {secret.absolute()}")
    tell(f"public key  {target.absolute()}")
    tell("Keep the secret key safe, and a copy of it elsewhere: without it nothing can be charged.")
    tell("Hand out the public key. Find a witness, on another machine and in other hands:")
    tell("only who remembers notices an old copy. See: discreet ledger witness --help")


def _check_empty(ledger: str) -> None:
    try:
        with reading(ledger):
            pass
    except LedgerUnavailable:
        return
    raise ParameterError(f"there is a ledger at {place(ledger)} already.", parameter="ledger")


def create(
    name: NameArgument,
    unit: Annotated[
        str, typer.Option(metavar="U", help="Who is protected: record, column:C or household:C.")
    ],
    epsilon: EpsilonOption,
    delta: DeltaOption = "0",
    per: Annotated[
        str | None, typer.Option(help="Protect each day, week, month or year by itself.")
    ] = None,
    neighbours: Annotated[str, typer.Option(help="add_remove, replace_one, zero_out.")] = (
        "add_remove"
    ),
    policy: Annotated[Policy, typer.Option(help="What happens at exhaustion.")] = Policy.deny,
    kind: Annotated[Kind | None, typer.Option(help="How the filter counts.")] = None,
    ledger: LedgerOption = BUDGET,
    key: KeyOption = None,
) -> None:
    """Open an account: the one budget of a population.

    Example: [bold]discreet ledger create visits --unit column:user_id --per day --epsilon 1[/bold]
    """
    protected = unit_of(unit, per)
    guarantee = guarantee_of(epsilon, delta)
    with writing(ledger, key) as book:
        account = book.create(
            name,
            unit=protected,
            neighbours=neighbours,
            guarantee=guarantee,
            policy=policy.value,
            kind=cast("FilterKind | None", kind and kind.value),
        )
        tell(f"Opened {account.name}: {views.guarantee_words(guarantee)}, for {protected}.")


def unit_of(text: str, per: str | None) -> "Unit":
    """Return the unit that was typed.

    >>> unit_of("column:user_id", "day")
    Unit.column('user_id').per('day')
    """
    from discreet.privacy import Unit

    kind, _, column = text.partition(":")
    if kind not in ("record", "column", "household") or (kind == "record") != (text == kind):
        raise ParameterError(
            "unit must be record, column:NAME or household:NAME, such as column:user_id.",
            parameter="unit",
        )
    makers = {"column": Unit.column, "household": Unit.household}
    found = Unit.record() if kind == "record" else makers[kind](column)
    return found if per is None else found.per(per)


def limit(
    name: NameArgument,
    epsilon: EpsilonOption,
    delta: Annotated[
        str | None, typer.Option(metavar="D", help="That of the account if not said.")
    ] = None,
    analyst: Annotated[str | None, typer.Option(help="Whom it limits; '*' for each.")] = None,
    purpose: Annotated[str | None, typer.Option(help="What it limits; '*' for each.")] = None,
    every: Annotated[
        str | None, typer.Option(help="Begin anew each day, week, month or year.")
    ] = None,
    ledger: LedgerOption = BUDGET,
    key: KeyOption = None,
) -> None:
    """Limit what an analyst, a purpose or a period may use of an account.

    Example: [bold]discreet ledger limit salaries --analyst ana --epsilon 1 --every month[/bold]
    """
    with writing(ledger, key) as book:
        account = book[name]
        guarantee = guarantee_of(epsilon, delta, old=account.guarantee)
        receipt = account.limit(guarantee, analyst=analyst, purpose=purpose, every=every)
        line = unquote(receipt.entries[0]["line"])
        tell(f"Limited {line} of {name} to {views.guarantee_words(guarantee)}.")


def grant(
    name: NameArgument,
    who: Annotated[str, typer.Option(help="Who decided it.")],
    reason: Annotated[str, typer.Option(help="Why; it stays on record.")],
    epsilon: Annotated[
        str | None, typer.Option(metavar="E", help="The new limit, not what is added to it.")
    ] = None,
    delta: Annotated[str | None, typer.Option(metavar="D", help="The new delta.")] = None,
    line: Annotated[str, typer.Option(help="Which limit, such as analyst=ana.")] = "total",
    ledger: LedgerOption = BUDGET,
    key: KeyOption = None,
) -> None:
    """Widen a budget. It can never be narrowed again, and everybody can see who widened it.

    Example:
    [bold]discreet ledger grant salaries --epsilon 8 --who board --reason "second survey"[/bold]
    """
    from discreet.ledger.plots import standing

    if epsilon is None and delta is None:
        raise ParameterError("say what to widen: --epsilon, --delta or both.", parameter="epsilon")
    with writing(ledger, key) as book:
        account = book[name]
        limits = standing(account).limits
        exact = next((one for one in limits if line in (one, unquote(one))), line)
        guarantee = guarantee_of(epsilon, delta, old=limits.get(exact))
        account.grant(guarantee, who=who, reason=reason, line=exact)
        tell(f"Widened {unquote(exact)} of {name} to {views.guarantee_words(guarantee)}.")


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
    name: NameArgument,
    who: WhoOption = None,
    purpose: Annotated[str | None, typer.Option(help="For this purpose.")] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the burn-down into a .png, .svg or .pdf file."),
    ] = None,
    ledger: LedgerOption = BUDGET,
    as_json: JsonOption = False,
) -> None:
    """Show an account: its terms, budgets, sources, open jobs, what still fits, its burn-down.

    Example: [bold]discreet ledger show salaries --who ana --plot salaries.png[/bold]
    """
    from discreet.ledger import plots

    with reading(ledger) as book:
        account = book[name]
        if plot is not None:
            written = plots.plot_burn_down(account, path=plot)
            if not as_json:
                tell(f"Wrote {written}.")
                return
        fits = views.fitting(account, who=who, purpose=purpose)
        now, points = plots.standing(account), plots.burn_down(account)
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
    from discreet.ledger.plots import shares

    wanted = LONG + 1 if last is None and not as_json else last
    with reading(ledger) as book:
        entries = book.history(last=wanted) if name is None else book[name].history(last=wanted)
        if last is None and not as_json and len(entries) > LONG:
            tell(f"The last {LONG} entries; say --last N for more.")
            entries = entries[-LONG:]
        known = {account.name: account for account in book}
        facts = [
            views.history_facts(
                entry, shares(known[entry["account"]], entry) if "after" in entry else {}
            )
            for entry in entries
        ]
    if as_json:
        echo_json(facts)
    else:
        views.print_history(Console(), facts, with_account=name is None)


def clock(
    who: Annotated[str, typer.Option(metavar="NAME", help="Who confirms it.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why so much time has passed.")],
    ledger: LedgerOption = BUDGET,
    key: KeyOption = None,
) -> None:
    """Confirm this machine's clock after a long silence, so that the ledger is written again.

    A clock that jumps far ahead would open allowances of the future, hence the question.

    Example: [bold]discreet ledger clock --who chris --reason "back from the archive"[/bold]
    """
    with writing(ledger, key) as book:
        receipt = book.accept_clock(who=who, reason=reason)
    tell(f"Entry {receipt.index} confirms that it is {receipt.entries[0]['time']}.")


def rotate(ledger: LedgerOption = BUDGET, key: KeyOption = None) -> None:
    """Sign with a new secret key from now on. Public keys handed out before stay good.

    Example: [bold]discreet ledger rotate[/bold]
    """
    with writing(ledger, key) as book:
        receipt = book.rotate()
        secret = Path(f"{ledger}.key") if key is None else key
    tell(f"Entry {receipt.index} changes the key. The new secret key is in {secret}: back it up.")
    tell(
        "The public key that you handed out still checks everything; receipts lead to the new one."
    )
