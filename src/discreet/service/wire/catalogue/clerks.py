"""The near side of the clerk: starts it, asks it, and ends it when it takes too long."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from dataclasses import asdict
from typing import Any, Final, final

from discreet._json import read_json
from discreet.service.desk.queue import FairQueue
from discreet.service.wire.catalogue.metadata import DatasetMetadata
from discreet.service.wire.protocol.failures import WireFailure

__all__ = ["CatalogueClerk"]

_PROGRAM: Final = "from discreet.service.wire.catalogue.clerk import main; main()"
_INHERITED: Final = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LANG", "HOME")
_LARGEST: Final = 8 * 2**20  # bytes of one answer
_WAITING: Final = 20  # questions of one login
_START: Final = 30.0  # seconds that a process may take to start, on a busy machine
_HINT: Final = "It answers what tools ask of tables and columns. Nothing was spent."


@final
class CatalogueClerk:
    """Asks one process, question by question, and starts another where that one ended.

    >>> CatalogueClerk(seconds=2, rows=10)
    CatalogueClerk(not running)
    """

    def __init__(self, *, seconds: float, rows: int) -> None:
        self._seconds, self._rows = seconds, rows
        self._process: Process | None = None
        self._turns = FairQueue(slots=1, waiting=_WAITING)

    def __repr__(self) -> str:
        return f"CatalogueClerk({'running' if self._process else 'not running'})"

    async def ask(
        self, shown: DatasetMetadata, sql: str
    ) -> tuple[list[tuple[str, str]], list[list[Any]]]:
        """Return names and types (of DuckDB) of columns, and rows; raise where there is no answer.

        It is the same failure for whatever DuckDB does not like. Turns go round among logins.
        """
        asked = {"shown": asdict(shown), "sql": sql, "most": self._rows}
        async with self._turns.turn(shown.who):
            told = await self._told(asked)
        if told is None:
            raise WireFailure("57014", "this question of the catalogue took too long", hint=_HINT)
        if "failure" in told:
            raise WireFailure("0A000", "the catalogue cannot answer this question", hint=_HINT)
        if len(told["rows"]) > self._rows:
            raise WireFailure(
                "54000", f"the catalogue answers with at most {self._rows} rows", hint=_HINT
            )
        return [(name, type_) for name, type_ in told["columns"]], told["rows"]

    async def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            process.kill()
        await process.wait()
        if process.stdin is not None:
            process.stdin.close()
        # The pipe of its answers is closed by the loop, which wants a turn for it.
        await asyncio.sleep(0)

    async def _told(self, asked: dict[str, Any]) -> dict[str, Any] | None:
        """Return what the process says, None where it does not in time or at all."""
        is_done = False
        try:
            if self._process is None or self._process.returncode is not None:
                await self.close()
                async with asyncio.timeout(_START):
                    self._process = await self._started()
            async with asyncio.timeout(self._seconds):
                told = await _exchanged(self._process, asked)
            is_done = True
        except (TimeoutError, OSError, EOFError, ValueError):
            return None
        finally:
            if not is_done:  # whoever asks next must not get this answer
                await self.close()
        return told

    async def _started(self) -> Process:
        kept = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-c", _PROGRAM, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=kept
        )
        warm = asdict(DatasetMetadata(dataset="", who="", datasets=()))
        await _exchanged(process, {"shown": warm, "sql": "SELECT 1", "most": 1})
        return process


async def _exchanged(process: Process, asked: dict[str, Any]) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    body = json.dumps(asked).encode()
    process.stdin.write(len(body).to_bytes(4, "big") + body)
    await process.stdin.drain()
    size = int.from_bytes(await process.stdout.readexactly(4), "big")
    if size > _LARGEST:
        raise ValueError("too large an answer")
    told: dict[str, Any] = read_json(await process.stdout.readexactly(size))
    return told
