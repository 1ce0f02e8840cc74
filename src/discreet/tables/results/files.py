"""Results as files for other programs: CSV and spreadsheets."""

import csv
import io
import math
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import MissingExtra, ParameterError

if TYPE_CHECKING:
    from discreet.tables.results.result import Result

__all__ = ["check_excel", "to_csv", "to_excel"]


def to_csv(result: "Result", path: "str | PathLike[str] | None", *, errors: bool) -> str | None:
    """See :meth:`discreet.tables.Result.to_csv`."""
    written = io.StringIO()
    rows = result.to_dicts(errors=errors)
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(result.names(errors=errors))
    writer.writerows([_plain(value) for value in row.values()] for row in rows)
    if path is None:
        return written.getvalue()
    Path(path).write_text(written.getvalue(), encoding="utf-8", newline="")
    return None


def _plain(value: Any) -> Any:
    """Leave out what is unknown, as readers of CSV expect it."""
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else value


def to_excel(result: "Result", path: "str | PathLike[str]", *, errors: bool) -> None:
    """See :meth:`discreet.tables.Result.to_excel`."""
    check_excel(path)
    frame = result.to_pandas(errors=errors)
    for name in frame.columns:
        if getattr(frame[name].dtype, "tz", None) is not None:  # a spreadsheet has no time zones
            frame[name] = frame[name].astype(str)
    frame.to_excel(path, index=False)


def check_excel(path: "str | PathLike[str]") -> None:
    """Refuse a spreadsheet that cannot be written, before anything is paid for.

    >>> check_excel("answer.txt")
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: a spreadsheet must end in .xlsx.
    """
    if Path(path).suffix.lower() != ".xlsx":
        raise ParameterError("a spreadsheet must end in .xlsx.", parameter="xlsx")
    needed: Mapping[str, tuple[str, ...]] = {
        "pandas": ("pandas",), "openpyxl": ("openpyxl", "xlsxwriter"),
    }  # fmt: skip
    for name, any_of in needed.items():
        if not any(find_spec(one) for one in any_of):
            raise MissingExtra(room="discreet.tables", needs=name, extra=None)
    import_module("pandas")
