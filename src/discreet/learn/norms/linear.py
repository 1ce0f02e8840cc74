"""Norms of each example's gradient of a linear layer, and gradients of a normalisation's scale.

``T`` is the number of positions over which a layer shares its weight (tokens, pixels); the weight
gradient of one example is G = sum_t left_t (x) right_t.
"""

import torch
from torch import Tensor

from discreet.learn.norms import triton_norms
from discreet.learn.norms.dispatch import (
    chunks,
    has_triton,
    plainly,
    row_norms,
    squares,
    triton_precision,
    wide,
)
from discreet.learn.norms.triton_norms import OuterParts

__all__ = ["cheaper_is_gram", "dense_norms", "norm_affine_grads", "outer_norms", "outer_parts"]


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
    squares, sizes, _, _ = outer_parts(left, right)
    return squares, sizes


@plainly
def outer_parts(left: Tensor, right: Tensor) -> OuterParts:
    """Return the same, and the squared norms of both sides, which stand in the Gram matrices.

    >>> left, right = torch.tensor([[[1.0], [1.0]]]), torch.tensor([[[3.0, 0.0], [0.0, 4.0]]])
    >>> outer_parts(left, right)[2:]
    (tensor([2.]), tensor([25.]))
    """
    if left.shape[1] == 1:
        lefts, rights = row_norms(left[:, 0]), row_norms(right[:, 0])
        sizes = lefts * rights
        return sizes.square(), sizes, lefts.square(), rights.square()
    precision = triton_precision(left, right, is_convolution=False)
    if precision is not None:
        return triton_norms.outer_parts(left, right, precision=precision)
    parts = [_outer_parts(a, b) for a, b in chunks(left, right, numbers=2 * left.shape[1] ** 2)]
    squares, sizes, lefts, rights = (torch.cat(found) for found in zip(*parts, strict=True))
    return squares, sizes, lefts, rights


@plainly
def dense_norms(left: Tensor, right: Tensor) -> Tensor:
    """Return the squared norm of each example's gradient by forming it, a piece at a time.

    >>> dense_norms(torch.tensor([[[1.0], [1.0]]]), torch.tensor([[[3.0, 0.0], [0.0, 4.0]]]))
    tensor([25.])
    """
    precision = triton_precision(left, right, is_convolution=False)
    if precision is not None:
        return triton_norms.dense_norms(left, right, precision=precision)
    numbers = left.shape[2] * right.shape[2]
    return torch.cat(
        [
            squares(torch.bmm(wide(a).transpose(1, 2), wide(b)))
            for a, b in chunks(left, right, numbers=numbers)
        ]
    )


def cheaper_is_gram(t: int, m: int, n: int) -> bool:
    """Say whether ``outer_norms`` takes fewer operations than ``dense_norms``.

    A Gram matrix is symmetric; its tiles make that 0.6 rather than a half.

    >>> cheaper_is_gram(512, 50257, 768), cheaper_is_gram(1024, 64, 64)
    (True, False)
    """
    return 0.6 * t * (m + n) < m * n


@plainly
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
    if has_triton(g) and torch.float64 not in (g.dtype, x.dtype):
        return triton_norms.affine_grads(g, x, mean, rstd)
    centred = wide(x) if mean is None else wide(x) - wide(mean).unsqueeze(2)
    products = torch.bmm(wide(rstd).unsqueeze(1), wide(g) * centred)
    return products[:, 0], wide(g).sum(1)


def _outer_parts(left: Tensor, right: Tensor) -> OuterParts:
    left, right = wide(left), wide(right)
    product = torch.bmm(left, left.transpose(1, 2))
    lefts = _diagonal(product).sum(1)
    other = torch.bmm(right, right.transpose(1, 2))
    rights = _diagonal(other).sum(1)
    product *= other
    return product.sum((1, 2)), _diagonal(product).sqrt().sum(1), lefts, rights


def _diagonal(grams: Tensor) -> Tensor:
    return torch.diagonal(grams, dim1=1, dim2=2)
