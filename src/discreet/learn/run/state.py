"""How far a run is: what a checkpoint remembers beside weights and promise."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

__all__ = ["RunState"]


@dataclass(slots=True)
class RunState:
    """Count the steps of a run.

    >>> state = RunState(taken=2, done=3, begun=Counter({1.5: 3}))
    >>> state.document
    {'taken': 2, 'done': 3, 'begun': 3, 'norm': None}
    >>> RunState.read(state.document, first=1.5) == state
    True
    """

    taken: int = 0  # steps that changed the model
    done: int = 0  # steps of the plan that are over, also those that failed
    begun: Counter[float] = field(default_factory=Counter)  # steps paid for, by their noise
    norm: float | None = None  # of adaptive clipping

    @property
    def document(self) -> dict[str, Any]:
        """The state as a checkpoint writes it.

        If all steps had one noise it was that of the first, and only their number is written, as
        it was before noise could change.
        """
        known = {name: getattr(self, name) for name in self.__slots__}
        pairs = [[noise, steps] for noise, steps in self.begun.items()]
        return known | {"begun": pairs if len(pairs) > 1 else self.begun.total()}

    @classmethod
    def read(cls, document: dict[str, Any], *, first: float) -> "RunState":
        """Read back a document; ``first`` is the noise multiplier of the first step."""
        begun = document["begun"]
        pairs = [[first, begun]] if isinstance(begun, int) else begun
        return cls(**document | {"begun": Counter({z: n for z, n in pairs if n})})
