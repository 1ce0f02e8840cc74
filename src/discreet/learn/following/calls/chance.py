"""The state of whatever a model may draw from in Python, to let it draw the same again."""

import random
import sys
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor


@final
@dataclass(frozen=True, slots=True)
class Chance:
    """The generators of Python, NumPy and torch (on the CPU) as they were."""

    python: Any
    numpy: Any
    torch: Tensor

    @classmethod
    def now(cls) -> "Chance":
        """Return their present state."""
        numpy = sys.modules.get("numpy")
        drawn = None if numpy is None else numpy.random.get_state()
        return cls(random.getstate(), drawn, torch.random.get_rng_state())

    def restore(self) -> None:
        """Let them go on from there."""
        random.setstate(self.python)
        if self.numpy is not None:
            sys.modules["numpy"].random.set_state(self.numpy)
        torch.random.set_rng_state(self.torch)
