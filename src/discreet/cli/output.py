"""Lines, paragraphs and JSON, for any terminal."""

import json
import os

import typer
from rich.console import Console
from rich.text import Text

from discreet._words import fit


def echo_json(document: object) -> None:
    """Print a document for programs.

    >>> echo_json({"size": 3})
    {
      "size": 3
    }
    """
    typer.echo(json.dumps(document, indent=2, allow_nan=False))


def tell(text: str, *, console: Console | None = None, bold: bool = False) -> None:
    """Print one line, broken between words only, so that what is in it can be copied.

    >>> tell("Wrote receipt.json.")
    Wrote receipt.json.
    """
    console = Console() if console is None else console
    shown = fitted(readable(text, console), console)
    console.print(Text(shown, style="bold" if bold else ""), soft_wrap=True)


def tell_command(text: str) -> None:
    """Print a line to be copied into a shell: whole, since a line break would be part of it.

    >>> tell_command("curl http://127.0.0.1:8000/healthz")
    curl http://127.0.0.1:8000/healthz
    """
    console = Console()
    console.print(Text(readable(text, console)), soft_wrap=True)


def fitted(text: str, console: Console) -> str:
    """Return lines that fit the terminal; a program that reads them gets them whole.

    >>> fitted("as it is", Console())
    'as it is'
    """
    is_for_people = console.is_terminal or "COLUMNS" in os.environ
    return fit(text, width=console.width, indent="  ") if is_for_people else text


def say(console: Console, text: str, *, bold: bool = False) -> None:
    """Print one paragraph.

    >>> say(Console(width=40), "epsilon is at most 1")
    epsilon is at most 1
    """
    console.print(Text(readable(text, console), style="bold" if bold else ""))


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
