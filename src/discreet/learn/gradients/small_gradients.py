"""Small gradients of the units, side by side."""

from typing import final

import torch
from torch import Tensor

from discreet.learn.following.contributions import Contribution, Dense, Norms
from discreet.learn.gradients.flat_buffer import FlatGradient


@final
class SmallGradients:
    """Small gradients of the units, side by side: one norm and one product for all of them.

    Worth a copy where starting an operation takes longer than the operation.
    """

    def __init__(self, parts: dict[int, Contribution], groups: tuple[int, ...]) -> None:
        found = sorted(
            (place, part)
            for place, part in parts.items()
            if isinstance(part, Dense) and part.grads[0].numel() <= _limit(part.grads)
        )
        self.places = {place for place, _ in found}
        self._runs: list[tuple[int, list[int], Tensor]] = []
        for group in sorted({groups[place] for place in self.places}):
            own = [(place, part) for place, part in found if groups[place] == group]
            side_by_side = torch.cat([part.flat for _, part in own], 1)
            self._runs.append((group, [place for place, _ in own], side_by_side))

    def norms(self) -> list[tuple[int, Norms]]:
        """Return the norms in each group."""
        return [(group, Dense(grads).norms()) for group, _, grads in self._runs]

    def add_weighted(self, factors: Tensor, flat: FlatGradient) -> None:
        """Add all of them to the buffer, each unit's times its factor."""
        for group, places, grads in self._runs:
            first, last = places[0], places[-1]
            factor = factors[:, group].to(grads.dtype)
            if last - first + 1 == len(places):
                flat.span(first, last).addmv_(grads.t(), factor)
                continue
            total = factor @ grads
            sizes = [flat.view(place).numel() for place in places]
            for place, part in zip(places, total.split(sizes), strict=True):
                flat.view(place).view(-1).add_(part)


def _limit(tensor: Tensor) -> int:
    return 2**16 if tensor.is_cuda else 2**12
