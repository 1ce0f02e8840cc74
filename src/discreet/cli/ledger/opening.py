"""Open a ledger for a command: where it is, what it refuses, how far it has come."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rich.console import Console

from discreet.errors import DiscreetError, LedgerError, LedgerUnavailable, ParameterError

if TYPE_CHECKING:
    from discreet.ledger import Ledger

Told = Callable[[int, int], None]


@contextmanager
def reading(ledger: str) -> "Iterator[Ledger]":
    """Open a ledger that exists, to read it."""
    from discreet.ledger import Ledger

    try:
        with refusals(), Ledger.open(ledger, create=False, read_only=True) as book:
            yield book
    except DiscreetError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise LedgerError(
            "something in this ledger cannot be understood: it was altered, or written by a newer "
            "version. Find out with: discreet ledger verify"
        ) from error


@contextmanager
def writing(ledger: str, key: Path | None) -> "Iterator[Ledger]":
    """Open a ledger that exists, to write to it."""
    from discreet.ledger import Ledger

    with refusals(), Ledger.open(ledger, key=key, create=False) as book:
        yield book


@contextmanager
def refusals() -> Iterator[None]:
    """Turn what files and proofs refuse into the errors that end in one line.

    >>> with refusals():
    ...     open("/no/such/file")
    Traceback (most recent call last):
        ...
    discreet.errors.LedgerUnavailable: /no/such/file: No such file or directory.
    """
    from discreet.ledger.verifier import NotProven

    try:
        yield
    except DiscreetError:
        raise
    except NotProven as error:
        raise ParameterError(f"{error}.", parameter="proof") from error
    except OSError as error:
        raise LedgerUnavailable(f"{error.filename}: {error.strerror}.") from error


@contextmanager
def progress(doing: str) -> Iterator[Told | None]:
    """Show how far something has come, on stderr, where that is a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task(doing, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


def is_server(ledger: str) -> bool:
    """Say whether a ledger lives in a server.

    >>> is_server("postgresql://db.example/budget"), is_server("budget.db")
    (True, False)
    """
    return "://" in ledger


def place(ledger: str) -> str:
    """Return where a ledger is, in words that hold no password.

    >>> place("postgresql://me:secret@db.example:5432/budget?password=secret")
    'postgresql://db.example:5432/budget'
    """
    if not is_server(ledger):
        return str(Path(ledger).absolute())
    parts = urlsplit(ledger)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def check_new(ledger: str) -> None:
    """Refuse where there is a file already."""
    if not is_server(ledger) and Path(ledger).exists():
        raise ParameterError(
            f"{ledger} exists already. Nothing was changed. Say another place with --ledger.",
            parameter="ledger",
        )
