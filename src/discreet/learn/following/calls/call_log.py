"""What identifies a call of a torch function: its arguments, and where its tensors came from.

A forward pass that makes the calls of an approved log, each with tensors from the same places, is
the forward pass that was approved. Tensors carry their origin with them; one that has none comes
from outside of the pass, one with an older origin from an earlier step.
"""

from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, Final, final

import torch
from torch import Tensor, nn

from discreet.learn.following.axis.labels import Axis, SizeError, counts_units, times_units

ORIGIN: Final = "_discreet_origin"
WIDE: Final = 1 << 16  # more results than any call has
_AS_IS: Final = frozenset(
    {int, bool, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format,
     type(Ellipsis), bytes}
)  # fmt: skip


@final
class _Mark:
    """Stands for an argument of which only the kind matters."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


TENSOR: Final = _Mark("a tensor")
FLOAT: Final = _Mark("a float")  # it says nothing of axes, and may change from step to step


@final
class Units:
    """How many units there are in the pass that is being compared."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


@final
class _Times:
    """Equal to a multiple of the number of units of the pass that is being compared."""

    __slots__ = ("_factor", "_units")

    def __init__(self, factor: int, units: Units) -> None:
        self._factor, self._units = factor, units

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _Times):
            return self._factor == other._factor
        return other == self._factor * self._units.count

    __hash__ = None  # type: ignore[assignment]


@final
@dataclass(frozen=True, slots=True)
class TorchCall:
    """One call of a torch function: what it was given, and the axes of its tensors and results."""

    func: Any
    code: int  # of the first result; the others follow in steps of 2
    origins: tuple[int, ...]
    given: tuple[Any, ...]
    operands: tuple[Axis | None, ...]
    results: tuple[Axis | None, ...]
    shapes: tuple[Any, ...]

    @property
    def name(self) -> str:
        """The function's name."""
        return str(getattr(self.func, "__name__", self.func))


@final
@dataclass(slots=True)
class CallLog:
    """An approved forward pass: its calls, what it takes from outside, and where losses come from.

    Shapes are compared as well: a float, a mask or a parameter's ``data`` may change them.
    ``outside`` are the tensors of the batch (None here) and then whatever else was met; they are
    held, so that no other tensor can get the identity of one.
    """

    calls: list[TorchCall] = field(default_factory=list)
    outside: list[Tensor | None] = field(default_factory=list)
    shapes: list[Any] = field(default_factory=list)  # of what is outside, but for the batch
    losses: int = -1
    units: Units = field(default_factory=Units)

    def is_like(self, other: "CallLog") -> bool:
        """Say whether another pass makes the same calls."""
        return (
            self.calls == other.calls
            and self.losses == other.losses
            and self.shapes == other.shapes
            and len(self.outside) == len(other.outside)
            and all(one is two for one, two in zip(self.outside, other.outside, strict=True))
        )


def outside_code(place: int, *, is_changed: bool) -> int:
    """Return the number of a tensor from outside."""
    return -2 * (place + 1) + is_changed


def described(values: Any, operands: list[Tensor]) -> tuple[Any, ...]:
    """Return arguments with marks for tensors, which go to ``operands``, and for floats."""
    found: list[Any] = []
    # Every call of every torch function of every step comes by here, so this is spelled out.
    for value in values:
        kind = type(value)
        if kind in _AS_IS:
            found.append(value)
        elif kind is Tensor or isinstance(value, Tensor):
            operands.append(value)
            found.append(TENSOR)
        elif kind is float:
            found.append(FLOAT)
        elif isinstance(value, (tuple, list)):
            found.append(described(value, operands))
        elif kind is slice:
            found.append(described((value.start, value.stop, value.step), operands))
        elif isinstance(value, dict):
            found.append(tuple(value))
            found.append(described(value.values(), operands))
        elif isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            found.append(value)
        else:
            found.append(int(value) if isinstance(value, Integral) else kind)
    return tuple(found)


def symbols_marked(given: tuple[Any, ...], units: Units) -> tuple[Any, ...]:
    """Return what a trace was given, with multiples of the number of units to be compared."""
    return tuple(_marked(value, units) for value in given)


def _marked(value: Any, units: Units) -> Any:
    if isinstance(value, tuple):
        return symbols_marked(value, units)
    if isinstance(value, torch.SymInt) and counts_units(value):
        try:
            return _Times(times_units(value) or 0, units)
        except SizeError:
            return _Mark("another size")  # equal to nothing
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return _Mark("a number of examples")
    return value


_ALIASES: Final = -(1 << 40)


def alias_code(model: nn.Module, tensor: Tensor) -> int | None:
    """Return the number of a tensor that is another name for a parameter or buffer, if it is."""
    if type(tensor) not in (Tensor, nn.Parameter):
        return None
    try:
        place = tensor.untyped_storage().data_ptr()
    except NotImplementedError:  # inside of a vmap
        return None
    for number, own in enumerate((*model.parameters(), *model.buffers())):
        if place and own.untyped_storage().data_ptr() == place:
            return _ALIASES - 2 * number
    return None
