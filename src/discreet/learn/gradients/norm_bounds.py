"""Upper bounds on the norms of the units' gradients, whatever was rounded on the way."""

from typing import Final, final

import torch
from torch import Tensor

from discreet.learn.following.contributions import Norms, Rounding
from discreet.learn.norms.dispatch import underflow

_OTHERS: Final = 16  # roundings beside those of sums: products, roots, what is added here
_MOST_LOST: Final = 2.0**51  # sensitivities: 2**-63 times as much is a quarter of FLOAT_SLACK


@final
class NormBounds:
    """Add up what the parameters say about norms, in as few operations as can be."""

    def __init__(self, groups: int) -> None:
        self._squares: list[list[Tensor]] = [[] for _ in range(groups)]
        self._sizes: list[dict[Rounding, list[Tensor]]] = [{} for _ in range(groups)]
        self._lost: list[list[Tensor]] = [[] for _ in range(groups)]
        self._always = [0.0] * groups  # lost, whatever the unit is
        self._chain = 0

    def add(self, group: int, found: Norms) -> None:
        """Take in one parameter's."""
        self._squares[group].append(found.squares)
        self._chain = max(self._chain, found.chain)
        if found.sizes is not None and found.rounding is not None:
            self._sizes[group].setdefault(found.rounding, []).append(found.sizes)
        if isinstance(found.lost, Tensor):
            self._lost[group].append(found.lost)
        else:
            self._always[group] += found.lost
        self._always[group] += 4 * underflow(found.squares.dtype)  # in the sums here

    def bounds(self, zero: Tensor, *, sensitivity: float | Tensor) -> Tensor:
        """Return what no norm exceeds, whatever was rounded or underflowed: (units, groups).

        Infinite for a unit whose numbers are so large that what underflows beside them shows in a
        sum of this ``sensitivity``.
        """
        lost = [
            torch.stack(parts).sum(0) + always if parts else zero + always
            for parts, always in zip(self._lost, self._always, strict=True)
        ]
        bounds = torch.stack([self._bound(zero, group) + part for group, part in enumerate(lost)])
        is_long = all(part.dtype == torch.float64 for parts in self._squares for part in parts)
        half_a_digit = 2.0**-53 if is_long and zero.dtype == torch.float64 else 2.0**-24
        added = self._chain + max(map(len, self._squares)) + _OTHERS
        bounds *= 1 + half_a_digit * added
        if any(self._lost):
            too_many = torch.stack(lost).sum(0) > _MOST_LOST * sensitivity
            bounds.masked_fill_(too_many, torch.inf)
        return bounds.t()

    def nulls(self, zero: Tensor) -> Tensor:
        """Say which units have no gradient at all; bounds, which allow for underflow, do not."""
        found = [part == 0 for parts in self._squares for part in parts]
        return torch.stack(found).all(0) if found else torch.ones_like(zero, dtype=torch.bool)

    def _bound(self, zero: Tensor, group: int) -> Tensor:
        parts, sizes = self._squares[group], self._sizes[group]
        total = torch.stack(parts).sum(0) if parts else zero
        extra = zero
        for rounding, found in sizes.items():
            size = torch.linalg.vector_norm(torch.stack(found), dim=0)
            total = total.add(size.square(), alpha=rounding.square)
            extra = extra.add(size, alpha=rounding.product)
        return total.to(zero.dtype).sqrt().add(extra)
