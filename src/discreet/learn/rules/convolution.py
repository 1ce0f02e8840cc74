"""The rule of convolutions, and what they contribute: inputs and gradients of outputs."""

from dataclasses import dataclass
from typing import Any, final

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor

from discreet.errors import ParameterError
from discreet.learn.following.contributions import (
    Contribution,
    Dense,
    Norms,
    is_kept,
    lost_in_products,
    rounding_of,
    zeroed,
)
from discreet.learn.following.recorder import Recorder, SavedInput
from discreet.learn.norms.convolution import KernelGeometry, conv2d_grads, conv2d_norms
from discreet.learn.norms.dispatch import chain, row_norms, squares, wide
from discreet.learn.rules.shared import as_autocast, constant, wanted

_AT_ONCE = 2**26  # numbers of per-unit gradients that are formed at once


@final
@dataclass(frozen=True, slots=True)
class Geometry:
    """The settings of a convolution in any number of dimensions."""

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    output_padding: tuple[int, ...]
    groups: int
    is_transposed: bool

    def weight_grad(self, output_grad: Tensor, x: Tensor, weight: Tensor, groups: int) -> Tensor:
        """Return the gradient of the weight, in the shape of ``weight``."""
        result: Tensor = torch.ops.aten.convolution_backward(
            output_grad,
            x,
            weight,
            None,
            self.stride,
            self.padding,
            self.dilation,
            self.is_transposed,
            self.output_padding,
            groups,
            (False, True, False),
        )[1]
        return result


@final
@dataclass(frozen=True, slots=True)
class Convolution:
    """Gradients of the weight of a convolution; a unit may have several rows of the batch."""

    x: Tensor  # (rows, channels, *space)
    grad: Tensor  # (rows, channels out, *space out)
    shape: torch.Size  # of the weight
    geometry: Geometry
    units: int

    @property
    def _kernel(self) -> KernelGeometry:
        geometry = self.geometry
        return KernelGeometry.of(
            self.shape[2:], geometry.stride, geometry.padding, geometry.dilation
        )

    @property
    def _is_plain(self) -> bool:
        geometry = self.geometry
        return (
            self.x.dim() == 4
            and geometry.groups == 1
            and not geometry.is_transposed
            and self.x.shape[0] == self.units
        )

    def settled(self) -> Contribution:
        """Return the gradients themselves, where they are small."""
        if is_kept(self.units, self.shape.numel(), self.x.device):
            return Dense(self.dense())
        return self

    def norms(self) -> Norms:
        if self._is_plain:
            found = conv2d_norms(self.x, self.grad, self._kernel)
        else:
            at_once = max(1, _AT_ONCE // self.shape.numel())
            found = torch.cat([squares(part.dense()) for part in self._split(at_once)])
        # Cauchy-Schwarz over positions; an input is in at most as many patches as the kernel
        # has places (of a transposed one, an output).
        x, grad = (row_norms(t.view(self.units, -1)) for t in self._lengths(found.dtype))
        places = self.shape[2:].numel()
        lost = lost_in_products(
            grad,
            x,
            rows=self.grad.shape[1],
            columns=self.x.shape[1],
            positions=max(t.shape[2:].numel() for t in (self.x, self.grad)) * self._rows_each,
            places=places,
        )
        rounding = rounding_of(self.x, is_convolution=True)
        longest = chain(self.shape.numel())
        return Norms(found, lost, longest, x * grad * places**0.5, rounding)

    def _lengths(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return the norms of the rows of the input and of the output's gradient."""
        x, grad = (row_norms(t.flatten(1)).to(dtype) for t in (self.x, self.grad))
        return x, grad

    @property
    def _rows_each(self) -> int:
        return self.x.shape[0] // self.units

    def _split(self, units: int) -> list["Convolution"]:
        each = self._rows_each
        return [
            Convolution(x, grad, self.shape, self.geometry, x.shape[0] // each)
            for x, grad in zip(
                self.x.split(units * each), self.grad.split(units * each), strict=True
            )
        ]

    def dense(self) -> Tensor:
        if self._is_plain and self.x.is_cuda:
            return conv2d_grads(self.x, self.grad, self._kernel)
        # The rows of the batch as groups of one convolution: each group has a weight of its own.
        rows, x, grad = self.x.shape[0], wide(self.x), wide(self.grad)
        weight = x.new_empty(1).expand(rows * self.shape[0], *self.shape[1:])
        grads = self.geometry.weight_grad(
            grad.flatten(0, 1).unsqueeze(0),
            x.flatten(0, 1).unsqueeze(0),
            weight,
            rows * self.geometry.groups,
        )
        return grads.view(self.units, rows // self.units, *self.shape).sum(1)

    def add_weighted(self, factors: Tensor, out: Tensor) -> None:
        scale = factors.repeat_interleave(self._rows_each) if self._rows_each != 1 else factors
        # In 32 bits, since torch would round the sum over the batch to 16.
        x, grad = wide(self.x), wide(self.grad)
        grad = (grad * scale.view(-1, *[1] * (grad.dim() - 1))).to(grad.dtype)
        weight = x.new_empty(1).expand(self.shape)
        out.add_(self.geometry.weight_grad(grad, x, weight, self.geometry.groups))

    def without(self, bad: Tensor) -> "Convolution":
        rows = bad.repeat_interleave(self.x.shape[0] // self.units)
        return Convolution(
            zeroed(self.x, rows), zeroed(self.grad, rows), self.shape, self.geometry, self.units
        )


def convolution(rec: Recorder, func: Any, *args: Any, **kwargs: Any) -> Tensor:
    """Follow a convolution, or a transposed one, in one to three dimensions."""
    is_transposed = "transpose" in func.__name__
    names = ["input", "weight", "bias", "stride", "padding"]
    names += ["output_padding", "groups", "dilation"] if is_transposed else ["dilation", "groups"]
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    x, weight, bias = given["input"], given["weight"], given.get("bias")
    axis, space = rec.axis(x), weight.dim() - 2
    if (axis is not None and axis.dim != 0) or x.dim() != space + 2:
        raise ParameterError(
            f"{func.__name__} wants the examples along the first axis of its input.",
            parameter="model",
        )
    x = as_autocast(x)
    padding = given.get("padding", 0)
    if isinstance(padding, str):
        x, padding = _padded(x, padding, weight, _tuple(given.get("dilation", 1), space))
    geometry = Geometry(
        stride=_tuple(given.get("stride", 1), space),
        padding=_tuple(padding, space),
        dilation=_tuple(given.get("dilation", 1), space),
        output_padding=_tuple(given.get("output_padding", 0), space),
        groups=given.get("groups", 1),
        is_transposed=is_transposed,
    )
    settings: dict[str, Any] = {
        "stride": geometry.stride,
        "padding": geometry.padding,
        "dilation": geometry.dilation,
        "groups": geometry.groups,
    }
    if is_transposed:
        settings["output_padding"] = geometry.output_padding
    out = func(x, constant(rec, weight), constant(rec, bias), **settings)
    saved = SavedInput(x)

    def then(grad: Tensor) -> None:
        assert axis is not None
        grad = rec.rows_by_unit(grad, axis)
        if rec.is_followed(weight):
            rows = rec.rows_by_unit(saved.get(), axis)
            rec.put(weight, Convolution(rows, grad, weight.shape, geometry, rec.units))
        if bias is not None and rec.is_followed(bias):
            sums = grad.flatten(2).sum(2, dtype=wide(grad[:0]).dtype)
            rec.put(bias, Dense(sums.view(rec.units, -1, sums.shape[1]).sum(1)))

    return rec.watch(out, *wanted(rec, weight, bias), then=then, is_new=True)


def _tuple(value: Any, length: int) -> tuple[int, ...]:
    found = (value,) * length if isinstance(value, int) else tuple(value)
    return found * length if len(found) == 1 else found


def _padded(
    x: Tensor, padding: str, weight: Tensor, dilation: tuple[int, ...]
) -> tuple[Tensor, int]:
    if padding == "same":
        pads: list[int] = []
        for size, spread in zip(reversed(weight.shape[2:]), reversed(dilation), strict=True):
            total = spread * (size - 1)
            pads += [total // 2, total - total // 2]
        x = F.pad(x, pads)
    return x, 0
