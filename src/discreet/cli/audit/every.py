"""The whole catalogue from the command line: which entries, with progress, and to which files."""

import os
import re
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from rich.console import Console

from discreet._exact import Number, whole
from discreet.errors import DataError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from discreet.audit import CatalogueEntry, CatalogueReport

__all__ = ["AuditFiles", "audited", "chosen"]

_BEGIN, _END = "<!-- catalogue -->", "<!-- /catalogue -->"
_MOST = 10_000_000  # samples; a terminal would wait for hours


def audited(
    *,
    only: Sequence[str],
    samples: Number | None,
    false_alarm: Number,
    processes: Number | None,
) -> "CatalogueReport":
    """Run the entries asked for, with a bar on a terminal."""
    from discreet.audit import CATALOGUE, run_catalogue

    if samples is not None and whole(samples, name="samples", minimum=100) > _MOST:
        raise ParameterError(f"samples must be at most {_MOST}.", parameter="samples")
    many = _cores() if processes is None else min(whole(processes, name="processes"), _cores())
    entries = chosen(CATALOGUE, only)
    with _bar(len(entries)) as tell:
        return run_catalogue(
            entries,
            samples=None if samples is None else int(samples),
            false_alarm=false_alarm,
            processes=many,
            tell=tell,
        )


def chosen(entries: "Sequence[CatalogueEntry]", only: Sequence[str]) -> "list[CatalogueEntry]":
    """Return the entries whose name contains one of these words, or all.

    >>> from discreet.audit import CATALOGUE
    >>> [entry.name for entry in chosen(CATALOGUE, ["warner"])]
    ['Warner', 'Warner, forced yes']
    """
    if not only:
        return list(entries)
    words = [word.strip().lower() for word in only]
    for word in words:
        if not word or not any(word in entry.name.lower() for entry in entries):
            names = sorted({entry.name.split(",")[0].split(" ")[0] for entry in entries})
            raise ParameterError(
                f"only must be part of a name in the catalogue: {', '.join(names)}.",
                parameter="only",
            )
    return [entry for entry in entries if any(word in entry.name.lower() for word in words)]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFiles:
    """Where the table is written to; None for nowhere."""

    csv: Path | None
    write: Path | None

    def check(self) -> None:
        """Refuse what cannot be written, before minutes are spent."""
        places = (("csv", self.csv, (".csv",)), ("write", self.write, (".md", ".json")))
        for name, path, suffixes in places:
            if path is None:
                continue
            if path.suffix.lower() not in suffixes:
                raise ParameterError(f"{name} must end in {' or '.join(suffixes)}.", parameter=name)
            if not os.access(path.parent, os.W_OK) or path.is_dir():
                raise ParameterError(
                    f"{name} must be a file that can be written, and {path} is none.",
                    parameter=name,
                )

    def save(self, report: "CatalogueReport") -> list[Path]:
        """Write the files; a page that marks the table's place keeps its other words."""
        written = []
        if self.csv is not None:
            _put(self.csv, report.to_csv())
            written.append(self.csv)
        if self.write is not None:
            _put(self.write, _kept(self.write, report))
            written.append(self.write)
        return written


def _kept(path: Path, report: "CatalogueReport") -> str:
    """Return what a file will hold: all figures, or the table of a page."""
    if path.suffix.lower() == ".json":
        from discreet.audit import KeptCatalogue

        return KeptCatalogue.of(report).to_json()
    return _page(path, f"{_BEGIN}\n{report.to_markdown()}\n{_END}\n")


def _page(path: Path, table: str) -> str:
    try:
        old = path.read_text(encoding="utf-8") if path.exists() else ""
    except (OSError, UnicodeDecodeError):
        raise DataError(f"{path} is no page of text, and was not touched.") from None
    if not old:
        return f"# The catalogue of mechanisms, audited\n\n{table}"
    place = re.compile(f"{_BEGIN}.*{_END}\n?", re.S)
    if not place.search(old):
        raise DataError(
            f"{path} has no {_BEGIN} ... {_END} to put the table into, and was not touched."
        )
    return place.sub(lambda _: table, old)


def _put(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DataError(f"{path} could not be written ({error.strerror}).") from None


def _cores() -> int:
    """Return how many cores this process may use."""
    count = getattr(os, "sched_getaffinity", None)
    return len(count(0)) if count else os.cpu_count() or 1


@contextmanager
def _bar(total: int) -> "Iterator[Callable[[Any], object] | None]":
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    from rich.progress import Progress

    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("auditing", total=total)
        yield lambda line: progress.update(task, advance=1, description=line.name)
