"""What a run promises: fixed when it is prepared, written into checkpoints, never changed."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, is_dataclass
from fractions import Fraction
from typing import Any, Final, final

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

__all__ = ["Promise", "trainable"]

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
    clipping: Clipping | Adaptive
    noise_multiplier: float
    delta: Number
    steps: int
    epsilon: Number | None  # what was asked for, where it was
    unit: str
    rows_per_unit: int
    is_rounded: bool  # the population is the size of the data, rounded
    form: str  # of the dataset's rows
    trainable: tuple[tuple[str, tuple[int, ...]], ...]
    account: str | None

    @property
    def step_loss(self) -> Loss:
        """What one step costs."""
        return self.sampling.loss(noise_multiplier=self.noise_multiplier)

    @property
    def gradient_noise(self) -> float:
        """The noise multiplier of the gradient: more where a count is released beside it."""
        if isinstance(self.clipping, Adaptive):
            return self.clipping.gradient_noise(self.noise_multiplier)
        return self.noise_multiplier

    @property
    def steps_per_epoch(self) -> int:
        """As many steps as draw each unit once on average."""
        return max(1, round(self.sampling.population / self.sampling.expected))

    def epsilon_after(self, steps: int, *, delta: Number | None = None) -> float:
        """Return what so many steps cost at delta, or at another one: a certified upper bound."""
        if not steps:
            return 0.0
        found = epsilon(self.step_loss * steps, delta=self.delta if delta is None else delta)
        if self.epsilon is not None and steps <= self.steps and delta is None:
            # The noise was chosen so that this is proved, too; the last digits may differ.
            found = min(found, float_up(Fraction(self.epsilon)))
        return found

    def to_json(self) -> str:
        """Write it down; a sampling or clipping of one's own by its name only."""
        document = {name: getattr(self, name) for name in self.__slots__}
        document["sampling"] = _part(self.sampling, _SAMPLINGS)
        document["clipping"] = _part(self.clipping, _CLIPPINGS)
        return json.dumps(document, default=_number)

    @classmethod
    def from_json(
        cls, text: str, *, sampling: Sampling | None, clipping: Clipping | Adaptive | None
    ) -> "Promise":
        """Read back what :meth:`to_json` wrote; parts of one's own must be given again."""
        try:
            document = read_json(text, strict=True)
            document["sampling"] = _whole(document["sampling"], _SAMPLINGS, sampling, "sampling")
            document["clipping"] = _whole(document["clipping"], _CLIPPINGS, clipping, "clip")
            document["trainable"] = tuple((n, tuple(shape)) for n, shape in document["trainable"])
            for name in ("delta", "epsilon"):
                document[name] = _read(document[name])
            return cls(**document)
        except ParameterError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
            told = "the settings in this checkpoint cannot be read. It may be damaged."
            raise ParameterError(told, parameter="path") from error


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
