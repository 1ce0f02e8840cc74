"""Audit a function that the user names."""

import math
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from discreet._exact import Number, whole
from discreet._json import read_json
from discreet.errors import DataError, DiscreetError, ParameterError

if TYPE_CHECKING:
    from discreet.audit import Audit

__all__ = ["audit_own", "facts", "found_function", "neighbours"]

_MOST = 10_000_000  # samples; a terminal would wait for hours


def audit_own(
    name: str,
    *,
    pair: str,
    epsilon: Number,
    delta: Number,
    samples: Number,
    confidence: Number,
    batch: bool,
    low_bits: bool,
) -> "Audit":
    """Import a function and audit it."""
    from discreet import audit

    inputs = neighbours(pair)
    if whole(samples, name="samples", minimum=100) > _MOST:
        raise ParameterError(f"samples must be at most {_MOST}.", parameter="samples")
    function = found_function(name)
    look = audit.low_bits if low_bits else audit.mechanism
    try:
        return look(
            function,
            pair=inputs,
            epsilon=epsilon,
            delta=delta,
            samples=int(samples),
            confidence=confidence,
            batch=batch,
        )
    except DiscreetError:
        raise
    except SystemExit as error:  # else its code would be taken for the verdict
        raise DataError(f"{name} left the program instead of returning an output.") from error
    except Exception as error:
        takes = "(input, n), because of --batch" if batch else "(input)"
        raise DataError(
            f"{name} failed with {type(error).__name__}. It is called with {takes}."
        ) from error


def neighbours(text: str) -> tuple[Any, Any]:
    """Read two inputs, written as a JSON list or with a comma between them.

    >>> neighbours("[0, 1]"), neighbours("0, 1"), neighbours("[1, 2], [1, 3]")
    ((0, 1), (0, 1), ([1, 2], [1, 3]))
    """
    for written in (text, f"[{text}]"):
        try:
            pair = read_json(written)
        except ValueError:
            continue
        if isinstance(pair, list) and len(pair) == 2:
            return pair[0], pair[1]
    raise ParameterError(
        "pair must be two neighbouring inputs in JSON, such as '[0, 1]' or '[[1, 2], [1, 3]]'.",
        parameter="pair",
    )


def found_function(name: str) -> Callable[..., object]:
    """Import ``module:function``, from the working directory as well.

    >>> found_function("math:sqrt")(9.0)
    3.0
    """
    module, _, inner = name.partition(":")
    parts = [*module.split("."), *inner.split(".")]
    if not all(part.isidentifier() for part in parts):
        raise _refused(f"got {name[:60]!r}")
    sys.path.insert(0, "")
    try:
        thing: Any = import_module(module)
    except ModuleNotFoundError as error:
        raise _refused(f"and there is no module {error.name}") from None
    except BaseException as error:  # whatever the module does when it is imported
        if isinstance(error, KeyboardInterrupt):
            raise
        raise _refused(f"and importing {module} failed with {type(error).__name__}") from error
    finally:
        sys.path.remove("")
    for part in inner.split("."):
        thing = getattr(thing, part, None)
    if not callable(thing):
        raise _refused(f"and {module} has no function {inner}")
    function: Callable[..., object] = thing
    return function


def _refused(why: str) -> ParameterError:
    return ParameterError(
        f"function must be MODULE:FUNCTION, such as mine:noisy for noisy in mine.py, {why}.",
        parameter="function",
    )


def facts(found: "Audit") -> dict[str, object]:
    """Return what was found, as JSON can hold it.

    >>> from discreet import audit
    >>> found = audit.mechanism(abs, pair=(0, 1), epsilon=1, delta=0, samples=1000)
    >>> facts(found)["passed"]
    False
    """
    told: dict[str, object] = {"passed": found.passed}
    for name in found.__dataclass_fields__:
        value = getattr(found, name)
        if name != "pair":
            told[name] = value if isinstance(value, int | str | None) else _number(value)
    return told


def _number(value: Any) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None
