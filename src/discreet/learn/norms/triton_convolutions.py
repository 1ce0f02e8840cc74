# ruff: noqa: N803
# mypy: ignore-errors
# A kernel's body is Triton, which only looks like Python; the launchers below carry types.
"""Norms of convolutions' per-example weight gradients in Triton, for NVIDIA GPUs.

Nobody calls this module but ``convolution``. Patches are never written down: kernels find them in
the input by arithmetic on indices.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from discreet.learn.norms.triton_norms import launch_gram
from discreet.learn.norms.triton_tiles import (
    SHORT_STAGES,
    STAGES,
    Operand,
    Precision,
    depth_of,
    gram_tile,
    jit,
    power,
    tiles_of,
    tl,
    total_of,
    triangle,
    warps_of,
)

if TYPE_CHECKING:
    from discreet.learn.norms.convolution import KernelGeometry

__all__ = ["conv_dense", "conv_gram", "conv_grads"]

SHIFT_TILE = 64  # each tap needs an address for every entry of a tile: larger ones would spill


@jit
def _shifted(
    grams, g, squares, pairs, g_batch, g_outer, n_rows, n_features,
    n_tokens, height, width, columns,
    stride_h, stride_w, dilation_h, dilation_w, padding_h, padding_w,
    KERNEL_H: tl.constexpr, KERNEL_W: tl.constexpr,
    UNIT: tl.constexpr, INNER: tl.constexpr, MASK: tl.constexpr, BLOCK_K: tl.constexpr,
    MASK_ROWS: tl.constexpr, BLOCK: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Add up a tile of (Gram of g) * (sum over kernel offsets of the shifted Gram of x).

    ``grams`` holds, for each residue of positions modulo the stride, the Gram matrix of the
    (height, width) positions of that residue: the taps of one offset all have one residue.
    """
    example = (tl.program_id(0) // pairs).to(tl.int64)
    i, j = triangle(tl.program_id(0) % pairs)
    s = i * BLOCK + tl.arange(0, BLOCK)
    t = j * BLOCK + tl.arange(0, BLOCK)
    gram = gram_tile(g + example * g_batch * UNIT, s, t, n_rows, n_features, g_outer,
                      UNIT, INNER, MASK_ROWS, MASK, BLOCK, BLOCK_K, PRECISION)  # fmt: skip
    n_positions = height * width
    grams += example * stride_h * stride_w * n_positions * n_positions
    patches = tl.zeros((BLOCK, BLOCK), tl.float32)
    s_row = s // columns
    s_column = s % columns
    t_row = t // columns
    t_column = t % columns
    for tap in range(KERNEL_H * KERNEL_W):
        # Adding the padding's worth of strides keeps the dividends positive: C rounds to zero.
        y = (tap // KERNEL_W) * dilation_h - padding_h + stride_h * padding_h
        x = (tap % KERNEL_W) * dilation_w - padding_w + stride_w * padding_w
        residue = (y % stride_h) * stride_w + x % stride_w
        dy = y // stride_h - padding_h
        dx = x // stride_w - padding_w
        s_in = (s_row + dy >= 0) & (s_row + dy < height) & (s_column + dx >= 0)
        s_in = s_in & (s_column + dx < width) & (s < n_tokens)
        t_in = (t_row + dy >= 0) & (t_row + dy < height) & (t_column + dx >= 0)
        t_in = t_in & (t_column + dx < width) & (t < n_tokens)
        s_at = (s_row + dy) * width + s_column + dx
        t_at = (t_row + dy) * width + t_column + dx
        base = grams + residue.to(tl.int64) * n_positions * n_positions
        patches += tl.load(base + s_at[:, None] * n_positions + t_at[None, :],
                           mask=s_in[:, None] & t_in[None, :], other=0.0)  # fmt: skip
    square = tl.sum(gram * patches) * tl.where(i == j, 1.0, 2.0)
    tl.store(squares + tl.program_id(0), square)


@jit
def _conv(
    x, g, squares, grads, channels, outputs, height, width, rows, columns, tiles_o, tiles_n,
    x_batch, x_channel, x_position, g_batch, g_channel, g_position,
    stride_h, stride_w, dilation_h, dilation_w, padding_h, padding_w,
    KERNEL_H: tl.constexpr, KERNEL_W: tl.constexpr,
    BLOCK_O: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_T: tl.constexpr,
    MASK_O: tl.constexpr, MASK_X: tl.constexpr, PRECISION: tl.constexpr, STORE: tl.constexpr,
    CHANNELS_INNER: tl.constexpr,
):  # fmt: skip
    """Form a tile of one example's weight gradient (outputs, taps): square it, or STORE it."""
    tiles = tiles_o * tiles_n
    example = (tl.program_id(0) // tiles).to(tl.int64)
    tile = tl.program_id(0) % tiles
    o = (tile // tiles_n) * BLOCK_O + tl.arange(0, BLOCK_O)
    n = (tile % tiles_n) * BLOCK_N + tl.arange(0, BLOCK_N)
    taps: tl.constexpr = KERNEL_H * KERNEL_W
    n_positions = rows * columns
    if CHANNELS_INNER:
        tap = n // channels
        c = n % channels
    else:
        tap = n % taps
        c = n // taps
    tap_h = (tap // KERNEL_W) * dilation_h - padding_h
    tap_w = (tap % KERNEL_W) * dilation_w - padding_w
    x_tap = c * x_channel + (tap_h * width + tap_w) * x_position
    x += example * x_batch
    g += example * g_batch
    total = tl.zeros((BLOCK_O, BLOCK_N), tl.float32)
    for start in range(0, n_positions, BLOCK_T):
        t = start + tl.arange(0, BLOCK_T)
        g_in = (t < n_positions)[None, :]
        if MASK_O:
            g_in = g_in & (o < outputs)[:, None]
        a = tl.load(g + o[:, None] * g_channel + t[None, :] * g_position, mask=g_in, other=0.0)
        h = (t // columns) * stride_h
        w = (t % columns) * stride_w
        x_in = (t < n_positions)[None, :] & (n < channels * taps)[:, None]
        if MASK_X:  # some taps fall on the padding
            at_h = tap_h[:, None] + h[None, :]
            at_w = tap_w[:, None] + w[None, :]
            x_in = x_in & (at_h >= 0) & (at_h < height) & (at_w >= 0) & (at_w < width)
        b = tl.load(x + x_tap[:, None] + ((h * width + w) * x_position)[None, :],
                    mask=x_in, other=0.0)  # fmt: skip
        total = tl.dot(a, tl.trans(b), total, input_precision=PRECISION)
    if STORE:
        grads += example * outputs * channels * taps
        inside = (o < outputs)[:, None] & (n < channels * taps)[None, :]
        at = o[:, None] * (channels * taps) + (c * taps + tap)[None, :]
        tl.store(grads + at, total, mask=inside)
    else:
        tl.store(squares + tl.program_id(0), tl.sum(total * total))


@jit
def _conv_nine(
    x, g, squares, channels, outputs, height, width, rows, columns, tiles_o, tiles_c,
    x_batch, x_channel, x_position, g_batch, g_channel, g_position,
    dilation_h, dilation_w, padding_h, padding_w,
    BLOCK_O: tl.constexpr, BLOCK_C: tl.constexpr, BLOCK_T: tl.constexpr,
    MASK_O: tl.constexpr, MASK_C: tl.constexpr, SAME: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Form a tile (outputs, channels) of a 3 x 3 weight gradient at stride 1, nine taps at once.

    Time runs over the rows of g and the columns of x. Vertical taps shift x by whole rows, so its
    loads stay aligned; horizontal taps shift g, which is masked where a row would wrap around.
    Six loads feed nine products.
    """
    tiles = tiles_o * tiles_c
    example = (tl.program_id(0) // tiles).to(tl.int64)
    tile = tl.program_id(0) % tiles
    o = (tile // tiles_c) * BLOCK_O + tl.arange(0, BLOCK_O)
    c = (tile % tiles_c) * BLOCK_C + tl.arange(0, BLOCK_C)
    g += example * g_batch + (o * g_channel)[:, None]
    x += example * x_batch + (c * x_channel)[:, None]
    n_positions = rows * width
    end = height * width
    y0 = -padding_h * width
    y1 = (dilation_h - padding_h) * width
    y2 = (2 * dilation_h - padding_h) * width
    c00 = tl.zeros((BLOCK_O, BLOCK_C), tl.float32)
    c01 = tl.zeros((BLOCK_O, BLOCK_C), tl.float32)
    c02 = tl.zeros((BLOCK_O, BLOCK_C), tl.float32)
    c10 = tl.zeros((BLOCK_O, BLOCK_C), tl.float32)
    c11 = tl.zeros((BLOCK_O, BLOCK_C), tl.float32)
    c12 = tl.zeros((BLOCK_O, BLOCK_C), tl.float32)
    c20 = tl.zeros((BLOCK_O, BLOCK_C), tl.float32)
    c21 = tl.zeros((BLOCK_O, BLOCK_C), tl.float32)
    c22 = tl.zeros((BLOCK_O, BLOCK_C), tl.float32)
    for start in range(0, n_positions, BLOCK_T):
        t = start + tl.arange(0, BLOCK_T)
        x0_in = ((t + y0 >= 0) & (t + y0 < end))[None, :]
        x1_in = ((t + y1 >= 0) & (t + y1 < end))[None, :]
        x2_in = ((t + y2 >= 0) & (t + y2 < end))[None, :]
        if MASK_C:
            x0_in = x0_in & (c < channels)[:, None]
            x1_in = x1_in & (c < channels)[:, None]
            x2_in = x2_in & (c < channels)[:, None]
        x0 = tl.load(x + ((t + y0) * x_position)[None, :], mask=x0_in, other=0.0)
        x1 = tl.load(x + ((t + y1) * x_position)[None, :], mask=x1_in, other=0.0)
        x2 = tl.load(x + ((t + y2) * x_position)[None, :], mask=x2_in, other=0.0)
        q = t % width + padding_w
        q0_in = (t < n_positions) & (q >= 0) & (q < columns)
        q1_in = (t < n_positions) & (q >= dilation_w) & (q < columns + dilation_w)
        q2_in = (t < n_positions) & (q >= 2 * dilation_w) & (q < columns + 2 * dilation_w)
        if SAME:  # as many columns in g as in x, and the middle tap does not move
            at = t + padding_w
            q1_in = t < n_positions
        else:
            at = (t // width) * columns + q
        g0_in = q0_in[None, :]
        g1_in = q1_in[None, :]
        g2_in = q2_in[None, :]
        if MASK_O:
            g0_in = g0_in & (o < outputs)[:, None]
            g1_in = g1_in & (o < outputs)[:, None]
            g2_in = g2_in & (o < outputs)[:, None]
        g0 = tl.load(g + (at * g_position)[None, :], mask=g0_in, other=0.0)
        if SAME:
            g1 = tl.load(g + (t * g_position)[None, :], mask=g1_in, other=0.0)
        else:
            g1 = tl.load(g + ((at - dilation_w) * g_position)[None, :], mask=g1_in, other=0.0)
        g2 = tl.load(g + ((at - 2 * dilation_w) * g_position)[None, :], mask=g2_in, other=0.0)
        c00 = tl.dot(g0, tl.trans(x0), c00, input_precision=PRECISION)
        c01 = tl.dot(g1, tl.trans(x0), c01, input_precision=PRECISION)
        c02 = tl.dot(g2, tl.trans(x0), c02, input_precision=PRECISION)
        c10 = tl.dot(g0, tl.trans(x1), c10, input_precision=PRECISION)
        c11 = tl.dot(g1, tl.trans(x1), c11, input_precision=PRECISION)
        c12 = tl.dot(g2, tl.trans(x1), c12, input_precision=PRECISION)
        c20 = tl.dot(g0, tl.trans(x2), c20, input_precision=PRECISION)
        c21 = tl.dot(g1, tl.trans(x2), c21, input_precision=PRECISION)
        c22 = tl.dot(g2, tl.trans(x2), c22, input_precision=PRECISION)
    square = c00 * c00 + c01 * c01 + c02 * c02 + c10 * c10 + c11 * c11
    square += c12 * c12 + c20 * c20 + c21 * c21 + c22 * c22
    tl.store(squares + tl.program_id(0), tl.sum(square))


# ------------------------------------------------------------------ launchers


def _positions(x: Tensor) -> tuple[Tensor, int, int, int]:
    """Return an image batch whose positions are one axis, and its three strides.

    Shifts by one position must stay loadable: 4-byte numbers may be loaded at any position, so
    positions are contiguous (which is what the matrix units want of them too); 2-byte numbers
    may not, so there channels are.
    """
    is_narrow = x.element_size() == 2
    x = x.contiguous(memory_format=torch.channels_last if is_narrow else torch.contiguous_format)
    if is_narrow:  # said outright, since sizes of one leave torch free to report other strides
        _, channels, height, width = x.shape
        return x, channels * height * width, 1, channels
    return x, x.stride(0), x.shape[2] * x.shape[3], 1


def conv_dense(x: Tensor, g: Tensor, geometry: "KernelGeometry", *, precision: Precision) -> Tensor:
    """Return squared norms of convolutions' weight gradients, formed tile by tile."""
    is_three = geometry.kernel == (3, 3) and geometry.stride == (1, 1)
    if is_three and x.shape[1] >= 16 and g.shape[1] >= 16:
        return _conv_nine_norms(x, g, geometry, precision=precision)
    return _launch_conv(x, g, geometry, precision=precision, store=False)


def conv_grads(x: Tensor, g: Tensor, geometry: "KernelGeometry", *, precision: Precision) -> Tensor:
    """Return the weight gradients of each example, (batch, outputs, channels, *kernel)."""
    return _launch_conv(x, g, geometry, precision=precision, store=True)


def _launch_conv(
    x: Tensor, g: Tensor, geometry: "KernelGeometry", *, precision: Precision, store: bool
) -> Tensor:
    dtype = torch.promote_types(x.dtype, g.dtype)
    batch, channels, height, width = x.shape
    outputs, rows, columns = g.shape[1:]
    (kernel_h, kernel_w), (padding_h, padding_w) = geometry.kernel, geometry.padding
    x, *x_strides = _positions(x.to(dtype))
    g, *g_strides = _positions(g.to(dtype))
    taps = channels * kernel_h * kernel_w
    block_o, block_n = power(outputs, most=128), power(taps, most=128)
    block_t = depth_of(x, rows * columns)
    tiles_o, tiles_n = tiles_of(outputs, block_o), tiles_of(taps, block_n)
    squares = x.new_empty(batch, tiles_o * tiles_n, dtype=torch.float32)
    shape = (batch, outputs, channels, kernel_h, kernel_w) if store else (1,)
    grads = x.new_empty(shape, dtype=torch.float32)
    _conv[(squares.numel(),)](
        x, g, squares, grads, channels, outputs, height, width, rows, columns, tiles_o, tiles_n,
        *x_strides, *g_strides,
        *geometry.stride, *geometry.dilation, *geometry.padding,
        KERNEL_H=kernel_h, KERNEL_W=kernel_w,
        BLOCK_O=block_o, BLOCK_N=block_n, BLOCK_T=block_t, MASK_O=outputs % block_o != 0,
        MASK_X=padding_h > 0 or padding_w > 0, PRECISION=precision, STORE=store,
        CHANNELS_INNER=x_strides[1] == 1,
        num_warps=warps_of(block_o, block_n), num_stages=SHORT_STAGES,
    )  # fmt: skip
    return grads if store else total_of(squares)


def _conv_nine_norms(
    x: Tensor, g: Tensor, geometry: "KernelGeometry", *, precision: Precision
) -> Tensor:
    dtype = torch.promote_types(x.dtype, g.dtype)
    batch, channels, height, width = x.shape
    outputs, rows, columns = g.shape[1:]
    x, *x_strides = _positions(x.to(dtype))
    g, *g_strides = _positions(g.to(dtype))
    # Nine accumulators: 64 x 64 each takes 144 registers a thread with 8 warps. Fewer outputs are
    # filled up with zeros, for Hopper's matrix units take 64 rows at a time.
    block_o, block_c = 64, power(channels, most=64)
    block_t = depth_of(x, rows * width)
    tiles_o, tiles_c = tiles_of(outputs, block_o), tiles_of(channels, block_c)
    squares = x.new_empty(batch, tiles_o * tiles_c, dtype=torch.float32)
    _conv_nine[(squares.numel(),)](
        x, g, squares, channels, outputs, height, width, rows, columns, tiles_o, tiles_c,
        *x_strides, *g_strides, *geometry.dilation, *geometry.padding,
        BLOCK_O=block_o, BLOCK_C=block_c, BLOCK_T=block_t,
        MASK_O=outputs % block_o != 0, MASK_C=channels % block_c != 0,
        SAME=columns == width and geometry.padding[1] == geometry.dilation[1],
        PRECISION=precision,
        num_warps=8 if block_c == 64 else 4, num_stages=SHORT_STAGES,
    )  # fmt: skip
    return total_of(squares)


def conv_gram(
    residues: Tensor, g: Tensor, geometry: "KernelGeometry", *, precision: Precision
) -> Tensor:
    """Return squared norms of convolutions' weight gradients from Gram matrices of positions."""
    batch, outputs, rows, columns = g.shape
    height, width = residues.shape[-2:]
    tokens, positions = rows * columns, height * width
    flat = residues.reshape(-1, residues.shape[-3], positions).transpose(1, 2)
    grams = flat.new_empty(flat.shape[0], positions, positions, dtype=torch.float32)
    launch_gram(Operand.of(flat), grams, precision=precision, add=False, mirror=True)
    second = Operand.of(g.flatten(2).transpose(1, 2))
    block = power(tokens, most=SHIFT_TILE)
    pairs = tiles_of(tokens, block) * (tiles_of(tokens, block) + 1) // 2
    depth = depth_of(second.tensor, outputs)
    squares = grams.new_empty(batch, pairs)
    _shifted[(squares.numel(),)](
        grams, second.tensor, squares, pairs, *second.arguments, tokens, height, width, columns,
        *geometry.stride, *geometry.dilation, *geometry.padding,
        KERNEL_H=geometry.kernel[0], KERNEL_W=geometry.kernel[1],
        UNIT=second.unit, INNER=second.is_inner, MASK=outputs % depth != 0, BLOCK_K=depth,
        MASK_ROWS=tokens % block != 0, BLOCK=block, PRECISION=precision,
        num_warps=2 * warps_of(block, block), num_stages=STAGES,
    )  # fmt: skip
    return total_of(squares)
