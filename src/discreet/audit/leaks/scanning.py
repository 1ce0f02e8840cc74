"""Exercise a surface that was given canaries, and search all that comes out of it."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

from discreet._exact import Number, nonnegative, probability
from discreet.audit.leaks.canaries import Planted
from discreet.audit.leaks.reading import read_error, read_files, read_value, snapshot
from discreet.audit.leaks.report import LeakReport
from discreet.audit.leaks.requesting import App, WebRequest, is_app, requesting
from discreet.audit.leaks.searching import Search
from discreet.audit.leaks.watching import overhear
from discreet.errors import ParameterError

__all__ = ["Surface", "as_callable", "exercise", "scan"]

Surface: TypeAlias = "Callable[[], object] | App | str | Path"


def scan(
    surface: Surface,
    planted: Planted,
    *,
    requests: Iterable[WebRequest | str] = (),
    folders: Iterable[str | Path] = (),
    excluded: Iterable[str | Path] = (),
    epsilon: Number = 1,
    false_alarm: Number = 1e-9,
) -> LeakReport:
    """Search everything that a surface hands out or leaves behind for what was planted.

    ``surface`` is a callable without arguments, an ASGI application, the address of a running
    server (both are asked ``requests``), or a folder of logs and files. A callable or application
    runs in this process and is overheard: results, exceptions, logs, warnings, standard output and
    error, temporary files, and files written to ``folders`` other than ``excluded``, which is
    where the planted table itself may lie. ``epsilon`` is what the surface may rightly tell about
    one person by the answers that are searched.

    Claim: where nothing comes out but answers that are epsilon-DP for each person, the scan fails
    with probability at most ``false_alarm``, however they are formed; see
    ``docs/how-to/scan-for-leaks.md``. A number is recognised by its digits, so one that is rounded
    to few of them is an accident unless many are met; :func:`scan_determinism` finds those.

    >>> from discreet.audit import plant
    >>> planted = plant(rows=50)
    >>> scan(lambda: max(planted.table["salary"]), planted).passed
    False
    >>> scan(lambda: len(planted.table["salary"]), planted).passed
    True
    """
    leaning, alarm = (
        nonnegative(epsilon, name="epsilon"),
        probability(false_alarm, name="false_alarm"),
    )
    search = Search(planted.canaries(), epsilon=float(leaning), false_alarm=float(alarm))
    places, left_out = [Path(one) for one in folders], [Path(one) for one in excluded]
    if isinstance(surface, Path):
        if not surface.exists():
            raise ParameterError(
                f"there is no folder {str(surface)!r} to search.", parameter="surface"
            )
        found = list(read_files(snapshot([surface], excluded=left_out), folders=[surface]))
    else:
        run = as_callable(surface, requests)
        found = exercise(run, folders=places, excluded=left_out)
    for where, content in found:
        search.feed(where, content)
    has_failed = any(where == "exception" for where, _ in found)
    return LeakReport(
        leaks=search.leaks(),
        outputs=search.outputs,
        size=search.size,
        false_alarm=float(alarm),
        scanned=f"{search.outputs:,} outputs for {search.canaries:,} canaries"
        + ", until it raised an exception" * has_failed,
        skipped=tuple(search.skipped),
    )


def as_callable(surface: object, requests: Iterable[WebRequest | str]) -> Callable[[], object]:
    """Return a surface as something to call."""
    if isinstance(surface, str) or is_app(surface):
        return requesting(surface, requests)  # type: ignore[arg-type]
    if not callable(surface):
        raise ParameterError(
            "surface must be a callable, an ASGI application, an address such as "
            f"http://127.0.0.1:8000, or a Path to a folder, got {type(surface).__name__}.",
            parameter="surface",
        )
    return surface


def exercise(
    run: Callable[[], object], *, folders: Iterable[Path], excluded: Iterable[Path] = ()
) -> list[tuple[str, bytes | None]]:
    """Call a surface once, and return all that came out, with where."""
    with overhear(folders, excluded=excluded) as heard:
        try:
            for where, content in _named(run()):  # a generator goes on working in here
                heard.add(where, content)
        except Exception as error:
            heard.add("exception", read_error(error))
    return heard.outputs


def _named(result: object) -> Iterable[tuple[str, bytes]]:
    """Return a result in parts, if it is a list of named parts as :func:`requesting` returns."""
    if isinstance(result, list) and all(
        isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str) for one in result
    ):
        return [(name, read_value(value)) for name, value in result]
    return [("result", read_value(result))]
