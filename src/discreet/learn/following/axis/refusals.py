"""How a model or a loss is refused: by the operation's name and the line that calls it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

import torch

from discreet.errors import ParameterError

_LIBRARIES: Final = (
    str(Path(torch.__file__).parent),
    str(Path(__file__).parents[2]),  # discreet.learn
    str(Path(sys.modules["contextlib"].__file__ or "").parent),
)
_raised: list[ParameterError] = []
_SITE: Final = str(Path(torch.__file__).parents[1])
_HOW: Final = "Compute each example's loss from that example alone, with reduction='none'."


def line_of_user() -> str:
    """Return the file and line, outside of torch and of this package, that is being run."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        is_ours = name.startswith(_LIBRARIES) and not _is_installed_elsewhere(name)
        if not is_ours and not name.startswith("<frozen"):
            return f"{'/'.join(Path(name).parts[-2:])}:{frame.f_lineno}"
        frame = frame.f_back
    return "an unknown line"


def _is_installed_elsewhere(name: str) -> bool:
    """Say whether a file below the standard library is one of an installed package's."""
    return name.startswith(_SITE) and not name.startswith(_LIBRARIES[:2])


@contextmanager
def noticed_refusals() -> Iterator[None]:
    """Raise in the end what was refused on the way, if a user's code has caught it."""
    before = list(_raised)
    _raised.clear()
    try:
        yield
        if _raised:
            raise _raised[0]
    finally:
        _raised[:] = before


def refusal(operation: str, reason: str, *, advice: str = _HOW) -> ParameterError:
    """Return the error that refuses an operation, with the line that calls it."""
    error = ParameterError(
        f"{operation} at {line_of_user()} {reason}. {advice} Nothing was released.",
        parameter="model",
    )
    _raised.append(error)
    return error


def kept_error() -> ParameterError:
    """Return the error of a pass that keeps something of the rows."""
    return ParameterError(
        "the forward pass keeps a tensor of the examples, or one that was computed from them, in "
        "an attribute or a variable that outlives the step. Keep nothing of the rows. Nothing was "
        "released.",
        parameter="model",
    )
