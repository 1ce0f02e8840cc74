"""The number of units as a symbol: nothing may be decided by it that does not hold for all."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, final

import sympy  # type: ignore[import-untyped]
import torch
from torch._guards import Source
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

from discreet.learn.following.axis.refusals import refusal

_HINT: Final = 8191  # a prime that is nobody's size: torch's own code looks at it, users' may not


class _Name(str):
    """A name that may be called, as some versions of torch do."""

    __slots__ = ()

    def __call__(self) -> str:
        return str(self)


@final
class _Units(Source):
    """Where the symbol comes from, as torch wants to be told."""

    name = _Name("units")


@final
class UnitCount(ShapeEnv):
    """Sizes with one symbol in them, the number of units, of which only "at least 2" is known.

    A question about sizes that has one answer for all numbers of units gets it. Within a torch
    function another one is about speed and memory, and is answered for some number; within a
    user's code it would make that number a value, and is refused. So is the number itself.
    """

    def __init__(self) -> None:
        super().__init__(duck_shape=False, specialize_zero_one=True)
        symbol = self.create_symbol(
            _HINT,
            source=_Units(),
            dynamic_dim=DimDynamic.DYNAMIC,
            constraint_dim=None,
        )
        self.units: Any = self.create_symintnode(symbol, hint=_HINT)
        self._symbol = symbol
        self.is_inside = False
        self._known: dict[Any, Any] = {}

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Let torch's own code ask what it likes."""
        before, self.is_inside = self.is_inside, True
        try:
            yield
        finally:
            self.is_inside = before

    def evaluate_expr(self, orig_expr: Any, *_: Any, **__: Any) -> Any:
        """Answer a question about sizes, or refuse it."""
        if not getattr(orig_expr, "free_symbols", None):
            return orig_expr
        if orig_expr not in self._known:
            self._known[orig_expr] = self._maybe_evaluate_static(orig_expr)
        known = self._known[orig_expr]
        if known is not None:
            return known
        if self.is_inside and not isinstance(orig_expr, sympy.Expr):
            return sympy.sympify(orig_expr).xreplace({self._symbol: sympy.Integer(_HINT)})
        raise refusal(
            "the number of examples",
            "is used as a number",
            advice="Do not divide by it, count with it or decide by it: the noisy sum is divided "
            "by the expected size.",
        )


def fake_mode(count: UnitCount) -> FakeTensorMode:
    """Return the mode that computes shapes and no numbers."""
    return FakeTensorMode(shape_env=count, allow_non_fake_inputs=False)


def leaf_like(mode: FakeTensorMode, count: UnitCount, tensor: torch.Tensor, each: int) -> Any:
    """Return a tensor without numbers that looks like a batch's, for any number of units."""
    with mode:
        return torch.empty(
            (each * count.units, *tensor.shape[1:]), dtype=tensor.dtype, device=tensor.device
        )
