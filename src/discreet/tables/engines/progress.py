"""Run a query beside the main thread: Ctrl-C or a time limit stops it, a long one shows a bar."""

import math
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import TypeVar

__all__ = ["run", "time_limit"]

T = TypeVar("T")

_PATIENCE = 1.0  # seconds before a bar appears
_TICK = 0.1
_DEADLINE: ContextVar[float] = ContextVar("deadline", default=math.inf)


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Let all that is run inside take so long together; None: as long as it takes.

    >>> import time
    >>> with time_limit(1e-9):
    ...     run(lambda: time.sleep(0.01), stop=lambda: None, done=lambda: -1.0)
    Traceback (most recent call last):
        ...
    TimeoutError
    """
    before = _DEADLINE.set(math.inf if seconds is None else monotonic() + seconds)
    try:
        yield
    finally:
        _DEADLINE.reset(before)


def run(work: Callable[[], T], *, stop: Callable[[], None], done: Callable[[], float]) -> T:
    """Return what ``work`` returns, or raise what it raises.

    ``done`` is asked for the percentage that is done (negative where unknown). If the waiting
    thread is interrupted, ``stop`` is called, the work is waited for, and the interrupt goes on; a
    :func:`time_limit` does the same with a TimeoutError.

    >>> run(lambda: 6 * 7, stop=lambda: None, done=lambda: -1.0)
    42
    """
    results: list[T] = []
    errors: list[BaseException] = []
    finished = threading.Event()

    def carry_out() -> None:
        try:
            results.append(work())
        except BaseException as error:  # handed to the waiting thread
            errors.append(error)
        finally:
            finished.set()

    worker = threading.Thread(target=carry_out, name="discreet-query", daemon=True)
    worker.start()
    try:
        _wait(finished, done)
    except BaseException:
        stop()
        while not finished.wait(_TICK):
            stop()  # again, for work that had not yet begun then takes no notice
        raise
    finally:
        worker.join()
    if errors:
        raise errors[0]
    return results[0]


def _wait(finished: threading.Event, done: Callable[[], float]) -> None:
    if _is_over(finished, _PATIENCE) or not _is_watched():
        while not _is_over(finished, _TICK):
            pass
        return
    with _bar() as show:
        while not _is_over(finished, _TICK):
            show(done())


def _is_over(finished: threading.Event, patience: float) -> bool:
    """Wait a while, but not beyond the time limit."""
    left = _DEADLINE.get() - monotonic()
    if finished.wait(max(0.0, min(patience, left))):
        return True
    if left <= patience:
        raise TimeoutError
    return False


def _is_watched() -> bool:
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def _bar() -> Iterator[Callable[[float], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("reading"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reading", total=None)

        def show(percent: float) -> None:
            if percent >= 0:
                progress.update(task, total=100, completed=min(percent, 100))

        yield show
