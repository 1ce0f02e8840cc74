"""An optimiser that only private steps may use, for as long as a run has it."""

from typing import Any, final
from weakref import WeakKeyDictionary

from torch import nn
from torch.optim import LBFGS, Optimizer

from discreet.errors import ParameterError

__all__ = ["Guard", "check_optimizer"]

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


def check_optimizer(optimizer: object, model: nn.Module) -> None:
    """Refuse an optimiser that does not train all of the model and nothing else."""
    if not isinstance(optimizer, Optimizer):
        raise ParameterError(
            "optimizer must be a torch optimizer, such as torch.optim.SGD(model.parameters(), "
            f"lr=0.1), got an object of type {type(optimizer).__name__}.",
            parameter="optimizer",
        )
    if isinstance(optimizer, LBFGS):
        raise ParameterError(
            "LBFGS evaluates the loss several times in a step, and only one of them is paid for. "
            "Use an optimiser that takes one gradient, such as SGD or Adam.",
            parameter="optimizer",
        )
    own = {id(parameter) for parameter in model.parameters()}
    theirs = [p for group in optimizer.param_groups for p in group["params"]]
    if any(id(parameter) not in own for parameter in theirs):
        raise ParameterError(
            "the optimiser has parameters that are not the model's, so it would train something "
            "else. Build it from model.parameters(), after discreet.learn.fix(model) if that was "
            "used.",
            parameter="optimizer",
        )
    held = {id(parameter) for parameter in theirs}
    left_out = [n for n, p in model.named_parameters() if p.requires_grad and id(p) not in held]
    if left_out:
        raise ParameterError(
            f"the optimiser does not train {', '.join(left_out[:5])}, whose gradients would be "
            "clipped and noised for nothing. Freeze them with requires_grad_(False), or hand them "
            "to the optimiser.",
            parameter="optimizer",
        )
