"""What the training loop of another library is given in place of its data and its optimiser."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, final

import torch
from torch.optim import Optimizer

from discreet.errors import ParameterError
from discreet.learn.run.ticket import Batch
from discreet.learn.training import Private

__all__ = ["SteppedOptimizer", "Tickets", "require_device", "require_private", "require_processes"]


@final
class Tickets:
    """The batches of a run, in the place where a loop expects its DataLoader."""

    def __init__(self, private: Private, *, at_once: int | None = None) -> None:
        self.private, self._at_once = private, at_once

    def __len__(self) -> int:
        left = self.private.steps_planned - self.private.steps_taken
        return left if self._at_once is None else min(left, self._at_once)

    def __iter__(self) -> Iterator[Batch]:
        return islice(self.private.batches(), self._at_once)


@final
class SteppedOptimizer(Optimizer):
    """The run's optimiser as a loop sees it: its state and schedule, without its step.

    The step has been made when the loop comes to it, inside ``private.step``.
    """

    def __init__(self, inner: Optimizer) -> None:  # not that of Optimizer: the groups are shared
        self._inner = inner

    @property
    def param_groups(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """The groups of weights, with their settings."""
        return self._inner.param_groups

    @property
    def state(self) -> Any:  # type: ignore[override]
        """What the optimiser remembers of each weight."""
        return self._inner.state

    @property
    def defaults(self) -> dict[str, Any]:  # type: ignore[override]
        """The settings of groups that do not say otherwise."""
        return self._inner.defaults

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Do nothing."""

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, which are used."""
        self._inner.zero_grad(set_to_none=set_to_none)

    def state_dict(self) -> dict[str, Any]:
        """Return the state, to be saved."""
        return self._inner.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Do nothing: the state is on the device, and a run's own checkpoint brings it back."""


def require_private(private: object) -> None:
    """Refuse what is no run."""
    if not isinstance(private, Private):
        raise ParameterError(
            "private must be what discreet.learn.prepare returned, got an object of type "
            f"{type(private).__name__}.",
            parameter="private",
        )


def require_processes(private: Private, processes: int, *, connect: str) -> None:
    """Refuse a loop of other processes than those that were connected when the run was prepared."""
    own = private._team.size
    if processes != own:
        raise ParameterError(
            f"this loop would run in {processes} processes, but the run was prepared in {own}. "
            f"Nothing was spent. Start all of them with torchrun, and {connect} before "
            "discreet.learn.prepare.",
            parameter="private",
        )


def require_device(private: Private, wanted: torch.device, *, instead: str = "") -> None:
    """Refuse a loop that would move the model, whose buffers a run already has."""
    device = next(private.model.parameters()).device
    if device.type != wanted.type or (device.index or 0) != (wanted.index or 0):
        raise ParameterError(
            f"the model is on {device}, but this loop wants it on {wanted}. Nothing was spent. "
            f"Move it there before discreet.learn.prepare{instead}.",
            parameter="model",
        )
