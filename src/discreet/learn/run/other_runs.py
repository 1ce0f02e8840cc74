"""Runs on the same data that no ledger adds up: noticed in one process, and told together."""

import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
from torch import Tensor
from torch.utils.data import Subset, TensorDataset

from discreet.learn.choices.stages import Noises
from discreet.learn.run.promise import Promise, certified
from discreet.learn.run.state import RunState

__all__ = ["notice"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """What a run was prepared on, promises, and has done."""

    data: tuple[Callable[[], object], ...]  # weak references
    promise: Promise
    state: RunState
    planned: Callable[[], int]

    @property
    def noises(self) -> Noises:
        """The steps that may be seen of it: all of an open run, those begun of another."""
        return self.state.begun | self.promise.noises(0, self.planned())


_seen: list[_Seen] = []


def notice(
    dataset: object, promise: Promise, state: RunState, *, planned: Callable[[], int]
) -> str:
    """Remember a run without an account, and tell what all such runs on its data cost together.

    ``planned`` tells how many steps it will have made if it goes on, 0 once it cannot.
    Returns nothing if it is the only one. Data is known by its objects and its memory, as long as
    they live: a copy, or the same file read again, is not recognised.

    Claim: the sum of the epsilons at the sum of the deltas holds for a unit that several runs
    protect, by basic composition [DR14, Theorem 3.16], also adaptively.
    """
    own = tuple(_parts(dataset))
    others = []
    for seen in list(_seen):
        parts = [part() for part in seen.data]
        if (
            any(part is None for part in parts) or seen.promise.run == promise.run
        ):  # gone; or resumed, and this is it
            _seen.remove(seen)
        elif seen.noises and any(_is_same(one, other) for one in own for other in parts):
            others.append(seen)
    this = _Seen(tuple(map(_weakly, own)), promise, state, planned)
    _seen.append(this)
    return _told(promise, others) if others else ""


def _told(promise: Promise, others: list[_Seen]) -> str:
    alike = [seen for seen in others if _protects(seen.promise) == _protects(promise)]
    total = certified(promise.loss(promise.noises(0, promise.steps)), promise.delta)
    total += sum(certified(o.promise.loss(o.noises), o.promise.delta) for o in alike)
    delta = float(promise.delta) + sum(float(seen.promise.delta) for seen in alike)
    also = len(others) - len(alike)
    unlike = f", and {also} that protect something else" if also else ""
    return (
        f"this data was trained on before in this process, without an account: {len(alike)} other "
        f"runs{unlike}. Together with this one they may cost {promise.unit} epsilon {total:.4g} at "
        f"delta {delta:.3g}, each run's own added up. Charge all of them to one account of a "
        "ledger (account=), which adds up more closely and refuses what is too much"
    )


def _protects(promise: Promise) -> tuple[str, str]:
    return promise.unit, str(promise.sampling.neighbours)


def _parts(dataset: object) -> Iterator[object]:
    """Yield the objects that hold the data."""
    if isinstance(dataset, Subset):
        yield from _parts(dataset.dataset)
    elif isinstance(dataset, TensorDataset):
        yield from dataset.tensors
    elif isinstance(dataset, tuple):
        yield from dataset
    elif isinstance(dataset, Mapping) and dataset:
        yield from dataset.values()
    else:
        yield dataset


def _weakly(part: object) -> Callable[[], object]:
    try:
        return weakref.ref(part)
    except TypeError:  # a list, say: known by its number and that of its first item
        known = _Numbered(id(part), id(next(iter(part), None)) if isinstance(part, list) else 0)
        return lambda: known


@final
@dataclass(frozen=True, slots=True)
class _Numbered:
    own: int
    first: int


def _is_same(one: object, other: object) -> bool:
    """Say whether two objects hold the same rows, or some of the same."""
    if isinstance(other, _Numbered):
        mine = _weakly(one)()
        return isinstance(mine, _Numbered) and mine == other
    here, there = _span(one), _span(other)
    if here is None or there is None:
        return one is other
    (device, start, stop), (place, begin, end) = here, there
    return device == place and start < end and begin < stop


def _span(part: object) -> tuple[str, int, int] | None:
    """Return where in memory an array is."""
    if isinstance(part, np.ndarray):
        start = int(part.ctypes.data)
        return "cpu", start, start + part.nbytes
    if isinstance(part, Tensor):
        start = part.data_ptr()
        return str(part.device), start, start + part.numel() * part.element_size()
    return None
