"""Small recipes that work: a model, its loss, and settings chosen without looking at your data."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Unpack, final

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import Adam, Optimizer

from discreet._exact import Number, positive, whole
from discreet.errors import ParameterError
from discreet.learn.preparing import prepare
from discreet.learn.recipes.encoding import NO_LABEL, LabelledRows
from discreet.learn.run.settings import SamplingName, TrainingOptions
from discreet.learn.training import Private
from discreet.privacy import Neighbours

__all__ = [
    "CNN",
    "LOGISTIC",
    "MLP",
    "Recipe",
    "finish",
    "loss",
    "train_without_privacy",
]

_ROW, _LABEL = "(row)", "(label)"  # the names of a batch's parts; no column is called so
_HIDDEN: Final = 64

Shape = tuple[int, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A model for rows of some shape, with a clip and a learning rate that suit it.

    The optimiser is Adam, whose steps are alike with and without noise, so that the same settings
    apply to both. They are plain ones, tried on generated data and not tuned: tune on public data.

    >>> LOGISTIC.model((3,), 2)
    Sequential(
      (0): Linear(in_features=3, out_features=2, bias=True)
    )
    """

    name: str
    build: Callable[[Shape, int], nn.Sequential]
    clip: float
    learning_rate: float

    def model(self, shape: Shape, classes: int) -> nn.Sequential:
        """Return a new model for rows of this shape.

        >>> CNN.model((1, 28, 28), 10)(torch.zeros(5, 1, 28, 28)).shape
        torch.Size([5, 10])
        """
        return self.build(tuple(shape), whole(classes, name="classes", minimum=2))

    def optimizer(self, model: nn.Module, *, learning_rate: Number | None = None) -> Optimizer:
        """Return the optimiser for a model.

        >>> LOGISTIC.optimizer(LOGISTIC.model((3,), 2)).defaults["lr"] == LOGISTIC.learning_rate
        True
        """
        rate = self.learning_rate if learning_rate is None else learning_rate
        return Adam(model.parameters(), lr=float(positive(rate, name="learning_rate")))

    def prepare(
        self,
        rows: LabelledRows,
        *,
        classes: int,
        clip: Number | None = None,
        learning_rate: Number | None = None,
        unit: str | None = None,
        **options: Unpack[TrainingOptions],
    ) -> Private:
        """Prepare private training of a new model; :func:`finish` makes the steps.

        ``unit`` is what the units of the rows are called. Batches are drawn as the account's
        neighbouring relation needs. See :func:`discreet.learn.prepare` for ``options``, and for
        the claim.

        >>> import numpy as np
        >>> from discreet.learn.recipes.encoding import EncodedRows
        >>> rows = EncodedRows(names=("x",), matrix=np.ones((500, 1), np.float32),
        ...                    labels=np.ones(500, np.int64))
        >>> private = LOGISTIC.prepare(rows, classes=2, epsilon=3, delta=1e-5, epochs=2,
        ...                            batch_size=100)
        >>> finish(private)(torch.ones(1, 1)).argmax().item()
        1
        """
        data: dict[str, Any] = {
            _ROW: torch.from_numpy(rows.matrix),
            _LABEL: torch.from_numpy(rows.labels),
        }
        units: object = rows.units
        if unit is not None and rows.units is not None:
            if unit in data:
                raise ParameterError(f"a unit must not be called {unit!r}.", parameter="unit")
            data[unit], units = rows.units, unit
        model = self.model(rows.matrix.shape[1:], classes)
        account = options.get("account")
        sampling: SamplingName = "poisson"
        if account is not None and account.neighbours is Neighbours.replace_one:
            sampling = "without_replacement"
        return prepare(
            model,
            self.optimizer(model, learning_rate=learning_rate),
            data,
            clip=self.clip if clip is None else clip,
            sampling=sampling,
            units=units,
            **options,
        )


def finish(private: Private) -> nn.Module:
    """Make all steps of a run that a recipe prepared, and return its model.

    >>> import numpy as np
    >>> from discreet.learn.recipes.encoding import EncodedRows
    >>> rows = EncodedRows(names=("x",), matrix=np.ones((500, 1), np.float32),
    ...                    labels=np.ones(500, np.int64))
    >>> private = MLP.prepare(rows, classes=2, epsilon=3, delta=1e-5, epochs=2, batch_size=100)
    >>> _ = finish(private)
    >>> private.steps_taken
    10
    """
    with private:
        for batch in private.batches():
            private.step(batch, loss)
    private.model.eval()
    return private.model


def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    """Return the cross-entropy of each row; a row without a label has none.

    >>> batch = {"(row)": torch.zeros(2, 3), "(label)": torch.tensor([1, NO_LABEL])}
    >>> [round(one, 3) for one in loss(nn.Linear(3, 2, bias=False), batch).tolist()]
    [0.693, 0.0]
    """
    return functional.cross_entropy(
        model(batch[_ROW]), batch[_LABEL], reduction="none", ignore_index=NO_LABEL
    )


def train_without_privacy(
    recipe: Recipe,
    rows: LabelledRows,
    *,
    classes: int,
    epochs: Number,
    batch_size: int,
    learning_rate: Number | None = None,
) -> nn.Module:
    """Train the same model on the same rows without clipping and noise. NOT PRIVATE.

    It shows what privacy costs. The model, its accuracy and whatever else is computed with it
    may tell everything about anybody in the data: no account can pay for it.

    >>> import numpy as np
    >>> from discreet.learn.recipes.encoding import EncodedRows
    >>> rows = EncodedRows(names=("x",), matrix=np.ones((500, 1), np.float32),
    ...                    labels=np.ones(500, np.int64))
    >>> twin = train_without_privacy(LOGISTIC, rows, classes=2, epochs=5, batch_size=100)
    >>> twin(torch.ones(1, 1)).argmax().item()
    1
    """
    size = whole(batch_size, name="batch_size")
    rounds = positive(epochs, name="epochs")
    model = recipe.model(rows.matrix.shape[1:], classes)
    optimizer = recipe.optimizer(model, learning_rate=learning_rate)
    known = rows.labels != NO_LABEL
    matrix, labels = torch.from_numpy(rows.matrix[known]), torch.from_numpy(rows.labels[known])
    left = math.ceil(rounds * len(labels) / size)
    while left > 0 and len(labels):
        for chosen in torch.randperm(len(labels)).split(size)[:left]:
            optimizer.zero_grad(set_to_none=True)
            loss(model, {_ROW: matrix[chosen], _LABEL: labels[chosen]}).mean().backward()
            optimizer.step()
            left -= 1
    return model.eval()


def _logistic(shape: Shape, classes: int) -> nn.Sequential:
    layer = nn.Linear(math.prod(shape), classes)
    for parameter in layer.parameters():
        nn.init.zeros_(parameter)  # convex: where it starts only costs time
    return nn.Sequential(*_flat(shape), layer)


def _mlp(shape: Shape, classes: int) -> nn.Sequential:
    first, last = nn.Linear(math.prod(shape), _HIDDEN), nn.Linear(_HIDDEN, classes)
    # Bounded activations keep gradients small, so that clipping takes away less.
    return nn.Sequential(*_flat(shape), first, nn.Tanh(), last)


def _flat(shape: Shape) -> list[nn.Module]:
    return [] if len(shape) == 1 else [nn.Flatten()]


def _cnn(shape: Shape, classes: int) -> nn.Sequential:
    if len(shape) != 3 or min(shape[1:]) < 9:
        raise ParameterError(
            "a cnn takes images of shape (channels, height, width), at least 9 by 9.",
            parameter="model",
        )
    body = nn.Sequential(
        nn.Conv2d(shape[0], 16, 5, stride=2, padding=2),
        nn.Tanh(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, stride=2, padding=1),
        nn.Tanh(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
    )
    with torch.no_grad():
        width = body(torch.zeros(1, *shape)).shape[1]
    return body.extend([nn.Linear(width, 32), nn.Tanh(), nn.Linear(32, classes)])


LOGISTIC: Final = Recipe(name="logistic", build=_logistic, clip=1.0, learning_rate=0.02)
MLP: Final = Recipe(name="mlp", build=_mlp, clip=1.0, learning_rate=0.005)
CNN: Final = Recipe(name="cnn", build=_cnn, clip=1.0, learning_rate=0.005)
