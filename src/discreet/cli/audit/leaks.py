"""``discreet audit leaks``: plant canaries, and search folders for them."""

from pathlib import Path
from typing import Annotated

import typer

from discreet._json import read_json
from discreet.cli.numbers import parse
from discreet.cli.options import FILE, JsonOption
from discreet.cli.output import echo_json, tell
from discreet.errors import ParameterError

LEAKED = 1  # exit code: something came out


def leaks(
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="FOLDER...", help="Logs, caches, exports.")
    ] = None,
    plant: Annotated[
        Path | None, FILE(help="Write a table of canaries there, and search nothing.")
    ] = None,
    table: Annotated[Path | None, FILE(help="The table of canaries that was planted.")] = None,
    rows: Annotated[str, typer.Option(metavar="N", help="How many people to plant.")] = "200",
    epsilon: Annotated[
        str, typer.Option(metavar="E", help="What may rightly be told about one person.")
    ] = "1",
    as_json: JsonOption = False,
) -> None:
    """Search logs and files for canaries that were planted in the data.

    First plant a table of people who do not exist. Give it to the program in place of the
    data, use the program, then search what it left behind. Also found: canaries in gzip, zip,
    SQLite, base64 and other encodings, rounded numbers, and hashes without salt.
    Exits with 1 if something came out.

    Example: [bold]discreet audit leaks --plant people.csv[/bold], and when the program ran:
    [bold]discreet audit leaks logs cache --table people.csv[/bold]
    """
    from discreet import audit

    if plant is not None:
        if plant.exists():
            raise ParameterError(
                f"{plant.name!r} exists already. Name a file that does not.", parameter="plant"
            )
        made = audit.plant(rows=parse(rows))  # type: ignore[arg-type]
        made.write(plant)
        tell(f"Planted {made.rows:,} people in {plant}. Keep it: the search needs it.")
        return
    if table is None or not folders:
        raise ParameterError(
            "name the folders to search and --table, the planted one; or --plant FILE to make one.",
            parameter="table",
        )
    planted = audit.Planted.read(table)
    reports = {
        str(folder): audit.scan(folder, planted, excluded=[table], epsilon=parse(epsilon))
        for folder in folders
    }
    if as_json:
        echo_json({folder: read_json(report.to_json()) for folder, report in reports.items()})
    for folder, report in reports.items() if not as_json else ():
        for line in f"{folder}: {report}".splitlines():
            tell(line)
    if not all(report.passed for report in reports.values()):
        raise typer.Exit(LEAKED)
