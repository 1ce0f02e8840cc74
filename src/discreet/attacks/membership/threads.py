"""One thread for small models, in which several mostly wait for each other."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from discreet.errors import MissingExtra

__all__ = ["torch_in_one_thread"]


@contextmanager
def torch_in_one_thread() -> Iterator[Any]:
    """Yield torch, computing in one thread until the end: many times faster on a busy machine."""
    try:
        import torch
    except ImportError:
        raise MissingExtra(room="discreet.attacks", needs="torch", extra="learn") from None
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield torch
    finally:
        torch.set_num_threads(before)
