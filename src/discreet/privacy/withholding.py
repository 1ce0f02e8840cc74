"""Call a function that sees data, without letting out what it says when it fails."""

import copy
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar, final

from discreet.errors import DataError, DiscreetError

__all__ = ["quietly"]

T = TypeVar("T")


def quietly(
    function: Callable[[], T],
    /,
    *,
    what: str,
    outcome: str,
    tells_refusals: bool = False,
    debug: bool = False,
) -> T:
    """Return ``function()``; if it fails, tell ``what`` failed and the ``outcome``, no more.

    Messages such as int()'s repeat the value, so a :class:`DataError` takes the error's place, all
    failures read alike, and no cause, context or frame leads inside. Warnings are withheld, too.
    ``tells_refusals`` lets the text of this library's own errors through, which never show a value.
    ``debug`` lets everything out: only for the eyes of who may see the data. What a function prints
    or logs itself cannot be helped.

    >>> row = {"age": "41 years"}
    >>> quietly(lambda: int(row["age"]), what="this function", outcome="Nothing was spent.")
    Traceback (most recent call last):
        ...
    discreet.errors.DataError: this function failed. What it says may show data, so it is withheld:
    try it on made-up data, or with debug=True where nobody but the custodian sees errors. Nothing
    was spent.
    """
    if debug:
        return function()
    failure: BaseException
    try:
        with _without_warnings():
            return function()
    except KeyboardInterrupt:
        failure = KeyboardInterrupt()
    except SystemExit:
        failure = SystemExit(1)
    except BaseException as error:
        # Not even its type is told, which may depend on one row.
        if tells_refusals and isinstance(error, DiscreetError) and _is_ours(error):
            failure = _afresh(error, outcome)
        else:
            failure = DataError(
                f"{what} failed. What it says may show data, so it is withheld: try it on made-up "
                f"data, or with debug=True where nobody but the custodian sees errors. {outcome}"
            )
    raise failure  # out here, it has no __context__ that could tell more


def _is_ours(error: DiscreetError) -> bool:
    return type(error).__module__ == DiscreetError.__module__


def _afresh(error: DiscreetError, outcome: str) -> DiscreetError:
    """Return the same refusal without its past, which leads to frames that hold data."""
    told = copy.copy(error)
    told.__dict__.pop("__notes__", None)
    if outcome not in str(error):
        told.args = (f"{error} {outcome}",)
    return told


_here: Final = threading.local()


@final
class _InQuietThreads:
    """Stands where a filter of warnings has its pattern: matches whatever is said quietly."""

    def match(self, text: str, /) -> bool:
        return getattr(_here, "depth", 0) > 0


_FILTER: Final = ("ignore", _InQuietThreads(), Warning, None, 0)


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Show no warning of this thread.

    ``warnings.catch_warnings`` changes what all threads show, and two that leave it in the wrong
    order would change it for good.
    """
    filters: list[object] = warnings.filters  # type: ignore[assignment]
    if not filters or filters[0] is not _FILTER:
        filters[:] = [_FILTER, *(one for one in filters if one is not _FILTER)]
    _here.depth = getattr(_here, "depth", 0) + 1
    try:
        yield
    finally:
        _here.depth -= 1
