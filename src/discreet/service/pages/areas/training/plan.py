"""What a run is told: the sliders, and the noise or the epsilon that follows from the other."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, final

from discreet.accounting import GaussianLoss, Loss, calibrate, epsilon
from discreet.errors import ParameterError

__all__ = [
    "DELTA",
    "POINTS",
    "SLIDERS",
    "Slider",
    "TrainingPlan",
    "checked",
    "planned",
    "steps_loss",
]

POINTS: Final = 400
DELTA: Final = 1e-5


class Slider(NamedTuple):
    """One thing to choose: from where to where, how finely, and what is usual."""

    least: float
    most: float
    step: float
    usual: float


SLIDERS: Final[Mapping[str, Slider]] = {
    "clip": Slider(0.1, 4, 0.1, 1),
    "batch": Slider(10, 200, 10, 40),
    "rate": Slider(0.1, 3, 0.1, 1),
    "steps": Slider(10, 300, 10, 150),
    "epsilon": Slider(0.2, 10, 0.1, 1),
    "noise": Slider(0.4, 10, 0.1, 2),
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    """A run: all of its settings, and what it will have cost at its end.

    >>> plan = planned("noise", clip=1, batch=40, rate=0.5, steps=150, noise=2.0, epsilon=0)
    >>> TrainingPlan.of(plan.document) == plan
    True
    """

    clip: float
    batch: int
    rate: float
    steps: int
    noise: float
    epsilon: float

    @property
    def document(self) -> dict[str, Any]:
        """The plan as JSON has it."""
        return asdict(self)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "TrainingPlan":
        """Read what ``document`` wrote."""
        return cls(**document)


@lru_cache(maxsize=1024)
def planned(
    by: Literal["epsilon", "noise"],
    *,
    clip: float,
    batch: int,
    rate: float,
    steps: int,
    epsilon: float,
    noise: float,
) -> TrainingPlan:
    """Return the plan: of ``epsilon`` and ``noise`` one leads, and the accountant says the other.

    >>> plan = planned("epsilon", clip=1, batch=40, rate=0.5, steps=150, epsilon=2, noise=0)
    >>> round(plan.noise, 2), plan.epsilon <= 2
    (2.65, True)
    """
    if by == "epsilon":
        noise = calibrate(
            lambda level: steps_loss(level, batch=batch, steps=steps), epsilon=epsilon, delta=DELTA
        )
    cost = _cost(noise, batch=batch, steps=steps)
    return TrainingPlan(clip=clip, batch=batch, rate=rate, steps=steps, noise=noise, epsilon=cost)


def steps_loss(noise: float, *, batch: int, steps: int) -> Loss:
    """Return what so many steps cost: Gaussian noise, on batches that everybody is in by chance."""
    step = GaussianLoss(noise_multiplier=noise).sampled(rate=Fraction(batch, POINTS))
    return step * steps


def _cost(noise: float, *, batch: int, steps: int) -> float:
    return epsilon(steps_loss(noise, batch=batch, steps=steps), delta=DELTA)


def checked(by: str) -> Literal["epsilon", "noise"]:
    """Return which one leads."""
    if by == "noise":
        return "noise"
    if by != "epsilon":
        raise ParameterError("by must be epsilon or noise.", parameter="by")
    return "epsilon"
