"""Norms of each example's gradient, from a layer's inputs and its outputs' gradients.

One door for every device: Triton kernels on NVIDIA GPUs that have them, plain torch elsewhere (and
for float64, and for float32 where TF32 is not allowed: there cuBLAS is both exact and faster).
Both compute the same sums; float32 accumulates 16-bit and 32-bit input, float64 its own.

``T`` is the number of positions over which a layer shares its weight (tokens, pixels); the weight
gradient of one example is G = sum_t left_t (x) right_t.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, wraps
from importlib.util import find_spec
from typing import NamedTuple, ParamSpec, TypeVar

import torch
from torch import Tensor
from torch.nn import functional

from discreet.learn.norms import triton_convolutions as _triton_convolutions
from discreet.learn.norms import triton_norms as _triton_norms
from discreet.learn.norms.triton_norms import Precision

__all__ = [
    "allows_tf32",
    "cheaper_is_gram",
    "conv2d_grads",
    "conv2d_norms",
    "dense_norms",
    "norm_affine_grads",
    "outer_norms",
]

Pair = tuple[int, int]

# What an intermediate result may take. A CPU wants it near its caches: measured on 3 x 3
# convolutions, chunks of 4 MB are two to three times as fast as chunks of 64 MB.
CPU_CHUNK_BYTES = 4 << 20
GPU_CHUNK_BYTES = 64 << 20
LEAST_SHARED = 160 << 10
# The price of one shifted multiply-add, and of one number of a Gram matrix on its way through
# memory, in multiply-adds of a matrix product.
SHIFT_COST = 30
GRAM_COST = 180

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Geometry(NamedTuple):
    """How a convolution's kernel meets its input; (vertical, horizontal) each."""

    kernel: Pair
    stride: Pair
    padding: Pair
    dilation: Pair

    @property
    def taps(self) -> int:
        """How many positions of the input meet one position of the output."""
        return self.kernel[0] * self.kernel[1]


def _plainly(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Run without recording gradients, and without autocast rounding what we sum."""

    @wraps(function)
    def plain(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        first = next(v for v in (*args, *kwargs.values()) if isinstance(v, Tensor))
        if first.is_cuda and first.device.index != torch.cuda.current_device():
            with torch.cuda.device(first.device):  # where Triton launches
                return plain(*args, **kwargs)
        # Entering a context takes as long as a small kernel, so only where it is needed.
        if torch.is_grad_enabled() or torch.is_autocast_enabled(first.device.type):
            with torch.no_grad(), torch.autocast(first.device.type, enabled=False):
                return function(*args, **kwargs)
        return function(*args, **kwargs)

    return plain


@_plainly
def outer_norms(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Return the squared norm of each example's gradient, and the size of its terms.

    The norm comes from the Gram matrices of both sides, |G|^2 = sum_{s,t} <left_s, left_t>
    <right_s, right_t>, so G is never formed. Where terms cancel, an error is small next to the
    terms, not next to their sum: the second result, sum_t |left_t| |right_t|, is what G could
    have been, and rounding moves the squared norm by a small multiple of its square.

    >>> left, right = torch.tensor([[[1.0], [1.0]]]), torch.tensor([[[3.0, 0.0], [0.0, 4.0]]])
    >>> outer_norms(left, right)
    (tensor([25.]), tensor([7.]))
    """
    if left.shape[1] == 1:
        squares = _squares(left[:, 0]) * _squares(right[:, 0])
        return squares, squares.sqrt()
    precision = _triton_precision(left, right, is_convolution=False)
    if precision is not None:
        return _triton_norms.outer_norms(left, right, precision=precision)
    pairs = [_outer_norms(a, b) for a, b in _chunks(left, right, numbers=2 * left.shape[1] ** 2)]
    return torch.cat([square for square, _ in pairs]), torch.cat([size for _, size in pairs])


@_plainly
def dense_norms(left: Tensor, right: Tensor) -> Tensor:
    """Return the squared norm of each example's gradient by forming it, a piece at a time.

    >>> dense_norms(torch.tensor([[[1.0], [1.0]]]), torch.tensor([[[3.0, 0.0], [0.0, 4.0]]]))
    tensor([25.])
    """
    precision = _triton_precision(left, right, is_convolution=False)
    if precision is not None:
        return _triton_norms.dense_norms(left, right, precision=precision)
    numbers = left.shape[2] * right.shape[2]
    return torch.cat(
        [
            _squares(torch.bmm(_wide(a).transpose(1, 2), _wide(b)))
            for a, b in _chunks(left, right, numbers=numbers)
        ]
    )


def cheaper_is_gram(t: int, m: int, n: int) -> bool:
    """Say whether ``outer_norms`` takes fewer operations than ``dense_norms``.

    A Gram matrix is symmetric; its tiles make that 0.6 rather than a half.

    >>> cheaper_is_gram(512, 50257, 768), cheaper_is_gram(1024, 64, 64)
    (True, False)
    """
    return 0.6 * t * (m + n) < m * n


@_plainly
def norm_affine_grads(
    g: Tensor, x: Tensor, mean: Tensor | None, rstd: Tensor
) -> tuple[Tensor, Tensor]:
    """Return each example's gradients of a normalisation's scale and shift.

    These are sum_t g (x - mean) rstd and sum_t g for tensors (batch, T, features) and statistics
    (batch, T); RMSNorm has no mean.

    >>> g, x, rstd = torch.ones(1, 2, 1), torch.tensor([[[1.0], [5.0]]]), torch.ones(1, 2)
    >>> norm_affine_grads(g, x, 2 * rstd, rstd)
    (tensor([[2.]]), tensor([[2.]]))
    """
    if _has_triton(g) and torch.float64 not in (g.dtype, x.dtype):
        return _triton_norms.affine_grads(g, x, mean, rstd)
    centred = _wide(x) if mean is None else _wide(x) - _wide(mean).unsqueeze(2)
    products = torch.bmm(_wide(rstd).unsqueeze(1), _wide(g) * centred)
    return products[:, 0], _wide(g).sum(1)


@_plainly
def conv2d_norms(
    x: Tensor,
    g: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
) -> Tensor:
    """Return the squared norm of each example's weight gradient of a 2-d convolution (one group).

    ``x`` (batch, channels, height, width) went in, ``g`` (batch, outputs, rows, columns) is the
    gradient of what came out. Whichever takes less work: the gradient formed tile by tile, or
    Gram matrices of positions, that of ``x`` shifted by every tap of the kernel.

    >>> x, g = torch.tensor([[[[1.0, 2.0]]]]), torch.tensor([[[[1.0, 1.0]]]])
    >>> conv2d_norms(x, g, (1, 3), padding=(0, 1))
    tensor([14.])
    """
    geometry = _geometry(kernel_size, stride, padding, dilation)
    if geometry.taps == 1 and geometry.padding == (0, 0):
        return _pointwise_norms(x, g, geometry.stride)
    precision = _triton_precision(x, g, is_convolution=True)
    # Errors of a Gram matrix come back as their square root when a gradient nearly cancels. These
    # products are few, so they may cost three times as much and keep nearly all of float32.
    careful: Precision | None = "tf32x3" if precision == "tf32" else precision
    if _gram_is_cheaper(x, g, geometry, effort=3 if careful == "tf32x3" else 1):
        return _conv_gram(x, g, geometry, precision=careful)
    if precision is not None:
        return _triton_convolutions.conv_dense(x, g, geometry, precision=precision)
    numbers = x.shape[1] * geometry.taps * g.shape[2] * g.shape[3]
    parts = _chunks(x, g, numbers=numbers)
    return torch.cat([_squares(_conv_grads(a, b, geometry)) for a, b in parts])


@_plainly
def conv2d_grads(
    x: Tensor,
    g: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
) -> Tensor:
    """Return each example's weight gradient of a 2-d convolution (one group).

    Its shape is (batch, outputs, channels, *kernel_size): for layers so small that this fits.

    >>> x, g = torch.tensor([[[[1.0, 2.0]]]]), torch.tensor([[[[1.0, 1.0]]]])
    >>> conv2d_grads(x, g, (1, 3), padding=(0, 1))
    tensor([[[[[1., 3., 2.]]]]])
    """
    geometry = _geometry(kernel_size, stride, padding, dilation)
    precision = _triton_precision(x, g, is_convolution=True)
    if precision is not None:
        return _triton_convolutions.conv_grads(x, g, geometry, precision=precision)
    numbers = x.shape[1] * geometry.taps * g.shape[2] * g.shape[3]
    parts = _chunks(x, g, numbers=numbers)
    grads = torch.cat([_conv_grads(a, b, geometry) for a, b in parts])
    return grads.view(-1, g.shape[1], x.shape[1], *geometry.kernel)


# ---------------------------------------------------------------- which way


@cache
def _is_triton_installed() -> bool:
    return find_spec("triton") is not None


@cache
def _is_supported(device: torch.device) -> bool:
    # Tiles are made for the shared memory of data centres' GPUs; others have half as much.
    properties = torch.cuda.get_device_properties(device)
    shared = getattr(properties, "shared_memory_per_block_optin", 0)
    return torch.version.cuda is not None and properties.major >= 8 and shared >= LEAST_SHARED


def _has_triton(tensor: Tensor) -> bool:
    return tensor.is_cuda and _is_triton_installed() and _is_supported(tensor.device)


def _triton_precision(a: Tensor, b: Tensor, *, is_convolution: bool) -> Precision | None:
    """Return how Triton should multiply these, or None where torch should."""
    dtypes = {a.dtype, b.dtype}
    if not dtypes <= {torch.float32, torch.float16, torch.bfloat16} or not _has_triton(a):
        return None
    if max(a[:1].numel(), b[:1].numel(), a.shape[1] ** 2) >= 2**31:  # kernels count in 32 bits
        return None
    if torch.float32 not in dtypes:
        return "ieee"  # products of 16-bit numbers are exact
    return "tf32" if allows_tf32(is_convolution) else None


def allows_tf32(is_convolution: bool) -> bool:
    """Say whether the user lets float32 products of this kind be rounded to TF32."""
    backend = torch.backends.cudnn if is_convolution else torch.backends.cuda.matmul
    try:
        return bool(backend.allow_tf32)
    except RuntimeError:  # the newer settings are in use, and torch refuses to mix them
        settings = backend.conv if is_convolution else backend
        return bool(settings.fp32_precision == "tf32")


def _gram_is_cheaper(x: Tensor, g: Tensor, geometry: Geometry, *, effort: int) -> bool:
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


# ---------------------------------------------------------------- plain torch


def _chunks(a: Tensor, b: Tensor, *, numbers: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Split along the examples so that ``numbers`` intermediate numbers for each fit."""
    size = 8 if torch.float64 in (a.dtype, b.dtype) else 4
    limit = GPU_CHUNK_BYTES if a.is_cuda else CPU_CHUNK_BYTES
    at_once = max(1, limit // (size * max(1, numbers)))
    return zip(torch.split(a, at_once), torch.split(b, at_once), strict=True)


def _wide(tensor: Tensor) -> Tensor:
    return tensor if tensor.dtype == torch.float64 else tensor.float()


def _squares(tensor: Tensor) -> Tensor:
    flat = _wide(tensor).flatten(1)
    squares: Tensor = torch.linalg.vecdot(flat, flat)
    return squares


def _outer_norms(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    left, right = _wide(left), _wide(right)
    product = torch.bmm(left, left.transpose(1, 2))
    product *= torch.bmm(right, right.transpose(1, 2))
    diagonal = torch.diagonal(product, dim1=1, dim2=2)
    return product.sum((1, 2)), diagonal.sqrt().sum(1)


def _geometry(
    kernel: int | Sequence[int],
    stride: int | Sequence[int],
    padding: int | Sequence[int],
    dilation: int | Sequence[int],
) -> Geometry:
    pairs = [(v, v) if isinstance(v, int) else v for v in (kernel, stride, padding, dilation)]
    return Geometry(*((int(v), int(h)) for v, h in pairs))


def _pointwise_norms(x: Tensor, g: Tensor, stride: Pair) -> Tensor:
    """Return what a 1 x 1 convolution gives: a linear layer on positions."""
    rows, columns = g.shape[2:]
    x = x[:, :, :: stride[0], :: stride[1]][:, :, :rows, :columns]
    left, right = g.flatten(2).transpose(1, 2), x.flatten(2).transpose(1, 2)
    if cheaper_is_gram(left.shape[1], left.shape[2], right.shape[2]):
        return outer_norms(left, right)[0]
    return dense_norms(left, right)


def _conv_grads(x: Tensor, g: Tensor, geometry: Geometry) -> Tensor:
    """Return weight gradients (batch, outputs, channels * taps) by way of a view of patches."""
    x, g = _wide(x), _wide(g)
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


def _conv_gram(x: Tensor, g: Tensor, geometry: Geometry, *, precision: Precision | None) -> Tensor:
    (stride_h, stride_w), (height, width) = geometry.stride, x.shape[2:]
    positions = -(-height // stride_h) * -(-width // stride_w)
    numbers = stride_h * stride_w * positions**2
    if precision is None:
        parts = _chunks(x, g, numbers=2 * numbers)
        return torch.cat(
            [_shifted_gram(_residues(a, geometry.stride), b, geometry) for a, b in parts]
        )
    at_once = max(1, _triton_norms.SCRATCH_BYTES // (4 * numbers))
    return torch.cat(
        [
            _triton_convolutions.conv_gram(
                _residues(a, geometry.stride), b, geometry, precision=precision
            )
            for a, b in zip(torch.split(x, at_once), torch.split(g, at_once), strict=True)
        ]
    )


def _shifted_gram(residues: Tensor, g: Tensor, geometry: Geometry) -> Tensor:
    """Return sum over taps d and positions s, t of <x_{s+d}, x_{t+d}> <g_s, g_t>."""
    batch, _, _, height, width = residues.shape
    rows, columns = g.shape[2:]
    positions, outputs = _wide(residues).flatten(3), _wide(g).flatten(2)
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
