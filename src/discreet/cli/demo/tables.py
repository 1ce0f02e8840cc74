"""The demo: protect a table, ask what a question costs, pay, and check the receipt."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.text import Text

from discreet._exact import Number, refusal, whole
from discreet._words import percent
from discreet.cli.output import fitted, tell
from discreet.datasets import census, folder
from discreet.errors import ParameterError, Refused
from discreet.privacy import Guarantee, Unit

if TYPE_CHECKING:
    from discreet.tables import Protected

ROWS: Final = 50_000
MOST_ROWS: Final = 10**8
FILES: Final = ("people.csv", "census.csv", "PUMS.csv", "pums/PUMS.csv")
GUARANTEE: Final = Guarantee(epsilon=3, delta=1e-6)
# Chosen without looking at the data: bounds that depend on it would leak.
BOUNDS: Final = {"income": {"bounds": (0, 100_000)}, "age": {"bounds": (0, 100)}}

BY_REGION: Final = (
    "SELECT region, COUNT(*) AS people, AVG(income) AS income\n"
    "FROM people WHERE age >= 18\nGROUP BY region ORDER BY people DESC"
)
OVERALL: Final = "SELECT COUNT(*) AS people, AVG(income) AS income\nFROM people WHERE age >= 18"
BY_AGE: Final = "SELECT HISTOGRAM(age, 0, 100, 10) AS people\nFROM people"
RAW: Final = "SELECT * FROM people"


def run_demo(console: Console, *, data: Path | None, rows: Number | None) -> None:
    """Protect, quote, ask, ask again, and verify; all in a folder that is gone afterwards.

    >>> run_demo(Console(width=80), data=None, rows=2000)  # doctest: +ELLIPSIS
    1. Protect a table once: who is protected, and how much may ever be told
    ...
    """
    count = _rows(rows, data=data)
    with TemporaryDirectory() as place, _protected(place, data, count) as tables:
        say = _Page(console)
        say.title("1. Protect a table once: who is protected, and how much may ever be told")
        say.text(f"{tables.account.guarantee} for {tables.catalog.unit}.")
        first = BY_REGION if "region" in tables.tables["people"] else OVERALL
        say.title("2. Ask what a question costs, before anything is spent")
        say.text(tables.quote(first, epsilon=0.5))
        say.title("3. Pay, and get the answer with its error bars")
        answer = tables.sql(first, epsilon=0.5)
        say.text(answer)
        say.title("4. A histogram, paid with a share of the budget")
        say.text(tables.sql(BY_AGE, share="5%"))
        say.title("5. The same question again is free, and raw rows are never shown")
        say.text(f"asked again: {tables.sql(first, epsilon=0.5).is_recalled and 'nothing charged'}")
        try:
            tables.sql(RAW, epsilon=0.5)
        except Refused as error:
            say.text(f"{RAW}: {error}")
        say.title("6. Check the receipt, and the whole ledger, trusting nobody")
        _verify(say, tables, answer)
        say.title(f"{percent(tables.remaining, up=False)} of the budget is left")
        say.text("Next: discreet demo --write people.parquet, to try it yourself.")


def write_people(console: Console, path: Path, *, rows: Number | None) -> None:
    """Write generated people to a file, and say how to go on.

    >>> with TemporaryDirectory() as folder:
    ...     write_people(Console(), Path(folder) / "people.csv", rows=10)  # doctest: +ELLIPSIS
    Wrote ...people.csv: 10 people who do not exist.
    ...
    """
    import pyarrow as pa
    from pyarrow import csv, parquet

    writers = {".parquet": parquet.write_table, ".csv": csv.write_csv}
    if path.suffix.lower() not in writers:
        raise refusal("write", f"a file that ends in {' or '.join(writers)}", str(path))
    if path.exists():
        raise ParameterError(f"{path} exists already. It was not touched.", parameter="write")
    count = _rows(rows, data=None)
    try:
        writers[path.suffix.lower()](pa.table(census(count)), path)
    except OSError as error:
        raise ParameterError(
            f"{path} cannot be written ({error.strerror}).", parameter="write"
        ) from None
    tell(f"Wrote {path}: {count:,} people who do not exist.", console=console)
    tell(
        f"Next: discreet protect {path} --name people --unit person_id --epsilon 3 --delta 1e-6",
        console=console,
    )


def _verify(say: "_Page", tables: "Protected", answer: Any) -> None:
    from discreet.ledger.verifier import check_receipt

    ledger = tables.account.ledger
    proof = ledger.prove(answer.receipt).to_json()
    say.text(check_receipt(proof, ledger.vkey, answer=answer.to_json()))
    say.text(ledger.verify())


class _Page:
    """Prints what every terminal can show."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def title(self, words: str) -> None:
        self._console.print(Text(words, style="bold"))

    def text(self, shown: object) -> None:
        words = str(shown)
        if self._console.options.ascii_only:
            words = words.replace("±", "+/-").encode("ascii", "replace").decode()
        self._console.print(Text(fitted(words, self._console)), soft_wrap=True)
        self._console.print()


def _rows(rows: Number | None, *, data: Path | None) -> int:
    """Return how many people to generate."""
    if rows is None:
        return ROWS
    count = whole(rows, name="rows", hint="It is a number of people.")
    if count > MOST_ROWS:
        raise refusal("rows", f"at most {MOST_ROWS}", rows)
    if data is not None:
        raise ParameterError(
            "rows must not be given together with data (--data or DISCREET_DATA), which is read "
            "whole: of the first N rows, removing one person would change two. Leave --rows out.",
            parameter="rows",
        )
    return count


@contextmanager
def _protected(place: str, data: Path | None, rows: int) -> "Iterator[Protected]":
    """Protect generated people, or those of a CSV in the folder, each row a person."""
    # Imported here, so that the other commands need no database.
    from discreet.tables import protect

    source: object = census(rows) if data is None else str(_file(data))
    unit = Unit.column("person_id") if data is None else Unit.record()
    with protect(
        source,
        name="people",
        unit=unit,
        rows=1,
        guarantee=GUARANTEE,
        ledger=Path(place) / "budget.db",
        columns=BOUNDS,
    ) as tables:
        yield tables


def _file(data: Path) -> Path:
    home = folder(data)
    for name in FILES:
        if (home / name).is_file():
            return home / name
    raise ParameterError(
        f"the folder {str(data)!r} has none of the files {', '.join(FILES)}. Put one there, a CSV "
        "with the columns age and income, or leave --data out.",
        parameter="data",
    )
