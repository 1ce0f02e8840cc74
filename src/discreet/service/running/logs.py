"""What a gateway logs: one JSON object a line, and of errors their kind and place only.

An error's own words, and the values in a traceback, may show data. So they are written nowhere:
not by this package, not by a library that it uses, not by Python at the end of a thread.
"""

import asyncio
import json
import logging
import sys
import threading
import traceback
import warnings
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, final

__all__ = ["LogLine", "place_of", "quiet_loop", "set_up_logs"]

_OURS: Final = "discreet"
_TRACEBACK: Final = "Traceback (most recent call last):"


@final
class LogLine(logging.Formatter):
    """Write a record as one line.

    >>> record = logging.LogRecord("uvicorn.error", 20, "x.py", 1, "Started [%d]", (7,), None)
    >>> json.loads(LogLine().format(record))["message"]
    'Started [7]'
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; whatever brings an error along loses its words."""
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        level = record.levelname.lower()
        error = record.exc_info[1] if record.exc_info else None
        is_ours = error is None and record.name.startswith(_OURS)
        if is_ours and (told := record.getMessage()).startswith('{"'):  # JSON already
            return f'{{"time": "{when}", "level": "{level}", "logger": "{record.name}", {told[1:]}'
        line: dict[str, Any] = {"time": when, "level": level, "logger": record.name}
        if error is not None:
            line |= {"event": "error", **place_of(error)}
        elif (told := record.getMessage()).startswith(_TRACEBACK):  # as text, of whoever served
            last = told.strip().rpartition("\n")[2]
            line |= {"event": "error", "error": last.partition(":")[0]}
        else:
            line["message"] = told
        return json.dumps(line)


def place_of(error: BaseException) -> dict[str, Any]:
    """Return the kind of an error and the lines that it passed through.

    >>> place_of(ValueError("a secret"))
    {'error': 'ValueError', 'at': []}
    """
    frames = traceback.extract_tb(error.__traceback__)
    return {
        "error": type(error).__name__,
        "at": [
            f"{frame.filename.rpartition('site-packages/')[2]}:{frame.lineno}" for frame in frames
        ],
    }


def set_up_logs(level: int = logging.INFO) -> None:
    """Send all logs of this process to stderr, as lines of JSON, and errors without their words."""
    # No line says where in the code it was written, nor by which thread: finding out costs more
    # than all the rest of it (these are the switches of Python's page, under "Optimization").
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogLine())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(_OURS).setLevel(level)
    logging.getLogger("uvicorn").setLevel(logging.INFO)
    warnings.showwarning = _told_of_warning  # type: ignore[assignment]
    sys.excepthook = _told
    threading.excepthook = _told_of_thread


def _told(kind: type[BaseException], error: BaseException, trace: TracebackType | None, /) -> None:
    if not issubclass(kind, KeyboardInterrupt | SystemExit):
        logging.getLogger("discreet.service").error(
            json.dumps({"event": "crash", **place_of(error)}, sort_keys=True)
        )


def _told_of_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: object
) -> None:
    at = f"{filename.rpartition('site-packages/')[2]}:{lineno}"
    told = {"event": "warning", "warning": category.__name__, "at": at}
    logging.getLogger("discreet.service").warning(json.dumps(told, sort_keys=True))


def _told_of_thread(args: threading.ExceptHookArgs, /) -> None:
    if args.exc_value is not None:
        _told(args.exc_type, args.exc_value, args.exc_traceback)


def quiet_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Keep the words of errors that nobody waited for out of the log, too."""

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        told = {"event": "unawaited"} if error is None else {"event": "crash", **place_of(error)}
        logging.getLogger("discreet.service").error(json.dumps(told, sort_keys=True))

    loop.set_exception_handler(handle)
