"""Ready trainers for small networks: many at once without privacy, and with ``discreet.learn``."""

import warnings
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from discreet._exact import Number, whole
from discreet.attacks.membership.observations import Bits, Floats, Trainer, logit_confidences
from discreet.attacks.membership.threads import torch_in_one_thread
from discreet.errors import DataError, PrivacyWarning
from discreet.privacy import Guarantee

if TYPE_CHECKING:
    import torch

__all__ = ["labelled_points", "networks", "private_network"]

_HIDDEN = 64
_AT_A_TIME = 1000  # examples of which confidences are computed at a time

Points = NDArray[np.float32]
Classes = NDArray[np.int64]


def labelled_points(
    n: int, *, width: int = 32, classes: int = 10, wrong: float = 0.05, seed: int = 0
) -> tuple[Points, Classes]:
    """Generate points in overlapping clouds, one for each class, some of them labelled wrongly.

    A wrong label can be learned only by heart, which is what an overfitted model does.

    >>> points, labels = labelled_points(100)
    >>> points.shape, labels.shape
    ((100, 32), (100,))
    """
    dice = np.random.default_rng(seed)
    centres = dice.normal(size=(classes, width))
    labels = dice.integers(0, classes, whole(n, name="n"))
    points = centres[labels] + dice.normal(size=(len(labels), width))
    by_chance = dice.integers(0, classes, len(labels))
    labels = np.where(dice.random(len(labels)) < wrong, by_chance, labels)
    return points.astype(np.float32), labels


def networks(
    points: Points,
    labels: Classes,
    *,
    steps: int = 600,
    batch_size: int = 256,
    learning_rate: float = 0.01,
    seed: int = 0,
) -> Trainer:
    """Return a trainer of small overfitted networks, all at once: ``observe(together=True)``.

    Each has one hidden layer of 64 and its own Adam; one product of stacked matrices serves all.

    >>> points, labels = labelled_points(200)
    >>> train = networks(points, labels, steps=5)
    >>> train(np.ones((3, 200), dtype=bool)).shape
    (3, 200)
    """
    _check(points, labels)

    def train(included: Bits) -> Floats:
        with torch_in_one_thread() as torch:
            functional = torch.nn.functional
            x, y = torch.from_numpy(points), torch.from_numpy(labels)
            counts = torch.from_numpy(included.sum(axis=1))
            # The rows of each model come first, in the order of a stable sort.
            rows = torch.from_numpy(np.argsort(~included, axis=1, kind="stable"))
            dice = torch.Generator().manual_seed(seed)
            weights = _start(len(included), points.shape[1], int(labels.max()) + 1, dice)
            optimizer = torch.optim.Adam(weights, lr=learning_rate)
            for _ in range(steps):
                drawn = torch.rand(len(included), batch_size, generator=dice) * counts[:, None]
                chosen = rows.gather(1, drawn.long())
                out = _forward(weights, x[chosen])
                loss = functional.cross_entropy(
                    out.flatten(0, 1), y[chosen].flatten(), reduction="sum"
                )
                optimizer.zero_grad()
                (loss / batch_size).backward()
                optimizer.step()
            with torch.no_grad():
                found = [
                    logit_confidences(
                        _forward(weights, part.expand(len(included), -1, -1)).numpy(), own.numpy()
                    )
                    for part, own in zip(x.split(_AT_A_TIME), y.split(_AT_A_TIME), strict=True)
                ]
            return np.concatenate(found, axis=1)

    return train


def private_network(
    points: Points,
    labels: Classes,
    *,
    guarantee: Guarantee,
    population: int,
    epochs: Number = 8,
    batch_size: int = 256,
) -> Trainer:
    """Return a trainer of the same network with privacy, by ``discreet.learn``.

    ``population`` is the public number of rows that a model is trained on, such as ``share`` times
    the examples: how many there really are stays private.

    >>> points, labels = labelled_points(200)
    >>> train = private_network(points, labels, guarantee=Guarantee(epsilon=2, delta=1e-5),
    ...                         population=100, epochs=1, batch_size=50)
    >>> train(np.arange(200) < 100).shape
    (200,)
    """
    _check(points, labels)

    def train(included: Bits) -> Floats:
        with torch_in_one_thread() as torch:
            from discreet.learn.recipes import MLP, EncodedRows, finish

            rows = EncodedRows(names=(), matrix=points[included], labels=labels[included])
            with warnings.catch_warnings():
                # Of runs on the same rows, which add up: only the first is released, and attacked.
                warnings.simplefilter("ignore", PrivacyWarning)
                private = MLP.prepare(
                    rows,
                    classes=int(labels.max()) + 1,
                    epsilon=guarantee.epsilon,
                    delta=guarantee.delta,
                    population=population,
                    epochs=epochs,
                    batch_size=batch_size,
                )
            model = finish(private)
            with torch.no_grad():
                return logit_confidences(model(torch.from_numpy(points)).numpy(), labels)

    return train


def _check(points: Points, labels: Classes) -> None:
    if (
        points.ndim != 2
        or points.dtype != np.float32
        or labels.shape != points.shape[:1]
        or labels.dtype != np.int64
        or labels.min(initial=0) < 0
    ):
        raise DataError(
            "points must be a float32 matrix with a row for each example, and labels an int64 "
            "number for each row, from 0 on."
        )


def _start(
    models: int, width: int, classes: int, dice: "torch.Generator"
) -> "tuple[torch.Tensor, ...]":
    import torch

    shapes = [(width, _HIDDEN), (1, _HIDDEN), (_HIDDEN, classes), (1, classes)]
    weights = []
    for before, after in shapes:
        scale = 0.0 if before == 1 else before**-0.5
        weights.append(
            (scale * torch.randn(models, before, after, generator=dice)).requires_grad_(True)
        )
    return tuple(weights)


def _forward(weights: "tuple[torch.Tensor, ...]", x: "torch.Tensor") -> "torch.Tensor":
    import torch

    first, shift, last, offset = weights
    return torch.baddbmm(offset, torch.relu(torch.baddbmm(shift, x, first)), last)
