"""Small ready models for tables and images: from encoded rows to a trained, judged, saved model.

A side door: ``discreet train`` and whoever wants the same from Python come in here.

>>> import numpy as np
>>> from discreet.learn.recipes import LOGISTIC, Accuracy, EncodedRows, finish
>>> rows = EncodedRows(names=("x",), matrix=np.ones((500, 1), np.float32),
...                    labels=np.ones(500, np.int64))
>>> private = LOGISTIC.prepare(rows, classes=2, epsilon=3, delta=1e-5, epochs=2, batch_size=100)
>>> print(Accuracy.on_public(finish(private), rows))
100.0%
"""

from discreet.learn.recipes.encoding import (
    NO_LABEL,
    Choice,
    EncodedRows,
    Encoding,
    LabelledRows,
    Scaled,
)
from discreet.learn.recipes.evaluation import Accuracy, PrivateAccuracy, correct, set_apart
from discreet.learn.recipes.recipe import (
    CNN,
    LOGISTIC,
    MLP,
    Recipe,
    finish,
    loss,
    train_without_privacy,
)
from discreet.learn.recipes.saving import SavedModel, load, save
from discreet.learn.recipes.scattering import Scattering

__all__ = [
    "Accuracy",
    "Choice",
    "CNN",
    "correct",
    "EncodedRows",
    "Encoding",
    "finish",
    "LabelledRows",
    "load",
    "LOGISTIC",
    "loss",
    "MLP",
    "NO_LABEL",
    "PrivateAccuracy",
    "Recipe",
    "save",
    "SavedModel",
    "Scaled",
    "Scattering",
    "set_apart",
    "train_without_privacy",
]
