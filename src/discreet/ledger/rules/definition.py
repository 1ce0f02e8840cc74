"""Accounts as they were defined, and which of their budgets a request draws on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import product
from typing import Any, Final, Literal, cast, final
from urllib.parse import quote, unquote

from discreet._json import read_json
from discreet.accounting import FilterRules
from discreet.ledger.rules.balance import unreadable
from discreet.ledger.rules.entry import encode, fold, label
from discreet.privacy import Neighbours, Period, Unit

__all__ = ["EACH", "FOLDED", "POLICIES", "TOTAL", "Definition", "Line", "Policy"]

Policy = Literal["deny", "degrade", "wait"]
POLICIES: Final = ("deny", "degrade", "wait")
EACH: Final = "*"  # a line with this in a place keeps one budget for each value of it
TOTAL: Final = "total"
FOLDED: Final = "folded"  # how an account compares names
_MOST_KNOWN: Final = 128  # definitions that need not be read again
_REMEMBERED: Final = 10_000  # pairs of analyst and purpose whose lines are looked up


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Name a limit: the total, or that of an analyst, a purpose, a period, or of each of them.

    >>> Line(analyst="ana", every=Period.month).name
    'analyst=ana,every=month'
    >>> Line.read("analyst=*,purpose=report")
    Line(analyst='*', purpose='report', every=None)
    """

    analyst: str | None = None
    purpose: str | None = None
    every: Period | None = None

    @property
    def name(self) -> str:
        """The line as entries write it."""
        parts = [("analyst", self.analyst), ("purpose", self.purpose), ("every", self.every)]
        said = [f"{what}={quote(value, safe='* ')}" for what, value in parts if value is not None]
        return ",".join(said) or TOTAL

    @property
    def folded(self) -> "Line":
        """The line of everybody whose names differ in case and compatible characters only."""
        names = (one if one in (None, EACH) else fold(one) for one in (self.analyst, self.purpose))
        analyst, purpose = names
        return Line(analyst=analyst, purpose=purpose, every=self.every)

    @classmethod
    def read(cls, name: str) -> "Line":
        """Read a line's name."""
        if name == TOTAL:
            return cls()
        said = dict(part.partition("=")[::2] for part in name.split(","))
        every = said.get("every")
        return cls(
            analyst=_unquoted(said.get("analyst")),
            purpose=_unquoted(said.get("purpose")),
            every=None if every is None else Period(every),
        )

    @staticmethod
    def is_total(budget: str) -> bool:
        """Say whether a budget is the total, or that of a period of the data."""
        return budget.partition(":")[0] == TOTAL

    def specialises(self, other: "Line") -> bool:
        """Say whether this line takes the place of one that speaks of each."""
        same = self.every == other.every
        for mine, theirs in ((self.analyst, other.analyst), (self.purpose, other.purpose)):
            same = same and (mine == theirs or (theirs == EACH and mine not in (None, EACH)))
        return same and self != other


def _unquoted(text: str | None) -> str | None:
    return None if text is None else unquote(text)


_Drawn = tuple[str, str, Period | None, FilterRules]


@final
@dataclass(frozen=True, kw_only=True)
class Definition:
    """An account at some moment, read from its fact. Equal texts share one object."""

    name: str
    unit: Unit
    neighbours: Neighbours
    policy: Policy
    lines: Mapping[str, FilterRules]
    is_folded: bool = False  # "Ben" and "ben" are one: so for all accounts but the earliest
    _drawn: dict[tuple[str | None, str | None], tuple[_Drawn, ...]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @cached_property
    def version(self) -> str:
        """A short name of exactly this definition."""
        return sha256(self.text().encode()).hexdigest()[:16]

    @property
    def total(self) -> FilterRules:
        """The rules of the one cap over everything."""
        return self.lines[TOTAL]

    @classmethod
    def read(cls, text: str) -> "Definition":
        """Read an account's fact."""
        return _read(text)

    def text(self) -> str:
        """Write the fact."""
        return self._text

    @cached_property
    def _text(self) -> str:
        names = {"names": FOLDED} if self.is_folded else {}
        around = encode(
            {
                **names,
                "name": self.name,
                "unit": self.unit.to_dict(),
                "neighbours": self.neighbours.value,
                "policy": self.policy,
                "lines": {},
            }
        )
        # Put together from what was written for the definition before: there may be thousands.
        lines = ",".join([_member(name, rules) for name, rules in sorted(self.lines.items())])
        return around.replace('"lines":{}', f'"lines":{{{lines}}}', 1)

    def with_line(self, line: str, rules: FilterRules) -> "Definition":
        """Return the definition with one more line, or another one of its name."""
        lines = dict(sorted({**self.lines, line: rules}.items()))
        made = replace(self, lines=lines, _drawn={})
        _remember(made.text(), made)
        return made

    def with_policy(self, policy: Policy) -> "Definition":
        """Return the definition with another policy."""
        made = replace(self, policy=policy, _drawn={})
        _remember(made.text(), made)
        return made

    def budgets(
        self, *, who: str | None, purpose: str | None, periods: Sequence[str], time: str
    ) -> list[tuple[str, str, FilterRules]]:
        """Return the budgets that a request draws on: their names, lines and rules.

        ``periods`` are those of the data, where the unit has a period: a person in one of them is
        another unit than in the next, so each keeps a budget of its own. ``time`` is the ledger's
        and says which allowance of an ``every`` line is drawn on.
        """
        found = []
        for name, line, every, rules in self._drawn_by(who, purpose):
            budget = name if every is None else _instance(name, label(time, every))
            if periods:
                found += [(_instance(budget, period), line, rules) for period in periods]
            else:
                found.append((budget, line, rules))
        return found

    def lines_of(self, *, who: str | None, purpose: str | None) -> list[str]:
        """Return the names of the lines that a request draws on."""
        return [line for _, line, _, _ in self._drawn_by(who, purpose)]

    def _drawn_by(self, who: str | None, purpose: str | None) -> tuple[_Drawn, ...]:
        found = self._drawn.get((who, purpose))
        if found is None:
            if len(self._drawn) >= _REMEMBERED:
                self._drawn.clear()
            found = self._drawn[who, purpose] = tuple(self._matching(who, purpose))
        return found

    def _matching(self, who: str | None, purpose: str | None) -> Iterator[_Drawn]:
        if self.is_folded:
            who, purpose = (one if one is None else fold(one) for one in (who, purpose))
        lines = self._by_names
        # One who is not named draws on no budget of an analyst.
        places = [(None, EACH, one) if one else (None,) for one in (who, purpose)]
        found = [line for names in product(*places) for line in lines.get(names, ())]
        applying = sorted(set(found), key=lambda line: line.name)
        for line in applying:
            if any(other.specialises(line) for other in applying):
                continue
            name = line.name
            for mine, value in ((line.analyst, who), (line.purpose, purpose)):
                if mine == EACH and value is not None:
                    name = _instance(name, quote(value, safe=" "))
            yield name, line.name, line.every, self.lines[line.name]

    @cached_property
    def _by_names(self) -> dict[tuple[str | None, ...], list[Line]]:
        """The lines by the analyst and the purpose that they are for."""
        found: dict[tuple[str | None, ...], list[Line]] = {}
        for name in self.lines:
            line = _line(name)
            found.setdefault((line.analyst, line.purpose), []).append(line)
        return found


def _instance(name: str, value: str) -> str:
    return f"{name}{',' if ':' in name else ':'}{value}"


_known: dict[str, Definition] = {}


def _remember(text: str, definition: Definition) -> None:
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    _known[text] = definition


def _read(text: str) -> Definition:
    try:
        known = _known.get(text)
        if known is None:
            known = _parsed(read_json(text))
            _remember(text, known)
        return known
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise unreadable("an account") from error


@lru_cache(maxsize=65_536)
def _member(line: str, rules: FilterRules) -> str:
    """Write a line and its rules as a member of a JSON object."""
    return encode({line: rules.settings})[1:-1]


@lru_cache(maxsize=65_536)
def _line(name: str) -> Line:
    return Line.read(name)


def _parsed(document: Mapping[str, Any]) -> Definition:
    return Definition(
        name=document["name"],
        unit=Unit.from_dict(document["unit"]),
        neighbours=Neighbours(document["neighbours"]),
        policy=cast("Policy", document["policy"]),
        lines={name: rules_of(encode(settings)) for name, settings in document["lines"].items()},
        is_folded=document.get("names") == FOLDED,
    )


@lru_cache(maxsize=1024)
def rules_of(settings: str) -> FilterRules:
    """Return the rules that were recorded; equal ones share their prices."""
    return FilterRules.from_settings(read_json(settings))
