"""The generators that a forward pass may draw from, torch's and others, set and put back."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

__all__ = ["kept", "seed"]


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


def seed(device: torch.device, number: int) -> None:
    """Set the generators, on this device alone."""
    torch.default_generator.manual_seed(number)
    random.seed(number)
    np.random.seed(number)  # noqa: NPY002
    if device.type == "cuda":
        torch.cuda.default_generators[device.index or 0].manual_seed(number)
