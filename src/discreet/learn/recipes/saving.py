"""A recipe's model in a file, with how to feed it and what it promises."""

import os
from dataclasses import dataclass
from pickle import UnpicklingError
from typing import Any, final

import torch
from torch import nn

from discreet.errors import DataError, ParameterError
from discreet.learn.recipes.encoding import Encoding
from discreet.learn.recipes.recipe import CNN, LOGISTIC, MLP, Recipe, Shape

__all__ = ["SavedModel", "load", "save"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SavedModel:
    """A model from a file, how to feed it, and what it promises; :func:`load` makes one."""

    model: nn.Module
    encoding: Encoding | None
    privacy: dict[str, Any]


def save(
    path: str | os.PathLike[str],
    model: nn.Module,
    recipe: Recipe,
    *,
    shape: Shape,
    classes: int,
    privacy: dict[str, Any],
    encoding: Encoding | None = None,
) -> None:
    """Write a recipe's model, how rows become numbers, and what is promised.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = os.path.join(folder, "model.pt")
    ...     save(place, MLP.model((3,), 2), MLP, shape=(3,), classes=2, privacy={"epsilon": 1.0})
    ...     load(place).privacy
    {'epsilon': 1.0}
    """
    document = {
        "format": 1,
        "recipe": recipe.name,
        "shape": list(shape),
        "classes": classes,
        "state": model.state_dict(),
        "encoding": None if encoding is None else encoding.to_dict(),
        "privacy": privacy,
    }
    try:
        torch.save(document, path)
    except (OSError, RuntimeError):
        raise ParameterError(f"{os.fspath(path)} cannot be written.", parameter="path") from None


def load(path: str | os.PathLike[str]) -> SavedModel:
    """Read a model that :func:`save` or ``discreet train --out`` wrote. Nothing in it is run.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = os.path.join(folder, "model.pt")
    ...     save(place, MLP.model((3,), 2), MLP, shape=(3,), classes=2, privacy={})
    ...     load(place).model(torch.zeros(1, 3)).shape
    torch.Size([1, 2])
    """
    known = {recipe.name: recipe for recipe in (LOGISTIC, MLP, CNN)}
    try:
        document = torch.load(path, weights_only=True)
        model = known[document["recipe"]].model(tuple(document["shape"]), document["classes"])
        model.load_state_dict(document["state"])
        encoding, privacy = document["encoding"], document["privacy"]
    except (OSError, RuntimeError, KeyError, TypeError, EOFError, UnpicklingError):
        raise DataError(f"{os.fspath(path)} is no model that discreet has written.") from None
    found = None if encoding is None else Encoding.from_dict(encoding)
    return SavedModel(model=model.eval(), encoding=found, privacy=privacy)
