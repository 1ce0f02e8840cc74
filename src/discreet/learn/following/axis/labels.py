"""Where a tensor counts units, and how that is written on tensors and read from sizes."""

from dataclasses import dataclass
from typing import Any, Final, Literal, final

import torch
from torch import Tensor

_NAME: Final = "_discreet_axis"

Kind = Literal["rows", "same", "index"]


@final
@dataclass(frozen=True, slots=True)
class Axis:
    """Where a tensor counts units: along ``dim``, whose index is (outer, unit, inner), row-major.

    What lies at the places of unit u is computed from u's own rows, from what is the same for
    everybody, and from chance of its own. Of ``kind`` "same", all places along the axis are alike,
    so any order of them will do; of kind "index", a place holds the number of its unit.

    >>> Axis(dim=0, outer=2, inner=3).each
    6
    """

    dim: int
    outer: int = 1
    inner: int = 1
    kind: Kind = "rows"

    @property
    def each(self) -> int:
        """How many places a unit has."""
        return self.outer * self.inner


def axis_of(tensor: Tensor) -> Axis | None:
    """Return where a tensor of a trace counts units; None for what is the same for everybody."""
    return tensor.__dict__.get(_NAME)


def put_axis(tensor: Tensor, axis: Axis | None) -> None:
    """Write on a tensor where it counts units."""
    if axis is not None:
        tensor.__dict__[_NAME] = axis


class SizeError(ValueError):
    """A size that is not a whole multiple of the number of units."""


def times_units(size: Any) -> int | None:
    """Return c where a size is c times the number of units, None where it is a plain number."""
    if not isinstance(size, torch.SymInt):
        return None
    node = size.node
    expression = node.expr
    symbols = expression.free_symbols
    if not symbols:
        return None
    if len(symbols) == 1:
        (symbol,) = symbols
        factor = expression.coeff(symbol)
        if factor.is_Integer and expression == factor * symbol:
            return int(factor)
    raise SizeError("a size that depends on the number of examples, other than as a multiple of it")


def counts_units(value: Any) -> bool:
    """Say whether a number, or one within, is computed from the number of units."""
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return bool(getattr(value.node.expr, "free_symbols", ()))
    if isinstance(value, (list, tuple)):
        return any(map(counts_units, value))
    if isinstance(value, slice):
        return any(map(counts_units, (value.start, value.stop, value.step)))
    return False


def unit_dims(tensor: Tensor) -> list[int]:
    """Return the dimensions whose sizes depend on the number of units."""
    return [dim for dim, size in enumerate(tensor.shape) if counts_units(size)]


def regrouped(axis: Axis, old: Any, new: Any) -> Axis | None:
    """Return the axis after a reshape, or None if it tears the units' places apart.

    In row-major order a unit's number has a fixed count of places to its right; a new shape keeps
    the units apart if the sizes to the right of one of its dimensions divide that count.
    """
    (dim,) = [d for d, size in enumerate(new) if counts_units(size)]
    each = times_units(new[dim])
    assert each is not None
    right = _product(old[axis.dim + 1 :])
    beyond = _product(new[dim + 1 :])
    left = _product(old[: axis.dim])
    inners = [axis.inner]
    if axis.kind == "same":
        inners = [axis.inner, *(i for i in range(1, axis.each + 1) if axis.each % i == 0)]
    for inner in inners:
        outer = axis.each // inner
        if (inner * right) % max(1, beyond):
            continue
        new_inner = inner * right // max(1, beyond)
        if not new_inner or each % new_inner:
            continue
        new_outer = each // new_inner
        if _product(new[:dim]) * new_outer == left * outer:
            is_same = axis.kind != "rows" and right == beyond and left == _product(new[:dim])
            return Axis(dim, new_outer, new_inner, axis.kind if is_same else "rows")
    return None


def _product(sizes: Any) -> int:
    found = 1
    for size in sizes:
        found *= int(size)
    return found
