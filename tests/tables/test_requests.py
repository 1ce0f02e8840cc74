"""What a host of tables leans on: keys of requests, the moment of payment, whose memory it is."""

import pytest

import discreet
from discreet import datasets
from discreet.errors import AlreadyCharged, DataError, ParameterError
from discreet.tables import protect

COUNT = "SELECT COUNT(*) AS n FROM people"
PARTS = "SELECT 100 * (SELECT COUNT(*) FROM people WHERE age > 40) / COUNT(*) AS p FROM people"


@pytest.fixture
def people(tmp_path):
    with protect(
        datasets.census(2000, seed=5),
        name="people",
        unit="person_id",
        rows=1,
        guarantee=discreet.Guarantee(epsilon=30, delta=1e-6),
        ledger=tmp_path / "budget.db",
        columns={"income": {"bounds": (0, 200_000)}, "age": {"bounds": (0, 20)}},
    ) as tables:
        yield tables


def test_a_repeated_request_gets_its_answer_and_pays_once(people):
    first = people.sql(COUNT, epsilon=0.5, key="request 1")
    again = people.sql(COUNT, epsilon=0.5, key="request 1")
    assert again.value == first.value
    assert again.is_recalled
    assert [e["kind"] for e in people.account.history()][-2:] == ["charge", "release"]


def test_a_request_whose_answer_was_lost_is_not_charged_again(people):
    def crash(parts):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        people.sql(COUNT, epsilon=0.5, key="request 1", on_paid=crash)
    used = people.account.used
    with pytest.raises(AlreadyCharged, match="Nothing was spent again") as refusal:
        people.sql(COUNT, epsilon=0.5, key="request 1")
    assert people.account.history()[-1]["index"] == refusal.value.entry
    assert people.account.used == used
    people.sql(COUNT, epsilon=0.5, key="request 2")
    assert people.account.used > used


def test_a_key_belongs_to_one_request(people):
    people.sql(COUNT, epsilon=0.5, key="request 1")
    used = people.account.used
    with pytest.raises(ParameterError, match="belongs to another request"):
        people.sql(COUNT + " WHERE age > 30", epsilon=0.7, key="request 1")
    assert people.account.used == used


def test_every_release_of_a_plan_has_a_key_of_its_own(people):
    questions = [COUNT, "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"]
    people.plan(questions, epsilon=1, key="plan 1").release()
    with pytest.raises(AlreadyCharged):
        people.plan(questions, epsilon=1, key="plan 1").release()


@pytest.mark.parametrize(("question", "parts"), [(COUNT, 1), (PARTS, 2)])
def test_the_moment_of_payment_is_after_the_charge_and_before_the_data(people, question, parts):
    seen = []

    def on_paid(number):
        seen.append((number, people.account.history()[-1]["kind"]))

    people.sql(question, epsilon=0.5, on_paid=on_paid)
    people.sql(question, epsilon=0.5, on_paid=on_paid)  # recalled: nothing is paid
    assert seen == [(parts, "charge")]


def test_a_host_limits_the_seconds_of_what_was_paid_for(people):
    with pytest.raises(DataError, match="The charge stands"):
        people.sql(COUNT, epsilon=0.5, on_paid=lambda parts: 1e-9)
    assert people.account.history()[-1]["kind"] == "charge"
    assert people.sql(COUNT, epsilon=0.5, on_paid=lambda parts: 60.0).value > 0


def test_what_one_analyst_was_told_is_not_told_another(people):
    """Hints about bounds follow from what was released, so from who saw it."""
    people.sql("SELECT MEDIAN(age) AS half FROM people", epsilon=5, who="ana")
    question = "SELECT AVG(age) AS mean FROM people"
    told = {who: people.quote(question, share="1%", who=who).notes for who in ("ana", "ben")}
    assert any("look tight" in note for note in told["ana"])
    assert told["ben"] == ()


def test_a_count_that_one_analyst_was_told_does_not_refuse_another(people):
    few = "SELECT AVG(hours) AS a FROM people"
    noisy = people.sql(COUNT, epsilon=5, who="ana")
    assert noisy.value > 1000
    told = {who: people.quote(few, epsilon=1e-3, who=who).notes for who in ("ana", "ben")}
    assert any("would be refused" in note for note in told["ana"])
    assert not any("would be refused" in note for note in told["ben"])
