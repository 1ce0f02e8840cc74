"""An optimiser that only private steps may use, for as long as a run has it."""

from typing import Any, final
from weakref import WeakKeyDictionary

from torch.optim import Optimizer

from discreet.errors import ParameterError

__all__ = ["Guard"]

_held: "WeakKeyDictionary[Optimizer, Guard]" = WeakKeyDictionary()


@final
class Guard:
    """Refuse steps of an optimiser that do not come from the run that holds it.

    An update from gradients of one's own would not be in the account, and the epsilon of the run
    would be printed for a model that it does not describe.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        previous = _held.get(optimizer)
        if previous is not None:  # a notebook cell that was run again, say
            previous.release()
        self.is_held = True
        self._is_private = False
        self._handle = optimizer.register_step_pre_hook(self._check)
        _held[optimizer] = self

    def step(self, optimizer: Optimizer) -> None:
        """Make one step, which is private."""
        self._is_private = True
        try:
            optimizer.step()
        finally:
            self._is_private = False

    def release(self) -> None:
        """Let go of the optimiser."""
        self._handle.remove()
        self.is_held = False

    def _check(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if not self._is_private:
            raise ParameterError(
                "this optimiser belongs to a private run, and a step made outside of "
                "private.step(batch, loss_fn) is not in its account. Nothing was changed. End the "
                "run with private.close() to train on without privacy.",
                parameter="optimizer",
            )
