"""Follow the unit axis through every operation that torch dispatches."""

import weakref
from typing import Any, final

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    UnsupportedFakeTensorException,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from discreet.learn.following.axis.labels import (
    Axis,
    SizeError,
    axis_of,
    counts_units,
    put_axis,
    times_units,
    unit_dims,
)
from discreet.learn.following.axis.operation import Operation
from discreet.learn.following.axis.refusals import refusal
from discreet.learn.following.axis.symbolic import UnitCount, fake_mode
from discreet.learn.following.axis.table import SIZES, rule_of

_NO_SHAPE = (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedFakeTensorException,
)
_NEW = frozenset({"new_zeros", "new_ones", "new_full", "new_empty"})
_ASKED = frozenset(
    {"prim::device"}
    | {f"aten::{name}" for name in ("size", "stride", "numel", "dim", "is_contiguous")}
    | {f"aten::sym_{name}" for name in ("size", "stride", "numel", "storage_offset")}
)


@final
class Following(TorchDispatchMode):
    """Compute what is the same for everybody; of the rest compute shapes, and where units are.

    What depends on no row and on no number of units is computed with numbers, so that a model may
    look at them. Everything else has no numbers here: nothing can be decided by them.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here, and to ask for it would load a compiler

    def __init__(self, count: UnitCount) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = count
        self.mode = fake_mode(count)
        self.followed: list[weakref.ref[Tensor]] = []
        self._made: list[weakref.ref[Tensor]] = []
        self._saved: dict[int, tuple[Tensor, Tensor]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        schema = getattr(func, "_schema", None)
        if schema is None:
            raise refusal(str(func), "can not be followed")
        if schema.name in _ASKED:
            return func(*args, **kwargs)
        op = Operation(func, args, kwargs)
        if op.name in _NEW and not counts_units(op["size"]):
            # It has the kind of another tensor, and sees nothing of its numbers.
            own = op["self"]
            args = (torch.empty(0, dtype=own.dtype, device=own.device), *args[1:])
            op = Operation(func, args, kwargs)
        sized = [name for name, value in op.values.items() if counts_units(value)]
        found = op.tensors
        if not sized and all(axis_of(t) is None for t in found):
            return self._plain(op, args, kwargs, found)
        for name in sized:
            if (op.name, name) not in SIZES:
                raise op.refused("uses the number of examples as a number")
        try:
            return self._followed(op, args, kwargs)
        except SizeError as error:
            raise op.refused(f"makes {error}") from error

    def _plain(self, op: Operation, args: Any, kwargs: Any, found: list[Tensor]) -> Any:
        """Compute with numbers, and remember what is overwritten."""
        if any(isinstance(t, FakeTensor) for t in found):
            raise op.refused(
                "uses a tensor that was computed from examples in a way that can not be followed"
            )
        for one in op.func._schema.arguments:
            value = op[one.name]
            if one.alias_info is not None and one.alias_info.is_write:
                for tensor in [value] if isinstance(value, Tensor) else value or ():
                    self._save(tensor)
        return op.func(*args, **kwargs)

    def _save(self, tensor: Tensor) -> None:
        base = tensor if tensor._base is None else tensor._base
        if id(base) not in self._saved:
            self._saved[id(base)] = (base, base.detach().clone())

    def restore(self) -> None:
        """Give back what was overwritten: a trace leaves nothing behind."""
        with torch.no_grad():
            for tensor, value in self._saved.values():
                tensor.detach().copy_(value)
        self._saved.clear()

    def _followed(self, op: Operation, args: Any, kwargs: Any) -> Any:
        rule = rule_of(op)
        if rule is None:
            raise op.refused("has no rule that says that it keeps examples apart")
        axes = rule(op)
        op.require_own_memory()
        args, kwargs = tree_map_only(Tensor, self._faked, (args, kwargs))
        try:
            with self.count.inside(), self.mode:
                out = op.func(*args, **kwargs)
        except _NO_SHAPE as error:
            raise op.refused("has a result whose shape or value depends on data") from error
        self._label(op, out, axes)
        return out

    def _faked(self, tensor: Tensor) -> Tensor:
        if isinstance(tensor, FakeTensor):
            return tensor
        return self.mode.from_tensor(tensor.detach(), static_shapes=True)

    def _label(self, op: Operation, out: Any, axes: Any) -> None:
        outs = [out] if isinstance(out, Tensor) else [t for t in out or () if t is not None]
        axes = axes if isinstance(axes, list) else [axes] * len(outs)
        if not op.is_in_place and any(one.alias_info for one in op.func._schema.returns):
            axes = [_ordered(axis) for axis in axes]
            for tensor in op.tensors:
                put_axis(tensor, _ordered(axis_of(tensor)))
        for tensor, axis in zip(outs, axes, strict=False):
            if not isinstance(tensor, FakeTensor):
                raise op.refused("can not be followed")
            _check(op, tensor, axis)
            old = axis_of(tensor)
            put_axis(tensor, axis if old is None or old.kind == "same" else old)
            if axis is not None:
                self.followed.append(weakref.ref(tensor))


def _ordered(axis: Axis | None) -> Axis | None:
    """Give the places of an axis an order, where they were all alike.

    Done to whatever has a view: who writes to one of them, writes to the other.
    """
    if axis is None or axis.kind != "same" or axis.each == 1:
        return axis
    return Axis(axis.dim, axis.outer, axis.inner)


def _check(op: Operation, tensor: Tensor, axis: Axis | None) -> None:
    """Compare an axis that a rule has found with the sizes, which torch has computed."""
    dims = unit_dims(tensor)
    if len(dims) > 1:
        raise op.refused("makes a tensor with two axes as long as the batch")
    expected = [] if axis is None else [axis.dim]
    if dims != expected or (axis is not None and times_units(tensor.shape[axis.dim]) != axis.each):
        raise op.refused("can not be followed: its result has not the expected shape")
    old = axis_of(tensor)
    if old is None or axis is None or old.kind == "same":
        return
    if (old.outer, old.inner) != (axis.outer, axis.inner):
        raise op.mixing("writes among")
