"""Functions that fail with a row in what they say, and all that can be found out about an error."""

import traceback
import warnings
from typing import Any, Never

from discreet.errors import DataError

ROW = "4125" + "0"  # in two pieces, so that no line of source shows it


class Stop(BaseException):
    """An error that `except Exception` lets through."""


def chained() -> Never:
    try:
        {}[ROW]
    except KeyError as error:
        error.add_note(f"in row {ROW}")
        raise ValueError(ROW) from error
    raise AssertionError


def raised(error: BaseException) -> Never:
    raise error


def named() -> Never:
    raise type(f"Row{ROW}", (Exception,), {})


FAILURES = {
    "error": lambda: int(f"{ROW} euros"),
    "chain": chained,
    "name": named,
    "stop": lambda: raised(Stop(ROW)),
    "one of ours": lambda: raised(DataError(f"row {ROW} is bad.")),
}


def told(error: BaseException) -> str:
    """Return all that a logger can find out about an error, locals of our frames included."""
    assert error.__cause__ is None
    assert error.__context__ is None
    inner = error.__traceback__.tb_next  # the first frame is the test's own
    whole = traceback.TracebackException(type(error), error, inner, capture_locals=True)
    return f"{''.join(whole.format())} {error!r} {error.args} {vars(error)}"


def warned() -> Any:
    warnings.warn(f"row {ROW} looks odd", stacklevel=1)
