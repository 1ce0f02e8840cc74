"""Batches as users have them: tensors in tuples, lists and dicts."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

_MODERATE = 8.0  # no made-up number is larger


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


def tensors(*trees: object) -> Iterator[Tensor]:
    """Yield the tensors in the arguments of a torch function, in order.

    >>> len(list(tensors((torch.ones(1), [torch.ones(2)]), {"bias": torch.ones(3), "p": 1})))
    3
    """
    for tree in trees:
        if isinstance(tree, Tensor):
            yield tree
        elif isinstance(tree, (list, tuple)):
            yield from tensors(*tree)
        elif isinstance(tree, dict):
            yield from tensors(*tree.values())


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


def made_up(batch: Any, few: int, units: int, *, seed: int = 0) -> Any:
    """Return a batch that looks like this one and shows nothing of it: for trying a model out.

    Every number is some row's number at the same place, finite and not large; so tokens are
    tokens and masks are masks, but no row is a row.

    >>> made_up((torch.full((2, 3), float("inf")),), 3, 2)[0].shape
    torch.Size([3, 3])
    """
    chance = torch.Generator(device="cpu").manual_seed(seed)
    found = []
    for tensor in leaves(batch):
        shape = (few * (tensor.shape[0] // units), *tensor.shape[1:])
        rows = torch.randint(tensor.shape[0], shape, generator=chance, device="cpu")
        values = tensor.detach().gather(0, rows.to(tensor.device))
        if values.is_floating_point():
            values = values.nan_to_num(0.0, 0.0, 0.0).clamp(-_MODERATE, _MODERATE)
        found.append(values)
    return with_leaves(batch, iter(found))


def contrasting(batch: Any, few: int, units: int, *, seed: int = 0) -> Any:
    """Return a batch as :func:`made_up` does, whose rows differ even if those of the batch do not.

    Floats are drawn between the smallest and the largest of the batch, or up to 0 and 1 where
    these are one number.

    >>> len(contrasting((torch.zeros(2, 3),), 3, 2)[0].unique())
    9
    """
    made = made_up(batch, few, units, seed=seed)
    chance = torch.Generator(device="cpu").manual_seed(seed)
    found = []
    for tensor in leaves(made):
        values = tensor
        if tensor.is_floating_point() and tensor.numel():
            low, high = float(tensor.min()), float(tensor.max())
            if low == high:
                low, high = min(low, 0.0), max(high, 1.0)
            drawn = torch.rand(tensor.shape, generator=chance, device="cpu")
            values = (low + (high - low) * drawn).to(tensor)
        found.append(values)
    return with_leaves(made, iter(found))


def blank(tree: Any) -> Any:
    """Return a batch of this form with nothing in it but zeros: an error about it shows no data.

    >>> blank({"x": torch.ones(2), "name": "Ada"})
    {'x': tensor([0., 0.]), 'name': ''}
    """
    if isinstance(tree, dict):
        return {name: blank(value) for name, value in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*map(blank, tree))
    if isinstance(tree, (list, tuple)):
        return type(tree)(map(blank, tree))
    return torch.zeros_like(tree) if isinstance(tree, Tensor) else type(tree)()
