"""What reading rows gives: a micro-batch, and which of its rows are there."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt
import torch

from discreet.learn.following.batch_tree import leaves, with_leaves

__all__ = ["Taken", "Taking"]


@final
@dataclass(frozen=True, slots=True, repr=False)
class Taken:
    """Rows as one micro-batch; one that could not be made is zeros, and told apart."""

    batch: Any
    is_there: npt.NDArray[np.bool_] | None = None  # None: all of them

    def kept(self) -> Any:
        """Return the batch without the rows that are not there."""
        if self.is_there is None:
            return self.batch
        keep = torch.from_numpy(self.is_there)
        return with_leaves(self.batch, iter([tensor[keep] for tensor in leaves(self.batch)]))


Taking = Callable[[], Taken]
