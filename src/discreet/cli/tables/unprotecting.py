"""Take back what was protected by mistake."""

import getpass
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.ledger.opening import writing
from discreet.cli.options import KeyOption
from discreet.cli.output import tell
from discreet.cli.tables.opening import NameArgument, WhoOption, declared
from discreet.errors import ParameterError

__all__ = ["unprotect"]


def unprotect(
    name: NameArgument,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="Why; it stays on record.")
    ] = "protected by mistake",
    who: WhoOption = None,
    key: KeyOption = None,
) -> None:
    """Take back what was protected by mistake, while nothing was asked.

    The data may then be protected anew, with an account of another name: NAME itself is not used
    again. The ledger keeps an entry that says so, and NAME.toml becomes NAME.toml.withdrawn.

    Example: [bold]discreet unprotect people --reason "wrong unit"[/bold]
    """
    from discreet.ledger import withdraw
    from discreet.tables import load

    path = declared(name)
    declaration = load(path)
    if declaration.ledger is None:
        raise ParameterError(f"{path} does not say where its ledger is.", parameter="name")
    place = declaration.ledger
    ledger = place if "://" in place else str(path.parent / place)
    with writing(ledger, key) as book:
        account = book[declaration.account or declaration.name]
        others = sorted(set(account.sources()) - set(declaration.tables))
        if others:
            raise ParameterError(
                f"account {account.name!r} has other tables, too: {', '.join(others)}. Nothing was "
                "changed.",
                parameter="name",
            )
        withdraw(account, who=who or getpass.getuser(), reason=reason)
    moved = path.rename(Path(f"{path}.withdrawn"))
    tell(f"Withdrew {account.name}: nothing had been asked. The declaration is in {moved}.")
    tell(
        f"Protect the data anew under another name, or: discreet protect ... --name "
        f"{declaration.name} --account {account.name}-2"
    )
