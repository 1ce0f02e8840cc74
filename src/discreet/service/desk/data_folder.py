"""The folder that custodians may protect tables from: what lies there, and nothing elsewhere."""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final, final

from discreet.errors import NotAllowed, ParameterError
from discreet.tables import Declaration
from discreet.tables.engines import open_sources

__all__ = ["DataFolder"]

_ENDINGS: Final = (".parquet", ".pq", ".csv", ".tsv", ".csv.gz", ".tsv.gz")
_MOST: Final = 500  # files that are listed


@final
class DataFolder:
    """Finds the sources of declarations, and what may be declared; None allows nothing.

    >>> DataFolder(None).files()
    Traceback (most recent call last):
        ...
    discreet.errors.NotAllowed: this gateway takes no datasets over HTTP. Set data to the folder ...
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    @property
    def is_there(self) -> bool:
        """Whether tables may be protected over HTTP at all."""
        return self._folder is not None

    def files(self) -> list[str]:
        """List the files that may be tables, by their paths in the folder, sorted.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = (Path(folder) / "people.csv").write_text("age")
        ...     DataFolder(Path(folder)).files()
        ['people.csv']
        """
        root = self._root()
        found = (one for one in _walked(root) if one.lower().endswith(_ENDINGS))
        return sorted(one for one in islice(found, _MOST) if self._inside(one) is not None)

    def columns(self, source: str) -> dict[str, str]:
        """Return the columns of a file with their types.

        Those of CSV files are guessed from the rows, as they are when it is protected.
        """
        return dict(open_sources({"table": self._place("table", source)})["table"].columns)

    def sources(self, declaration: Declaration) -> dict[str, object]:
        """Return where the tables of a declaration are: in this folder, nowhere else."""
        self._root()
        if declaration.ledger is not None:
            raise ParameterError("a gateway has one ledger: leave it out.", parameter="ledger")
        tables = {**declaration.tables, **declaration.public}
        return {name: self._place(name, table.source or "") for name, table in tables.items()}

    def _root(self) -> Path:
        if self._folder is None:
            raise NotAllowed(
                "this gateway takes no datasets over HTTP. Set data to the folder that they may "
                "come from."
            )
        return self._folder

    def _place(self, name: str, source: str) -> str:
        place = self._inside(source)
        if place is None:
            raise ParameterError(
                f"the source of {name!r} must be a file in the gateway's data folder.",
                parameter="source",
            )
        return place

    def _inside(self, source: str) -> str | None:
        """Return the place of a file, or of a table in one, if the file is in the folder.

        Patterns and folders of files are refused: they may lead to a link that leads elsewhere.
        """
        file, mark, table = source.partition("::")
        try:
            root = self._root().resolve()
            place = (root / file).resolve()
            is_file = place.is_relative_to(root) and place.is_file()
        except (OSError, ValueError):  # no path at all
            return None
        return f"{place}{mark}{table}" if is_file else None


def _walked(root: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        folders.sort()
        yield from (str((Path(folder) / file).relative_to(root)) for file in sorted(files))
