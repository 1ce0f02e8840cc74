"""Run a mechanism many times on one input."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from discreet.audit._progress import progress
from discreet.errors import DataError

__all__ = ["Raised", "collect"]


@dataclass(frozen=True, slots=True)
class Raised:
    """The output of a call that failed: the kind of failure, never its text."""

    kind: str

    def __repr__(self) -> str:
        return f"raised {self.kind}"


def collect(fn: Callable[..., object], value: object, samples: int, *, batch: bool) -> Any:
    """Return ``samples`` outputs of ``fn`` on ``value``: one batch, or a list of single calls.

    A single call that raises has an output too. A batch that raises is no sample of anything, so
    its error is the caller's.
    """
    if not batch:
        return [_attempt(fn, value) for _ in progress(samples)]
    outputs: Any = fn(value, samples)
    if not hasattr(outputs, "__len__") or len(outputs) != samples:
        raise DataError(
            f"with batch=True, fn(value, n) must return n outputs; for n={samples} it did not. "
            "Use batch=False if fn takes the value alone."
        )
    return outputs


def _attempt(fn: Callable[..., object], value: object) -> object:
    try:
        return fn(value)
    except Exception as failure:
        return Raised(type(failure).__name__)
