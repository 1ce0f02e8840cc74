# ruff: noqa: N803
# mypy: ignore-errors
# A kernel's body is Triton, which only looks like Python; the launchers below carry types.
"""Norms of per-example gradients in Triton, for NVIDIA GPUs.

Nobody calls this module but ``linear`` and ``convolution``, which decide when it may be used. Every
kernel works on one example per program (or a tile of one), multiplies with the matrix units, adds
up in float32 and writes one partial sum per program: no atomics, so the same input gives the same
bits.
"""

import torch
from torch import Tensor

from discreet.learn.norms.triton_tiles import (
    SHORT_STAGES,
    STAGES,
    TILE,
    Operand,
    Precision,
    depth_of,
    gram_tile,
    jit,
    load_tile,
    power,
    tiles_of,
    tl,
    total_of,
    triangle,
    warps_of,
)

__all__ = ["affine_grads", "dense_norms", "outer_norms", "outer_parts"]

OuterParts = tuple[Tensor, Tensor, Tensor, Tensor]
"""Squared norms, sizes of the terms, squared norms of the left sides and of the right ones."""

SCRATCH_BYTES = 256 << 20  # what a chunk of an intermediate result may take


# ------------------------------------------------------------------ outer products


@jit
def _ghost(
    left, right, squares, sizes, lefts, rights, n_tokens, pairs, tiles,
    l_batch, l_outer, l_rows, l_features, r_batch, r_outer, r_rows, r_features,
    L_UNIT: tl.constexpr, L_INNER: tl.constexpr, L_MASK: tl.constexpr, L_BLOCK: tl.constexpr,
    R_UNIT: tl.constexpr, R_INNER: tl.constexpr, R_MASK: tl.constexpr, R_BLOCK: tl.constexpr,
    MASK_ROWS: tl.constexpr, BLOCK: tl.constexpr, PRECISION: tl.constexpr, GIVEN: tl.constexpr,
):  # fmt: skip
    """Add up one tile of (left Gram) * (right Gram); GIVEN: ``left`` is a Gram matrix already.

    Tiles on the diagonal, where |left_t|^2 and |right_t|^2 stand, add up these as well.
    """
    example = tl.program_id(0) // pairs
    pair = tl.program_id(0) % pairs
    i, j = triangle(pair)
    s = i * BLOCK + tl.arange(0, BLOCK)
    t = j * BLOCK + tl.arange(0, BLOCK)
    l_base = left + example.to(tl.int64) * l_batch * L_UNIT
    r_base = right + example.to(tl.int64) * r_batch * R_UNIT
    on_diagonal = s[:, None] == t[None, :]
    product = gram_tile(r_base, s, t, r_rows, r_features, r_outer,
                         R_UNIT, R_INNER, MASK_ROWS, R_MASK, BLOCK, R_BLOCK, PRECISION)  # fmt: skip
    if i == j:
        tl.store(rights + example * tiles + i, tl.sum(tl.where(on_diagonal, product, 0.0)))
    if GIVEN:
        inside = (s[:, None] < n_tokens) & (t[None, :] < n_tokens)
        other = tl.load(l_base + s[:, None] * n_tokens + t[None, :], mask=inside, other=0.0)
    else:
        other = gram_tile(l_base, s, t, l_rows, l_features, l_outer,
                           L_UNIT, L_INNER, MASK_ROWS, L_MASK, BLOCK, L_BLOCK,
                           PRECISION)  # fmt: skip
    if i == j:
        tl.store(lefts + example * tiles + i, tl.sum(tl.where(on_diagonal, other, 0.0)))
    product *= other
    tl.store(squares + tl.program_id(0), tl.sum(product) * tl.where(i == j, 1.0, 2.0))
    diagonal = tl.where(on_diagonal, tl.sqrt(tl.maximum(product, 0.0)), 0.0)
    tl.store(sizes + tl.program_id(0), tl.sum(diagonal))


@jit
def _gram(
    x, out, n_tokens, pairs, batch, outer, n_rows, n_features,
    UNIT: tl.constexpr, INNER: tl.constexpr, MASK: tl.constexpr, BLOCK_K: tl.constexpr,
    MASK_ROWS: tl.constexpr, BLOCK: tl.constexpr, PRECISION: tl.constexpr,
    ADD: tl.constexpr, MIRROR: tl.constexpr,
):  # fmt: skip
    """Write one tile of the upper half of a Gram matrix; ADD to what is there, MIRROR it below."""
    example = tl.program_id(0) // pairs
    i, j = triangle(tl.program_id(0) % pairs)
    s = i * BLOCK + tl.arange(0, BLOCK)
    t = j * BLOCK + tl.arange(0, BLOCK)
    base = x + example.to(tl.int64) * batch * UNIT
    gram = gram_tile(base, s, t, n_rows, n_features, outer,
                      UNIT, INNER, MASK_ROWS, MASK, BLOCK, BLOCK_K, PRECISION)  # fmt: skip
    out += example.to(tl.int64) * n_tokens * n_tokens
    pointers = out + s[:, None] * n_tokens + t[None, :]
    inside = (s[:, None] < n_tokens) & (t[None, :] < n_tokens)
    if ADD:
        gram += tl.load(pointers, mask=inside, other=0.0)
    tl.store(pointers, gram, mask=inside)
    if MIRROR and i != j:
        below = out + t[:, None] * n_tokens + s[None, :]
        inside = (t[:, None] < n_tokens) & (s[None, :] < n_tokens)
        tl.store(below, tl.trans(gram), mask=inside)


@jit
def _copy_columns(
    source, target, n_tokens, batch, outer, first, width, padded,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Copy columns first .. first + width of every row to aligned rows, with zeros behind."""
    blocks = tl.cdiv(padded * 64, BLOCK)
    row = tl.program_id(0) // blocks
    column = (tl.program_id(0) % blocks) * BLOCK + tl.arange(0, BLOCK)
    example = (row // n_tokens).to(tl.int64)
    source += example * batch + (row % n_tokens).to(tl.int64) * outer + first
    values = tl.load(source + column, mask=column < width, other=0.0)
    target += row.to(tl.int64) * (padded * 64)
    tl.store(target + column, values, mask=column < padded * 64)


@jit
def _dense(
    left, right, squares, n_tokens, tiles_m, tiles_n,
    l_batch, l_outer, l_rows, l_features, r_batch, r_outer, r_rows, r_features,
    L_UNIT: tl.constexpr, L_INNER: tl.constexpr, L_MASK: tl.constexpr, BLOCK_M: tl.constexpr,
    R_UNIT: tl.constexpr, R_INNER: tl.constexpr, R_MASK: tl.constexpr, BLOCK_N: tl.constexpr,
    MASK_ROWS: tl.constexpr, BLOCK_T: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Form one tile of sum_t left_t (x) right_t and add up its squares."""
    tiles = tiles_m * tiles_n
    example = (tl.program_id(0) // tiles).to(tl.int64)
    tile = tl.program_id(0) % tiles
    m = (tile // tiles_n) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = (tile % tiles_n) * BLOCK_N + tl.arange(0, BLOCK_N)
    l_base = left + example * l_batch * L_UNIT
    r_base = right + example * r_batch * R_UNIT
    t = tl.arange(0, BLOCK_T)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, n_tokens, BLOCK_T):
        a = load_tile(l_base, t, m, l_rows, l_features, l_outer, L_UNIT, L_INNER, MASK_ROWS, L_MASK)
        b = load_tile(r_base, t, n, r_rows, r_features, r_outer, R_UNIT, R_INNER, MASK_ROWS, R_MASK)
        total = tl.dot(tl.trans(a), b, total, input_precision=PRECISION)
        t += BLOCK_T
    tl.store(squares + tl.program_id(0), tl.sum(total * total))


# ------------------------------------------------------------------ normalisation layers


@jit
def _affine(
    g, x, mean, rstd, scaled, plain, n_tokens, width, span, splits, g_batch, g_outer,
    x_batch, x_outer,
    CENTRED: tl.constexpr, MASK: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Sum g * (x - mean) * rstd and g over a span of tokens, for a block of features."""
    blocks = tl.cdiv(width, BLOCK_D)
    block = tl.program_id(0) % blocks
    part = (tl.program_id(0) // blocks) % splits
    example = (tl.program_id(0) // blocks // splits).to(tl.int64)
    d = block * BLOCK_D + tl.arange(0, BLOCK_D)
    begin = part * span
    end = tl.minimum(begin + span, n_tokens)
    g += example * g_batch
    x += example * x_batch
    rstd += example * n_tokens
    if CENTRED:
        mean += example * n_tokens
    sum_scaled = tl.zeros((BLOCK_T, BLOCK_D), tl.float32)
    sum_plain = tl.zeros((BLOCK_T, BLOCK_D), tl.float32)
    for start in range(begin, end, BLOCK_T):
        t = start + tl.arange(0, BLOCK_T)
        inside = (t < end)[:, None]
        if MASK:
            inside = inside & (d < width)[None, :]
        gs = tl.load(g + t[:, None] * g_outer + d[None, :], mask=inside, other=0.0)
        xs = tl.load(x + t[:, None] * x_outer + d[None, :], mask=inside, other=0.0).to(tl.float32)
        gs = gs.to(tl.float32)
        if CENTRED:
            xs -= tl.load(mean + t, mask=t < end, other=0.0).to(tl.float32)[:, None]
        scale = tl.load(rstd + t, mask=t < end, other=0.0).to(tl.float32)[:, None]
        sum_scaled += gs * xs * scale
        sum_plain += gs
    row = (example * splits + part) * width
    tl.store(scaled + row + d, tl.sum(sum_scaled, 0), mask=d < width)
    tl.store(plain + row + d, tl.sum(sum_plain, 0), mask=d < width)


# ------------------------------------------------------------------ launchers


def outer_norms(left: Tensor, right: Tensor, *, precision: Precision) -> tuple[Tensor, Tensor]:
    """Return squared norms of sum_t left_t (x) right_t, and sum_t |left_t| |right_t|."""
    return outer_parts(left, right, precision=precision)[:2]


def outer_parts(left: Tensor, right: Tensor, *, precision: Precision) -> OuterParts:
    """Return the same, and the squared norms of both sides."""
    first, second = Operand.of(left), Operand.of(right)
    if not first.is_aligned and left.shape[2] > 64:
        wide = first.tensor if first.is_inner else first.tensor.contiguous()
        batch, tokens, width = wide.shape
        if batch * tokens * width * wide.element_size() > SCRATCH_BYTES:
            return _outer_parts_in_chunks(wide, second, precision=precision)
        first = Operand.of(_aligned(wide, 0, width))
    if not second.is_aligned and right.shape[2] > 64:
        wide = second.tensor if second.is_inner else second.tensor.contiguous()
        batch, tokens, width = wide.shape
        if batch * tokens * width * wide.element_size() > SCRATCH_BYTES:
            squares, sizes, rights, lefts = _outer_parts_in_chunks(wide, first, precision=precision)
            return squares, sizes, lefts, rights
        second = Operand.of(_aligned(wide, 0, width))
    return launch_ghost(first, second, precision=precision)


def launch_ghost(
    first: Operand, second: Operand, *, precision: Precision, given: bool = False
) -> OuterParts:
    batch, tokens, n = second.tensor.shape
    m = first.tensor.shape[2]
    block = power(tokens, most=TILE)
    tiles = tiles_of(tokens, block)
    pairs = tiles * (tiles + 1) // 2
    squares, sizes = second.tensor.new_empty(2, batch, pairs, dtype=torch.float32)
    lefts, rights = second.tensor.new_empty(2, batch, tiles, dtype=torch.float32)
    l_block, r_block = depth_of(first.tensor, m), depth_of(second.tensor, n)
    _ghost[(batch * pairs,)](
        first.tensor, second.tensor, squares, sizes, lefts, rights, tokens, pairs, tiles,
        *first.arguments, *second.arguments,
        L_UNIT=first.unit, L_INNER=first.is_inner, L_MASK=m % l_block != 0, L_BLOCK=l_block,
        R_UNIT=second.unit, R_INNER=second.is_inner, R_MASK=n % r_block != 0, R_BLOCK=r_block,
        MASK_ROWS=tokens % block != 0, BLOCK=block, PRECISION=precision, GIVEN=given,
        num_warps=warps_of(block, block), num_stages=STAGES,
    )  # fmt: skip
    return total_of(squares), total_of(sizes), total_of(lefts), total_of(rights)


def _aligned(wide: Tensor, first: int, width: int, into: Tensor | None = None) -> Tensor:
    """Return some columns as a tensor of aligned rows, with zeros up to a multiple of 64."""
    batch, tokens, _ = wide.shape
    padded = tiles_of(width, 64)
    target = wide.new_empty(batch * tokens * padded * 64) if into is None else into
    block = 2048
    _copy_columns[(batch * tokens * tiles_of(padded * 64, block),)](
        wide, target, tokens, wide.stride(0), wide.stride(1), first, width, padded,
        BLOCK=block, num_warps=4,
    )  # fmt: skip
    return target[: batch * tokens * padded * 64].view(batch, tokens, padded * 64)


def _outer_parts_in_chunks(wide: Tensor, other: Operand, *, precision: Precision) -> OuterParts:
    """Do ``outer_parts`` for a very wide side of unaligned rows, such as a vocabulary of 50257.

    Products of unaligned rows cannot be loaded asynchronously, and a whole aligned copy would
    double the memory: copy a slice of columns at a time and add up the Gram matrices.
    """
    batch, tokens, width = wide.shape
    examples = max(1, SCRATCH_BYTES // (4 * tokens * tokens))
    found: list[OuterParts] = []
    for begin in range(0, batch, examples):
        part = wide[begin : begin + examples]
        row_bytes = part.shape[0] * tokens * part.element_size()
        columns = min(tiles_of(width, 64), max(1, SCRATCH_BYTES // (64 * row_bytes))) * 64
        buffer = part.new_empty(part.shape[0] * tokens * columns)
        gram = part.new_empty(part.shape[0], tokens, tokens, dtype=torch.float32)
        for at in range(0, width, columns):
            piece = Operand.of(_aligned(part, at, min(columns, width - at), into=buffer))
            launch_gram(piece, gram, precision=precision, add=at > 0, mirror=False)
        second = Operand.of(other.tensor[begin : begin + examples])
        found.append(launch_ghost(Operand.of(gram), second, precision=precision, given=True))
    squares, sizes, lefts, rights = (torch.cat(parts) for parts in zip(*found, strict=True))
    return squares, sizes, lefts, rights


def launch_gram(x: Operand, out: Tensor, *, precision: Precision, add: bool, mirror: bool) -> None:
    batch, tokens, features = x.tensor.shape
    block = power(tokens, most=TILE)
    pairs = tiles_of(tokens, block) * (tiles_of(tokens, block) + 1) // 2
    depth = depth_of(x.tensor, features)
    _gram[(batch * pairs,)](
        x.tensor, out, tokens, pairs, *x.arguments,
        UNIT=x.unit, INNER=x.is_inner, MASK=features % depth != 0, BLOCK_K=depth,
        MASK_ROWS=tokens % block != 0, BLOCK=block, PRECISION=precision,
        ADD=add, MIRROR=mirror, num_warps=warps_of(block, block), num_stages=STAGES,
    )  # fmt: skip


def dense_norms(left: Tensor, right: Tensor, *, precision: Precision) -> Tensor:
    """Return squared norms of sum_t left_t (x) right_t, forming it tile by tile."""
    dtype = torch.promote_types(left.dtype, right.dtype)
    if left.shape[2] < right.shape[2]:  # the matrix units want the longer side first
        left, right = right, left
    first, second = Operand.of(left.to(dtype)), Operand.of(right.to(dtype))
    batch, tokens, m = left.shape
    n = right.shape[2]
    block_m, block_n = power(m, most=TILE), power(n, most=TILE)
    block_t = depth_of(first.tensor, tokens)
    tiles_m, tiles_n = tiles_of(m, block_m), tiles_of(n, block_n)
    squares = first.tensor.new_empty(batch, tiles_m * tiles_n, dtype=torch.float32)
    _dense[(squares.numel(),)](
        first.tensor, second.tensor, squares, tokens, tiles_m, tiles_n,
        *first.arguments, *second.arguments,
        L_UNIT=first.unit, L_INNER=first.is_inner, L_MASK=m % block_m != 0, BLOCK_M=block_m,
        R_UNIT=second.unit, R_INNER=second.is_inner, R_MASK=n % block_n != 0, BLOCK_N=block_n,
        MASK_ROWS=tokens % block_t != 0, BLOCK_T=block_t, PRECISION=precision,
        num_warps=warps_of(block_m, block_n), num_stages=SHORT_STAGES,
    )  # fmt: skip
    return total_of(squares)


def affine_grads(g: Tensor, x: Tensor, mean: Tensor | None, rstd: Tensor) -> tuple[Tensor, Tensor]:
    """Return sum_t g * (x - mean) * rstd and sum_t g."""
    g = g if g.stride(2) == 1 else g.contiguous()
    x = x if x.stride(2) == 1 else x.contiguous()
    batch, tokens, width = g.shape
    block_d = power(width, most=128)
    block_t = 4096 // block_d
    # Enough programs to keep every processor's loads in flight, each with a few tiles to do.
    blocks = tiles_of(width, block_d)
    splits = max(1, min(tiles_of(tokens, 4 * block_t), 1024 // (batch * blocks)))
    span = tiles_of(tiles_of(tokens, splits), block_t) * block_t
    splits = tiles_of(tokens, span)
    scaled = g.new_empty(batch, splits, width, dtype=torch.float32)
    plain = torch.empty_like(scaled)
    rstd = rstd.contiguous()
    mean = None if mean is None else mean.contiguous()
    _affine[(batch * splits * blocks,)](
        g, x, rstd if mean is None else mean, rstd, scaled, plain, tokens, width, span, splits,
        g.stride(0), g.stride(1), x.stride(0), x.stride(1),
        CENTRED=mean is not None, MASK=width % block_d != 0, BLOCK_T=block_t, BLOCK_D=block_d,
        num_warps=4, num_stages=3,
    )  # fmt: skip
    return total_of(scaled), total_of(plain)
