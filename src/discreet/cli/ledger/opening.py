"""What the ledger's commands share: their options, opening, files, progress, numbers."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer
from rich.console import Console
from rich.text import Text

from discreet.cli.numbers import parse
from discreet.errors import DiscreetError, LedgerError, LedgerUnavailable, ParameterError

if TYPE_CHECKING:
    from discreet.ledger import Ledger
    from discreet.privacy import Guarantee

Told = Callable[[int, int], None]

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
BUDGET = "budget.db"


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


def read_file(path: Path) -> str:
    """Return the text of a file.

    >>> read_file(Path("/no/such/file"))
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: /no/such/file cannot be read as text.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise ParameterError(f"{path} cannot be read as text.", parameter="file") from None


def read_vkey(path: Path) -> str:
    """Return the public key in a file such as ledger.pub."""
    from discreet.ledger.verifier import first_vkey

    with refusals():
        return first_vkey(read_file(path))


def write_file(path: Path, text: str, *, over: bool = True) -> Path:
    """Write a text file; ``over`` an old one or not."""
    try:
        with path.open("w" if over else "x", encoding="utf-8", newline="") as file:
            file.write(text)
    except FileExistsError:
        raise ParameterError(
            f"{path} exists already. It was not touched.", parameter="file"
        ) from None
    except OSError as error:
        raise LedgerUnavailable(f"{path} cannot be written ({error.strerror}).") from error
    return path


def guarantee_of(
    epsilon: str | None, delta: str | None, *, old: "Guarantee | None" = None
) -> "Guarantee":
    """Return the guarantee that was typed; what was not is as in the old one.

    >>> old = guarantee_of("5", "1e-6")
    >>> guarantee_of("8", None, old=old)
    Guarantee(epsilon=8, delta=1e-06)
    """
    from discreet.privacy import Guarantee

    before = Guarantee(epsilon=0) if old is None else old
    return Guarantee(
        epsilon=before.epsilon if epsilon is None else parse(epsilon),
        delta=before.delta if delta is None else parse(delta),
    )


def echo_json(document: object) -> None:
    """Print a document for programs.

    >>> echo_json({"size": 3})
    {
      "size": 3
    }
    """
    typer.echo(json.dumps(document, indent=2, allow_nan=False))


def tell(text: str, *, console: Console | None = None, bold: bool = False) -> None:
    """Print one line, never broken, so that what is in it can be copied.

    >>> tell("Wrote receipt.json.")
    Wrote receipt.json.
    """
    console = Console() if console is None else console
    console.print(Text(readable(text, console), style="bold" if bold else ""), soft_wrap=True)


def readable(text: str, console: Console) -> str:
    r"""Return a text that cannot move the cursor, in letters that the terminal has.

    >>> readable("a\x1b[2Jb", Console())
    'a\\x1b[2Jb'
    """
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return shown.encode("ascii", "backslashreplace").decode() if is_plain(console) else shown


def is_plain(console: Console) -> bool:
    """Say whether a terminal has nothing but ASCII."""
    return bool(console.options.ascii_only)
