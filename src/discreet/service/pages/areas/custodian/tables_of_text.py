"""Tables as CSV that other programs open, and that a spreadsheet does not run."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any, Final

from discreet.service.pages.page import PageFile

__all__ = ["as_csv"]

_FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r")


def as_csv(name: str, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> PageFile:
    r"""Return a file of CSV.

    Texts of the ledger are what analysts called themselves and their purposes: none of them
    becomes a formula where the file is opened.

    >>> as_csv("x.csv", ["who"], [{"who": "=1+1"}, {"who": "ana"}]).content
    b"who\r\n'=1+1\r\nana\r\n"
    """
    out = io.StringIO()
    write = csv.writer(out)
    write.writerow(columns)
    write.writerows([_plain(row.get(one)) for one in columns] for row in rows)
    return PageFile(
        name=name, media_type="text/csv; charset=utf-8", content=out.getvalue().encode()
    )


def _plain(value: Any) -> Any:
    is_formula = isinstance(value, str) and value.startswith(_FORMULAS)
    return f"'{value}" if is_formula else value
