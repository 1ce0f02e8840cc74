"""Read rows in other processes, ahead of their use, in the order in which they were asked for."""

import multiprocessing
import weakref
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from typing import Any, Final, final

import numpy as np
import torch.multiprocessing  # rows travel by shared memory, not by pipe

from discreet.learn.choices.draws import Indices
from discreet.learn.reading.making import RowMaker, seed_chance

__all__ = ["Here", "Reader", "Workers"]

Reading = Callable[[], list[Any]]
_CHUNKS: Final = 2  # for each worker: the last one does not keep the others waiting for long
_maker: RowMaker | None = None  # of this worker process


@final
class Here:
    """Read rows in this process, when they are needed."""

    is_ahead = False

    def __init__(self, maker: RowMaker) -> None:
        self._maker = maker

    def begin(self, indices: Indices) -> Reading:
        """Return what reads these rows."""
        return lambda: self._maker.all(indices)


@final
class Workers:
    """Read rows in ``count`` processes, which begin at once.

    They hold the dataset and draw nothing of the run's: which rows are read, and that they are paid
    for, was decided before. Where a process dies, its rows are read once more by new ones.
    """

    is_ahead = True

    def __init__(self, maker: RowMaker, count: int) -> None:
        self._maker, self._count = maker, count
        self._pool: ProcessPoolExecutor | None = None

    def begin(self, indices: Indices) -> Reading:
        """Start to read these rows; what is returned waits for them."""
        if indices.size == 0:
            return list
        try:
            found = self._submit(self._pool or self._open(), indices)
        except BrokenExecutor:
            return lambda: self._again(indices)
        return lambda: self._gathered(indices, found)

    def _submit(self, pool: ProcessPoolExecutor, indices: Indices) -> list["Future[list[Any]]"]:
        parts = min(indices.size, _CHUNKS * self._count)
        return [pool.submit(_make, part) for part in np.array_split(indices, parts)]

    def _gathered(self, indices: Indices, found: list["Future[list[Any]]"]) -> list[Any]:
        try:
            return _rows(found)
        except BrokenExecutor:
            return self._again(indices)

    def _again(self, indices: Indices) -> list[Any]:
        if self._pool is not None:
            self._pool.shutdown(wait=False)
        return _rows(self._submit(self._open(), indices))

    def _open(self) -> ProcessPoolExecutor:
        # Forked where that is possible: the dataset may be large, or have no pickle.
        known = multiprocessing.get_all_start_methods()
        context = multiprocessing.get_context("fork" if "fork" in known else None)
        self._pool = ProcessPoolExecutor(
            self._count, mp_context=context, initializer=_begin, initargs=(self._maker,)
        )
        weakref.finalize(self, self._pool.shutdown, wait=False, cancel_futures=True)
        return self._pool


Reader = Here | Workers


def _rows(parts: list["Future[list[Any]]"]) -> list[Any]:
    return [row for part in parts for row in part.result()]


def _begin(maker: RowMaker) -> None:
    global _maker
    _maker = maker
    torch.set_num_threads(1)
    seed_chance()


def _make(indices: Indices) -> list[Any]:
    assert _maker is not None
    return _maker.all(indices)
