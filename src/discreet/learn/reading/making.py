"""One row at a time: whatever code of the user's makes a row, it sees no other one."""

import errno
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import default_collate

from discreet.errors import ParameterError
from discreet.learn.choices.draws import Indices
from discreet.learn.following.batch_tree import leaves

__all__ = ["Collate", "RowMaker", "Transform", "form_of"]

Collate = Callable[[list[Any]], Any]
Transform = Callable[[Any], Any]

# No row's doing: the machine lacks something, and every row would fail alike.
_BEYOND_ROWS: Final = (MemoryError, ConnectionError, TimeoutError)
_OF_DEVICES: Final = frozenset(
    {errno.EIO, errno.ENODEV, errno.ENXIO, errno.ESTALE, errno.ENOTCONN, errno.EMFILE, errno.ENFILE,
     errno.ENOMEM, errno.EBADF, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN}
)  # fmt: skip


@final
@dataclass(frozen=True, slots=True, repr=False)
class RowMaker:
    """From the number of a row to the row, a batch of one: here, or in a worker process.

    Claim: what becomes of a row depends on ``dataset[i]`` and on chance, on no other row. Why:
    ``transform`` gets the item, and ``collate`` a list of this one item; a row that cannot be made
    is None, whatever the reason, and the others are not asked.
    """

    dataset: Any
    transform: Transform | None
    collate: Collate | None
    debug: bool

    def __call__(self, index: int) -> Any:
        try:
            item = self.dataset[index]
            if self.transform is not None:
                item = self.transform(item)
            return default_collate([item]) if self.collate is None else self.collate([item])
        except _BEYOND_ROWS:
            raise
        except Exception as error:
            # A damaged picture is an OSError as well, but without the number of a device's error.
            if self.debug or (isinstance(error, OSError) and error.errno in _OF_DEVICES):
                raise
            return None

    def all(self, indices: Indices) -> list[Any]:
        """Make several rows, one after the other."""
        return [self(index) for index in indices.tolist()]


def form_of(row: Any) -> Any:
    """Return what rows must have in common to be put beside each other.

    >>> form_of({"x": torch.zeros(1, 3), "name": ["Ada"]})
    (<class 'dict'>, ('x', ((3,), torch.float32)), ('name', (<class 'list'>, <class 'str'>)))
    """
    if isinstance(row, Tensor):
        if row.shape[:1] != (1,):
            raise ParameterError(
                "collate is called with one item at a time and must give tensors of one row, "
                "(1, ...), for it. Nothing was spent.",
                parameter="collate",
            )
        return tuple(row.shape[1:]), row.dtype
    if isinstance(row, Mapping):
        return (dict, *((name, form_of(value)) for name, value in row.items()))
    if isinstance(row, tuple | list):
        return (type(row), *map(form_of, row))
    return type(row)


def joined(rows: list[Any]) -> Any:
    """Return rows of one form as one batch.

    >>> joined([(torch.ones(1, 2), ["a"]), (torch.zeros(1, 2), ["b"])])
    (tensor([[1., 1.],
            [0., 0.]]), ['a', 'b'])
    """
    first = rows[0]
    if isinstance(first, Tensor):
        return torch.cat(rows)
    if isinstance(first, Mapping):
        # A plain dict, whatever mapping of its own a collator returns.
        return {name: joined([row[name] for row in rows]) for name in first}
    if isinstance(first, list) and not any(True for _ in leaves(first)):
        return [value for row in rows for value in row]
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(joined(list(parts)) for parts in zip(*rows, strict=True)))
    if isinstance(first, tuple | list):
        return type(first)(joined(list(parts)) for parts in zip(*rows, strict=True))
    return rows


def seed_chance() -> None:
    """Give a worker process chance of its own: a copy of another's would repeat its crops."""
    random.seed()
    np.random.seed()  # noqa: NPY002  # what users' transforms draw from
    torch.seed()
