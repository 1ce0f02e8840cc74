"""Processes that train: few on a host, one run at a time in each, and gone when nobody watches."""

import asyncio
import contextlib
import fcntl
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from time import monotonic
from typing import IO, Any, Final, final
from weakref import WeakKeyDictionary

from discreet._json import read_json
from discreet.errors import TryLater
from discreet.service.desk.gateway import Gateway
from discreet.service.pages.areas.training.plan import TrainingPlan

__all__ = ["Crew", "crew_of"]

_PROGRAM: Final = "discreet.service.pages.areas.training.trainer"
_PLACES: Final = 2  # processes on a host, each of some 400 MB
_MOST_WAITING: Final = 10
_PATIENCE: Final = 40.0  # seconds for a place
_LONGEST: Final = 60.0  # seconds of a run
_IDLE: Final = 30.0  # seconds until a process that nobody needs ends


@final
class Trainer:
    """One process, which holds one of the host's places as long as it lives."""

    def __init__(self, process: asyncio.subprocess.Process, place: IO[bytes]) -> None:
        self._process, self._place = process, place
        self._idle: asyncio.TimerHandle | None = None

    @classmethod
    async def start(cls, place: IO[bytes]) -> "Trainer":
        """Start a process; it is told nothing of the gateway's own settings."""
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("DISCREET_")
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", _PROGRAM,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL, start_new_session=True,
            env={**environment, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        )  # fmt: skip
        return cls(process, place)

    @property
    def is_alive(self) -> bool:
        """Whether it can take another run."""
        return self._process.returncode is None and not self._place.closed

    def order(self, line: str) -> None:
        """Send a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())

    async def heard(self) -> dict[str, Any]:
        """Return the next thing that it says."""
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process that trains has ended")
        found: dict[str, Any] = read_json(line)
        return found

    def kill(self) -> None:
        """End it now, and leave its place to others."""
        if self._idle is not None:
            self._idle.cancel()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._place.close()

    def rest(self, seconds: float) -> None:
        """End it unless it is needed again soon."""
        self._idle = asyncio.get_running_loop().call_later(seconds, self.kill)

    def wake(self) -> None:
        """Need it again."""
        if self._idle is not None:
            self._idle.cancel()


@final
class Crew:
    """The trainers of one worker. Belongs to the event loop of its gateway."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._resting: list[Trainer] = []
        self._waiting = 0
        self._settling: set[asyncio.Task[None]] = set()

    async def run(self, plan: TrainingPlan, *, is_paced: bool) -> AsyncIterator[dict[str, Any]]:
        """Train; yield what happens. Whoever leaves early stops the run."""
        # The first word comes at once: the browser knows that it is heard.
        yield {"kind": "waiting"}
        trainer = await self._hired()
        # A browser that reads nothing would hold the place for ever.
        clock = asyncio.get_running_loop().call_later(_LONGEST, trainer.kill)
        is_over = False
        try:
            trainer.order(json.dumps({"plan": plan.document, "is_paced": is_paced}))
            while (event := await trainer.heard())["kind"] != "end":
                if event["kind"] == "failed":
                    raise RuntimeError(event["why"])
                yield event
            is_over = True
        finally:
            clock.cancel()
            # In a task of its own: this one may be cancelled, and could wait for nothing.
            task = asyncio.ensure_future(self._settle(trainer, is_over=is_over))
            self._settling.add(task)
            task.add_done_callback(self._settling.discard)

    async def _hired(self) -> Trainer:
        """Return a process that has nothing to do, or start one where there is a place."""
        if self._waiting >= _MOST_WAITING:
            raise _crowded()
        self._waiting += 1
        try:
            until = monotonic() + _PATIENCE
            while True:
                while self._resting:
                    trainer = self._resting.pop()
                    if trainer.is_alive:
                        trainer.wake()
                        return trainer
                if (place := _taken(self._folder)) is not None:
                    return await Trainer.start(place)
                if monotonic() > until:
                    raise _crowded()
                await asyncio.sleep(0.25)
        finally:
            self._waiting -= 1

    async def _settle(self, trainer: Trainer, *, is_over: bool) -> None:
        """Let a trainer rest, once it has stopped what nobody wants any more."""
        if not is_over:
            try:
                trainer.order("stop")
                async with asyncio.timeout(5):
                    while (await trainer.heard())["kind"] != "end":
                        pass
            except (RuntimeError, OSError):
                trainer.kill()
                return
        trainer.rest(_IDLE)
        self._resting.append(trainer)


def _taken(folder: Path) -> IO[bytes] | None:
    """Take one of the host's places. It is free again when the file is closed, come what may."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for number in range(_PLACES):
        file = (folder / f"place-{number}").open("wb")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            continue
        return file
    return None


def _crowded() -> TryLater:
    return TryLater(
        "others are training here at the moment, and this machine has room for a few runs only. "
        "Try again in a minute.",
        seconds=30,
    )


_CREWS: WeakKeyDictionary[Gateway, Crew] = WeakKeyDictionary()


def crew_of(gateway: Gateway) -> Crew:
    """Return the crew of a gateway."""
    if gateway not in _CREWS:
        _CREWS[gateway] = Crew(gateway.settings.shared_folder("training"))
    return _CREWS[gateway]
