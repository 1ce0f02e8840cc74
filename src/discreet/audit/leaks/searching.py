"""Search whatever came out for every form of every canary, and weigh what was met."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from typing import Final, final

import numpy as np

from discreet.audit.leaks.canaries import Canary
from discreet.audit.leaks.needles import (
    DIGITS,
    Needle,
    binary,
    dates_of,
    digits_of,
    letters,
    significant,
)
from discreet.audit.leaks.report import Leak
from discreet.audit.leaks.views import views

__all__ = ["Search"]

_CHUNK = 1 << 22
_LONGEST = 16  # bytes of a needle
_DAYS = 25_567  # that somebody may be born on
_NUMBER = re.compile(rb"\d+(?:\.\d+)?")
_GROUPED = re.compile(rb"\d{1,3}([,._' ]|\xe2\x80\xaf|\xc2\xa0)\d{3}(?:\1\d{3})*(?:[.,]\d+)?")
_DATE = re.compile(rb"\d{4}-\d\d-\d\d|\d\d[./]\d\d[./]\d{4}|(?<!\d)\d{8}(?!\d)")
_NOT_DIGITS = re.compile(rb"\D")
_DOUBLE = (15, 16)  # digits that survive arithmetic with doubles, the last one nearly
_TOLD = 3  # places of one leak


class _Haystack:
    """Find many byte strings at once: by a table of their first three bytes, then one by one."""

    def __init__(self, needles: Iterable[tuple[bytes, tuple[Canary, Needle]]]) -> None:
        self.by_start: dict[bytes, dict[bytes, list[tuple[Canary, Needle]]]] = defaultdict(dict)
        self.table = np.zeros(1 << 20, dtype=bool)  # small enough to stay in the cache
        for content, owner in needles:
            self.by_start[content[:4]].setdefault(content, []).append(owner)
            first, second, third = content[:3]
            self.table[first ^ second << 6 ^ third << 12] = True

    def find(self, content: bytes) -> Iterable[tuple[Canary, Needle]]:
        for start in range(0, len(content), _CHUNK):
            piece = content[start : start + _CHUNK + _LONGEST]
            codes = np.frombuffer(piece, dtype=np.uint8).astype(np.uint32)
            if len(codes) < 4:
                return
            keys = codes[:-2] ^ codes[1:-1] << 6 ^ codes[2:] << 12
            for place in np.flatnonzero(self.table[keys]).tolist():
                for needle, owners in self.by_start.get(piece[place : place + 4], {}).items():
                    if piece.startswith(needle, place):
                        yield from owners


@final
@dataclass(slots=True)
class _Family:
    """Canaries that are drawn alike, in one form."""

    size: int = 0
    chance: float = 0.0  # that one of them matches at a given place
    met: dict[str, list[str]] = field(default_factory=dict)  # labels, and where


@final
class Search:
    """Collect what came out, then say which of it is no accident.

    Claim: canaries are drawn independently of everything else. If the surface tells of each person
    no more than ``epsilon`` allows, then that j of the m canaries of a family are met among t
    places has a probability of at most C(m, j) (t chance e^epsilon)^j. For every family the
    smallest j is taken for which that is below one level, the same for all, which is as high as
    lets their sum stay below ``false_alarm``. It depends on how much was searched alone.

    Why: fix j people. On the data without them the surface knows nothing of them, so each of them
    is met with at most t * chance, independently; j neighbours further on that is multiplied by at
    most e^(j epsilon). The union over the choices of the j people is C(m, j). For sums and means
    one person is taken for each group.
    """

    def __init__(self, canaries: Iterable[Canary], *, epsilon: float, false_alarm: float) -> None:
        self._families: dict[tuple[str, str], _Family] = defaultdict(_Family)
        texts: list[tuple[bytes, tuple[Canary, Needle]]] = []
        raw: list[tuple[bytes, tuple[Canary, Needle]]] = []
        self._digits: dict[bytes, list[Canary]] = defaultdict(list)
        self._dates: dict[bytes, list[Canary]] = defaultdict(list)
        self.canaries = 0
        for canary in canaries:
            self.canaries += 1
            forms: dict[str, float] = {}
            for kind, make in ((texts, letters), (raw, binary)):
                for one in make(canary):
                    kind.append((one.content, (canary, one)))
                    forms[one.form] = one.chance
            self._register(canary, forms)
        self._texts, self._raw = _Haystack(texts), _Haystack(raw)
        self._numbers: dict[int, set[bytes]] = {places: set() for places in DIGITS}
        self._days: set[bytes] = set()
        self._seen: set[int] = set()
        self._leans, self._false_alarm = math.exp(epsilon), false_alarm
        self.outputs, self.size, self.places = 0, 0, 0
        self.skipped: list[str] = []

    def _register(self, canary: Canary, forms: dict[str, float]) -> None:
        """Note the forms of one canary that are not bytes, and count it in the family of each."""
        if canary.kind == "number":
            forms |= {_rounded(places): 0.0 for places in DIGITS}
            for text, chance in digits_of(canary).items():
                if len(text) >= DIGITS.start:
                    self._digits[text.encode()].append(canary)
                    forms[_rounded(len(text))] = chance
        elif isinstance(canary.value, date):
            forms["a date"] = 2 / _DAYS
            for text in dates_of(canary.value):
                self._dates[text.encode()].append(canary)
        for form, chance in forms.items():
            family = self._families[canary.family, form]
            family.size += 1
            family.chance = max(family.chance, chance)

    def feed(self, where: str, content: bytes | None) -> None:
        """Search one output, or note that it could not be read; a repeated one counts once."""
        mark = hash((where, content))
        if mark in self._seen:
            return
        self._seen.add(mark)
        self.outputs += 1
        if self._tells(where.encode()):
            where = f"output {self.outputs}, whose name tells"
        if content is None:
            self.skipped.append(where)
            return
        self.size += len(content)
        for name, view in views(content):
            self.places += len(view)
            coded = f" in {name}" if name else ""
            for canary, needle in (*self._texts.find(view.lower()), *self._raw.find(view)):
                self._meet(canary, needle.form, where + coded)
            self._feed_numbers(where + coded, view)

    def _tells(self, name: bytes) -> bool:
        """Say whether the name of a place would show a canary."""
        return any(
            any(True for _ in self._texts.find(view.lower()))
            or any(True for _ in self._raw.find(view))
            or not self._digits.keys().isdisjoint(_digits(view))
            or not self._dates.keys().isdisjoint(_DATE.findall(view))
            for _, view in views(name)
        )

    def _feed_numbers(self, where: str, view: bytes) -> None:
        for digits in _digits(view):
            self._numbers[len(digits)].add(digits)
            for canary in self._digits.get(digits, ()):
                self._meet(canary, _rounded(len(digits)), where)
        days = set(_DATE.findall(view))
        self._days |= days
        for day in days & self._dates.keys():
            for canary in self._dates[day]:
                self._meet(canary, "a date", where)

    def _meet(self, canary: Canary, form: str, where: str) -> None:
        places = self._families[canary.family, form].met.setdefault(canary.label, [])
        if where not in places:
            places.append(where)

    def leaks(self) -> tuple[Leak, ...]:
        """Return what was met too often to be an accident, most telling first."""
        odds = {key: self._odds(key[1], one) for key, one in self._families.items()}
        level = self._false_alarm
        # Most families cost far less than the level, so the first few halvings are enough.
        while sum(_least(odds[key], level)[1] for key in odds) > self._false_alarm:
            level /= 2
        found: dict[tuple[str, str], Leak] = {}
        for key, (size, each) in odds.items():
            met = self._families[key].met
            if not met or len(met) < _least((size, each), level)[0]:
                continue
            form, chance = key[1], _chance(size, each, len(met))
            for label, where in met.items():
                leak = Leak(what=label, form=form, where=tuple(where[:_TOLD]), chance=chance)
                same = label, form.partition(",")[0]  # such as fewer digits of the same
                found[same] = min(found.get(same, leak), leak, key=lambda one: one.chance)
        return tuple(sorted(found.values(), key=lambda one: (one.chance, one.what)))

    def _odds(self, form: str, family: _Family) -> tuple[int, float]:
        """Return how many canaries a family has, and the chance to meet one of them."""
        return family.size, min(1.0, family.chance * self._tries(form) * self._leans)

    def _tries(self, form: str) -> int:
        if form == "a date":
            return len(self._days)
        return len(self._numbers[_PLACES[form]]) if form in _PLACES else self.places


def _rounded(places: int) -> str:
    return f"a number, {places} digits"


def _chance(size: int, each: float, hits: int) -> float:
    return min(1.0, math.comb(size, hits) * each**hits)


def _least(odds: tuple[int, float], level: float) -> tuple[int, float]:
    """Return how many must be met to be rarer than the level, and how rare that is."""
    size, each = odds
    for hits in range(1, size + 1):
        chance = _chance(size, each, hits)
        if chance <= level:
            return hits, chance
    return size + 1, 0.0


_PLACES: Final = {_rounded(places): places for places in DIGITS}


def _digits(view: bytes) -> set[bytes]:
    """Return the digits of all numbers, and those that doubles would keep where there are more.

    >>> sorted(_digits(b"n=4213, 1,234,567.50 EUR, 7.1230e+15"))
    [b'12345675', b'4213', b'5675', b'7123']
    """
    found = set()
    grouped = (one[0] for one in _GROUPED.finditer(view))
    for one in {*_NUMBER.findall(view), *grouped}:
        text = significant(_NOT_DIGITS.sub(b"", one).decode())
        found.add(text)
        for places in _DOUBLE:
            if len(text) >= places:
                kept = int(text[:places])
                found |= {significant(str(near)) for near in (kept - 1, kept, kept + 1)}
    return {one.encode() for one in found if len(one) in DIGITS}
