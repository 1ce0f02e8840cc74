"""Loss functions: one loss for each row, and how a run looks at some rows more than at others."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, final

from torch import Tensor, nn

from discreet.errors import ParameterError
from discreet.learn.following.batch_tree import leaves
from discreet.learn.following.function_identity import identity_of

LossFunction = Callable[[nn.Module, Any], Tensor]
"""From a model and the rows of a micro-batch to one loss for each row."""


@dataclass(frozen=True, slots=True)
class _Around:
    """Around another loss function; equal for equal ones, so that it is known again."""

    loss_fn: LossFunction = field(compare=False)
    identity: Hashable = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "identity", identity_of(self.loss_fn))


@final
class WeightedLoss(_Around):
    """Multiply each row's loss by its weight."""

    __slots__ = ()

    def __call__(self, model: nn.Module, batch: tuple[Any, Tensor]) -> Tensor:
        rows, weights = batch
        losses = self.loss_fn(model, rows)
        if getattr(losses, "shape", None) != weights.shape:
            return losses  # the engine says what is wrong with it
        return losses * weights


def checked_losses(losses: Any, batch: Any) -> Tensor:
    """Return the losses of the rows, or say what is wrong with them."""
    rows = next(leaves(batch)).shape[0]
    if not isinstance(losses, Tensor) or losses.shape != (rows,):
        shape = tuple(losses.shape) if isinstance(losses, Tensor) else type(losses).__name__
        raise ParameterError(
            f"loss_fn must return one loss for each row of the batch, of shape (rows,), got "
            f"{shape}. Use reduction='none', and average over what belongs to one row.",
            parameter="loss_fn",
        )
    return losses
