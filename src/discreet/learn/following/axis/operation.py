"""One dispatched operation as its rule sees it: arguments by name, and their axes."""

from collections.abc import Iterable
from typing import Any, final

from torch import Tensor

from discreet.errors import ParameterError
from discreet.learn.following.axis.labels import Axis, axis_of, counts_units
from discreet.learn.following.axis.refusals import refusal


@final
class Operation:
    """An operation with its arguments by the names of its schema."""

    __slots__ = ("func", "name", "values")

    def __init__(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.func = func
        self.name: str = func._schema.name.partition("::")[2]
        self.values: dict[str, Any] = {
            one.name: one.default_value if one.has_default_value() else None
            for one in func._schema.arguments
        }
        self.values |= dict(zip(self.values, args, strict=False)) | kwargs

    def __getitem__(self, name: str) -> Any:
        return self.values.get(name)

    @property
    def tensors(self) -> list[Tensor]:
        """All tensors among the arguments, in order."""
        return list(_within(self.values.values()))

    @property
    def is_in_place(self) -> bool:
        """Whether it overwrites its first argument."""
        first = self.func._schema.arguments[:1]
        return bool(first) and first[0].alias_info is not None and first[0].alias_info.is_write

    def axis(self, name: str) -> Axis | None:
        """Return where an argument counts units."""
        value = self.values.get(name)
        return self.axis_of(value) if isinstance(value, Tensor) else None

    def axis_of(self, tensor: Tensor) -> Axis | None:
        """Return where a tensor counts units; the units' own numbers are of no use as values."""
        axis = axis_of(tensor)
        if axis is not None and axis.kind == "index":
            raise self.refused("uses the places of examples in the batch as numbers")
        return axis

    def dim(self, name: str = "dim", of: str = "self", extra: int = 0) -> int:
        """Return an argument that names a dimension, counted from the front."""
        dim, count = int(self.values[name]), self.values[of].dim() + extra
        return dim % count if count else 0

    def require_own_memory(self) -> None:
        """Refuse to write but into memory of which each place is one unit's."""
        for one in self.func._schema.arguments:
            if one.alias_info is None or not one.alias_info.is_write or self[one.name] is None:
                continue
            for tensor in _within([self[one.name]]):
                axis = axis_of(tensor)
                if one.is_out or axis is None or _is_shared(tensor, axis):
                    raise self.mixing("writes into what is shared by")
                if axis.kind == "index":
                    raise self.refused("overwrites the places of examples in the batch")

    def aligned(self, tensors: Iterable[Tensor] | None = None) -> Axis | None:
        """Return the axis of what several tensors give when they are broadcast together."""
        found = self.tensors if tensors is None else list(tensors)
        most = max((t.dim() for t in found), default=0)
        axis: Axis | None = None
        for tensor in found:
            own = self.axis_of(tensor)
            if own is None:
                continue
            shifted = Axis(own.dim + most - tensor.dim(), own.outer, own.inner, own.kind)
            axis = shifted if axis is None else self.met(axis, shifted)
        if axis is not None:
            self._require_same(found, axis, most)
        return axis

    def met(self, one: Axis, other: Axis) -> Axis:
        """Return the axis of two that meet, if they are one."""
        if one.dim == other.dim and one.each == other.each:
            if other.kind == "same":
                return one
            if one.kind == "same" or (one.outer, one.inner) == (other.outer, other.inner):
                return other
        raise self.refused("brings different examples of the batch together")

    def _require_same(self, tensors: list[Tensor], axis: Axis, most: int) -> None:
        for tensor in tensors:
            dim = axis.dim - (most - tensor.dim())
            if axis_of(tensor) is None and dim >= 0 and tensor.shape[dim] != 1:
                raise self.refused("meets each example with a number of its own place in the batch")

    def refused(self, reason: str) -> ParameterError:
        """Return the error that refuses this operation."""
        return refusal(self.name, reason)

    def mixing(self, what: str) -> ParameterError:
        """Return the error of an operation along the unit axis."""
        return self.refused(f"{what} the examples of a batch")


def _is_shared(tensor: Tensor, axis: Axis) -> bool:
    """Say whether units share memory, as what is expanded does."""
    stride = tensor.stride(axis.dim)
    return not counts_units(stride) and int(stride) == 0


def _within(values: Iterable[Any]) -> Iterable[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _within(value)
