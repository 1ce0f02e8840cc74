"""The custodian's commands: make a ledger, change its key, confirm its clock."""

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.ledger.files import write_file
from discreet.cli.ledger.opening import check_new, is_server, place, reading, refusals, writing
from discreet.cli.options import BUDGET, FILE, KeyOption, LedgerOption
from discreet.cli.output import tell
from discreet.errors import LedgerUnavailable, ParameterError


def init(
    ledger: LedgerOption = BUDGET,
    key: KeyOption = None,
    name: Annotated[
        str | None, typer.Option(help="Its name in checkpoints, such as example.com/budget.")
    ] = None,
    public: Annotated[Path | None, FILE(help="Where to write its public key.")] = None,
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
    if key is not None and key.is_dir():  # as is every path without a name
        raise ParameterError(
            f"{key} is a folder: name a file for the secret key in it.", parameter="key"
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


def rollback(
    who: Annotated[str, typer.Option(metavar="NAME", help="Who accepts it.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="What happened to the newer copy.")],
    ledger: LedgerOption = BUDGET,
    key: KeyOption = None,
) -> None:
    """Go on with an older copy, after the newest one was lost. What is gone becomes an entry.

    Charges of the lost entries are forgotten while their answers are known: grant less than before.

    Example: [bold]discreet ledger rollback --who chris --reason "the disk died"[/bold]
    """
    from discreet.ledger import Ledger

    with refusals():
        receipt = Ledger.accept_rollback(ledger, key=key, who=who, reason=reason)
    entry = receipt.entries[0]
    tell(f"Entry {receipt.index} says that the log once had {entry['size']} entries.")
