"""A checkpoint on disk: written whole or not at all, and read without running anything in it."""

import os
import pickle
import tempfile
import warnings
from pathlib import Path
from typing import Any, Final

import torch

from discreet._version import __version__
from discreet.errors import ParameterError

__all__ = ["read", "write"]

_FORMAT: Final = 1


def write(path: str | os.PathLike[str], document: dict[str, Any]) -> None:
    """Write a checkpoint in place of an older one, whole or not at all."""
    target = Path(path)
    document = {"format": _FORMAT, "discreet": __version__, **document}
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            torch.save(document, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    if os.name == "posix":  # the new name must survive a power cut, too
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a checkpoint; nothing in it is executed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about files that are none of ours
            document = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, EOFError, RuntimeError) as error:
        raise _no_checkpoint(path) from error
    if not isinstance(document, dict) or "format" not in document:
        raise _no_checkpoint(path)
    if not isinstance(document.get("settings"), str):
        raise _no_checkpoint(path)
    if document["format"] != _FORMAT:
        raise ParameterError(
            f"{path} was written by discreet {document.get('discreet')}, in a form that this "
            "version does not know. Go on with that version, or a newer one.",
            parameter="path",
        )
    return document


def _no_checkpoint(path: str | os.PathLike[str]) -> ParameterError:
    return ParameterError(
        f"{os.fspath(path)} is no checkpoint of a private run. Write one with private.save(path).",
        parameter="path",
    )
