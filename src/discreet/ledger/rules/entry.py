"""Entries as text. What is hashed is what is stored, so nobody has to write JSON the same way."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any, Final
from unicodedata import normalize

from discreet._json import read_json
from discreet.errors import ParameterError
from discreet.privacy import Period

__all__ = [
    "FORMAT",
    "NOTHING_BEFORE",
    "Entry",
    "decode",
    "encode",
    "first_day",
    "fold",
    "following",
    "label",
    "latest",
    "now",
    "period_label",
]

FORMAT: Final = 1
LONGEST_SILENCE: Final = 100  # days: a clock that jumps further is believed wrong
NOTHING_BEFORE: Final = "0" * 64  # what the first entry names as the hash of the one before it

Entry = dict[str, Any]  # a JSON object; the rules check what they read of it

_encoder = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
_LABELS: Final = {
    Period.day: re.compile(r"\d{4}-\d\d-\d\d", re.ASCII),
    Period.week: re.compile(r"\d{4}-W\d\d", re.ASCII),
    Period.month: re.compile(r"\d{4}-\d\d", re.ASCII),
    Period.year: re.compile(r"\d{4}", re.ASCII),
}


@lru_cache(maxsize=8192)
def fold(name: str) -> str:
    r"""Return what a name is compared by: compatible characters and upper and lower case are one.

    Unicode promises that this never changes for a character, so old entries replay the same way;
    names of characters that do not exist yet are refused.

    >>> fold("Ben") == fold("\N{FULLWIDTH LATIN SMALL LETTER B}en") == "ben"
    True
    """
    return normalize("NFKC", normalize("NFKC", name).casefold())


def encode(entry: Mapping[str, object]) -> str:
    """Write an entry with sorted keys, no spaces, in ASCII.

    >>> encode({"kind": "charge", "index": 3})
    '{"index":3,"kind":"charge"}'
    """
    return _encoder.encode(entry)


def decode(body: str) -> Entry:
    """Read an entry.

    >>> decode('{"index":3}')
    {'index': 3}
    """
    entry = read_json(body)
    if not isinstance(entry, dict) or not (body.startswith("{") and body.endswith("}")):
        raise ValueError("an entry must be one object")
    return entry


def now() -> str:
    """Return the time as entries write it; texts of two times compare like the times.

    >>> len(now())
    27
    """
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@lru_cache(maxsize=4096)
def _label_of_day(day: str, period: Period) -> str:
    if period is Period.week:
        year, week, _ = date.fromisoformat(day).isocalendar()
        return f"{year:04d}-W{week:02d}"
    return day[: {Period.day: 10, Period.month: 7, Period.year: 4}[period]]


def label(time: str, period: Period) -> str:
    """Name the period that a moment lies in.

    >>> label("2026-11-15T08:00:00.000000Z", Period.week)
    '2026-W46'
    """
    return _label_of_day(time[:10], period)


def period_label(value: object, period: Period) -> str:
    """Return the label of a period that a caller named by a label, a date or a moment.

    >>> period_label("2026-11", Period.month), period_label(date(2026, 11, 15), Period.month)
    ('2026-11', '2026-11')
    """
    if isinstance(value, date):  # a datetime is one, too
        return _label_of_day(f"{value:%Y-%m-%d}", period)
    if isinstance(value, str) and _LABELS[period].fullmatch(value):
        # Through the calendar and back: a period that could be named twice had two budgets.
        with suppress(ValueError):
            return _label_of_day(first_day(value, period).isoformat(), period)
    example = _label_of_day("2026-11-15", period)
    raise ParameterError(
        f"a {period} is named like {example!r}, or by a date that lies in it.", parameter="periods"
    )


def following(text: str, period: Period) -> str:
    """Return the label of the period after one.

    >>> following("2026-12", Period.month), following("2026-W53", Period.week)
    ('2027-01', '2027-W01')
    """
    first = first_day(text, period)
    days = {Period.day: 1, Period.week: 7, Period.month: 31, Period.year: 366}[period]
    try:
        return _label_of_day((first + timedelta(days=days)).isoformat(), period)
    except OverflowError:  # the calendar ends with the year 9999
        return text


def latest(time: str) -> str:
    """Return how late the entry after one of this time may be without a custodian's word.

    >>> latest("2026-11-15T08:00:00.000000Z")
    '2027-02-23T08:00:00.000000Z'
    """
    try:
        until = datetime.fromisoformat(time) + timedelta(days=LONGEST_SILENCE)
    except OverflowError:
        return time
    return until.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def first_day(text: str, period: Period) -> date:
    if period is Period.week:
        return date.fromisocalendar(int(text[:4]), int(text[6:]), 1)
    return date.fromisoformat(
        text + {Period.day: "", Period.month: "-01", Period.year: "-01-01"}[period]
    )
