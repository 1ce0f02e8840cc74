# ruff: noqa: N801, N803, RET505
# mypy: ignore-errors
# A kernel's body is Triton, which only looks like Python; the launchers below carry types.
"""What the Triton kernels of this folder are made of: tiles of matrices, and how to launch on them.

Operands come as matrices (time, feature) per example of which either axis may be contiguous.
Triton learns the alignment of a number only when it is a multiple of 16, so strides and sizes are
handed over in units of one 16-byte access (``UNIT`` elements) wherever they divide.
"""

from dataclasses import dataclass
from typing import Literal, Self

from torch import Tensor

try:
    import triton
    import triton.language as tl

    jit = triton.jit
except ImportError:  # no GPU package: the module can be read (and its doctests found), not run
    triton = None

    class tl:
        constexpr = object

    def jit(function):
        return function


Precision = Literal["ieee", "tf32", "tf32x3"]

TILE = 128  # tokens per side of a Gram tile: two accumulators of 64 registers with 8 warps
WARPS = 8
STAGES = 4
SHORT_STAGES = 3  # for short loops, where two programs at once hide more than a longer queue


@jit
def load_tile(
    base, rows, features, n_rows, n_features, outer,
    UNIT: tl.constexpr, FEATURES_INNER: tl.constexpr,
    MASK_ROWS: tl.constexpr, MASK_FEATURES: tl.constexpr,
):  # fmt: skip
    """Load the tile (rows, features) of one example's matrix."""
    # Written out so that the compiler sees which stride is one, and what divides the other.
    if FEATURES_INNER:
        pointers = base + rows[:, None] * (outer * UNIT) + features[None, :]
        row_end = n_rows
        feature_end = n_features * UNIT
    else:
        pointers = base + rows[:, None] + features[None, :] * (outer * UNIT)
        row_end = n_rows * UNIT
        feature_end = n_features
    if MASK_ROWS and MASK_FEATURES:
        mask = (rows[:, None] < row_end) & (features[None, :] < feature_end)
        return tl.load(pointers, mask=mask, other=0.0)
    elif MASK_ROWS:
        return tl.load(pointers, mask=rows[:, None] < row_end, other=0.0)
    elif MASK_FEATURES:
        return tl.load(pointers, mask=features[None, :] < feature_end, other=0.0)
    else:
        return tl.load(pointers)


@jit
def triangle(pair):
    """Return the pair (i <= j) with this number, counting (0,0), (0,1), (1,1), (0,2), ..."""
    j = ((tl.sqrt(8.0 * pair.to(tl.float32) + 1.0) - 1.0) * 0.5).to(tl.int32)
    # The square root is rounded: put right what it may have got wrong by one.
    j = tl.where((j + 1) * (j + 2) // 2 <= pair, j + 1, j)
    j = tl.where(j * (j + 1) // 2 > pair, j - 1, j)
    return pair - j * (j + 1) // 2, j


@jit
def gram_tile(
    base, rows, columns, n_rows, n_features, outer,
    UNIT: tl.constexpr, FEATURES_INNER: tl.constexpr,
    MASK_ROWS: tl.constexpr, MASK_FEATURES: tl.constexpr,
    BLOCK: tl.constexpr, BLOCK_K: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Return <x_s, x_t> for s in rows and t in columns: one tile of a Gram matrix."""
    gram = tl.zeros((BLOCK, BLOCK), tl.float32)
    features = tl.arange(0, BLOCK_K)
    end = n_features * UNIT if FEATURES_INNER else n_features
    for _ in range(0, end, BLOCK_K):
        a = load_tile(base, rows, features, n_rows, n_features, outer,
                  UNIT, FEATURES_INNER, MASK_ROWS, MASK_FEATURES)  # fmt: skip
        b = load_tile(base, columns, features, n_rows, n_features, outer,
                  UNIT, FEATURES_INNER, MASK_ROWS, MASK_FEATURES)  # fmt: skip
        gram = tl.dot(a, tl.trans(b), gram, input_precision=PRECISION)
        features += BLOCK_K
    return gram


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor (batch, time, feature) as kernels take it: strides in units of 16 bytes."""

    tensor: Tensor
    unit: int
    is_inner: bool  # whether features, not time, are contiguous

    @classmethod
    def of(cls, tensor: Tensor) -> Self:
        if 1 not in tensor.stride()[1:]:
            tensor = tensor.contiguous()
        is_inner = tensor.stride(2) == 1
        batch, outer = tensor.stride(0), tensor.stride(1 if is_inner else 2)
        unit = 16 // tensor.element_size()
        inner = tensor.shape[2 if is_inner else 1]
        if batch % unit or outer % unit or inner % unit or tensor.data_ptr() % 16:
            unit = 1
        return cls(tensor, unit, is_inner)

    @property
    def is_aligned(self) -> bool:
        return self.unit > 1

    @property
    def arguments(self) -> tuple[int, int, int, int]:
        """Batch stride, outer stride, rows and features."""
        _, rows, features = self.tensor.shape
        batch, outer = self.tensor.stride(0), self.tensor.stride(1 if self.is_inner else 2)
        if self.is_inner:
            return batch // self.unit, outer // self.unit, rows, features // self.unit
        return batch // self.unit, outer // self.unit, rows // self.unit, features


def power(size: int, *, most: int, least: int = 16) -> int:
    """Return the power of two from ``least`` to ``most`` that covers ``size`` best."""
    return min(most, max(least, 1 << (size - 1).bit_length()))


def depth_of(tensor: Tensor, size: int) -> int:
    """Return how many features go into one product: 128 bytes, less where there are fewer."""
    return power(size, most=128 // tensor.element_size())


def warps_of(rows: int, columns: int) -> int:
    """Return the warps for a tile: groups of four, where Hopper's matrix units can take them."""
    if rows >= 64:
        return WARPS if rows * columns >= 128 * 64 else 4
    return min(4, max(1, rows * columns // 256))


def tiles_of(size: int, block: int) -> int:
    return -(-size // block)


def total_of(partial: Tensor) -> Tensor:
    """Add up what the programs of each example found."""
    return partial[:, 0] if partial.shape[1] == 1 else partial.sum(1)
