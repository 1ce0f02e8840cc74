"""``discreet audit all``, ``discreet audit mechanism`` and ``discreet audit leaks``.

The auditor is imported when a command runs, so that ``--help`` stays quick.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from discreet.cli.audit.leaks import leaks
from discreet.cli.numbers import parse
from discreet.cli.options import FILE, JsonOption
from discreet.cli.output import echo_json, tell

FLAGGED = 1  # exit code: something was checked and is not what it claims

SamplesOption = Annotated[
    str | None, typer.Option(metavar="N", help="The most samples of each input.")
]


def register(app: typer.Typer) -> None:
    """Add the audits to the application."""
    audits = typer.Typer(rich_markup_mode="rich", no_args_is_help=True)
    audits.callback()(audit)
    audits.command("all")(every)
    audits.command()(mechanism)
    audits.command()(leaks)
    app.add_typer(audits, name="audit")


def audit() -> None:
    """Measure what mechanisms leak. An audit can convict, not acquit."""


def every(
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Entries whose name has this in it; may be repeated."),
    ] = None,
    samples: SamplesOption = None,
    false_alarm: Annotated[
        str, typer.Option(metavar="P", help="Chance that any correct one is flagged.")
    ] = "1e-6",
    processes: Annotated[
        str | None, typer.Option(metavar="N", help="How many at a time; all cores if not said.")
    ] = None,
    csv: Annotated[Path | None, FILE(help="Write the table there, too.")] = None,
    write: Annotated[
        Path | None, FILE(help="Put the table into a .md page, or all figures into a .json file.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Audit every mechanism of the library on the inputs that try it hardest.

    Upper is what the accountant certifies, lower what the samples prove.
    Power is the smallest true epsilon flagged in 95 of 100 runs.
    Exits with 1 if a claim is refuted.

    Example: [bold]discreet audit all --only laplace --samples 50000[/bold]
    """
    from discreet.cli.audit.every import AuditFiles, audited

    files = AuditFiles(csv=csv, write=write)
    files.check()
    report = audited(
        only=only or [],
        samples=None if samples is None else parse(samples),
        false_alarm=parse(false_alarm),
        processes=None if processes is None else parse(processes),
    )
    if as_json:
        echo_json(report.to_dict())
    else:
        _tell_lines(report)
    for path in files.save(report):
        tell(f"Wrote {path}.", console=Console(stderr=True))
    raise typer.Exit(0 if report.passed else FLAGGED)


def mechanism(
    function: Annotated[
        str, typer.Argument(metavar="MODULE:FUNCTION", help="Yours, from this folder or installed.")
    ],
    epsilon: Annotated[str, typer.Option(metavar="E", help="What it claims, such as 1.")],
    pair: Annotated[
        str, typer.Option(metavar="JSON", help="Two neighbouring inputs, such as '[0, 1]'.")
    ],
    delta: Annotated[str, typer.Option(metavar="D", help="What it claims beside it.")] = "0",
    samples: Annotated[str, typer.Option(metavar="N", help="Calls for each input.")] = "100000",
    batch: Annotated[
        bool, typer.Option("--batch", help="It takes (input, n) and returns n outputs.")
    ] = False,
    confidence: Annotated[
        str, typer.Option(metavar="C", help="Of a claim that is refuted.")
    ] = "0.999",
    low_bits: Annotated[
        bool, typer.Option("--low-bits", help="Look at the last bits of floats instead.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Audit a function of yours: run it on two neighbouring inputs and count.

    Exits with 1 if its claim is refuted.
    A pass proves nothing; power says how much it could have shown.

    Example:
    [bold]discreet audit mechanism mine:noisy --epsilon 1 --pair '[0, 1]' --batch[/bold]
    """
    from discreet.cli.audit.own import audit_own, facts

    found = audit_own(
        function,
        pair=pair,
        epsilon=parse(epsilon),
        delta=parse(delta),
        samples=parse(samples),
        confidence=parse(confidence),
        batch=batch,
        low_bits=low_bits,
    )
    if as_json:
        echo_json(facts(found))
    else:
        _tell_lines(found)
    raise typer.Exit(0 if found.passed else FLAGGED)


def _tell_lines(thing: object) -> None:
    for line in str(thing).splitlines():
        tell(line)
