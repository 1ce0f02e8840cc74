# ruff: noqa: N803 - a kernel writes its constants so
# mypy: disable-error-code="untyped-decorator, no-untyped-def, no-untyped-call"
"""Products and sums along rows in one pass: what a group norm's scale and shift are made of."""

import torch
from torch import Tensor

from discreet.learn.norms.dispatch import wide

try:
    import triton
    import triton.language as tl
except ImportError:  # a CPU has no use for it
    triton = None


def dots(grad: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``(grad * x).sum(-1)`` and ``grad.sum(-1)``, added up in at least 32 bits.

    >>> dots(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]))
    (tensor([11.]), tensor([3.]))
    """
    if triton is None or not grad.is_cuda or torch.float64 in (grad.dtype, x.dtype):
        grad, x = wide(grad), wide(x)
        return (grad * x).sum(-1), grad.sum(-1)
    grad, x = grad.contiguous(), x.contiguous()
    length = grad.shape[-1]
    rows = grad.numel() // max(1, length)
    products, sums = grad.new_empty((2, *grad.shape[:-1]), dtype=torch.float32)
    width = min(1024, triton.next_power_of_2(length))
    tall = max(1, 4096 // width)
    _kernel[(triton.cdiv(rows, tall),)](
        grad, x, products, sums, rows, length, TALL=tall, WIDE=width, num_warps=4
    )
    return products, sums


if triton is not None:

    @triton.jit
    def _kernel(
        grad,
        x,
        products,
        sums,
        rows,
        length,
        TALL: "tl.constexpr",
        WIDE: "tl.constexpr",
    ):
        row = tl.program_id(0) * TALL + tl.arange(0, TALL)
        product = tl.zeros((TALL, WIDE), tl.float32)
        total = tl.zeros((TALL, WIDE), tl.float32)
        for start in range(0, length, WIDE):
            column = start + tl.arange(0, WIDE)
            where = row[:, None].to(tl.int64) * length + column[None, :]
            inside = (row < rows)[:, None] & (column < length)[None, :]
            g = tl.load(grad + where, mask=inside, other=0.0).to(tl.float32)
            total += g
            product += g * tl.load(x + where, mask=inside, other=0.0).to(tl.float32)
        tl.store(products + row, tl.sum(product, 1), mask=row < rows)
        tl.store(sums + row, tl.sum(total, 1), mask=row < rows)
