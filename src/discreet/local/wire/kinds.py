"""Which randomisers travel, under which name, with which numbers and in which layout.

A new one is one entry in ``KINDS``.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

from discreet._exact import exact
from discreet.errors import DataError, ParameterError
from discreet.local.frequencies.direct import DirectResponse
from discreet.local.frequencies.hadamard import HadamardResponse
from discreet.local.frequencies.hashing import LocalHashing
from discreet.local.frequencies.projective import ProjectiveResponse
from discreet.local.frequencies.public_hashing import POLYNOMIALS, PublicHashing
from discreet.local.frequencies.subset import SubsetSelection
from discreet.local.frequencies.unary import OptimizedUnary, SymmetricUnary
from discreet.local.repeated.bit_flip import BitFlip
from discreet.local.repeated.direct import RepeatedDirect
from discreet.local.repeated.unary import RepeatedUnary
from discreet.local.wire.layouts import Layout, OneNumber, PackedBits, SomeValues

__all__ = ["KINDS", "WireKind", "kind_of", "read_number", "read_randomiser"]

# Ratios have one spelling each, so that equal parameters have equal digests. Exponents are none
# of it: a short one could stand for a number that no memory holds.
_RATIO: Final = re.compile(r"[1-9][0-9]{0,399}(/[1-9][0-9]{0,399})?")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WireKind:
    """Tell how one type of randomiser is written down.

    ``whole`` and ``ratios`` are the fields it is built from. ``derived`` are the whole numbers that
    follow from them, such as those that coins compare with: a device uses them as they stand, and a
    reader computes them again, so that no document can make reports say more than its epsilon.
    """

    name: str
    type: type
    layout: Layout
    derived: Mapping[str, Callable[[Any], int]]
    whole: tuple[str, ...] = ("domain",)
    ratios: tuple[str, ...] = ("epsilon",)

    def document(self, randomiser: Any) -> dict[str, str | int]:
        """Return what a device needs to know of the randomiser."""
        return (
            {"kind": self.name}
            | {name: int(getattr(randomiser, name)) for name in self.whole}
            | {name: str(exact(getattr(randomiser, name), name=name)) for name in self.ratios}
            | {name: str(number(randomiser)) for name, number in self.derived.items()}
        )


KINDS: Final = (
    WireKind(
        name="direct",
        type=DirectResponse,
        layout=OneNumber(),
        derived={"keep": lambda one: one.law.keep},
    ),
    WireKind(
        name="hadamard",
        type=HadamardResponse,
        layout=OneNumber(),
        derived={"keep": lambda one: one.law.keep},
    ),
    WireKind(
        name="symmetric-unary",
        type=SymmetricUnary,
        layout=PackedBits(),
        derived={"own": lambda one: one.law.own, "other": lambda one: one.law.other},
    ),
    WireKind(
        name="optimized-unary",
        type=OptimizedUnary,
        layout=PackedBits(),
        derived={"own": lambda one: one.law.own, "other": lambda one: one.law.other},
    ),
    WireKind(
        name="public-hashing",
        type=PublicHashing,
        layout=OneNumber(),
        derived={
            "keep": lambda one: one.law.keep,
            "cells": lambda one: one.cells,
            "polynomial": lambda one: POLYNOMIALS[one.degree - 1],
        },
    ),
    WireKind(
        name="local-hashing",
        type=LocalHashing,
        layout=OneNumber(),
        derived={
            "keep": lambda one: one.law.keep,
            "cells": lambda one: one.family.cells,
            "hash_bits": lambda one: one.family.hash_bits,
            "word_bits": lambda one: one.family.word_bits,
        },
    ),
    WireKind(
        name="projective",
        type=ProjectiveResponse,
        layout=OneNumber(),
        derived={
            "keep": lambda one: one.law.keep,
            "prime": lambda one: one.forms.prime,
            "places": lambda one: one.forms.places,
        },
    ),
    WireKind(
        name="subset-selection",
        type=SubsetSelection,
        layout=PackedBits(),
        derived={"keep": lambda one: one.law.keep, "size": lambda one: one.size},
    ),
    WireKind(
        name="repeated-direct",
        type=RepeatedDirect,
        layout=OneNumber(),
        ratios=("epsilon", "first"),
        derived={
            "permanent": lambda one: one.law.permanent.keep,
            "keep": lambda one: one.law.keep,
        },
    ),
    WireKind(
        name="repeated-unary",
        type=RepeatedUnary,
        layout=PackedBits(),
        whole=("domain", "optimized"),
        ratios=("epsilon", "first"),
        derived={
            "own": lambda one: one.law.own,
            "other": lambda one: one.law.other,
            "keep": lambda one: one.law.keep,
        },
    ),
    WireKind(
        name="bit-flip",
        type=BitFlip,
        layout=SomeValues(),
        whole=("domain", "bits"),
        ratios=("epsilon", "first"),
        derived={
            "own": lambda one: one.law.own,
            "other": lambda one: one.law.other,
            "keep": lambda one: one.law.keep,
        },
    ),
)


def kind_of(randomiser: object) -> WireKind:
    """Return the entry for a randomiser, or refuse one that does not travel.

    >>> kind_of(DirectResponse(domain=4, epsilon=1)).name
    'direct'
    """
    for kind in KINDS:
        if type(randomiser) is kind.type:
            return kind
    known = ", ".join(kind.type.__name__ for kind in KINDS)
    raise ParameterError(
        f"randomiser must be one that devices know, got {type(randomiser).__name__}. "
        f"They know {known}.",
        parameter="randomiser",
    )


def read_randomiser(document: Any) -> Any:
    """Return the randomiser that a document's member describes.

    What is derived is not looked at: the reader of the whole document compares it.

    >>> read_randomiser({"kind": "direct", "domain": 4, "epsilon": "1/2"})
    DirectResponse(domain=4, epsilon=Fraction(1, 2))
    """
    named = document.get("kind") if isinstance(document, dict) else None
    for kind in KINDS:
        if kind.name == named:
            given: dict[str, Any] = {
                name: _read_whole(document.get(name), name=name) for name in kind.whole
            }
            given |= {name: read_number(document.get(name), name=name) for name in kind.ratios}
            return kind.type(**given)
    known = ", ".join(kind.name for kind in KINDS)
    raise DataError(f"the randomiser's kind must be one of {known}. A newer discreet may know it.")


def _read_whole(number: object, *, name: str) -> int:
    if type(number) is not int:  # 2.0 is another spelling, and true a mistake
        raise DataError(f"{name} must be a whole number.")
    return number


def read_number(text: object, *, name: str) -> int | Fraction:
    """Return the number above 0 that a text such as "1/3" stands for.

    >>> read_number("2", name="epsilon"), read_number("3/2", name="epsilon")
    (2, Fraction(3, 2))
    """
    if not isinstance(text, str) or not _RATIO.fullmatch(text):
        raise DataError(f'{name} must be a whole number or a ratio as a text, such as "1/2".')
    number = Fraction(text)
    return int(number) if number.denominator == 1 else number
