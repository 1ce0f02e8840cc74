"""What only a gateway has: logins, datasets, jobs, budgets of others, receipts of others."""

import pytest

import discreet
from discreet.client import RemoteBudget
from discreet.errors import (
    AccountNotFound,
    DiscreetError,
    NotAllowed,
    ParameterError,
    Refused,
    TryLater,
    Unauthenticated,
)
from discreet.noise import SYSTEM
from discreet.testing import SeededSource

COUNT = "SELECT COUNT(*) AS n FROM people"


def test_a_login_that_sees_one_dataset_need_not_name_it(both):
    with both.remote("scoped", dataset=None) as tables:
        assert tables.name == "others"
        assert tables.datasets() == ["others"]
    with pytest.raises(ParameterError, match="one of others, people") as found:
        both.remote("ana", dataset=None)
    assert found.value.parameter == "dataset"
    with pytest.raises(AccountNotFound):
        both.remote("ana", dataset="nowhere")
    with pytest.raises(AccountNotFound):
        both.remote("scoped", dataset="people")
    for wrong in ("", "..", "a/b", 7):
        with pytest.raises(ParameterError):
            both.remote("ana", dataset=wrong)


def test_strangers_and_those_without_the_role_are_told_so(both):
    with pytest.raises(Unauthenticated):
        discreet.connect(both.url, token="dk_nobody", dataset="people")
    with both.remote("chris") as tables, pytest.raises(NotAllowed, match="analyst"):
        tables.quote(COUNT, epsilon=1)


def test_what_the_gateway_decides_cannot_be_said(both):
    with both.remote() as tables:
        for act in (tables.quote, tables.sql, tables.begin):
            with pytest.raises(ParameterError) as found:
                act(COUNT, epsilon=1, who="ben")
            assert found.value.parameter == "who"
        for act in (tables.sql, lambda *a, **k: tables.plan([COUNT], **k)):
            with pytest.raises(ParameterError) as found:
                act(COUNT, epsilon=1, source=SeededSource(1))
            assert found.value.parameter == "source"
        with pytest.raises(ParameterError):
            tables.agg(n=discreet.tables.count()).release(epsilon=1, source=SeededSource(1))
        assert tables.sql(COUNT, epsilon=1, source=SYSTEM).columns == ("n",)
        for key in ("", "a" * 101, "caf\xe9", " x", 7):
            with pytest.raises(ParameterError) as found:
                tables.sql(COUNT, epsilon=1, key=key)
            assert found.value.parameter == "key"
        for act in (tables.begin, lambda q, **k: tables.plan([q], **k)):
            with pytest.raises(ParameterError, match="key= is for a single question"):
                act(COUNT, epsilon=1, key="mine")
        with pytest.raises(ParameterError, match="must be SQL"):
            tables.sql(7, epsilon=1)


def test_the_login_is_who_asked_and_the_purpose_is_kept(both):
    with both.remote("ben", purpose="a report") as tables:
        answer = tables.sql(f"{COUNT} WHERE age > 31", epsilon=1)
        other = tables.sql(f"{COUNT} WHERE age > 32", epsilon=1, purpose="another")
    said = [(one.receipt.entries[0]["who"], one.receipt.entries[0]["purpose"])
            for one in (answer, other)]  # fmt: skip
    assert said == [("ben", "a report"), ("ben", "another")]


def test_jobs_are_answered_refused_and_found_again(both):
    with both.remote() as tables:
        job = tables.begin(f"{COUNT} WHERE age > 33", epsilon=1)
        answer = job.result(timeout=30)
        assert job.state == "done"
        assert tables.job(job.id).result(timeout=30).to_json() == answer.to_json()
        assert tables.receipt(answer).is_proven
        refused = tables.begin("SELECT * FROM people", epsilon=1)
        with pytest.raises(Refused) as found:
            refused.result()
        assert found.value.code == "star"
        with pytest.raises(AccountNotFound):
            tables.job("../../me").result()
    with both.remote("ben") as tables, pytest.raises(AccountNotFound):
        _ = tables.job(job.id).state


def test_a_job_that_takes_longer_is_waited_for_again(both, monkeypatch):
    with both.remote() as tables:
        job = tables.begin(f"{COUNT} WHERE age > 34", epsilon=1)
        seen = job._wire.call
        monkeypatch.setattr(
            type(job._wire), "call",
            lambda self, call: {"id": job.id, "state": "running"},
        )  # fmt: skip
        with pytest.raises(TryLater, match="still running"):
            job.result(timeout=0.1)
        monkeypatch.undo()
        assert seen is not None
        assert len(job.result(timeout=30)) == 1


def test_budgets_are_those_that_the_login_draws_on(both):
    with both.remote() as tables:
        (total,) = tables.budgets()
        assert total.name == "total"
        assert total.guarantee is None
        assert total.used == pytest.approx(1 - tables.remaining)
    with both.remote("audrey") as tables:
        (total,) = tables.budgets()
        assert total.guarantee == discreet.Guarantee(epsilon=1000, delta=1e-6)
        assert type(total) is RemoteBudget
        assert total.held == 0


def test_what_is_public_is_described(both):
    with both.remote() as tables:
        told = tables.describe()
    assert told["unit"] == "all records of one person"
    bounds = {one["name"]: one["bounds"] for one in told["tables"][0]["columns"]}
    assert bounds["income"] == [0, 100_000]


def test_receipts_are_for_those_who_were_given_the_answer(both):
    asked = f"{COUNT} WHERE age > 35"
    with both.remote("ana") as ana, both.remote("ben") as ben, both.remote("audrey") as audrey:
        first = ana.sql(asked, epsilon=1)
        with pytest.raises(AccountNotFound):
            ben.receipt(first)
        same = ben.sql(asked, epsilon=1)
        assert same.is_recalled
        assert same.value == first.value
        mine = ben.receipt(same)  # that ben asked
        assert [one["kind"] for one in mine.entries] == ["charge", "release", "reask"]
        with pytest.raises(AccountNotFound):  # who else was given an answer is nobody's business
            ana.receipt(mine.entries[-1]["index"])
        assert ben.receipt(first).is_proven  # and what came of it: it was given to ben as well
        assert audrey.receipt(first.receipt.index).is_proven
        with pytest.raises(AccountNotFound):
            ben.receipt(ana.sql(f"{COUNT} WHERE age > 33", epsilon=1))
        with pytest.raises(ParameterError):
            ana.receipt("7")


def test_the_log_is_watched(both):
    with both.remote() as tables:
        kept = tables.checkpoint()
        first = tables.verify_log()
        tables.sql(f"{COUNT} WHERE age > 36", epsilon=1)
        then = tables.verify_log()
        assert then.size == first.size + 2
        assert tables.verify_log().size == then.size
    with both.remote(vkey=tables.vkey) as tables:
        assert tables.verify_log(since=kept).size == then.size
        with pytest.raises(DiscreetError, match="not a signed note"):
            tables.verify_log(since="nonsense")


@pytest.mark.lengthy
def test_another_ledger_is_noticed(both, tmp_path, make_places):
    with both.remote() as tables:
        kept, vkey = tables.checkpoint(), tables.vkey
    with (
        make_places(tmp_path) as made,
        made.remote(vkey=vkey) as tables,
    ):
        for act in (
            tables.checkpoint,
            tables.verify_log,
            lambda: tables.verify_log(since=kept),
            lambda: tables.receipt(tables.sql(COUNT, epsilon=1)),
        ):
            with pytest.raises(discreet.errors.TamperingFound):
                act()


def test_the_token_shows_nowhere(both, caplog):
    token = both.site.keys["ana"]
    with both.remote() as tables:
        question = tables.where("age > 37").agg(n=discreet.tables.count())
        shown = [
            tables,
            question,
            tables._wire,
            tables._wire._token,
            tables.plan([COUNT], epsilon=1),
        ]
        shown += [tables.begin(COUNT, epsilon=1), vars(tables), vars(tables._wire)]
        with pytest.raises(DiscreetError) as found:
            tables.sql("SELECT", epsilon=1)
        shown += [found.value, found.getrepr()]
        assert not [one for one in shown if token in repr(one) or token in str(one)]
    assert token not in caplog.text
    for wrong in ("", "two words", "a\nb", "caf\xe9", 7, None):
        with pytest.raises(ParameterError) as found:
            discreet.connect(both.url, token=wrong, dataset="people")
        assert found.value.parameter == "token"
    with pytest.raises(TypeError):
        __import__("pickle").dumps(tables._wire._token)
