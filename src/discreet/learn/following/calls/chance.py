"""The state of what a model may draw from in Python, to let it draw the same again."""

import random
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor


@final
@dataclass(frozen=True, slots=True)
class Chance:
    """The generators of Python and of torch (on the CPU) as they were."""

    python: Any
    torch: Tensor

    @classmethod
    def now(cls) -> "Chance":
        """Return their present state."""
        return cls(random.getstate(), torch.random.get_rng_state())

    def restore(self) -> None:
        """Let them go on from there."""
        random.setstate(self.python)
        torch.random.set_rng_state(self.torch)
