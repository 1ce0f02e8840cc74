"""Read JSON that may come from anywhere; the standalone verifier has a copy of its own."""

import json
import re
from collections.abc import Iterable
from itertools import chain
from typing import Any, Final, Never

__all__ = ["DEEPEST", "read_json"]

DEEPEST: Final = 100  # no document of ours comes near, and no reader of one runs out of stack
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")


def read_json(document: str | bytes, *, strict: bool = False) -> Any:
    """Return what a document says; raise nothing but ``ValueError``, with the reason.

    Whatever is nested more than 100 deep is refused. So are, if ``strict``: NaN and infinities,
    members that are named twice, and half characters, none of which is JSON that two readers would
    understand alike.

    >>> read_json('{"a": [1, 2]}')
    {'a': [1, 2]}
    >>> read_json("[" * 101 + "]" * 101)
    Traceback (most recent call last):
        ...
    ValueError: it is nested more than 100 deep
    >>> read_json('{"a": 1, "a": 2}', strict=True)
    Traceback (most recent call last):
        ...
    ValueError: a member is named twice
    """
    text = document if isinstance(document, str) else document.decode("utf-8")
    try:
        value = (_strict if strict else _plain).decode(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if text.count("[") + text.count("{") > DEEPEST:
        _require_shallow(value)
    if strict and (_SURROGATE.search(text) or not text.isascii()):
        json.dumps(value, ensure_ascii=False).encode()  # refuses half characters
    return value


_TOO_DEEP: Final = f"it is nested more than {DEEPEST} deep"


def _require_shallow(value: object) -> None:
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [one for one in level if isinstance(one, dict | list)]
        if not level:
            return
        level = list(chain.from_iterable(map(_inside, level)))
    raise ValueError(_TOO_DEEP)


def _inside(one: Any) -> Iterable[object]:
    return one.values() if isinstance(one, dict) else one


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a member is named twice")
    return found


def _refuse(constant: str) -> Never:
    raise ValueError(f"{constant} is not a number of JSON")


_plain: Final = json.JSONDecoder()
_strict: Final = json.JSONDecoder(object_pairs_hook=_members, parse_constant=_refuse)
