"""What a scan found, without showing it again."""

import json
from dataclasses import dataclass
from typing import final

from discreet._words import fit

__all__ = ["Leak", "LeakReport"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """Hold one way in which something came out: what, as what, where, and the chance of accident.

    ``what`` is the label of a canary, or the kind of thing that depends on the data; the value
    itself is never told, because reports are passed on.

    >>> print(Leak(what="email[3]", form="text", where=("log of app.queries",), chance=1e-15))
    email[3] as text, in log of app.queries
    """

    what: str
    form: str
    where: tuple[str, ...]
    chance: float

    def __str__(self) -> str:
        return f"{self.what} as {self.form}, in {'; '.join(self.where)}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LeakReport:
    """Hold what a scan found, and how much it looked at.

    Claim: where nothing leaks, ``passed`` is False with probability at most ``false_alarm``, plus
    what the guarantee of the surface itself allows by its delta. Passing is no proof: a scan sees
    what was exercised.

    >>> report = LeakReport(
    ...     leaks=(Leak(what="email[3]", form="text", where=("log of app",), chance=1e-15),),
    ...     outputs=12, size=4_096, false_alarm=1e-9, scanned="12 outputs for 1,027 canaries",
    ... )
    >>> report.passed
    False
    >>> print(report)
    LEAKED: 1 thing came out
      email[3] as text, in log of app
      searched     12 outputs for 1,027 canaries, 4,096 bytes
      false alarm  at most 1e-09
    """

    leaks: tuple[Leak, ...]
    outputs: int
    size: int
    false_alarm: float
    scanned: str
    skipped: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether nothing was found."""
        return not self.leaks

    def to_json(self) -> str:
        """Return the report for programs.

        >>> LeakReport(
        ...     leaks=(), outputs=1, size=10, false_alarm=1e-9, scanned="1 output"
        ... ).to_json().splitlines()[1]
        '  "passed": true,'
        """
        facts = {name: getattr(self, name) for name in self.__dataclass_fields__}
        leaks = [
            {name: getattr(one, name) for name in one.__dataclass_fields__} for one in self.leaks
        ]
        return json.dumps({"passed": self.passed} | facts | {"leaks": leaks}, indent=2)

    def __str__(self) -> str:
        count = len(self.leaks)
        if self.leaks:
            head = f"LEAKED: {count:,} thing{'s' * (count > 1)} came out"
        elif self.size:
            head = "passed: no canary came out"
        else:
            head = "NOTHING LEARNED: nothing came out that could be searched"
        lines = [head, *(f"  {one}" for one in self.leaks[:_SHOWN])]
        if count > _SHOWN:
            lines.append(f"  and {count - _SHOWN:,} more: see .leaks")
        lines.append(f"  searched     {self.scanned}, {self.size:,} bytes")
        lines.append(f"  false alarm  at most {self.false_alarm:.3g}")
        lines += [f"  not searched {one}" for one in self.skipped]
        return "\n".join(fit(line, indent="    ") for line in lines)


_SHOWN = 20
