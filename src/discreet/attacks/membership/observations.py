"""What an attacker has: one model to attack, and rehearsals of it whose members are known."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet._exact import Number, probability, whole
from discreet.errors import DataError, ParameterError

__all__ = ["Bits", "Floats", "Observations", "Trainer", "floats", "logit_confidences", "observe"]

Bits: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
Trainer: TypeAlias = Callable[[Bits], object]
"""Trains on the examples marked True, and returns one logit confidence for every example."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """Hold how sure each model is of the right answer to each example, and who was in it.

    Both matrices have a row for each model and a column for each example. Row 0 is the model
    under attack; the others are shadow models, whose members the attacker chose. A confidence is
    log(p / (1 - p)) of the probability p of the right answer (:func:`logit_confidences`).
    ``classes`` are the right answers, for attacks that treat each class apart.

    >>> seen = Observations(included=[[True, False], [False, True]], confidences=[[3, 1], [2, 2]])
    >>> seen.members, seen.target
    (array([ True, False]), array([3., 1.]))
    """

    included: Bits
    confidences: Floats
    classes: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        included = np.asarray(self.included)
        confidences = floats(self.confidences, "confidences")
        if included.dtype != np.bool_ or included.ndim != 2 or not included.size:
            raise DataError("included must be a matrix of True and False, a row for each model.")
        if included.shape != confidences.shape:
            raise DataError(
                f"confidences must have the shape of included, {included.shape}, got "
                f"{confidences.shape}: a number for each model and example."
            )
        if not np.isfinite(confidences).all():
            raise DataError(
                "confidences must be finite. Compute them from logits with logit_confidences, "
                "which does not overflow where a model is very sure."
            )
        if self.classes is not None:
            classes = np.asarray(self.classes)
            if classes.shape != included.shape[1:]:
                raise DataError(f"classes must name one for each of {included.shape[1]} examples.")
            object.__setattr__(self, "classes", classes)
        object.__setattr__(self, "included", included)
        object.__setattr__(self, "confidences", confidences)

    @property
    def members(self) -> Bits:
        """Which examples the model under attack was trained on: what the attack is to find out."""
        return np.asarray(self.included[0], dtype=np.bool_)

    @property
    def target(self) -> Floats:
        """How sure the model under attack is of each example."""
        return np.asarray(self.confidences[0], dtype=np.float64)


def observe(
    train: Trainer,
    *,
    examples: int,
    shadows: int = 32,
    share: Number = 0.5,
    together: bool = False,
    classes: object = None,
    seed: int = 0,
) -> Observations:
    """Train the model under attack and its shadows, once for all attacks.

    ``train`` gets an array that marks the examples to train on and returns the logit confidences
    of all of them. With ``together`` it gets a matrix, a row for each model, and returns a matrix:
    many small models are trained much faster at once.

    Each example is in the attacked model with probability ``share``, by a coin of its own, so that
    what a guarantee says about one example holds for the mean over all of them. It is in the same
    number of shadow models as any other, so that no attack lacks models with or without it.

    >>> def train(included):  # sure of whatever it has seen
    ...     return np.where(included, 2.0, 0.0)
    >>> observe(train, examples=100, shadows=4).confidences.shape
    (5, 100)
    """
    size = whole(examples, name="examples", minimum=2)
    count = whole(shadows, name="shadows", minimum=2, hint="Attacks rehearse on them.")
    part = float(probability(share, name="share"))
    inside = min(count - 1, max(1, round(part * count)))
    dice = np.random.default_rng(seed)
    places = dice.permuted(np.tile(np.arange(count)[:, None], size), axis=0)
    included = np.vstack([dice.random(size) < part, places < inside])
    if not included[0].any() or included[0].all():
        raise ParameterError(
            "the model under attack has no members or no others: take more examples.",
            parameter="examples",
        )
    found = train(included) if together else [floats(train(row), "confidences") for row in included]
    return Observations(
        included=included,
        confidences=floats(found, "confidences"),
        classes=None if classes is None else np.asarray(classes),
    )


def logit_confidences(logits: object, classes: object) -> Floats:
    """Return log(p / (1 - p)) of the right class, which stays exact where p is all but 1.

    ``logits`` has a number for each class in its last axis; ``classes`` has the right ones.

    Why this scale: over many trainings it is roughly normal for an example, which the probability
    and the loss are not [CCNSTT22, Section VI-A].

    >>> logit_confidences([[0.0, 0.0], [800.0, 0.0]], [0, 0])
    array([  0., 800.])
    """
    values = floats(logits, "logits").copy()
    right = np.broadcast_to(np.asarray(classes), values.shape[:-1])[..., None]
    if right.dtype.kind not in "iu" or not 1 < values.shape[-1] > right.max() >= right.min() >= 0:
        raise DataError("classes must be whole numbers from 0, of two or more that logits has.")
    own = np.take_along_axis(values, right, axis=-1)[..., 0]
    np.put_along_axis(values, right, -np.inf, axis=-1)
    most = values.max(axis=-1)
    rest = most + np.log(np.exp(values - most[..., None]).sum(axis=-1))
    return np.asarray(own - rest, dtype=np.float64)


def floats(values: object, name: str) -> Floats:
    """Return an array of numbers, or refuse what is none without showing it.

    >>> floats([1, 2], "scores")
    array([1., 2.])
    """
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{name} must be numbers, with equally many in each row.") from None
