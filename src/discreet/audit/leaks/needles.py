"""The shapes in which a canary may show up, each with the chance to be met by accident."""

import hashlib
import math
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Final, final

from discreet.audit.leaks.canaries import LENGTH, Canary

__all__ = ["DIGITS", "Needle", "binary", "digits_of", "letters", "significant"]

DIGITS: Final = range(4, 18)  # significant digits of a rounded number that are looked for
_END = 16
_PIECE = LENGTH // 2  # a text that was cut to half its length is still found
_HASHES = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "blake2b", "blake2s", "sha3_256")
_CUTS = {
    10: "",
    8: ", cut to 16 digits",
    6: ", cut to 12 digits",
    4: ", cut to 8 digits",
}  # bytes of a digest


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Needle:
    """Bytes to look for, the form they are, and the chance of this form to match at one place."""

    content: bytes
    form: str
    chance: float


def letters(canary: Canary) -> Iterator[Needle]:
    """Yield both ends of a text and both halves, in lower case.

    An end is so long that one of them is no accident, however much is searched.
    """
    if canary.kind == "text":
        assert isinstance(canary.value, str)
        for form, length in (("text", _END), ("text, half of it", _PIECE)):
            for piece in (canary.value[:length], canary.value[-length:]):
                yield Needle(content=piece.encode(), form=form, chance=2 * 32.0**-length)


def binary(canary: Canary) -> Iterator[Needle]:
    """Yield unsalted hashes of a text or identifier, and the raw bytes of a number."""
    value = canary.value
    if canary.kind == "number" and isinstance(value, Fraction):
        yield from _raw(value, float(canary.spread))
    patterns = ["{}"] if canary.kind == "text" or canary.family == "person_id" else []
    for pattern in patterns + ["{}@mail.example"] * (canary.family == "email"):
        written = pattern.format(value).encode()
        for name in _HASHES:
            digest = hashlib.new(name, written, usedforsecurity=False).digest()
            for size, cut in _CUTS.items():
                form = f"{name} without salt{cut}"
                yield Needle(content=digest[:size], form=form, chance=2 * 256.0**-size)
        check = zlib.crc32(written).to_bytes(4, "big")
        yield Needle(content=check, form="crc32", chance=2 * 256.0**-4)


def _raw(value: Fraction, spread: float) -> Iterator[Needle]:
    near = float(value)
    for code, name in (("d", "float64"), ("f", "float32")):
        step = math.ulp(near) * (1 if code == "d" else 2**29)
        for order, word in (("<", "little"), (">", "big")):
            content = struct.pack(order + code, near)
            form = f"raw {name}, {word} endian"
            yield Needle(content=content, form=form, chance=min(1.0, 2 * step / spread))
    whole = round(value)
    for order in ("little", "big"):
        width = 8 if whole >= 2**31 else 4
        if whole < 2**63:
            content = whole.to_bytes(width, order)  # type: ignore[arg-type]
            form = f"raw int{8 * width}, {order} endian"
            yield Needle(content=content, form=form, chance=min(1.0, 1 / spread))


def digits_of(canary: Canary) -> dict[str, float]:
    """Return the significant digits of a number, rounded or cut, with the chance of each.

    Point, sign and exponent are left out, so that cents, thousands and scientific notation are the
    same digits. A string of n digits is met by numbers of an interval of relative width 10^(1-n),
    in one unit or the next ones down: 2.6 covers rounding, cutting and the smaller units.
    """
    assert isinstance(canary.value, Fraction)
    exact = Decimal(canary.value.numerator) / Decimal(canary.value.denominator)
    found: dict[str, float] = {}
    least = math.ulp(float(canary.value)) / 2 if canary.value.denominator > 1 else 1.0
    top = 10.0 ** (exact.adjusted() + 1)
    for places in DIGITS:
        for rounding in (ROUND_HALF_EVEN, ROUND_DOWN):
            cut = Context(prec=places, rounding=rounding).plus(exact)
            text = significant("".join(map(str, cut.as_tuple().digits)))
            width = max(top * 10.0 ** -len(text), least)
            found[text] = min(1.0, 2.6 * width / float(canary.spread))
    return found


def significant(text: str) -> str:
    """Return the digits that count.

    >>> significant("0048210.300")
    '482103'
    """
    return text.replace(".", "").strip("0")


def dates_of(day: date) -> Iterator[str]:
    """Yield the ways in which a day is written.

    >>> list(dates_of(date(1973, 5, 9)))
    ['1973-05-09', '19730509', '09.05.1973', '09/05/1973', '05/09/1973']
    """
    for pattern in ("%Y-%m-%d", "%Y%m%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y"):
        yield day.strftime(pattern)
