"""Norms of each example's weight gradient of a convolution, and the gradients themselves."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import torch
from torch import Tensor
from torch.nn import functional

from discreet.learn.norms import triton_convolutions, triton_norms
from discreet.learn.norms.dispatch import chunks, plainly, squares, triton_precision, wide
from discreet.learn.norms.linear import cheaper_is_gram, dense_norms, outer_norms
from discreet.learn.norms.triton_tiles import Precision

__all__ = ["KernelGeometry", "conv2d_grads", "conv2d_norms"]

Pair = tuple[int, int]
Sides = int | Sequence[int]

# The price of one shifted multiply-add, and of one number of a Gram matrix on its way through
# memory, in multiply-adds of a matrix product.
SHIFT_COST = 30
GRAM_COST = 180


class KernelGeometry(NamedTuple):
    """How a convolution's kernel meets its input; (vertical, horizontal) each."""

    kernel: Pair
    stride: Pair
    padding: Pair
    dilation: Pair

    @classmethod
    def of(cls, kernel: Sides, stride: Sides = 1, padding: Sides = 0, dilation: Sides = 1) -> Self:
        """Return the geometry; a single number is meant for both directions."""
        pairs = [(v, v) if isinstance(v, int) else v for v in (kernel, stride, padding, dilation)]
        return cls(*((int(v), int(h)) for v, h in pairs))

    @property
    def taps(self) -> int:
        """How many positions of the input meet one position of the output."""
        return self.kernel[0] * self.kernel[1]


@plainly
def conv2d_norms(x: Tensor, g: Tensor, geometry: KernelGeometry) -> Tensor:
    """Return the squared norm of each example's weight gradient of a 2-d convolution (one group).

    ``x`` (batch, channels, height, width) went in, ``g`` (batch, outputs, rows, columns) is the
    gradient of what came out. Whichever takes less work: the gradient formed tile by tile, or
    Gram matrices of positions, that of ``x`` shifted by every tap of the kernel.

    >>> x, g = torch.tensor([[[[1.0, 2.0]]]]), torch.tensor([[[[1.0, 1.0]]]])
    >>> conv2d_norms(x, g, KernelGeometry.of((1, 3), padding=(0, 1))).round(decimals=4)
    tensor([14.])
    """
    if geometry.taps == 1 and geometry.padding == (0, 0):
        return _pointwise_norms(x, g, geometry.stride)
    precision = triton_precision(x, g, is_convolution=True)
    # Errors of a Gram matrix come back as their square root when a gradient nearly cancels. These
    # products are few, so they may cost three times as much and keep nearly all of float32.
    careful: Precision | None = "tf32x3" if precision == "tf32" else precision
    if _gram_is_cheaper(x, g, geometry, effort=3 if careful == "tf32x3" else 1):
        return _conv_gram(x, g, geometry, precision=careful)
    if precision is not None:
        return triton_convolutions.conv_dense(x, g, geometry, precision=precision)
    numbers = x.shape[1] * geometry.taps * g.shape[2] * g.shape[3]
    parts = chunks(x, g, numbers=numbers)
    return torch.cat([squares(_conv_grads(a, b, geometry)) for a, b in parts])


@plainly
def conv2d_grads(x: Tensor, g: Tensor, geometry: KernelGeometry) -> Tensor:
    """Return each example's weight gradient of a 2-d convolution (one group).

    Its shape is (batch, outputs, channels, *kernel): for layers so small that this fits.

    >>> x, g = torch.tensor([[[[1.0, 2.0]]]]), torch.tensor([[[[1.0, 1.0]]]])
    >>> conv2d_grads(x, g, KernelGeometry.of((1, 3), padding=(0, 1)))
    tensor([[[[[1., 3., 2.]]]]])
    """
    precision = triton_precision(x, g, is_convolution=True)
    if precision is not None:
        return triton_convolutions.conv_grads(x, g, geometry, precision=precision)
    numbers = x.shape[1] * geometry.taps * g.shape[2] * g.shape[3]
    parts = chunks(x, g, numbers=numbers)
    grads = torch.cat([_conv_grads(a, b, geometry) for a, b in parts])
    return grads.view(-1, g.shape[1], x.shape[1], *geometry.kernel)


def _gram_is_cheaper(x: Tensor, g: Tensor, geometry: KernelGeometry, *, effort: int) -> bool:
    """Say whether Gram matrices of positions take less time than the gradient itself."""
    channels, height, width = x.shape[1:]
    outputs, rows, columns = g.shape[1:]
    (stride_h, stride_w), tokens = geometry.stride, rows * columns
    positions = -(-height // stride_h) * -(-width // stride_w)
    grams = stride_h * stride_w * positions**2 * (effort * channels + GRAM_COST)
    if geometry.stride != (1, 1):
        grams += channels * height * width * GRAM_COST  # sorted by residue first
    shifts = 0.6 * tokens**2 * (effort * outputs + SHIFT_COST * geometry.taps)
    return grams + shifts < outputs * channels * geometry.taps * tokens


def _pointwise_norms(x: Tensor, g: Tensor, stride: Pair) -> Tensor:
    """Return what a 1 x 1 convolution gives: a linear layer on positions."""
    rows, columns = g.shape[2:]
    x = x[:, :, :: stride[0], :: stride[1]][:, :, :rows, :columns]
    left, right = g.flatten(2).transpose(1, 2), x.flatten(2).transpose(1, 2)
    if cheaper_is_gram(left.shape[1], left.shape[2], right.shape[2]):
        return outer_norms(left, right)[0]
    return dense_norms(left, right)


def _conv_grads(x: Tensor, g: Tensor, geometry: KernelGeometry) -> Tensor:
    """Return weight gradients (batch, outputs, channels * taps) by way of a view of patches."""
    x, g = wide(x), wide(g)
    (vertical, horizontal), (stride_h, stride_w) = geometry.padding, geometry.stride
    if vertical or horizontal:
        x = functional.pad(x, (horizontal, horizontal, vertical, vertical))
    batch, channels = x.shape[:2]
    rows, columns = g.shape[2:]
    to_example, to_channel, to_row, to_column = x.stride()
    # Not functional.unfold: on a GPU it launches once for every example, and here it is slower.
    patches = x.as_strided(
        (batch, channels, *geometry.kernel, rows, columns),
        (
            to_example,
            to_channel,
            to_row * geometry.dilation[0],
            to_column * geometry.dilation[1],
            to_row * stride_h,
            to_column * stride_w,
        ),
    )
    flat = patches.reshape(batch, channels * geometry.taps, rows * columns)
    return torch.bmm(g.flatten(2), flat.transpose(1, 2))


def _residues(x: Tensor, stride: Pair) -> Tensor:
    """Sort positions by what they leave when divided by the stride.

    The taps that one entry of the kernel meets all leave the same, so a convolution with strides
    is a sum of convolutions without: (batch, residues, channels, height, width).
    """
    if stride == (1, 1):
        return x.unsqueeze(1)
    (stride_h, stride_w), (height, width) = stride, x.shape[2:]
    x = functional.pad(x, (0, -width % stride_w, 0, -height % stride_h))
    split = x.reshape(
        *x.shape[:2], x.shape[2] // stride_h, stride_h, x.shape[3] // stride_w, stride_w
    )
    return split.permute(0, 3, 5, 1, 2, 4).flatten(1, 2).contiguous()


def _conv_gram(
    x: Tensor, g: Tensor, geometry: KernelGeometry, *, precision: Precision | None
) -> Tensor:
    (stride_h, stride_w), (height, width) = geometry.stride, x.shape[2:]
    positions = -(-height // stride_h) * -(-width // stride_w)
    numbers = stride_h * stride_w * positions**2
    if precision is None:
        parts = chunks(x, g, numbers=2 * numbers)
        return torch.cat(
            [_shifted_gram(_residues(a, geometry.stride), b, geometry) for a, b in parts]
        )
    at_once = max(1, triton_norms.SCRATCH_BYTES // (4 * numbers))
    return torch.cat(
        [
            triton_convolutions.conv_gram(
                _residues(a, geometry.stride), b, geometry, precision=precision
            )
            for a, b in zip(torch.split(x, at_once), torch.split(g, at_once), strict=True)
        ]
    )


def _shifted_gram(residues: Tensor, g: Tensor, geometry: KernelGeometry) -> Tensor:
    """Return sum over taps d and positions s, t of <x_{s+d}, x_{t+d}> <g_s, g_t>."""
    batch, _, _, height, width = residues.shape
    rows, columns = g.shape[2:]
    positions, outputs = wide(residues).flatten(3), wide(g).flatten(2)
    grams = torch.matmul(positions.transpose(2, 3), positions)
    grams = grams.view(batch, -1, height, width, height, width)
    gram = torch.bmm(outputs.transpose(1, 2), outputs).view(batch, rows, columns, rows, columns)
    total = gram.new_zeros(batch)
    for i in range(geometry.kernel[0]):
        dy, residue_h = divmod(i * geometry.dilation[0] - geometry.padding[0], geometry.stride[0])
        here_h, there_h = _overlap(rows, height, dy)
        for j in range(geometry.kernel[1]):
            dx, residue = divmod(j * geometry.dilation[1] - geometry.padding[1], geometry.stride[1])
            here_w, there_w = _overlap(columns, width, dx)
            residue += residue_h * geometry.stride[1]
            moved = grams[:, residue, there_h, there_w, there_h, there_w]
            total += torch.einsum("bpqrs,bpqrs->b", moved, gram[:, here_h, here_w, here_h, here_w])
    return total


def _overlap(size: int, limit: int, shift: int) -> tuple[slice, slice]:
    """Return the part of range(size) that shift moves into range(limit), and where to."""
    begin, end = max(0, -shift), max(0, min(size, limit - shift))
    begin = min(begin, end)
    return slice(begin, end), slice(begin + shift, end + shift)
