"""Upper bounds on the norms of the units' gradients, whatever was rounded on the way."""

from typing import final

import torch
from torch import Tensor

from discreet.learn.following.contributions import Norms, Rounding


@final
class NormBounds:
    """Add up what the parameters say about norms, in as few operations as can be."""

    def __init__(self, groups: int) -> None:
        self._squares: list[list[Tensor]] = [[] for _ in range(groups)]
        self._sizes: list[dict[Rounding, list[Tensor]]] = [{} for _ in range(groups)]

    def add(self, group: int, found: Norms) -> None:
        """Take in one parameter's."""
        self._squares[group].append(found.squares)
        if found.sizes is not None and found.rounding is not None:
            self._sizes[group].setdefault(found.rounding, []).append(found.sizes)

    def bounds(self, zero: Tensor) -> Tensor:
        """Return what no norm exceeds, whatever the rounding: (units, groups)."""
        return torch.stack(
            [
                self._bound(zero, parts, sizes)
                for parts, sizes in zip(self._squares, self._sizes, strict=True)
            ],
            1,
        )

    def _bound(
        self, zero: Tensor, parts: list[Tensor], sizes: dict[Rounding, list[Tensor]]
    ) -> Tensor:
        total = torch.stack(parts).sum(0) if parts else zero
        extra = zero
        for rounding, found in sizes.items():
            size = torch.linalg.vector_norm(torch.stack(found), dim=0)
            total = total.add(size.square(), alpha=rounding.square)
            extra = extra.add(size, alpha=rounding.product)
        return total.to(zero.dtype).sqrt().add(extra)
