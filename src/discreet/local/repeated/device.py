"""One device: it keeps its answers and its budgets itself, and outlives being killed."""

import dataclasses
import os
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Literal, final

import numpy as np

from discreet._exact import Number, exact, positive, refusal, whole
from discreet.errors import ParameterError
from discreet.local.laws.numbers import as_values
from discreet.local.repeated.exposure import Fresh, Repeated, is_linkable, price_of
from discreet.local.repeated.state import Document, changing, reading
from discreet.noise import SYSTEM, Source, uniform_integers

__all__ = ["Device", "DeviceReport"]

_DAY: Final = 86_400  # seconds
_FORMAT: Final = 1


@final
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReport:
    """Hold one report, ready to be sent.

    ``report`` is what the randomiser's ``estimate`` reads: a number, or a tuple of numbers.
    ``pseudonym`` is public and changes every period. ``token`` is the report's own, random, so
    that a report sent twice counts once.

    >>> dataclasses.asdict(DeviceReport(report=2, pseudonym="5f0c", token="a41b"))
    {'report': 2, 'pseudonym': '5f0c', 'token': 'a41b'}
    """

    report: int | tuple[int, ...]
    pseudonym: str
    token: str


@final
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """Report one device's values for years, within budgets that it keeps itself.

    ``state`` is a file; it belongs to this device and one question, and holds true values, so only
    its owner may read it. ``daily`` is what the reports of one day may cost, ``lifetime`` what all
    reports ever may. A new pseudonym is drawn every ``rotation`` days.

    Claim: *The reports of one day* are ``daily``-DP for any change of that day's values. *All
    reports ever* are ``lifetime``-DP: of a randomiser that draws anew each time, between any two
    histories of values; of one that keeps its responses, between any two that agree on which
    reports the same kept response answers (see :func:`~discreet.local.exposure` for the others).
    Whether the device answers depends on how often it was asked and on the clock, never on values.
    Pseudonyms of two periods are independent; reports of a kept response can be linked all the
    same, see :func:`~discreet.local.is_linkable`.

    Why: docs/proofs/repeated_answers.md. Everything is drawn, charged and durable before a report
    is handed out, in one transaction. A value beyond ``lifetime`` is answered by one more kept
    response that is drawn for a random value; to fall silent instead would tell that the value is
    new. So is the lack of a value, ``collect(None)``. Both pull estimates towards equal shares.

    Call it on a schedule that does not depend on values. When the day's budget is spent it answers
    nothing. This is better than ``when_spent="uniform"``, which reports a random value instead: how
    often a device was asked may tell something, silence caps what shows of it, and estimates stay
    unbiased. Choose "uniform" only where reports must come at a fixed rate.

    >>> import tempfile
    >>> from discreet import local
    >>> asking = local.RepeatedDirect(domain=4, epsilon=2, first=1)
    >>> folder = tempfile.TemporaryDirectory()
    >>> device = Device(asking, state=folder.name + "/emoji", daily=1, lifetime=6, rotation=7)
    >>> device.collect(2)
    DeviceReport(report=..., pseudonym='...', token='...')
    >>> print(device.collect(2), device.spent)      # one report a day
    None 2
    >>> folder.cleanup()
    """

    randomiser: Fresh | Repeated = dataclasses.field(kw_only=False)
    state: str | os.PathLike[str]
    daily: Number
    lifetime: Number
    rotation: int
    when_spent: Literal["silence", "uniform"] = "silence"
    clock: Callable[[], float] = time.time
    source: Source = SYSTEM

    def __post_init__(self) -> None:
        first, one = price_of(self.randomiser, reports=1), self.randomiser.loss.epsilon_pure
        for name, budget, price in (
            ("daily", self.daily, first),
            ("lifetime", self.lifetime, Fraction(one)),
        ):
            if price is None or positive(budget, name=name) < price:
                raise refusal(name, f"at least what one costs, {price}", budget, "Raise it.")
        whole(self.rotation, name="rotation")
        if self.when_spent not in ("silence", "uniform"):
            raise refusal("when_spent", "'silence' or 'uniform'", self.when_spent)
        self._opened(reading(Path(self.state)))

    def collect(self, value: int | None) -> DeviceReport | None:
        """Return a report of the value, to be sent; None if the budget is spent.

        ``None`` as the value says that there is none; it is answered and charged like any other.
        The report is durable, and stays in :meth:`pending` until :meth:`sent` is told of it.

        >>> import tempfile
        >>> from discreet import local
        >>> asking = local.DirectResponse(domain=4, epsilon=1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     device = Device(asking, state=folder + "/emoji", daily=1, lifetime=1, rotation=7)
        ...     device.collect(None) is None, device.collect(2) is None      # paid for one
        (False, True)
        """
        if value is not None:
            as_values([value], domain=self.randomiser.domain)
        with changing(Path(self.state)) as document:
            self._opened(document)
            self._begin_day(document)
            report = self._answer(document, value)
            if report is None:
                return None
            made = DeviceReport(report=report, pseudonym=document["pseudonym"], token=self._name())
            document["pending"].append([made.report, made.pseudonym, made.token])
        return made

    def pending(self) -> list[DeviceReport]:
        """Return the reports that were paid for in this period and are not known to be sent.

        After a crash, send them again: the same bytes say nothing new.

        >>> import tempfile
        >>> from discreet import local
        >>> asking = local.DirectResponse(domain=4, epsilon=1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     device = Device(asking, state=folder + "/emoji", daily=1, lifetime=1, rotation=7)
        ...     report = device.collect(2)
        ...     device.pending() == [report]
        True
        """
        return [
            DeviceReport(report=_frozen(report), pseudonym=pseudonym, token=token)
            for report, pseudonym, token in self._opened(reading(Path(self.state)))["pending"]
        ]

    def sent(self, report: DeviceReport) -> None:
        """Forget a report that has arrived.

        >>> import tempfile
        >>> from discreet import local
        >>> asking = local.DirectResponse(domain=4, epsilon=1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     device = Device(asking, state=folder + "/emoji", daily=1, lifetime=1, rotation=7)
        ...     device.sent(device.collect(2))
        ...     device.pending()
        []
        """
        with changing(Path(self.state)) as document:
            self._opened(document)
            document["pending"] = [one for one in document["pending"] if one[2] != report.token]

    @property
    def spent(self) -> Fraction:
        """How much of ``lifetime`` is spent. This depends on values: do not send it."""
        document = self._opened(reading(Path(self.state)))
        times = len(document["kept"]) if is_linkable(self.randomiser) else document["ever"]
        return times * Fraction(self.randomiser.loss.epsilon_pure)

    def _opened(self, document: Document) -> Document:
        """Complete a new document, or refuse one that another law or a smaller budget made."""
        wanted = {"format": _FORMAT, "randomiser": _identity(self.randomiser)}
        if not document:
            budgets = {"daily": str(exact(self.daily, name="daily"))}
            budgets["lifetime"] = str(exact(self.lifetime, name="lifetime"))
            fresh = {"day": None, "period": None, "pseudonym": "", "today": 0, "ever": 0}
            document |= wanted | budgets | fresh | {"enrolled": None, "kept": {}, "beyond": None}
            document["pending"] = []
        if {name: document.get(name) for name in wanted} != wanted:
            raise ParameterError(
                "randomiser must be the one that the device's state began with. Its answers were "
                "drawn from that law. Ask another question with another state; their budgets add "
                "up.",
                parameter="randomiser",
            )
        for name, budget in (("daily", self.daily), ("lifetime", self.lifetime)):
            if exact(budget, name=name) > Fraction(document[name]):
                hint = "A budget that was promised can be lowered, not raised."
                raise refusal(name, f"at most {document[name]}, as before", budget, hint)
        return document

    def _begin_day(self, document: Document) -> None:
        """Go to the clock's day, but never back: an old day's budget is not given twice."""
        day = max(int(self.clock() // _DAY), document["day"] or 0)
        if day != document["day"]:
            document["day"], document["today"] = day, 0
        period = day // self.rotation
        if period != document["period"]:
            document["period"], document["pseudonym"] = period, self._name()
            document["pending"] = []  # nobody takes reports of an old pseudonym

    def _answer(self, document: Document, value: int | None) -> int | tuple[int, ...] | None:
        random_value = uniform_integers(self.randomiser.domain, source=self.source)
        if not self._may_answer(document):
            if self.when_spent == "silence":
                return None
            released = self.randomiser.release([random_value], source=self.source)
            return _plain(released[0])
        document["today"], document["ever"] = document["today"] + 1, document["ever"] + 1
        held = random_value if value is None else value
        if not is_linkable(self.randomiser):
            return _plain(self.randomiser.release([held], source=self.source)[0])
        kept = self._kept(document, self.randomiser, value, random_value)
        return _plain(self.randomiser.instant([kept], source=self.source)[0])

    def _may_answer(self, document: Document) -> bool:
        """Say whether one more report fits, from how many there were and nothing else."""
        today = price_of(self.randomiser, reports=document["today"] + 1)
        if today is None or today > exact(self.daily, name="daily"):
            return False
        return is_linkable(self.randomiser) or self._fits(document["ever"] + 1)

    def _fits(self, times: int) -> bool:
        cost = times * Fraction(self.randomiser.loss.epsilon_pure)
        return cost <= exact(self.lifetime, name="lifetime")

    def _kept(
        self, document: Document, randomiser: Repeated, value: int | None, random_value: int
    ) -> Any:
        """Return the kept response for a value; draw and keep it if there is none.

        Both a response for the value and one for a random value are drawn each time, so that the
        randomness read does not tell which were known.
        """
        if document["enrolled"] is None:
            document["enrolled"] = randomiser.enrol(1, source=self.source)[0].tolist()
        enrolled = np.array([document["enrolled"]], dtype=np.int64)
        held = random_value if value is None else value
        own, other = (
            randomiser.permanent([one], enrolled=enrolled, source=self.source)[0].tolist()
            for one in (held, random_value)
        )
        key = "none"
        if value is not None:
            key = str(randomiser.response_keys([value], enrolled=enrolled)[0])
        if key not in document["kept"]:
            if not self._fits(len(document["kept"]) + 1):
                document["beyond"] = document["beyond"] or [other]
                return document["beyond"][0]
            document["kept"][key] = own
        return document["kept"][key]

    def _name(self) -> str:
        return self.source.read(16).hex()


def _identity(randomiser: Any) -> list[str]:
    """Write down a law, the same for 1 and 1.0."""
    values = [getattr(randomiser, field.name) for field in dataclasses.fields(randomiser)]
    return [type(randomiser).__name__] + [
        str(Fraction(one)) if isinstance(one, int | float | Fraction) else repr(one)
        for one in values
    ]


def _plain(report: Any) -> int | tuple[int, ...]:
    return _frozen(np.asarray(report).tolist())


def _frozen(report: Any) -> int | tuple[int, ...]:
    return tuple(report) if isinstance(report, list) else int(report)
