"""What a run promises: fixed when it is prepared, written into checkpoints, never changed."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, TypeVar, final

from torch import nn

from discreet._exact import Number, float_up
from discreet._json import read_json
from discreet.accounting import Loss, epsilon
from discreet.errors import ParameterError
from discreet.learn.choices.adaptive import Adaptive
from discreet.learn.choices.clipping import Automatic, Clipping, Flat, PerLayer
from discreet.learn.choices.sampling import (
    FullBatch,
    Poisson,
    Sampling,
    TruncatedPoisson,
    WithoutReplacement,
)
from discreet.learn.choices.stages import Noises, Stages, loss_of_steps

__all__ = ["Promise", "certified", "trainable"]

T = TypeVar("T")

_SAMPLINGS: Final = {c.__name__: c for c in (FullBatch, Poisson, TruncatedPoisson)} | {
    "WithoutReplacement": WithoutReplacement
}
_CLIPPINGS: Final = {c.__name__: c for c in (Adaptive, Automatic, Flat, PerLayer)}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What one run promises, and to whom; all of it is public."""

    run: str  # a random name, by which reservations are found again
    sampling: Sampling
    clipping: Stages[Clipping | Adaptive]
    noise_multiplier: Stages[float]
    delta: Number
    steps: int
    epsilon: Number | None  # what was asked for, where it was
    unit: str
    rows_per_unit: int
    is_rounded: bool  # the population is the size of the data, rounded
    form: str  # of the dataset's rows
    trainable: tuple[tuple[str, tuple[int, ...]], ...]
    account: str | None

    def noises(self, start: int, stop: int) -> Counter[float]:
        """Return with which noise multipliers these steps of the plan, or past it, are made."""
        found: Counter[float] = Counter()
        for noise, steps in self.noise_multiplier.spans(start, stop):
            found[noise] += steps
        return found

    def loss(self, noises: Noises) -> Loss:
        """Return what steps with such noise cost, one at least."""
        return loss_of_steps(self.sampling, noises.items())

    def gradient_noise(self, number: int) -> float:
        """Return a step's noise multiplier of the gradient: more with a count beside it."""
        noise, clipping = self.noise_multiplier.at(number), self.clipping.at(number)
        return clipping.gradient_noise(noise) if isinstance(clipping, Adaptive) else noise

    @property
    def adapts(self) -> bool:
        """Whether the norm follows the gradients."""
        return isinstance(self.clipping.then, Adaptive)

    @property
    def steps_per_epoch(self) -> int:
        """As many steps as draw each unit once on average."""
        return max(1, round(self.sampling.population / self.sampling.expected))

    def epsilon_after(self, steps: int) -> float:
        """Return what so many steps cost at delta: a certified upper bound."""
        return self.epsilon_of(self.noises(0, steps))

    def epsilon_of(self, noises: Noises, *, delta: Number | None = None) -> float:
        """Return what steps with such noise cost at delta, or at another one."""
        if not any(noises.values()):
            return 0.0
        found = certified(self.loss(noises), self.delta if delta is None else delta)
        if self.epsilon is not None and delta is None and Counter(noises) <= self._plan:
            # The noise was chosen so that this is proved, too; the last digits may differ.
            found = min(found, float_up(Fraction(self.epsilon)))
        return found

    @property
    def _plan(self) -> Counter[float]:
        return self.noises(0, self.steps)

    def to_json(self) -> str:
        """Write it down; a sampling or clipping of one's own by its name only."""
        document = {name: getattr(self, name) for name in self.__slots__}
        document["sampling"] = _part(self.sampling, _SAMPLINGS)
        document["clipping"] = _staged(self.clipping, lambda clip: _part(clip, _CLIPPINGS))
        document["noise_multiplier"] = _staged(self.noise_multiplier, float)
        return json.dumps(document, default=_number)

    @classmethod
    def from_json(
        cls,
        text: str,
        *,
        sampling: Sampling | None,
        clipping: Clipping | Adaptive | Stages[Clipping] | None,
    ) -> "Promise":
        """Read back what :meth:`to_json` wrote; parts of one's own must be given again."""
        try:
            document = read_json(text, strict=True)
            document["sampling"] = _whole(document["sampling"], _SAMPLINGS, sampling, "sampling")
            document["clipping"] = _clipping(document["clipping"], clipping)
            document["noise_multiplier"] = _stages(document["noise_multiplier"])
            document["trainable"] = tuple((n, tuple(shape)) for n, shape in document["trainable"])
            for name in ("delta", "epsilon"):
                document[name] = _read(document[name])
            return cls(**document)
        except ParameterError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
            told = "the settings in this checkpoint cannot be read. It may be damaged."
            raise ParameterError(told, parameter="path") from error


@lru_cache(maxsize=256)
def certified(loss: Loss, delta: Number) -> float:
    """Return epsilon at delta, worked out once: a bar, a report and a plot ask for the same.

    >>> from discreet.accounting import GaussianLoss
    >>> certified(GaussianLoss(noise_multiplier=2) * 3, 1e-5) > 3
    True
    """
    return epsilon(loss, delta=delta)


def trainable(model: nn.Module) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return the names and shapes of what is learnt.

    >>> trainable(nn.Linear(3, 2))
    (('weight', (2, 3)), ('bias', (2,)))
    """
    return tuple((name, tuple(p.shape)) for name, p in model.named_parameters() if p.requires_grad)


def _part(value: object, known: Mapping[str, type]) -> dict[str, Any]:
    kind = type(value).__name__
    if known.get(kind) is type(value) and is_dataclass(value):
        return {"kind": kind, **asdict(value)}  # type: ignore[arg-type]  # an instance, not a class
    return {"kind": kind, "own": repr(value)}


def _whole(document: dict[str, Any], known: Mapping[str, type], given: Any, name: str) -> Any:
    kind = document.pop("kind")
    if "own" in document:
        if type(given).__name__ != kind or repr(given) != document["own"]:
            raise ParameterError(
                f"this run was prepared with {name}={document['own']}, which a checkpoint cannot "
                f"bring back. Pass the same object as {name}=.",
                parameter=name,
            )
        return given
    found = known[kind](**{key: _read(value) for key, value in document.items()})
    if given is not None and given != found:
        raise ParameterError(
            f"this run was prepared with {name}={found!r}. Leave {name}= out: a run goes on as it "
            "began.",
            parameter=name,
        )
    return found


def _staged(stages: Stages[T], write: Callable[[T], Any]) -> Any:
    """Write a schedule down; a single value as it was written before there were schedules."""
    if stages.is_constant:
        return write(stages.then)
    pairs = [[steps, write(value)] for steps, value in stages.pairs]
    return {"stages": pairs, "then": write(stages.then)}


def _stages(document: Any) -> Stages[Any]:
    if not isinstance(document, dict) or "stages" not in document:
        return Stages(then=document)
    return Stages(*document["stages"], then=document["then"])


def _clipping(document: Any, given: object) -> Stages[Any]:
    """Read the schedule of a clipping; where one was given, it must be the same."""
    saved = _stages(document)
    same: Stages[Any] = Stages.of(given) if given is not None else saved.changed(lambda _: None)
    if saved.changed(lambda _: None) != same.changed(lambda _: None):
        raise ParameterError(
            "this run was prepared with other stages of clip=. Leave clip= out: a run goes on as "
            "it began.",
            parameter="clip",
        )
    each = zip(saved.values, same.values, strict=True)
    return saved.with_values([_whole(part, _CLIPPINGS, clip, "clip") for part, clip in each])


def _number(value: object) -> Any:
    if isinstance(value, Fraction):
        return {"exactly": str(value)}
    return str(value)


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"exactly"}:
            return Fraction(value["exactly"])
        return {key: _read(inner) for key, inner in value.items()}
    return value
