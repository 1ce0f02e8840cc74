"""A declaration states what the policy was; the ledger says what it is."""

import numpy as np
import pytest

from discreet.errors import BudgetExceeded, ParameterError
from discreet.ledger import Ledger
from discreet.privacy import Guarantee, Unit
from discreet.tables import open_tables, protect

PEOPLE = {"person": np.arange(1000), "age": np.arange(1000) % 80}
TERMS = {"name": "people", "unit": "person", "guarantee": Guarantee(epsilon=1, delta=1e-6)}
WHY = {"who": "chris", "reason": "rough answers will do"}
COUNT = "SELECT COUNT(*) AS n FROM people"


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "budget.db") as book:
        yield book


def entries(ledger, *kinds):
    return [entry for entry in ledger.history() if entry["kind"] in kinds]


@pytest.mark.parametrize("stated", [None, "deny", "degrade"])
def test_what_was_protected_is_opened_after_a_change(ledger, tmp_path, stated):
    path, sources = tmp_path / "people.toml", {"people": PEOPLE}
    with protect(PEOPLE, **TERMS, ledger=ledger, policy=stated) as T:
        T.save(path)
        account = T.account
    for policy in ("degrade", "deny", "degrade"):
        account.set_policy(policy, **WHY)
        with open_tables(path, ledger=ledger, sources=sources) as T:
            assert T.account.policy == policy
        with protect(PEOPLE, **TERMS, ledger=ledger, policy=stated) as T:
            assert T.account.policy == policy
            T.save(path)  # as it was declared, not as it is now
    ledger.verify()


def test_a_policy_that_it_never_had_is_a_mistake(ledger):
    with protect(PEOPLE, **TERMS, ledger=ledger) as T:
        with pytest.raises(ParameterError, match="has the policy deny, not degrade"):
            protect(PEOPLE, **TERMS, ledger=ledger, policy="degrade")
        T.account.set_policy("degrade", **WHY)
        protect(PEOPLE, **TERMS, ledger=ledger, policy="degrade").close()
    daily = {**TERMS, "name": "days", "unit": Unit.column("person").per("day", time="day")}
    visits = {**PEOPLE, "day": np.full(1000, np.datetime64("2026-11-15"))}
    with protect(visits, **daily, ledger=ledger, override="other people") as T:
        T.account.set_policy("degrade", **WHY)
    with pytest.raises(ParameterError, match="discreet ledger policy"):
        protect(visits, **daily, ledger=ledger, policy="wait")


def test_open_tables_act_by_a_change_at_once(ledger):
    with protect(PEOPLE, **TERMS, ledger=ledger) as T:
        T.sql(COUNT, epsilon=0.9)
        older = f"{COUNT} WHERE age > 40"
        with pytest.raises(BudgetExceeded) as before:
            T.sql(older, epsilon=0.5)
        T.account.set_policy("degrade", **WHY)
        with pytest.raises(BudgetExceeded) as after:
            T.sql(older, epsilon=0.5)
    assert (before.value.offer is None, after.value.offer is None) == (True, False)


def test_who_protects_is_on_record_where_it_is_said(ledger, tmp_path):
    path = tmp_path / "people.toml"
    with protect(PEOPLE, **TERMS, ledger=ledger, who="chris") as T:
        T.save(path)
    younger = {**PEOPLE, "age": PEOPLE["age"] // 2}
    protect(younger, **TERMS, ledger=ledger, who="dee").close()
    older = {**PEOPLE, "age": PEOPLE["age"] + 1}
    open_tables(path, ledger=ledger, sources={"people": older}, who="ana").close()
    protect(PEOPLE, **{**TERMS, "name": "p2"}, ledger=ledger, override="others").close()
    found = entries(ledger, "account", "source")
    assert [entry.get("who") for entry in found] == ["chris", "dee", None, None]
    assert "who" not in found[2]
    with open_tables(
        path, ledger=ledger, sources={"people": younger}, who="eve", override="they are others"
    ):
        assert entries(ledger, "account", "source")[-1]["who"] == "eve"
    ledger.verify()
