"""What a collection owes an account, and when it pays.

Claim: all reports that one device ever gives to a collection are together ``loss``-DP when all of
the device's data are replaced by any others, for the ``loss`` that is charged.

Why: a device keeps to the caps by itself. Where it draws anew for each report, it gives at most
floor(lifetime / epsilon) of them; each is private by its randomiser's loss whatever it has said
before, and losses add up [DR14, Theorem 3.16]. Where it keeps responses, its lifetime is a promise
for histories that change at the same times only; so what is charged is what bounds any two
histories, ``price_of`` all reports that it can give until the collection ends, or in a period
(docs/proofs/repeated_answers.md). Other devices draw coins of their own from data of their own, so
their reports have the same law beside any data of this one, and cancel in every ratio. That is why
n devices cost what one costs.

It is charged before the first report is taken. Whatever is done with the reports afterwards is
post-processing [DR14, Proposition 2.1]: estimates, however often, cost nothing.

Where the account protects each day, week, month or year by itself, a device's reports of one such
period are charged to that period. Devices go by the calendar of UTC and clocks may be off by a day:
every period is charged that a day from the one before the opening to tomorrow lies in.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any, Final, final

from discreet._exact import Number
from discreet.accounting import Loss, PureLoss
from discreet.errors import ParameterError
from discreet.ledger import Account, Receipt, period_label
from discreet.local.collection.terms import CollectionTerms
from discreet.local.repeated.exposure import is_linkable, price_of
from discreet.local.wire import Parameters
from discreet.privacy import Guarantee, Neighbours, Period, Unit, convert

__all__ = ["Dues", "dues_of", "label_of", "labels", "pay_dues", "reports_a_day", "today"]

_DAYS: Final = {Period.day: 1, Period.week: 7, Period.month: 31, Period.year: 366}
_ONE_DAY: Final = timedelta(days=1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Dues:
    """State what an account is charged: ``loss``, once, or for each period that is touched.

    It is that of so many ``reports`` of one device, and holds for the account's relation by
    ``proof``.
    """

    loss: Loss
    reports: int
    period: Period | None
    proof: str


def dues_of(
    parameters: Parameters, *, unit: Unit, neighbours: Neighbours, participation_is_public: bool
) -> Dues:
    """Return what a collection owes an account of this unit and relation, or refuse it.

    >>> from discreet import local
    >>> from discreet.local.wire import parameters_of
    >>> emoji = parameters_of(
    ...     local.HadamardResponse(domain=1000, epsilon=1), name="emoji", a_day=2, lifetime=30)
    >>> dues_of(emoji, unit=Unit.column("device"), neighbours=Neighbours.replace_one,
    ...         participation_is_public=False).loss
    ComposedLoss(30 x PureLoss(epsilon=1))
    """
    if unit.kind == "household":
        raise ParameterError(
            f"this account protects {unit}, and nobody knows how many devices a household has. "
            "Nothing was charged. Charge an account that protects devices, such as one for "
            "Unit.column('device').",
            parameter="account",
        )
    reports = _most_reports(parameters, unit.period)
    loss, proof = _for_relation(
        _loss_of(parameters.randomiser, reports=reports, devices=unit.size),
        neighbours,
        participation_is_public=participation_is_public,
    )
    return Dues(loss=loss, reports=reports * unit.size, period=unit.period, proof=proof)


def _most_reports(parameters: Parameters, period: Period | None) -> int:
    """Return how many reports a device gives at most: ever, or in a period."""
    ever = _reports_ever(parameters)
    if period is not None:
        in_one = reports_a_day(parameters) * _DAYS[period]
        return in_one if ever is None else min(in_one, ever)
    if ever is None:
        raise ParameterError(
            "this account protects a device for all time, and devices that keep their responses "
            "answer for ever: their lifetime does not bound what shows of when a value changes. "
            "Nothing was charged. Say not_before= and not_after=, or charge an account that "
            "protects each day by itself: Unit.column('device').per('day').",
            parameter="not_after",
        )
    return ever


def _reports_ever(parameters: Parameters) -> int | None:
    randomiser = parameters.randomiser
    if not is_linkable(randomiser):
        return int(parameters.lifetime // Fraction(randomiser.loss.epsilon_pure))
    begin, end = parameters.not_before, parameters.not_after
    if begin is None or end is None:
        return None
    days = (end.date() - begin.date()).days + 1
    return reports_a_day(parameters) * max(1, days + 2)  # a clock may be off by a day


def reports_a_day(parameters: Parameters) -> int:
    """Return how many reports a device gives at most on one day."""
    randomiser = parameters.randomiser
    if not is_linkable(randomiser):
        return int(parameters.a_day // Fraction(randomiser.loss.epsilon_pure))
    if randomiser.further_loss is None:
        return 1
    left = parameters.a_day - randomiser.first_loss.epsilon_pure
    return 1 + int(max(left, Fraction(0)) // randomiser.further_loss.epsilon_pure)


def _loss_of(randomiser: Any, *, reports: int, devices: int) -> Loss:
    """Return the loss of so many reports, of each of so many devices."""
    if not is_linkable(randomiser):
        report: Loss = randomiser.loss
        return report * (reports * devices)
    price = price_of(randomiser, reports=reports)
    if price is None:
        raise ParameterError(
            "nothing bounds what a second report of this randomiser adds, where values change. "
            "Nothing was charged. Take one whose first is below its epsilon, or let devices "
            "report once.",
            parameter="randomiser",
        )
    return PureLoss(epsilon=price * devices)


def _for_relation(
    loss: Loss, neighbours: Neighbours, *, participation_is_public: bool
) -> tuple[Loss, str]:
    """Return a loss under a relation, and why it is that."""
    if neighbours is Neighbours.replace_one:
        return loss, "as the randomiser states it"
    if neighbours is Neighbours.zero_out and participation_is_public:
        # The null record is one of the device's possible records: it reports for it all the same.
        parts = [PureLoss(epsilon=_carried(part)) * times for part, times in loss.parts]
        return sum(parts[1:], start=parts[0]), "discreet.privacy.convert, claim 3"
    raise ParameterError(_refusal(neighbours), parameter="account")


def _carried(part: Loss) -> Number:
    return convert(
        Guarantee(epsilon=part.epsilon_pure),
        source=Neighbours.replace_one,
        target=Neighbours.zero_out,
        null_is_admissible=True,
    ).epsilon


def _refusal(neighbours: Neighbours) -> str:
    if neighbours is Neighbours.zero_out:
        return (
            "this account counts losses for zero_out, and reports are private for replace_one. "
            "Nothing was charged. If every device reports by a public schedule, whatever its data, "
            "then one carries over to the other: say participation_is_public=True."
        )
    return (
        f"this account counts losses for {neighbours}, and reports are private for replace_one "
        "alone: everybody sees how many there are, so that a device takes part is no secret. "
        "Nothing was charged. Charge an account whose relation is replace_one; make one with: "
        "discreet ledger create NAME --unit column:device --neighbours replace_one --epsilon E"
    )


def today() -> date:
    """Return the day it is, in UTC."""
    return datetime.now(UTC).date()


def labels(dues: Dues, *, opened: date, now: date) -> list[str]:
    """Return the periods that are owed by now, oldest first; an empty one where there are none.

    >>> from discreet.accounting import PureLoss
    >>> daily = Dues(loss=PureLoss(epsilon=1), reports=1, period=Period.day, proof="")
    >>> labels(daily, opened=date(2026, 11, 30), now=date(2026, 11, 30))
    ['2026-11-29', '2026-11-30', '2026-12-01']
    """
    found = (label_of(day, dues) for day in _days(opened - _ONE_DAY, now + _ONE_DAY))
    return list(dict.fromkeys(found))


def label_of(day: date, dues: Dues) -> str:
    """Return the period that a day lies in; an empty text where there are none."""
    return "" if dues.period is None else period_label(day, dues.period)


def _days(first: date, last: date) -> Iterator[date]:
    for day in range((last - first).days + 1):
        yield first + timedelta(days=day)


def pay_dues(account: Account, terms: CollectionTerms, dues: Dues, label: str) -> Receipt:
    """Charge one period, or the whole; again and again, and it is charged once.

    The key is made from the collection's name, which was on the disk before, so that a crash
    between the ledger's entry and ours leaves nothing paid twice.
    """
    return account.charge(
        dues.loss,
        who=terms.who,
        purpose=terms.purpose,
        periods=label or None,
        key=f"local/{terms.parameters.collection}/{label or 'lifetime'}",
    )
