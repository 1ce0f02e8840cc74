"""What a collection costs whom, when it is paid, and what is refused before a file is there."""

from datetime import UTC, date, datetime
from fractions import Fraction

import pytest

from discreet import local
from discreet.accounting import PureLoss, RandomizedResponseLoss
from discreet.errors import BudgetExceeded, DataError, ParameterError
from discreet.ledger import Ledger
from discreet.local.collection import charging
from discreet.local.collection.charging import dues_of, labels
from discreet.local.collection.collection import Collection
from discreet.local.repeated.exposure import exposure
from discreet.local.wire import encode, parameters_of
from discreet.local.wire.kinds import KINDS
from discreet.privacy import Neighbours, Unit

SMALL = {
    kind.name: kind.type(
        **({"domain": 8} | dict.fromkeys(set(kind.whole) - {"domain"}, 1)),
        **dict(zip(kind.ratios, (2, 1), strict=False)),
    )
    for kind in KINDS
}


def asked(*, randomiser=None, a_day=2, lifetime=30):
    randomiser = local.HadamardResponse(domain=8, epsilon=1) if randomiser is None else randomiser
    return parameters_of(randomiser, name="emoji", a_day=a_day, lifetime=lifetime)


def dues(parameters, *, unit="device", neighbours="replace_one", public=False):
    return dues_of(
        parameters,
        unit=Unit.of(unit),
        neighbours=Neighbours(neighbours),
        participation_is_public=public,
    )


def test_a_device_is_charged_as_many_reports_as_its_lifetime_has_room_for():
    found = dues(asked(lifetime=Fraction(79, 2)))
    assert (found.reports, found.loss) == (39, PureLoss(epsilon=1) * 39)
    direct = local.DirectResponse(domain=3, epsilon=2)
    found = dues(asked(randomiser=direct, lifetime=6))
    assert found.loss == RandomizedResponseLoss(epsilon=direct.loss.epsilon, categories=3) * 3


def test_devices_that_are_protected_together_add_up():
    assert dues(asked(), unit=Unit.column("device").group(3)).reports == 90


@pytest.mark.parametrize(
    ("period", "reports"), [("day", 2), ("week", 14), ("month", 30), ("year", 30)]
)
def test_a_period_is_charged_what_a_device_may_say_in_it(period, reports):
    assert dues(asked(), unit=Unit.column("device").per(period)).reports == reports


def test_zeroing_out_is_one_of_the_replacements_if_participation_is_public():
    with pytest.raises(ParameterError, match="participation_is_public=True"):
        dues(asked(), neighbours="zero_out")
    direct = asked(randomiser=local.DirectResponse(domain=3, epsilon=2))
    found = dues(direct, neighbours="zero_out", public=True)
    # A loss that speaks of replace-one alone would be refused by such an account.
    assert {loss.relation for loss, _ in found.loss.parts} == {None}
    assert found.loss.epsilon_pure == 15 * Fraction(direct.randomiser.loss.epsilon)
    assert "claim 3" in found.proof


@pytest.mark.parametrize("public", [False, True])
def test_adding_and_removing_is_refused_since_everybody_counts_reports(public):
    with pytest.raises(ParameterError, match="replace_one --epsilon E"):
        dues(asked(), neighbours="add_remove", public=public)


def test_a_household_has_nobody_knows_how_many_devices():
    with pytest.raises(ParameterError, match="how many devices a household has"):
        dues(asked(), unit=Unit.household("home"))


def test_every_period_is_owed_that_a_clock_off_by_a_day_may_say():
    daily = dues(asked(), unit=Unit.column("device").per("day"))
    assert labels(daily, opened=date(2026, 3, 1), now=date(2026, 3, 2)) == [
        *("2026-02-28", "2026-03-01", "2026-03-02", "2026-03-03")
    ]
    monthly = dues(asked(), unit=Unit.column("device").per("month"))
    assert labels(monthly, opened=date(2026, 3, 5), now=date(2026, 3, 30)) == ["2026-03"]
    assert labels(monthly, opened=date(2026, 3, 5), now=date(2026, 3, 31)) == ["2026-03", "2026-04"]
    assert labels(dues(asked()), opened=date(2026, 3, 5), now=date(2026, 4, 5)) == [""]


def test_the_lifetime_is_charged_once_before_there_is_a_report(make_account, open_collection):
    account = make_account()
    first = open_collection()
    assert account.used == 1.0
    first.take(encode(first.parameters, [0, 1]))
    again = open_collection()
    assert again.parameters == first.parameters
    kinds = [entry["kind"] for entry in account.history()]
    assert kinds == ["account", "charge"]
    assert first.charges[""].entries[0]["who"] == "ana"


def test_two_collections_of_one_account_add_up(make_account, open_collection):
    account = make_account(epsilon=15)
    open_collection()
    with pytest.raises(BudgetExceeded):
        open_collection("second.db", name="second")
    assert account.used == pytest.approx(2 / 3)


def test_nothing_is_left_behind_where_an_account_refuses(make_account, open_collection, tmp_path):
    make_account("few", epsilon=9)
    make_account("secret", neighbours="add_remove", epsilon=50)
    before = set(tmp_path.iterdir())
    with pytest.raises(BudgetExceeded):
        open_collection(account="few")
    with pytest.raises(ParameterError):
        open_collection(account="secret")
    assert set(tmp_path.iterdir()) == before


def test_zero_out_accounts_pay_once_it_is_said(make_account, open_collection):
    account = make_account(neighbours="zero_out")
    with pytest.raises(ParameterError, match="public schedule"):
        open_collection()
    direct = local.DirectResponse(domain=4, epsilon=2)
    open_collection(randomiser=direct, participation_is_public=True)
    assert account.used == pytest.approx(1)


def test_each_day_is_paid_as_it_begins_and_a_spent_one_takes_no_reports(
    make_account, open_collection, monkeypatch
):
    account = make_account(unit=Unit.column("device").per("day"), epsilon=2)
    monkeypatch.setattr(charging, "today", lambda: date(2026, 3, 1))
    collection = open_collection()
    assert list(collection.charges) == ["2026-02-28", "2026-03-01", "2026-03-02"]
    reports = encode(collection.parameters, [0, 1, 2])
    monkeypatch.setattr(charging, "today", lambda: date(2026, 3, 3))
    collection.take(reports[:1])
    assert list(collection.charges)[-2:] == ["2026-03-03", "2026-03-04"]
    account.charge(PureLoss(epsilon=1), who="bea", purpose="other", periods="2026-03-05")
    monkeypatch.setattr(charging, "today", lambda: date(2026, 3, 4))
    with pytest.raises(BudgetExceeded):
        collection.take(reports[1:])
    assert collection.counts["accepted"] == 1


def test_a_crash_between_the_ledger_and_the_file_pays_nothing_twice(
    make_account, open_collection, monkeypatch, ledger, tmp_path
):
    account = make_account()

    def crash(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr("discreet.local.collection.file.ReportFile.add_charge", crash)
        with pytest.raises(KeyboardInterrupt):
            open_collection()
    assert account.used == 1.0
    with Collection.resume(ledger, tmp_path / "emoji.db") as found:
        assert list(found.charges) == [""]
    assert [entry["kind"] for entry in account.history()] == ["account", "charge"]


def test_another_ledger_does_not_take_over(collection, tmp_path):
    with Ledger.open(tmp_path / "other.db") as other:
        with pytest.raises(DataError, match="is paid for in the ledger"):
            Collection.resume(other, collection.path)
        assert other.size == 1


def test_what_was_declared_cannot_change(collection, open_collection):
    with pytest.raises(ParameterError, match="declared otherwise"):
        open_collection(minimum=50)


KEPT = local.RepeatedDirect(domain=4, epsilon=3, first=1)


def test_kept_responses_are_charged_for_any_two_histories():
    daily = dues(asked(randomiser=KEPT, a_day=1, lifetime=6), unit=Unit.column("device").per("day"))
    assert (daily.reports, daily.loss) == (1, KEPT.first_loss)
    weekly = dues(
        asked(randomiser=KEPT, a_day=1, lifetime=6), unit=Unit.column("device").per("week")
    )
    seven = exposure(KEPT, days=7).anything
    assert float(weekly.loss.epsilon_pure) == pytest.approx(seven)


def test_kept_responses_need_an_end_where_devices_are_protected_for_ever():
    with pytest.raises(ParameterError, match="answer for ever"):
        dues(asked(randomiser=KEPT, a_day=1, lifetime=6))
    march = {"not_before": datetime(2026, 3, 1, tzinfo=UTC)}
    march["not_after"] = datetime(2026, 3, 5, tzinfo=UTC)
    ended = parameters_of(KEPT, name="emoji", a_day=1, lifetime=6, **march)
    assert dues(ended).reports == 7  # five days, and a clock may be off by one
    assert float(dues(ended).loss.epsilon_pure) == pytest.approx(exposure(KEPT, days=7).anything)
    bare = local.RepeatedDirect(domain=4, epsilon=2, first=2)
    with pytest.raises(ParameterError, match="nothing bounds"):
        dues(parameters_of(bare, name="emoji", a_day=2, lifetime=6, **march))


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_every_kind_that_travels_can_be_collected(kind, make_account, open_collection):
    randomiser = SMALL[kind]
    make_account(unit=Unit.column("device").per("day"), epsilon=10)
    collection = open_collection(randomiser=randomiser, a_day=3, lifetime=6, minimum=10)
    collection.take(encode(collection.parameters, randomiser.release([1] * 20)))
    published = collection.publish()
    assert published.n == 20
    assert published.numbers["counts"].size == randomiser.domain
    assert collection.prove(published).is_proven
    published.card()
