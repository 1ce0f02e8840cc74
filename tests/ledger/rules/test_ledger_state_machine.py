"""Random stories told to a ledger and to a model of a few lines, which must agree throughout."""

import shutil
import tempfile
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from discreet.accounting import PureLoss
from discreet.errors import BudgetExceeded, ParameterError
from discreet.ledger import Ledger
from discreet.privacy import Guarantee, Unit

pytestmark = pytest.mark.lengthy

ANALYSTS = ("ana", "bob")
PURPOSES = ("report", "model")
amounts = st.fractions(min_value=0, max_value=Fraction(1, 4), max_denominator=20)
people = st.sampled_from(ANALYSTS)
purposes = st.sampled_from(PURPOSES)


class Stories(RuleBasedStateMachine):
    """A pure account: its budgets are sums of fractions, and nothing else."""

    def make(self):
        self.folder = Path(tempfile.mkdtemp())
        return str(self.folder / "budget.db"), str(self.folder / "budget.db.key")

    def __init__(self):
        super().__init__()
        self.location, self.key = self.make()
        self.ledger = Ledger.open(self.location, key=self.key)
        self.account = self.ledger.create(
            "people",
            unit=Unit.record(),
            neighbours="add_remove",
            guarantee=Guarantee(epsilon=1),
        )
        self.entries = 2
        self.policies = ["deny"]
        self.limits = {"total": Fraction(1)}
        self.taken = {"total": Fraction(0)}
        self.repeats = []  # requests with a key, and what they were answered
        self.jobs = []  # [job, step, budgets]
        self.answers = {}  # question -> [bytes, analysts, budgets that paid]

    def budgets(self, who, purpose):
        return [n for n in ("total", f"analyst={who}", f"purpose={purpose}") if n in self.limits]

    def fits(self, budgets, amount):
        return all(self.taken[name] + amount <= self.limits[name] for name in budgets)

    def take(self, budgets, amount):
        for name in budgets:
            self.taken[name] += amount

    @contextmanager
    def expecting(self, fits):
        if fits:
            yield
            self.entries += 1
        else:
            with pytest.raises(BudgetExceeded) as refused:
                yield
            assert refused.value.offer is None or self.policies[-1] == "degrade"

    @rule(amount=amounts, who=people, purpose=purposes)
    def charge(self, amount, who, purpose):
        budgets = self.budgets(who, purpose)
        fits = self.fits(budgets, amount)
        quote = self.account.quote(PureLoss(epsilon=amount), who=who, purpose=purpose)
        assert bool(quote) == fits
        with self.expecting(fits):
            self.account.charge(PureLoss(epsilon=amount), who=who, purpose=purpose)
        if fits:
            self.take(budgets, amount)

    @rule(amount=amounts, who=people, key=st.integers(0, 5))
    def charge_with_a_key(self, amount, who, key):
        loss, name = PureLoss(epsilon=amount), f"key {key}"
        known = [(r, receipt) for k, r, receipt in self.repeats if k == name]
        if known:
            request, receipt = known[0]
            if request == (amount, who):
                again = self.account.charge(loss, who=who, purpose="report", key=name)
                assert again == receipt
            else:
                with pytest.raises(ParameterError, match="another request"):
                    self.account.charge(loss, who=who, purpose="report", key=name)
            return
        budgets = self.budgets(who, "report")
        fits = self.fits(budgets, amount)
        with self.expecting(fits):
            receipt = self.account.charge(loss, who=who, purpose="report", key=name)
            self.repeats.append((name, (amount, who), receipt))
        if fits:
            self.take(budgets, amount)

    @rule(who=people, amount=st.fractions(Fraction(1, 10), Fraction(2), max_denominator=10))
    def limit_an_analyst(self, who, amount):
        name = f"analyst={who}"
        if name in self.limits:
            with pytest.raises(ParameterError, match="already"):
                self.account.limit(Guarantee(epsilon=amount), analyst=who)
            return
        self.account.limit(Guarantee(epsilon=amount), analyst=who)
        self.limits[name], self.taken[name] = amount, Fraction(0)
        self.entries += 1

    @rule(more=st.fractions(0, Fraction(1, 2), max_denominator=8), data=st.data())
    def grant(self, more, data):
        name = data.draw(st.sampled_from(sorted(self.limits)))
        self.limits[name] += more
        self.account.grant(
            Guarantee(epsilon=self.limits[name]), who="chris", reason="more", line=name
        )
        self.entries += 1

    @rule(policy=st.sampled_from(["deny", "degrade"]))
    def change_the_policy(self, policy):
        self.account.set_policy(policy, who="chris", reason="it may change")
        self.policies.append(policy)
        self.entries += 1

    @rule()
    def wait_for_no_period(self):
        with pytest.raises(ParameterError, match="periods add up"):
            self.account.set_policy("wait", who="chris", reason="a mistake")

    @rule(
        act=st.from_regex(r"[a-z]{1,20}\.[a-z]{1,19}", fullmatch=True),
        subject=st.text("ab-1", min_size=1, max_size=128),
        reason=st.sampled_from([None, "why"]),
        account=st.sampled_from([None, "people"]),
    )
    def act(self, act, subject, reason, account):
        told = {"who": "chris", "subject": subject, "reason": reason, "account": account}
        entry = self.ledger.act(act, **told).entries[0]
        said = {name: value for name, value in told.items() if value is not None}
        assert entry.items() >= {"kind": "act", "act": act, **said}.items()
        assert entry in (self.account if account else self.ledger).history(last=1)
        self.entries += 1

    @rule(step=amounts.filter(bool), steps=st.integers(1, 6), who=people, purpose=purposes)
    def reserve(self, step, steps, who, purpose):
        budgets = self.budgets(who, purpose)
        fits = self.fits(budgets, step * steps)
        loss = PureLoss(epsilon=step) * steps
        with self.expecting(fits):
            self.jobs.append([self.account.reserve(loss, who=who, purpose=purpose), step, budgets])
        if fits:
            self.take(budgets, step * steps)

    @precondition(lambda self: self.jobs)
    @rule(times=st.integers(1, 4), data=st.data())
    def spend(self, times, data):
        job, step, _ = data.draw(st.sampled_from(self.jobs))
        loss = PureLoss(epsilon=step) * times
        if times > job.left:
            with pytest.raises(ParameterError, match="fewer steps"):
                job.spend(loss)
            return
        job.spend(loss)
        self.entries += 1

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def end_a_job(self, data):
        ending = data.draw(st.sampled_from(self.jobs))
        job, step, budgets = ending
        self.take(budgets, -step * job.left)
        job.close()
        self.jobs.remove(ending)
        self.entries += 1

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def break_a_job_and_resume_it(self, data):
        broken = data.draw(st.sampled_from(self.jobs))
        job = broken[0]
        with pytest.raises(ZeroDivisionError), job:
            raise ZeroDivisionError
        broken[0] = self.account.resume(job.index)
        assert broken[0].left == job.left

    @rule(question=st.integers(0, 3), amount=amounts, who=people, purpose=purposes)
    def ask(self, question, amount, who, purpose):
        query = f"question {question}"
        budgets = self.budgets(who, purpose)
        if question not in self.answers:
            assert self.account.recall(query, who=who, purpose=purpose) is None
            fits = self.fits(budgets, amount)
            with self.expecting(fits):
                receipt = self.account.charge(
                    PureLoss(epsilon=amount), who=who, purpose=purpose, query=query
                )
            if not fits:
                return
            answer = b'{"confidence":0.95,"error":1,"value":%d}' % question
            self.account.release(receipt, answer)
            self.entries += 1
            self.take(budgets, amount)
            self.answers[question] = [amount, {who}, set(budgets)]
            return
        cost, readers, paid = self.answers[question]
        if who in readers:
            assert self.account.recall(query, who=who, purpose=purpose).value == question
            return
        own = set(budgets) - paid
        fits = self.fits(own, cost)
        with self.expecting(fits):
            assert self.account.recall(query, who=who, purpose=purpose).value == question
        if fits:
            self.take(own, cost)
            readers.add(who)
            paid |= own

    @rule()
    def open_again(self):
        self.ledger.close()
        self.ledger = Ledger.open(self.location, key=self.key, create=False)
        self.account = self.ledger["people"]
        for each in self.jobs:
            each[0] = self.account.resume(each[0].index)

    @invariant()
    def balances_are_those_of_the_model(self):
        found = {budget.name: budget.used for budget in self.account.budgets()}
        for name, taken in self.taken.items():
            share = float(taken / self.limits[name])
            assert found.get(name, 0.0) == pytest.approx(share, rel=1e-12), name
        assert self.ledger.size == self.entries
        assert self.account.policy == self.policies[-1]
        assert set(self.account.policies) == set(self.policies)

    def teardown(self):
        assert self.ledger.verify().size == self.entries
        self.ledger.close()
        shutil.rmtree(self.folder)


TestStories = Stories.TestCase
TestStories.settings = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.needs("postgres")
class TestStoriesOnPostgreSQL:
    def test_they_end_alike(self, server):
        class OnServer(Stories):
            def make(self):
                self.folder = Path(tempfile.mkdtemp())
                return server.new_database(), str(self.folder / "ledger.key")

        case = OnServer.TestCase
        case.settings = settings(TestStories.settings, max_examples=8)
        case("runTest").runTest()
