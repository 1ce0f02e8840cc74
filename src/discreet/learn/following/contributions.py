"""Book-keeping: what one use of a parameter contributes to the gradients of the units.

The backward pass leaves records, an input and a gradient of an output, from which the sum of
clipped gradients is formed without a second pass. Every kind of record can say three things about
the gradients ``G_i`` of the units: their squared norms, the gradients themselves, and
``sum_i c_i G_i``. How is chosen by cost: the Gram way of [LTLH22] for long outer products, or
forming ``G_i`` where that is small.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Protocol, final

import torch
from torch import Tensor

from discreet.learn.norms.dispatch import allows_tf32, chain, row_norms, squares, underflow, wide
from discreet.learn.norms.linear import cheaper_is_gram, dense_norms, outer_parts

# A per-unit gradient of at most this many numbers in all is kept, rather than computed twice.
_KEPT_ON_CPU = 2**24
_KEPT_ON_CUDA = 2**23


@final
@dataclass(frozen=True, slots=True)
class Norms:
    """Squared norms of the units' gradients, as computed.

    Where norm and weighted sum are computed in two ways, ``sizes`` are the sums of the norms of
    the terms that a gradient is made of: what rounding errors are relative to. ``lost`` is more
    than underflow can have taken from the norm, and for ``underflow(dtype)`` times as much a
    weighted gradient can differ by; ``chain`` is how many positive numbers were added one after
    the other: see ``docs/proofs/clipping.md``.
    """

    squares: Tensor
    lost: Tensor | float
    chain: int
    sizes: Tensor | None = None
    rounding: "Rounding | None" = None


@final
@dataclass(frozen=True, slots=True)
class Rounding:
    """Relative errors: of the square of a norm, and of a weighted gradient beside the norm's."""

    square: float
    product: float


class Contribution(Protocol):
    """What one use of a parameter (or several, joined) adds to the gradients of the units."""

    def norms(self) -> Norms:
        """Return the squared norm of each unit's gradient."""
        ...

    def dense(self) -> Tensor:
        """Return the gradients of the units, one after the other."""
        ...

    def add_weighted(self, factors: Tensor, out: Tensor) -> None:
        """Add the sum of the units' gradients, each times its factor."""
        ...

    def settled(self) -> "Contribution":
        """Return the gradients themselves, where they are small and nothing is to be added."""
        ...

    def without(self, bad: Tensor) -> "Contribution":
        """Return the same without the units that are not finite."""
        ...


def rounding_of(tensor: Tensor, *, is_convolution: bool = False) -> Rounding:
    """Return what two ways of computing with numbers of this kind may differ by.

    Norms come from exact products of (for TF32: cut-off) numbers, so the error of a square is that
    of adding up 32-bit numbers. The weighted sum multiplies again, after a factor was applied and
    rounded to the numbers' own kind.
    """
    if tensor.dtype == torch.float64:
        return Rounding(square=2.0**-48, product=2.0**-50)
    if not tensor.is_cuda:
        return Rounding(square=2.0**-20, product=2.0**-22)  # 16-bit numbers are widened first
    if tensor.dtype == torch.bfloat16:
        return Rounding(square=2.0**-20, product=2.0**-9)
    if allows_tf32(is_convolution):
        # The factor's product and both operands, each cut off after ten bits.
        return Rounding(square=2.0**-20, product=2.0**-8)
    return Rounding(square=2.0**-20, product=2.0**-22)


def is_kept(units: int, numbers: int, device: torch.device) -> bool:
    """Say whether the gradients of all units are small enough to be kept."""
    return units * numbers <= (_KEPT_ON_CPU if device.type == "cpu" else _KEPT_ON_CUDA)


def lost_in_squares(numbers: int, dtype: torch.dtype) -> float:
    """Return more than a norm lacks if the squares of all its numbers underflow.

    >>> lost_in_squares(100, torch.float32) == 40 * 2.0**-63
    True
    """
    return 4 * underflow(dtype) * sqrt(numbers)


def _longest(rows: int, columns: int) -> int:
    """Return the chain of sums of an outer product: of its two sides, or of all its numbers."""
    return max(chain(rows) + chain(columns), chain(rows * columns))


def lost_in_products(
    left: Tensor, right: Tensor, *, rows: int, columns: int, positions: int, places: int = 1
) -> Tensor:
    """Return more than a norm lacks if products underflow on the way to it.

    ``left`` and ``right`` are the norms of each unit's two sides, which are ``positions`` vectors
    of ``rows`` and of ``columns`` numbers, with ``places`` of a kernel for each pair.
    """
    both = right * sqrt(rows) + left * sqrt(columns)
    own = sqrt(rows * columns) + 2 * positions
    return (both * sqrt(positions) + own).mul_(4 * underflow(both.dtype) * sqrt(places))


@final
@dataclass(frozen=True, slots=True)
class Dense:
    """Gradients of the units as they are: (units, *shape)."""

    grads: Tensor

    def norms(self) -> Norms:
        flat = self.flat
        numbers = flat.shape[1]
        return Norms(squares(flat), lost_in_squares(numbers, flat.dtype), chain(numbers))

    @property
    def flat(self) -> Tensor:
        """One row for each unit."""
        return self.grads.reshape(self.grads.shape[0], -1)

    def dense(self) -> Tensor:
        return self.grads

    def add_weighted(self, factors: Tensor, out: Tensor) -> None:
        grads = self.flat
        out.view(-1).addmv_(grads.t(), factors.to(grads.dtype))

    def settled(self) -> "Dense":
        return self

    def without(self, bad: Tensor) -> "Dense":
        return Dense(zeroed(self.grads, bad))


@final
@dataclass(frozen=True, slots=True)
class Outer:
    """Gradients ``G_i = sum_t left_it (x) right_it``: a matrix product along positions t."""

    left: Tensor  # (units, positions, rows of the parameter)
    right: Tensor  # (units, positions, columns of the parameter)

    def norms(self) -> Norms:
        _, positions, rows = self.left.shape
        columns = self.right.shape[2]
        if cheaper_is_gram(positions, rows, columns):
            found, sizes, *squared = outer_parts(self.left, self.right)
            left, right = (square.sqrt() for square in squared)
        else:
            found = dense_norms(self.left, self.right)
            lefts, rights = (
                torch.linalg.vector_norm(t, dim=2, dtype=found.dtype)
                for t in (self.left, self.right)
            )
            sizes = (lefts * rights).sum(1)
            left, right = row_norms(lefts), row_norms(rights)
        lost = lost_in_products(left, right, rows=rows, columns=columns, positions=positions)
        return Norms(found, lost, _longest(rows, columns), sizes, rounding_of(self.left))

    def dense(self) -> Tensor:
        left, right = self.left, self.right
        if left.is_cuda and left.dtype == right.dtype and left.dtype.itemsize == 2:
            return torch.bmm(left.transpose(1, 2), right, out_dtype=torch.float32)
        return torch.bmm(wide(left).transpose(1, 2), wide(right))

    def settled(self) -> "Contribution":
        """Return the gradients themselves, where they are small and cost less than two ways."""
        units, positions, rows = self.left.shape
        columns = self.right.shape[2]
        if not is_kept(units, rows * columns, self.left.device):
            return self
        if self.left.device.type == "cpu" and positions * positions * (rows + columns) < (
            rows * columns
        ):
            return self
        return Dense(self.dense())

    def add_weighted(self, factors: Tensor, out: Tensor) -> None:
        left, right = self.left, self.right
        scale = factors[:, None, None]
        # A GPU multiplies 16-bit numbers far faster: rounding is paid for in the norm's slack. Not
        # float16, which has no room for a factor: 2**-24 is its smallest number.
        is_alike = left.is_cuda and left.dtype == right.dtype != torch.float16
        narrow = left.dtype if is_alike else out.dtype
        if left.shape[2] <= right.shape[2]:
            left = torch.mul(left, scale, out=torch.empty_like(left, dtype=narrow))
        else:
            right = torch.mul(right, scale, out=torch.empty_like(right, dtype=narrow))
        _add_product(out, left.flatten(0, 1), right.flatten(0, 1))

    def without(self, bad: Tensor) -> "Outer":
        return Outer(zeroed(self.left, bad), zeroed(self.right, bad))


@final
@dataclass(frozen=True, slots=True)
class Lookup:
    """Gradients of a table that was read: its row ``index[i, t]`` gets ``rows[i, t]``."""

    index: Tensor  # (units, positions)
    rows: Tensor  # (units, positions, columns)
    height: int

    def norms(self) -> Norms:
        # What a row of the table got, from all positions of a unit that read it, in order of the
        # rows: none of it is lost to cancellation, as it would be with Gram matrices.
        units, positions, columns = self.rows.shape
        first = torch.arange(units, device=self.index.device)[:, None] * self.height
        keys, order = (self.index + first).flatten().sort()
        place = torch.zeros_like(keys)
        torch.cumsum(keys[1:] != keys[:-1], 0, out=place[1:])
        rows = wide(self.rows).reshape(units * positions, columns)
        found = torch.zeros_like(rows).index_add_(0, place, rows[order])
        owner = torch.zeros_like(keys).index_copy_(0, place, order // max(1, positions))
        found = squares(found)
        sizes = torch.linalg.vector_norm(rows.view(self.rows.shape), dim=2).sum(1)
        rounding = Rounding(0.0, 2.0**-50 if rows.dtype == torch.float64 else 2.0**-22)
        total = found.new_zeros(units).index_add_(0, owner, found)
        lost = lost_in_squares(positions * columns, rows.dtype)
        return Norms(total, lost, chain(columns) + positions, sizes, rounding)

    def dense(self) -> Tensor:
        units, _, columns = self.rows.shape
        rows = wide(self.rows)
        grads = rows.new_zeros(units * self.height, columns)
        first = torch.arange(units, device=rows.device)[:, None] * self.height
        grads.index_add_(0, (self.index + first).flatten(), rows.flatten(0, 1))
        return grads.view(units, self.height, columns)

    def add_weighted(self, factors: Tensor, out: Tensor) -> None:
        rows = wide(self.rows) * factors[:, None, None]
        out.index_add_(0, self.index.flatten(), rows.flatten(0, 1).to(out.dtype))

    def settled(self) -> "Lookup":
        return self

    def without(self, bad: Tensor) -> "Lookup":
        return Lookup(self.index, zeroed(self.rows, bad), self.height)


@final
@dataclass(frozen=True, slots=True)
class Tied:
    """A table that was read by index and multiplied with as well: tied embeddings.

    ``<G_outer, G_lookup> = sum_{s,t} left_t[index_s] <right_t, rows_s>`` needs no gradient either.
    """

    outer: Outer
    lookup: Lookup

    def norms(self) -> Norms:
        outer, lookup = self.outer.norms(), self.lookup.norms()
        assert outer.sizes is not None
        left, right, rows = self.outer.left, self.outer.right, self.lookup.rows
        units, positions, _ = left.shape
        index = self.lookup.index[:, None, :].expand(units, positions, -1)
        exact = torch.float64 if allows_tf32(False) else wide(right[:0]).dtype
        inner = torch.bmm(right.to(exact), rows.transpose(1, 2).to(exact))
        cross = (left.gather(2, index) * inner).sum((1, 2)).to(outer.squares.dtype)
        total = (outer.squares + lookup.squares + 2 * cross).clamp_min(0)
        sizes = outer.sizes + torch.linalg.vector_norm(rows, dim=2, dtype=cross.dtype).sum(1)
        # Beside their own, what the products of one with the other lack.
        between = positions + rows.shape[1] * (1 + rows.shape[2])
        own = lookup.lost + 4 * underflow(cross.dtype) * between
        longest = max(outer.chain, lookup.chain)
        return Norms(total, 2 * outer.lost + own, longest, sizes, outer.rounding)

    def settled(self) -> "Contribution":
        """Return the gradients themselves, where they are small."""
        units, _, columns = self.lookup.rows.shape
        if is_kept(units, self.lookup.height * columns, self.lookup.rows.device):
            return Dense(self.dense())
        return self

    def dense(self) -> Tensor:
        return self.outer.dense() + self.lookup.dense()

    def add_weighted(self, factors: Tensor, out: Tensor) -> None:
        self.outer.add_weighted(factors, out)
        self.lookup.add_weighted(factors, out)

    def without(self, bad: Tensor) -> "Tied":
        return Tied(self.outer.without(bad), self.lookup.without(bad))


def joined(parts: list[Contribution]) -> Contribution:
    """Return the contributions of one parameter as one: gradients add up before norms are taken."""
    if len(parts) == 1:
        return parts[0]
    outers = [part for part in parts if isinstance(part, Outer)]
    lookups = [part for part in parts if isinstance(part, Lookup)]
    if len(outers) + len(lookups) < len(parts):
        total = parts[0].dense()
        for part in parts[1:]:
            total = total + part.dense()
        return Dense(total)
    if not lookups:
        return _side_by_side(outers).settled()
    lookup = Lookup(
        torch.cat([part.index for part in lookups], 1),
        torch.cat([part.rows for part in lookups], 1),
        lookups[0].height,
    )
    return Tied(_side_by_side(outers), lookup).settled() if outers else lookup


def _side_by_side(outers: list[Outer]) -> Outer:
    return Outer(
        torch.cat([part.left for part in outers], 1), torch.cat([part.right for part in outers], 1)
    )


def zeroed(tensor: Tensor, bad: Tensor) -> Tensor:
    """Return the tensor with zeros for the units that are bad."""
    return tensor.masked_fill(bad.view(-1, *[1] * (tensor.dim() - 1)), 0)


def _add_product(out: Tensor, left: Tensor, right: Tensor) -> None:
    """Add left^T right to ``out``, summed in at least 32 bits."""
    if left.dtype == right.dtype == out.dtype:
        out.addmm_(left.t(), right)
    elif left.is_cuda and left.dtype == right.dtype:
        out.add_(torch.mm(left.t(), right, out_dtype=torch.float32))
    else:
        out.addmm_(left.t().to(out.dtype), right.to(out.dtype))
