"""``discreet collect encode``: do what a device does, for the values in a file."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.output import tell
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.local.wire import Parameters

__all__ = ["encode"]


def encode(
    parameters: Annotated[
        Path, typer.Argument(metavar="PARAMETERS", help="What devices are told: a JSON file.")
    ],
    values: Annotated[
        str, typer.Argument(metavar="[VALUES]", help="A file, one value in a line; - for stdin.")
    ] = "-",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write there; to stdout if not said.")
    ] = None,
) -> None:
    """Randomise values and write reports, one for each line, as devices send them.

    A value is one of the labels, or a number of the domain. Each line is a device of its own: the
    caps a day and for a lifetime are kept by devices, and not by this command.

    Example: [bold]discreet collect encode emoji.parameters.json values.txt --out reports.bin[/bold]

    Send them: [bold]curl --data-binary @reports.bin http://127.0.0.1:8080/reports[/bold]
    """
    from discreet.local.wire import encode as written
    from discreet.local.wire import read_parameters

    told = read_parameters(_read(parameters))
    codes = _codes(told, _read_text(values))
    reports = b"".join(written(told, told.randomiser.release(codes)))
    if out is not None:
        out.write_bytes(reports)
        tell(f"Wrote {len(codes)} reports to {out}, {len(reports)} bytes.")
    elif sys.stdout.isatty():
        raise ParameterError(
            "reports are bytes, and no terminal shows them: name a file with --out, or pipe them.",
            parameter="out",
        )
    else:
        sys.stdout.buffer.write(reports)


def _codes(told: "Parameters", lines: list[str]) -> list[int]:
    """Return the number of each value, or say which line has none."""
    labels = told.values
    known = {} if labels is None else {label: code for code, label in enumerate(labels)}
    codes = []
    for number, line in enumerate(lines, start=1):
        code = known.get(line)
        if code is None and labels is None and line.isascii() and line.isdecimal():
            code = int(line) if len(line) < 20 else None
        if code is None or code >= told.randomiser.domain:
            wanted = "one of the labels" if labels else f"below {told.randomiser.domain}"
            raise ParameterError(
                f"line {number} must be {wanted}. No report was made. Look at what is asked with: "
                "discreet collect show NAME",
                parameter="values",
            )
        codes.append(code)
    return codes


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        raise ParameterError(f"{path} cannot be read.", parameter="parameters") from None


def _read_text(place: str) -> list[str]:
    from discreet.cli.collect.declaring import lines_of

    if place != "-":
        return lines_of(Path(place), parameter="values")
    return [line.strip() for line in sys.stdin if line.strip()]
