"""Parts of a text: its length, its first characters, its words, and the numbers written in it."""

import re
from collections.abc import Iterator

__all__ = ["text_parts"]

_CHARACTERS, _LETTERS = 64, 24
_NUMBERS, _TOKENS = 12, 40
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_TOKEN = re.compile(r"[^\W\d_]+")


def text_parts(text: str, path: str) -> Iterator[tuple[str, object]]:
    """Yield named parts: a float where order means something, otherwise a word.

    >>> dict(text_parts("ab -3", "x"))["number 1 in x"]
    -3.0
    """
    yield f"the length of {path}", float(len(text))
    for place, character in enumerate(text[:_CHARACTERS]):
        yield f"character {place} of {path}", character
    if text:
        yield f"the last character of {path}", text[-1]
        for character in sorted(set(text))[:_LETTERS]:
            yield f"the number of {character!r} in {path}", float(text.count(character))
    for place, number in enumerate(_NUMBER.findall(text)[:_NUMBERS], start=1):
        yield f"number {place} in {path}", float(number)
    for token in sorted(set(_TOKEN.findall(text)))[:_TOKENS]:
        yield f"{token!r} in {path}", 1.0
