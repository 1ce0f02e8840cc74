"""Losses as JSON, readable for ever.

Each loss is an object with its ``kind`` and its parameters; the outermost also has ``version``.
Whole numbers and floats are JSON numbers, which Python reads back to the last bit; fractions are
strings such as "1/3". The meaning of a kind never changes: a new meaning is a new kind.
"""

import dataclasses
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from typing import Final

from discreet._json import read_json
from discreet.accounting import losses
from discreet.accounting.losses import ComposedLoss, Loss, compose
from discreet.errors import ParameterError

__all__ = ["from_json", "to_json"]

VERSION: Final = 1
_FRACTION: Final = re.compile(r"(-?[0-9]+)/([0-9]+)")
_KINDS: Final[dict[str, type[Loss]]] = {
    value.kind: value
    for value in map(vars(losses).get, losses.__all__)
    if isinstance(value, type) and issubclass(value, Loss) and value is not Loss
}


def to_json(loss: Loss) -> str:
    """Write a loss as JSON with sorted keys and no spaces, so that equal losses have equal text.

    >>> from discreet.accounting import GaussianLoss
    >>> to_json(GaussianLoss(noise_multiplier=4).sampled(rate=0.01))
    '{"inner":{"kind":"gaussian","noise_multiplier":4},"kind":"sampled","rate":0.01,"version":1}'
    """
    document = {"version": VERSION, **_encode_loss(loss)}
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)


def from_json(text: str) -> Loss:
    """Read a loss; refuse what this version does not know rather than guess.

    >>> from_json('{"kind": "pure", "epsilon": "1/3", "version": 1}')
    PureLoss(epsilon=Fraction(1, 3))
    """
    try:
        document = read_json(text, strict=True)
    except ValueError as error:
        raise _refused(f"it is not JSON ({error})") from None
    if not isinstance(document, dict) or document.pop("version", None) != VERSION:
        raise _refused(f"its version is not {VERSION}")
    return _decode_loss(document)


def _encode_loss(loss: Loss) -> dict[str, object]:
    fields = {f.name: _encode(getattr(loss, f.name)) for f in dataclasses.fields(loss)}  # type: ignore[arg-type]
    return {"kind": loss.kind, **fields}


def _encode(value: object) -> object:
    if isinstance(value, Loss):
        return _encode_loss(value)
    if isinstance(value, Fraction):
        return f"{value.numerator}/{value.denominator}"
    return [_encode(item) for item in value] if isinstance(value, tuple) else value


def _decode_loss(document: object) -> Loss:
    if not isinstance(document, Mapping):
        raise _refused("a loss must be an object")
    fields = dict(document)
    kind = fields.pop("kind", None)
    if kind == ComposedLoss.kind:
        parts = fields.pop("parts", None)
        if fields or not isinstance(parts, list) or not all(_is_part(part) for part in parts):
            raise _refused("a composed loss needs its parts and nothing else")
        return compose([(_decode_loss(part), times) for part, times in parts])
    if not isinstance(kind, str) or kind not in _KINDS:
        raise _refused("its kind is unknown. It may come from a newer version of discreet")
    try:
        return _KINDS[kind](**{name: _decode(value) for name, value in fields.items()})
    except TypeError:
        raise _refused(f"its fields are not those of kind {kind!r}") from None


def _is_part(part: object) -> bool:
    return isinstance(part, list) and len(part) == 2


def _decode(value: object) -> object:
    if isinstance(value, Mapping):
        return _decode_loss(value)
    if isinstance(value, list):
        return tuple(_decode(item) for item in value)
    if isinstance(value, str):
        found = _FRACTION.fullmatch(value)
        # Too many digits for an int are a ValueError.
        with suppress(ValueError, ZeroDivisionError):
            if found is not None:
                return Fraction(int(found[1]), int(found[2]))
        raise _refused("a string in it is no fraction")
    return value


def _refused(reason: str) -> ParameterError:
    return ParameterError(f"this loss cannot be read: {reason}.", parameter="loss")
