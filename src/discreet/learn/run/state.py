"""How far a run is: what a checkpoint remembers beside weights and promise."""

from dataclasses import dataclass

__all__ = ["RunState"]


@dataclass(slots=True)
class RunState:
    """Count the steps of a run.

    >>> RunState(taken=2, done=3, begun=3).document
    {'taken': 2, 'done': 3, 'begun': 3, 'norm': None}
    """

    taken: int = 0  # steps that changed the model
    done: int = 0  # steps of the plan that are over, also those that failed
    begun: int = 0  # steps paid for
    norm: float | None = None  # of adaptive clipping

    @property
    def document(self) -> dict[str, int | float | None]:
        """The state as a checkpoint writes it."""
        return {name: getattr(self, name) for name in self.__slots__}
