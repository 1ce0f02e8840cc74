"""Batches as users have them: tensors in tuples, lists and dicts."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor


def leaves(tree: Any) -> Iterator[Tensor]:
    """Yield the tensors of a batch, in order."""
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, dict):
        for value in tree.values():
            yield from leaves(value)
    elif isinstance(tree, (list, tuple)):
        for value in tree:
            yield from leaves(value)


def with_leaves(tree: Any, leaves: Iterator[Tensor]) -> Any:
    """Return a batch of the same form with other tensors in it."""
    if isinstance(tree, Tensor):
        return next(leaves)
    if isinstance(tree, dict):
        made = {name: with_leaves(value, leaves) for name, value in tree.items()}
        return made if type(tree) is dict else type(tree)(made)
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(with_leaves(value, leaves) for value in tree))
    if isinstance(tree, (list, tuple)):
        return type(tree)(with_leaves(value, leaves) for value in tree)
    return tree


def _rows(tensor: Tensor, few: int, units: int) -> Tensor:
    """Return the rows of a few units, repeated where there are not enough."""
    each = tensor.shape[0] // units
    wanted = torch.arange(few * each, device=tensor.device) % (units * each)
    return tensor[wanted]


def of_units(batch: Any, few: int, units: int) -> Any:
    """Return a batch of a few of the units.

    >>> of_units({"x": torch.arange(4)}, 3, 2)["x"]
    tensor([0, 1, 2, 3, 0, 1])
    """
    rows = iter([_rows(tensor, few, units) for tensor in leaves(batch)])
    return with_leaves(batch, rows)
