"""Entries of bad form, by a program with the key that checks nothing."""

from contextlib import suppress

import pytest
from ledger_requests import ASKED, charge_of, copied, make_account, resigned, submit

from discreet.accounting import FilterRules, PureLoss
from discreet.errors import (
    DiscreetError,
    ParameterError,
    TamperingFound,
)
from discreet.ledger import Ledger
from discreet.ledger.writing import scribe
from discreet.ledger.writing.request import new_key
from discreet.privacy import Guarantee, Unit

ARABIC = {ord("0") + n: 0x0660 + n for n in range(10)}  # digits that int() reads, too


WIDE = {ord("0") + n: 0xFF10 + n for n in range(10)}


WHY = {"who": "ana", "reason": "why"}


BAD_CHARGES = {
    "by nobody": {"who": ""},
    "by None": {"who": None},
    "by a number": {"who": 3},
    "by each": {"who": "*"},
    "by two lines": {"who": "ana\nbo"},
    "with a space behind the name": {"who": "ana "},
    "for nothing": {"purpose": ""},
    "for None": {"purpose": None},
    "of no loss": {"loss": "pure"},
    "with other noise": {"noise": "mine"},
    "of a question in clear text": {"query": "SELECT 1"},
    "with a member more": {"note": "x"},
    "of an account by number": {"account": 3},
    "of another kind": {"kind": "gift"},
    "of no kind": {"kind": None},
    "of a list of kinds": {"kind": ["charge"]},
    "with its outcome": {"after": {"total": "0 0"}},
    "with an empty key": {"key": ""},
    "with a number as key": {"key": 5},
    "of no period": {"account": "days"},
    "of an empty period": {"account": "days", "periods": []},
    "of a period without a list": {"account": "days", "periods": "2026-11-15"},
    "of a period with a tail": {"account": "days", "periods": ["2026-11-15x"]},
    "of a period in other digits": {"account": "days", "periods": ["2026-11-15".translate(ARABIC)]},
    "of anything": {"account": "days", "periods": ["anything"]},
    "of a period twice": {"account": "days", "periods": ["2026-11-15", "2026-11-15"]},
    "of a call that is none": {"call": "mine"},
    "of a period where there is none": {"periods": ["2026-11-15"]},
}


def other_entries() -> dict[str, dict]:
    rules = FilterRules(Guarantee(epsilon=1), neighbours="add_remove")
    wide = rules.widened(Guarantee(epsilon=1000)).settings
    loose = FilterRules(Guarantee(epsilon=1)).settings
    limit = {"kind": "budget", "account": "a", "filter": wide}
    spend = {"kind": "spend", "account": "a", "job": 3}
    opening = {
        "kind": "account",
        "name": "new",
        "unit": Unit.record().to_dict(),
        "neighbours": "add_remove",
        "policy": "deny",
        "filter": rules.settings,
        "sources": [],
    }
    source = {"name": "s", "version": "1", "identities": ["0" * 64]}
    register = {"kind": "source", "account": "a"}
    release = {
        "kind": "release",
        "account": "a",
        "charge": 4,
        "answer": "0" * 64,
        "plan": "0" * 64,
        "code": "x",
        "key": "release/4",
    }
    set_policy = {"kind": "policy", "account": "a", "policy": "degrade", **WHY}
    act = {"kind": "act", "act": "key.created", "subject": "ana-1", "who": "ana"}
    founding = {"kind": "ledger", "format": 1, "origin": "x", "vkey": "x", "testing": True}
    return {
        "a limit that is none": {**limit, "line": "x"},
        "a limit of nobody": {**limit, "line": "analyst="},
        "a limit in another order": {**limit, "line": "every=month,analyst=ana"},
        "a limit with a tail": {**limit, "line": "analyst=ana,x=1"},
        "a limit of the total": {**limit, "line": "total"},
        "a limit by nobody": {**limit, "line": "analyst=ana", "who": " "},
        "a limit without neighbours": {**limit, "line": "analyst=ana", "filter": loose},
        "half a step": {**spend, "steps": [0.5]},
        "a true step": {**spend, "steps": [True]},
        "next to no step": {**spend, "steps": [1e-30]},
        "no step": {**spend, "steps": [0]},
        "a step back": {**spend, "steps": [-1]},
        "no steps": {**spend, "steps": []},
        "steps of another job": {**spend, "steps": [1, 1]},
        "a step too many": {**spend, "steps": [3]},
        "a step of a job that is not": {**spend, "steps": [1], "job": 4},
        "a step of a true job": {**spend, "steps": [1], "job": True},
        "the end of a job that is not": {"kind": "settle", "account": "a", "job": 4},
        "an account with a slash": {**opening, "name": "q/total"},
        "an account without a name": {**opening, "name": ""},
        "an account that waits for nothing": {**opening, "policy": "wait"},
        "an account of no policy": {**opening, "policy": "never"},
        "an account by nobody": {**opening, "who": ""},
        "an account for a reason": {**opening, "reason": "why"},
        "an account without neighbours": {**opening, "filter": loose},
        "an account of other neighbours": {**opening, "neighbours": "replace_one"},
        "an account without a unit": {**opening, "unit": {}},
        "an account with a bad source": {**opening, "sources": [{"bad": 1}]},
        "a second account": {**opening, "name": "a"},
        "a source in clear text": {**register, "source": {**source, "identities": ["x"]}},
        "a source of nothing": {**register, "source": {**source, "identities": []}},
        "a source with more": {**register, "source": {**source, "more": 1}},
        "a source by nobody": {**register, "source": source, "who": None},
        "a source for no reason": {**register, "source": source, "override": ""},
        "a release of a true charge": {**release, "charge": True},
        "a release of a limit": {**release, "charge": 1, "key": "release/1"},
        "a release under another key": {**release, "key": "release/x"},
        "a release of a charge to come": {**release, "charge": 99, "key": "release/99"},
        "a release of an unstarted job": {**release, "charge": 3, "key": "release/3"},
        "a release of a bad digest": {**release, "answer": "x"},
        "a second founding": founding,
        "a witness of nothing": {"kind": "witness", "note": "x", "vkey": "x"},
        "a rotation by nobody": {"kind": "rotate", "vkey": "x", "by_old": "", "by_new": ""},
        "a clock for no reason": {"kind": "clock", "who": "ana", "reason": ""},
        "a policy that waits for nothing": {**set_policy, "policy": "wait"},
        "a policy of no name": {**set_policy, "policy": "never"},
        "a policy of a list": {**set_policy, "policy": ["deny"]},
        "a policy by nobody": {**set_policy, "who": ""},
        "a policy for no reason": {**set_policy, "reason": ""},
        "a policy of no account": {**set_policy, "account": "nobody"},
        "a policy with more": {**set_policy, "subject": "x"},
        "an act by nobody": {**act, "who": ""},
        "an act of each": {**act, "who": "*"},
        "an act in one word": {**act, "act": "created"},
        "an act in three words": {**act, "act": "key.was.created"},
        "an act in capitals": {**act, "act": "Key.created"},
        "an act in other letters": {**act, "act": "kéy.created"},
        "an act with a line more": {**act, "act": "key.created\n"},
        "an act with numbers": {**act, "act": "key.1"},
        "an act of many letters": {**act, "act": f"key.{'x' * 37}"},
        "an act on nothing": {**act, "subject": ""},
        "an act on a number": {**act, "subject": 3},
        "an act on much": {**act, "subject": "x" * 129},
        "an act on two lines": {**act, "subject": "x\ny"},
        "an act for no reason": {**act, "reason": ""},
        "an act of no account": {**act, "account": "nobody"},
        "an act of a bad account": {**act, "account": "a/b"},
        "an act of None": {**act, "account": None},
        "an act with a budget": {**act, "after": {"total": "0 0"}},
        "an act with more": {**act, "note": "x"},
    }


BAD_ENTRIES = {
    **{f"a charge {name}": charge_of() | bad for name, bad in BAD_CHARGES.items()},
    **{name: {"key": new_key(), **bad} for name, bad in other_entries().items()},
}


for name in ("who", "purpose", "loss", "noise", "account", "kind", "pricing", "key"):
    BAD_ENTRIES[f"a charge without {name}"] = charge_of()
    del BAD_ENTRIES[f"a charge without {name}"][name]


GOOD_ENTRIES = {
    "policy": {"kind": "policy", "account": "a", "policy": "degrade", "key": "x", **WHY},
    "act": {"kind": "act", "act": "key.created", "subject": "ana-1", "who": "ana", "key": "x"},
}


for kind, good in GOOD_ENTRIES.items():
    for name in good:
        BAD_ENTRIES[f"{kind} without {name}"] = {n: v for n, v in good.items() if n != name}


CHANGES = {
    "who": lambda e: e.update(who=""),
    "who is None": lambda e: e.update(who=None),
    "no who": lambda e: e.pop("who"),
    "purpose": lambda e: e.update(purpose=" "),
    "more": lambda e: e.update(more=1),
    "time": lambda e: e.update(time=e["time"][:-1]),
    "time with other digits": lambda e: e.update(time=e["time"].translate(ARABIC)),
    "noise": lambda e: e.update(noise=None),
    "pricing": lambda e: e.update(pricing=True),
    "no pricing": lambda e: e.pop("pricing"),
    "after": lambda e: e.update(after={"total": 5}),
    "after of no budget": lambda e: e.update(after={}),
    "after in part": lambda e: e.update(after={"total": e["after"]["total"].split()[0]}),
    "key": lambda e: e.update(key=None),
    "kind": lambda e: e.update(kind="gift"),
    "a kind that is no text": lambda e: e.update(kind=[]),
    "account": lambda e: e.update(account=None),
    "loss": lambda e: e.update(loss=[]),
    "loss of nothing": lambda e: e.update(loss={}),
    "query": lambda e: e.update(query="how many"),
    "periods": lambda e: e.update(periods=["2026-11-15"]),
}


class TestEntriesOfBadForm:
    @pytest.mark.parametrize("name", BAD_ENTRIES)
    def test_it_is_not_written(self, furnished, name):
        size, used = furnished.size, furnished["a"].used
        with pytest.raises(DiscreetError):
            submit(furnished, BAD_ENTRIES[name])
        assert furnished.size == size
        assert furnished["a"].used == used
        furnished.verify()
        furnished["a"].charge(PureLoss(epsilon=0.1), **ASKED)  # and goes on

    def test_good_ones_are_written(self, furnished):
        """Otherwise the test above would show nothing."""
        submit(furnished, charge_of())
        submit(furnished, charge_of("days", periods=["2026-11-15"]))
        submit(furnished, {"kind": "spend", "account": "a", "job": 3, "steps": [1], "key": "x"})
        for kind, good in GOOD_ENTRIES.items():
            submit(furnished, {**good, "key": kind})
        longest = {"act": f"key.{'x' * 36}", "subject": "x" * 128, "reason": "why", "account": "a"}
        submit(furnished, {**GOOD_ENTRIES["act"], **longest, "key": "longest"})
        assert furnished.verify().size == 12

    @pytest.mark.lengthy
    def test_a_program_that_does_not_check_is_found_out(self, template, monkeypatch, path):
        """Everything it writes fits together and is signed; only the form is wrong."""
        written, missed = 0, []
        for number, (name, bad) in enumerate(BAD_ENTRIES.items()):
            place = copied(template, path.with_name(f"{number}.db"))
            with Ledger.open(place) as hacked:
                with monkeypatch.context() as patch, suppress(Exception):
                    patch.setattr(scribe, "check_form", lambda entry, *, is_new: None)
                    submit(hacked, bad)
                if hacked.size == 6:
                    continue  # a rule refuses it, too
                written += 1
                try:
                    hacked.verify()
                except TamperingFound as error:
                    missed += [f"{name}: blamed {error.entry}"] if error.entry != 6 else []
                else:
                    missed.append(name)
        assert not missed, "\n".join(missed)
        assert written >= 15

    @pytest.mark.parametrize("name", CHANGES)
    def test_it_is_not_verified_in_a_history_signed_anew(self, furnished, path, name):
        furnished.close()
        resigned(path, lambda bodies: CHANGES[name](bodies[4]))
        with Ledger.open(path, read_only=True) as ledger, pytest.raises(TamperingFound) as error:
            ledger.verify()
        assert error.value.entry == 4

    def test_a_history_signed_anew_without_a_change_is_verified(self, furnished, path):
        furnished.close()
        resigned(path, lambda bodies: None)
        with Ledger.open(path) as ledger:
            assert ledger.verify().size == 6

    @pytest.mark.parametrize(
        "label", ["2026-11-15x", "anything", "2026-11-15".translate(ARABIC), "2026-11-31"]
    )
    def test_a_period_of_another_name_is_not_verified(self, furnished, path, label):
        furnished["days"].charge(PureLoss(epsilon=1), periods="2026-11-15", **ASKED)

        def rename(bodies):
            (after,) = bodies[6]["after"].values()
            bodies[6] |= {"periods": [label], "after": {f"total:{label}": after}}

        furnished.close()
        resigned(path, rename)
        with Ledger.open(path, read_only=True) as ledger, pytest.raises(TamperingFound) as error:
            ledger.verify()
        assert error.value.entry == 6

    @pytest.mark.parametrize("steps", [[0.5], [True], [1e-30], [0], [2, 0], [-1]])
    def test_steps_of_bad_form_are_not_verified(self, furnished, path, steps):
        furnished["a"].resume(3).spend(PureLoss(epsilon=0.1))
        furnished.close()
        resigned(path, lambda bodies: bodies[6].update(steps=steps))
        with Ledger.open(path, read_only=True) as ledger, pytest.raises(TamperingFound) as error:
            ledger.verify()
        assert error.value.entry == 6

    @pytest.mark.parametrize(
        ("unit", "label", "others"),
        [
            ("week", "2026-W46", ["2026-W54", "2026-w46", "2026-W046"]),
            ("day", "2026-11-15", ["20261115", "2026-11-15 ", "2026-W46-7"]),
            ("month", "2026-11", ["2026-13", "2026-11-15", "202611"]),
            ("year", "2026", ["26", "+2026", "0000"]),
        ],
    )
    def test_a_period_has_one_name_only(self, ledger, unit, label, others):
        account = make_account(ledger, unit=Unit.column("user").per(unit))
        account.charge(PureLoss(epsilon=1), periods=label, **ASKED)
        digits = [label.translate(ARABIC), label.translate(WIDE), label[:-1] + "\uff16"]
        for other in (*others, *digits):
            with pytest.raises(ParameterError):
                account.charge(PureLoss(epsilon=1), periods=other, **ASKED)
        assert [budget.name for budget in account.budgets()] == [f"total:{label}"]
