"""What a convolution leaves behind: its input, its output's gradient, and its geometry."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from discreet.learn.following.contributions import (
    Dense,
    Norms,
    Use,
    _zeroed,
    is_kept,
    rounding_of,
    squares,
)
from discreet.learn.norms import norms as _kernels

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
    def _is_plain(self) -> bool:
        geometry = self.geometry
        return (
            self.x.dim() == 4
            and geometry.groups == 1
            and not geometry.is_transposed
            and self.x.shape[0] == self.units
        )

    def settled(self) -> Use:
        """Return the gradients themselves, where they are small."""
        if is_kept(self.units, self.shape.numel(), self.x.device):
            return Dense(self.dense())
        return self

    def norms(self) -> Norms:
        if self._is_plain:
            geometry = self.geometry
            found = _kernels.conv2d_norms(
                self.x,
                self.grad,
                tuple(self.shape[2:]),
                geometry.stride,
                geometry.padding,
                geometry.dilation,
            )
        else:
            at_once = max(1, _AT_ONCE // self.shape.numel())
            found = torch.cat([squares(part.dense().flatten(1)) for part in self._split(at_once)])
        # Cauchy-Schwarz over positions; an input is in at most as many patches as the kernel
        # has places (of a transposed one, an output).
        x, grad = (
            torch.linalg.vector_norm(t.flatten(1), dim=1, dtype=found.dtype).view(self.units, -1)
            for t in (self.x, self.grad)
        )
        sizes = torch.linalg.vector_norm(x, dim=1) * torch.linalg.vector_norm(grad, dim=1)
        places = self.shape[2:].numel()
        return Norms(found, sizes * places**0.5, rounding_of(self.x, is_convolution=True))

    def _split(self, units: int) -> list["Convolution"]:
        each = self.x.shape[0] // self.units
        return [
            Convolution(x, grad, self.shape, self.geometry, x.shape[0] // each)
            for x, grad in zip(
                self.x.split(units * each), self.grad.split(units * each), strict=True
            )
        ]

    def dense(self) -> Tensor:
        geometry = self.geometry
        if self._is_plain and self.x.is_cuda:
            return _kernels.conv2d_grads(
                self.x,
                self.grad,
                tuple(self.shape[2:]),
                geometry.stride,
                geometry.padding,
                geometry.dilation,
            )
        # The rows of the batch as groups of one convolution: each group has a weight of its own.
        rows = self.x.shape[0]
        weight = self.x.new_empty(1).expand(rows * self.shape[0], *self.shape[1:])
        grads = geometry.weight_grad(
            self.grad.flatten(0, 1).unsqueeze(0),
            self.x.flatten(0, 1).unsqueeze(0),
            weight,
            rows * geometry.groups,
        )
        return grads.view(self.units, rows // self.units, *self.shape).sum(1)

    def add_weighted(self, factors: Tensor, out: Tensor) -> None:
        rows = self.x.shape[0]
        scale = factors.repeat_interleave(rows // self.units) if rows != self.units else factors
        grad = (self.grad * scale.view(-1, *[1] * (self.grad.dim() - 1))).to(self.grad.dtype)
        weight = self.x.new_empty(1).expand(self.shape)
        out.add_(self.geometry.weight_grad(grad, self.x, weight, self.geometry.groups))

    def without(self, bad: Tensor) -> "Convolution":
        rows = bad.repeat_interleave(self.x.shape[0] // self.units)
        return Convolution(
            _zeroed(self.x, rows), _zeroed(self.grad, rows), self.shape, self.geometry, self.units
        )
