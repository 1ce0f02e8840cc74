"""The application: its commands put together, and every error told in one line."""

import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import current_thread, main_thread
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from discreet._version import __version__
from discreet.cli.accounting import commands as accounting
from discreet.cli.attack import commands as attack
from discreet.cli.audit import commands as audit
from discreet.cli.collect import commands as collect
from discreet.cli.demo import commands as demo
from discreet.cli.exercise import commands as exercise
from discreet.cli.explain import commands as explain
from discreet.cli.ledger import commands as ledger
from discreet.cli.output import fitted, readable
from discreet.cli.service import commands as service
from discreet.cli.shuffle import commands as shuffle
from discreet.cli.tables import commands as tables
from discreet.cli.train import commands as train
from discreet.errors import DiscreetError, TamperingFound

NOT_PROVEN = 1
BAD_INPUT = 2
# A traceback may show data, and tells its reader nothing to do.
_MISTAKE = (
    "a mistake of discreet itself ({}). What was charged stays charged. Please report the command; "
    "with DISCREET_DEBUG=1 it shows where it happened, and may show data."
)


class OneLineErrors(TyperGroup):
    """Answer bad input with one line on stderr and exit code 2, never with a traceback.

    Exit code 1 says that something was checked and found not to be what it claims.
    """

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command line; see the class."""
        run = partial(
            super().main, args, prog_name, complete_var, False, windows_expand_args, **extra
        )
        if not standalone_mode:
            return run()
        try:
            code = run()
        except typer.Abort:
            sys.exit(1)
        except DiscreetError as error:
            _complain(
                _typed(str(error), _option_names(self, sys.argv[1:] if args is None else args))
            )
            sys.exit(NOT_PROVEN if isinstance(error, TamperingFound) else BAD_INPUT)
        except Exception as error:
            if type(error).__name__ == "NoArgsIsHelpError":  # which has shown the help
                sys.exit(BAD_INPUT)
            message = _told(error, sys.argv[1:] if args is None else args)
            if message is None and os.environ.get("DISCREET_DEBUG"):
                raise
            _complain(message or _MISTAKE.format(type(error).__name__))
            sys.exit(BAD_INPUT)
        sys.exit(code if isinstance(code, int) else 0)


def _option_names(group: Any, args: Sequence[str]) -> list[str]:
    """Return the options of the command that was typed, without their dashes."""
    command = group
    for word in args:
        inner = getattr(command, "commands", {}).get(word)
        command = command if inner is None else inner
    options = [name for one in command.params for name in (*one.opts, *one.secondary_opts)]
    return sorted((name[2:] for name in options if name.startswith("--")), key=len, reverse=True)


def _typed(message: str, options: Sequence[str]) -> str:
    """Say options as they are typed, where a message names them as keywords of Python.

    >>> _typed("say exactly one of epsilon= and joined_rows=.", ["epsilon", "joined-rows"])
    'say exactly one of --epsilon and --joined-rows.'
    >>> _typed("epsilon must be positive, got -1. It fits with epsilon=0.5.", ["epsilon"])
    '--epsilon must be positive, got -1. It fits with --epsilon 0.5.'
    >>> _typed("protect it with account='sal' (--account).", ["account"])
    "protect it with --account 'sal'."
    """
    for name in options:
        keyword = re.escape(name.replace("-", "_"))
        message = re.sub(rf"(?<![\w.(-]){keyword}=(?=[\w'\"\[(])", f"--{name} ", message)
        message = re.sub(rf"(?<![\w.(-]){keyword}=(?![\w=])", f"--{name}", message)
        message = re.sub(rf"^{keyword}(?= (must|may)\b)", f"--{name}", message)
        message = re.sub(rf"(--{name} ('[^']*'|\S+)) \(--{name}\)", r"\1", message)
    return message


def _told(error: Exception, args: Sequence[str]) -> str | None:
    """Say what an error of the parser or of the operating system means; of others, nothing."""
    # The parser's own errors. Their class has moved between releases of Typer, but it has always
    # known how to say what is wrong.
    say = getattr(error, "format_message", None)
    if say is not None:
        return _with_remedy(str(say()), args)
    if isinstance(error, OSError) and error.strerror:
        of = "" if error.filename is None else f"{error.filename}: "
        return f"{of}{error.strerror}. Name another file or folder, or mend its permissions."
    return None


def _with_remedy(message: str, args: Sequence[str]) -> str:
    """Say what to do about words too many: mostly a question without quotes, or a file for --json.

    >>> _with_remedy("Got unexpected extra argument (a.json)", ["query", "t", "--json", "a.json"])
    'Got unexpected extra argument (a.json). --json prints: to get a file, write --json > FILE.'
    """
    if "unexpected extra argument" not in message:
        return message
    if "--json" in args:
        return f"{message}. --json prints: to get a file, write --json > FILE."
    if {"query", "quote"} & set(args):
        return f"{message}. A question stands in quotes: 'SELECT ...'."
    return message


def _complain(message: str) -> None:
    line = "discreet: " + " ".join(message.split())
    console = Console(stderr=True)
    typer.echo(fitted(readable(line, console), console), err=True)


app = typer.Typer(
    cls=OneLineErrors,
    no_args_is_help=False,
    rich_markup_mode="rich",
    # Typer's pretty tracebacks print local variables, and those may hold private values.
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"discreet {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """One privacy budget for everything you do with people's data.

    Begin with [bold]discreet demo[/bold], or ask what a guarantee means:
    [bold]discreet explain --epsilon 1 --delta 1e-6 --n 10000[/bold]
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


PARTS = (
    *(demo, explain, exercise, tables, service, train, collect, shuffle),
    *(attack, audit, accounting, ledger),
)
for part in PARTS:
    part.register(app)


def main() -> None:
    """Run the command line and exit.

    >>> from unittest import mock
    >>> with mock.patch("sys.argv", ["discreet", "--version"]):  # doctest: +ELLIPSIS
    ...     try:
    ...         main()
    ...     except SystemExit as stop:
    ...         print(stop.code)
    discreet ...
    0
    """
    with _ending_in_order():
        app(prog_name="discreet")


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """Let SIGTERM end the process as an error does, so that what was spilled is removed."""
    before = signal.getsignal(signal.SIGTERM)
    if before is not signal.SIG_DFL or current_thread() is not main_thread():
        yield
        return
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
