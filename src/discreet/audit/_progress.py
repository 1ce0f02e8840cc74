"""A progress bar, only where somebody is looking and only once it has taken a while."""

import sys
import time
from collections.abc import Iterator

__all__ = ["progress"]

_PATIENCE = 2.0  # seconds of silence before the bar appears
_STEP = 256


def progress(total: int) -> Iterator[int]:
    """Yield 0 .. total-1, with a bar on a terminal if it takes more than two seconds."""
    if not sys.stderr.isatty():
        yield from range(total)
        return
    began, index = time.monotonic(), 0
    while index < total and time.monotonic() - began < _PATIENCE:
        yield index
        index += 1
    if index < total:
        yield from _with_bar(index, total)


def _with_bar(start: int, total: int) -> Iterator[int]:
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("sampling", total=total, completed=start)
        for index in range(start, total):
            yield index
            if index % _STEP == 0:
                bar.update(task, completed=index)
