"""Overhear a program: logs, warnings, both standard streams, and files that it leaves behind."""

import logging
import os
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from discreet.audit.leaks.reading import read_error, read_files, read_value, snapshot

__all__ = ["Overheard", "overhear"]


class Overheard:
    """What was overheard: pairs of where and content, in the order of kinds."""

    def __init__(self) -> None:
        self.outputs: list[tuple[str, bytes | None]] = []

    def add(self, where: str, content: bytes | None) -> None:
        if content != b"":
            self.outputs.append((where, content))


@contextmanager
def overhear(folders: Iterable[Path] = (), *, excluded: Iterable[Path] = ()) -> Iterator[Overheard]:
    """Collect what a block writes to logs, warnings, streams, ``folders`` and temporary files.

    >>> with overhear() as heard:
    ...     logging.getLogger("app").debug("counted %d", 4213)
    >>> heard.outputs[0][0]
    'log of app'
    """
    heard = Overheard()
    with ExitStack() as stack:
        for part in (_files(heard, list(folders), list(excluded)), _temporary(heard)):
            stack.enter_context(part)
        for listen in (_streams, _warnings, _logs):
            stack.enter_context(listen(heard))
        yield heard


@contextmanager
def _logs(heard: Overheard) -> Iterator[None]:
    """Hear every record of every logger that has no level of its own, wherever it goes."""
    handle, level, disabled = (
        logging.Logger.handle,
        logging.root.level,
        logging.root.manager.disable,
    )
    reading = threading.local()

    def overheard(logger: logging.Logger, record: logging.LogRecord) -> None:
        # Read at once: whoever keeps a record keeps its arguments alive, which others may notice.
        if not getattr(reading, "is_busy", False):
            reading.is_busy = True
            try:
                heard.add(f"log of {record.name}", _record(record))
            finally:
                reading.is_busy = False
        handle(logger, record)

    logging.Logger.handle = overheard  # type: ignore[assignment,method-assign]
    logging.disable(logging.NOTSET)
    logging.root.setLevel(1)  # 0 would be all as well, but means "as the parent has it"
    try:
        yield
    finally:
        logging.root.setLevel(level)
        logging.disable(disabled)
        logging.Logger.handle = handle  # type: ignore[method-assign]


def _record(record: logging.LogRecord) -> bytes:
    try:
        message = record.getMessage()
    except Exception as error:  # arguments that do not fit, which logging prints as they are
        message = "".join(traceback.format_exception(error))
    parts = [message.encode("utf-8", "surrogateescape"), read_value(record.msg)]
    parts += [read_value(record.args), (record.stack_info or "").encode()]
    if record.exc_info and record.exc_info[1] is not None:
        parts.append(read_error(record.exc_info[1]))
    usual = vars(logging.makeLogRecord({}))
    extra = {name: value for name, value in vars(record).items() if name not in usual}
    return b"\n".join([*parts, read_value(extra)])


@contextmanager
def _warnings(heard: Overheard) -> Iterator[None]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for one in caught:
        heard.add("warning", read_value([str(one.message), one.message]))


@contextmanager
def _streams(heard: Overheard) -> Iterator[None]:
    """Catch file descriptors 1 and 2, so that native libraries and children are heard too."""
    with ExitStack() as stack:
        for number, name in ((1, "stdout"), (2, "stderr")):
            stack.enter_context(_stream(heard, number, name))
        yield


@contextmanager
def _stream(heard: Overheard, number: int, name: str) -> Iterator[None]:
    before = getattr(sys, name)
    before.flush()
    saved = os.dup(number)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), number)
        ours = os.fdopen(os.dup(number), "w", encoding="utf-8", errors="surrogateescape")
        setattr(sys, name, ours)
        try:
            yield
        finally:
            ours.flush()
            before.flush()
            setattr(sys, name, before)
            ours.close()
            os.dup2(saved, number)
            os.close(saved)
            file.seek(0)
            heard.add(name, file.read())


@contextmanager
def _temporary(heard: Overheard) -> Iterator[None]:
    """Give the block and its children a temporary folder of their own, and see what stays."""
    variables = ("TMPDIR", "TEMP", "TMP")
    before, chosen = {name: os.environ.get(name) for name in variables}, tempfile.tempdir
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(dict.fromkeys(variables, folder))
        tempfile.tempdir = None
        try:
            yield
        finally:
            tempfile.tempdir = chosen
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
            left = snapshot([Path(folder)])
            for where, content in read_files(left, folders=[Path(folder)]):
                heard.add(f"temporary {where}", content)


@contextmanager
def _files(heard: Overheard, folders: list[Path], excluded: list[Path]) -> Iterator[None]:
    before = snapshot(folders, excluded=excluded)
    try:
        yield
    finally:
        after = snapshot(folders, excluded=excluded)
        written = [path for path, state in after.items() if before.get(path) != state]
        for where, content in read_files(written, folders=folders):
            heard.add(where, content)
