"""Find out which axis of which operand counts the units, by running a model on two and on three.

A shape alone can not tell: 512 positions look like 32 examples of 16. So the forward pass is run
twice on a few rows, and an axis that grows with the number of rows is the one that counts them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, final

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from discreet.errors import ParameterError

PROBES = (2, 3)  # the numbers of units that a model is tried on


@final
@dataclass(frozen=True, slots=True)
class Axis:
    """Where a tensor counts units.

    Unit u has the places u * each ... (u + 1) * each - 1 of axis ``dim``; or, where the units are
    the minor index of a flattened axis, the places u, u + units, u + 2 * units, ... Where all rows
    are alike, as of a state that begins at zero, it can not be told: ``is_minor`` is None.
    """

    dim: int
    each: int
    is_minor: bool | None = False


MIXED = Axis(dim=-1, each=0)  # examples meet each other: nothing belongs to one of them


@final
@dataclass(frozen=True, slots=True)
class TorchCall:
    """One call of a torch function: its name, and the axes of its tensors and of its results."""

    name: str
    operands: tuple[Axis | None, ...]
    results: tuple[Axis | None, ...]


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


def calmly(func: Any, args: Any, kwargs: Any) -> Any:
    """Call a torch function without dropout: the same rows then give the same numbers."""
    if "dropout" in func.__name__:
        return args[0] if args else kwargs["input"]
    if kwargs.get("dropout_p"):
        kwargs = {**kwargs, "dropout_p": 0.0}
    if func is torch.nn.functional.scaled_dot_product_attention and len(args) > 4:
        args = (*args[:4], 0.0, *args[5:])
    return func(*args, **kwargs)


@final
class ShapeLog(TorchFunctionMode):
    """Write down the shapes of all operands and results of a forward pass."""

    def __init__(self, expansions: dict[Any, Any]) -> None:
        super().__init__()
        self._expansions = expansions
        self.calls: list[tuple[str, list[Tensor], list[Tensor]]] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in self._expansions:
            with self:
                return self._expansions[func](*args, **kwargs)
        place = len(self.calls)
        self.calls.append((func.__name__, [t.detach() for t in tensors(args, kwargs)], []))
        result = calmly(func, args, kwargs)
        self.calls[place][2].extend(t.detach() for t in tensors(result))
        return result


def compare(small: ShapeLog, large: ShapeLog) -> list[TorchCall]:
    """Return the axes of every call, from its tensors with two and with three units."""
    if _outline(small) != _outline(large):
        raise ParameterError(
            "the model calls other operations for two examples than for three, so what belongs "
            "to one example can not be told. Remove what depends on the size of the batch.",
            parameter="model",
        )
    calls = [
        TorchCall(
            name=name,
            operands=tuple(_axis(a, b) for a, b in zip(few, more, strict=True)),
            results=tuple(_axis(a, b) for a, b in zip(outs, outs_more, strict=True)),
        )
        for (name, few, outs), (_, more, outs_more) in zip(small.calls, large.calls, strict=True)
    ]
    return _settled(calls)


def _outline(log: ShapeLog) -> list[tuple[str, int, int]]:
    return [(name, len(operands), len(results)) for name, operands, results in log.calls]


def _axis(few: Tensor, more: Tensor) -> Axis | None:
    grown = [d for d, (a, b) in enumerate(zip(few.shape, more.shape, strict=False)) if a != b]
    if few.dim() != more.dim() or len(grown) > 1:
        return MIXED
    if not grown:
        return None
    (dim,) = grown
    each, rest = divmod(few.shape[dim], PROBES[0])
    if rest or each * PROBES[1] != more.shape[dim]:
        return MIXED
    if each == 1:
        return Axis(dim=dim, each=1)
    # A flattened axis: the rows of the first units are the same in both, at places that tell
    # which of the two indices is the minor one.
    first, second = few.movedim(dim, 0), more.movedim(dim, 0)
    is_major = _is_close(first[:each], second[:each])
    is_minor = _is_close(first[:: PROBES[0]], second[:: PROBES[1]])
    if is_major and is_minor:
        return Axis(dim=dim, each=each, is_minor=None)
    if is_major or is_minor:
        return Axis(dim=dim, each=each, is_minor=is_minor)
    return MIXED


def _settled(calls: list[TorchCall]) -> list[TorchCall]:
    """Take rows that are all alike to be ordered as all others are, if these agree.

    A wrong guess does not go unnoticed: gradients are compared before anything is released.
    """
    orders: dict[int, set[bool]] = {}
    for call in calls:
        for axis in (*call.operands, *call.results):
            if axis is not None and axis.each > 1 and axis.is_minor is not None:
                orders.setdefault(axis.each, set()).add(axis.is_minor)

    def settled(axis: Axis | None) -> Axis | None:
        if axis is None or axis.is_minor is not None:
            return axis
        order = orders.get(axis.each, {False})
        return replace(axis, is_minor=next(iter(order))) if len(order) == 1 else axis

    return [
        replace(
            call,
            operands=tuple(map(settled, call.operands)),
            results=tuple(map(settled, call.results)),
        )
        for call in calls
    ]


def _is_close(one: Tensor, other: Tensor) -> bool:
    if not one.is_floating_point():
        return torch.equal(one, other)
    tolerance = 1e-3 if one.dtype in (torch.float32, torch.float64) else 0.05
    size = float(one.abs().max()) if one.numel() else 0.0
    return torch.allclose(one, other, rtol=tolerance, atol=tolerance * size, equal_nan=True)
