"""The generators that a forward pass may draw from, torch's and others: seeded, and put back."""

import random
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from torch import Tensor


@final
@dataclass(frozen=True, slots=True)
class Chance:
    """The generators of Python and of torch (on the CPU) as they were, to draw the same again."""

    python: Any
    torch: Tensor

    @classmethod
    def now(cls) -> "Chance":
        """Return their present state."""
        return cls(random.getstate(), torch.random.get_rng_state())

    def restore(self) -> None:
        """Let them go on from there."""
        random.setstate(self.python)
        torch.random.set_rng_state(self.torch)


@contextmanager
def kept(device: torch.device) -> Iterator[None]:
    """Put all generators back in the end.

    >>> before = torch.get_rng_state()
    >>> with kept(torch.device("cpu")):
    ...     _ = torch.rand(3)
    >>> torch.equal(before, torch.get_rng_state())
    True
    """
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 - masks come from it
    try:
        with torch.random.fork_rng([device.index or 0] if device.type == "cuda" else []):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002


def seed_all(device: torch.device, number: int) -> None:
    """Set the generators, on this device alone."""
    torch.default_generator.manual_seed(number)
    random.seed(number)
    np.random.seed(number)  # noqa: NPY002
    if device.type == "cuda":
        torch.cuda.default_generators[device.index or 0].manual_seed(number)


def chance_of(device: torch.device) -> Hashable:
    """Return what changes whenever chance is drawn on a device or on the host.

    >>> before = chance_of(torch.device("cpu"))
    >>> _ = random.random()
    >>> chance_of(torch.device("cpu")) == before
    False
    """
    own = torch.cuda.get_rng_state(device).numpy().tobytes() if device.type == "cuda" else b""
    return (own, chance_of_host())


def chance_of_host() -> Hashable:
    """Return what changes whenever chance is drawn on the host: a recorded step does not draw it.

    >>> before = chance_of_host()
    >>> _ = random.random()
    >>> chance_of_host() == before
    False
    """
    numpy = np.random.get_state()  # noqa: NPY002 - a model may use it
    drawn = (numpy[1].tobytes(), numpy[2])  # type: ignore[index]
    return (random.getstate(), drawn, torch.random.get_rng_state().numpy().tobytes())
