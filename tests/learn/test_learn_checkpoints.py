"""Interrupted training: what a checkpoint holds, what is refused, and runs that are killed."""

import copy
import os
import pickle
import random
import secrets
import signal
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from private_runs import (
    begin,
    failing,
    ids,
    loss_fn,
    make_data,
    make_model,
    nothing,
    train,
    weights,
)
from run_processes import STEPS, training, warm_processes

from discreet.errors import BudgetExceeded, DataError, LedgerError, ParameterError
from discreet.learn import (
    Adaptive,
    Automatic,
    Flat,
    FullBatch,
    PerLayer,
    Poisson,
    Stages,
    TruncatedPoisson,
    WithoutReplacement,
    resume,
)
from discreet.learn.run import checkpoint_file
from discreet.learn.run.promise import Promise
from discreet.ledger import Ledger
from discreet.privacy import Guarantee, Neighbours, Unit
from discreet.testing import SeededSource, temporary_account, temporary_ledger


def go_on(path, *, model=None, data=None, optimizer=None, **options):
    model = make_model(seed=99) if model is None else model
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=1.0)
    data = make_data(100) if data is None else data
    return resume(path, model, optimizer, data, progress=False, **options)


class TestGoingOn:
    def test_a_run_ends_as_it_would_have_without_a_break(self, tmp_path):
        # Seeded, and with sources that continue at the same place: else noise is never the same.
        source = SeededSource(5)
        model = make_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)
        begun = begin(model, optimizer=optimizer, seed=None, source=source, steps=4)
        train(begun, steps=2)
        begun.save(tmp_path / "run.pt")
        other = make_model(seed=99)
        its_optimizer = torch.optim.SGD(other.parameters(), lr=0.1, momentum=0.1)
        again = go_on(tmp_path / "run.pt", model=other, optimizer=its_optimizer, source=source)
        assert torch.equal(weights(other), weights(model))
        assert (again.steps_taken, again.spent.steps, again.steps_planned) == (2, 2, 4)
        assert again.noise_multiplier == begun.noise_multiplier
        assert again.notes == begun.notes
        train(again)

        source = SeededSource(5)
        model = make_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)
        train(begin(model, optimizer=optimizer, seed=None, source=source, steps=4))
        assert torch.equal(weights(other), weights(model))

    def test_noise_is_never_repeated(self, tmp_path):
        begin(seed=None).save(tmp_path / "run.pt")
        ends = [weights(train(go_on(tmp_path / "run.pt"), nothing, steps=1).model) for _ in "ab"]
        assert (ends[0] != ends[1]).any()

    def test_a_checkpoint_holds_no_key_no_noise_and_no_size_of_the_data(self, tmp_path):
        private = train(begin(data=make_data(1_234), batch_size=100), steps=1)
        private.save(tmp_path / "run.pt")
        document = checkpoint_file.read(tmp_path / "run.pt")
        assert set(document) == {
            *("format", "discreet", "model", "optimizer", "optimizer_kind"),
            *("settings", "state", "notes", "jobs"),
        }
        assert document["state"] == {"taken": 1, "done": 1, "begun": 1, "norm": None}
        assert "1234" not in str(document["settings"]) + str(document["notes"])

    def test_adaptive_clipping_goes_on_at_its_norm(self, tmp_path):
        clip = Adaptive(initial=9.0, count_noise=2.0)
        private = train(begin(clip=clip), steps=2)
        assert private.clip != 9
        private.save(tmp_path / "run.pt")
        assert go_on(tmp_path / "run.pt").clip == private.clip

    def test_users_go_on_as_users(self, tmp_path):
        users = ids(100, users=30)
        private = begin(units=users, rows_per_unit=3, batch_size=5)
        private.save(tmp_path / "run.pt")
        again = go_on(tmp_path / "run.pt", units=users)
        assert again._stepping.units.rows_each == 3
        train(again)
        with pytest.raises(ParameterError, match="protects all records of one id"):
            go_on(tmp_path / "run.pt")

    def test_a_failed_step_is_not_forgotten(self, tmp_path):
        private = begin()
        with pytest.raises(DataError, match="stays paid for"):
            private.step(next(private.batches()), failing())
        private.save(tmp_path / "run.pt")
        again = go_on(tmp_path / "run.pt")
        assert (again.steps_taken, again.spent.steps) == (0, 1)
        assert len(list(again.batches())) == 2

    def test_saving_is_all_or_nothing(self, tmp_path, monkeypatch):
        private = train(begin(), steps=1)
        private.save(tmp_path / "run.pt")
        before = (tmp_path / "run.pt").read_bytes()
        train(private, steps=1)

        def full(document, file):
            file.write(b"half of it")
            raise OSError("the disk is full")

        monkeypatch.setattr(torch, "save", full)
        with pytest.raises(OSError, match="full"):
            private.save(tmp_path / "run.pt")
        assert os.listdir(tmp_path) == ["run.pt"]
        assert (tmp_path / "run.pt").read_bytes() == before


SAMPLINGS = [
    Poisson(rate=Fraction(1, 3), population=90),
    Poisson(rate=0.1, population=90),
    TruncatedPoisson(rate=0.25, capacity=60, population=90),
    WithoutReplacement(size=7, population=90),
    FullBatch(population=90),
    FullBatch(population=90, neighbours="replace_one"),
]
CLIPPINGS = [
    Flat(norm=0.3),
    Flat(norm=Fraction(1, 3)),
    PerLayer(norm=2),
    PerLayer(norms={"0": 1, "2": Fraction(2, 7)}),
    Automatic(norm=1, stability=0.5),
    Adaptive(initial=1, count_noise=50, quantile=Fraction(1, 3)),
    Stages((7, Flat(norm=1)), (3, PerLayer(norms={"": 2})), then=Automatic(norm=Fraction(1, 3))),
]


@pytest.mark.lengthy
@given(
    sampling=st.sampled_from(SAMPLINGS),
    clipping=st.sampled_from(CLIPPINGS),
    noise=st.one_of(
        st.floats(0.1, 100).map(Stages.of),
        st.builds(lambda a, b, n: Stages((n, a), then=b), *[st.floats(0.1, 9)] * 2, st.just(7)),
    ),
    delta=st.one_of(st.floats(1e-12, 0.5), st.fractions(Fraction(1, 10**9), Fraction(1, 2))),
    epsilon=st.one_of(st.none(), st.floats(0.01, 50), st.just(Fraction(7, 3))),
)
def test_settings_are_read_back_exactly(sampling, clipping, noise, delta, epsilon):
    written = Promise(
        run="0123456789abcdef",
        sampling=sampling,
        clipping=clipping if isinstance(clipping, Stages) else Stages(then=clipping),
        noise_multiplier=noise,
        delta=delta,
        steps=1_000,
        epsilon=epsilon,
        unit="one record",
        rows_per_unit=1,
        is_rounded=True,
        form="0: float32[4]",
        trainable=(("weight", (3, 4)), ("bias", ())),
        account=None,
    )
    read = Promise.from_json(written.to_json(), sampling=None, clipping=None)
    assert read == written
    planned = written.noises(0, 1_000)
    assert read.noises(0, 1_000) == planned
    assert read.loss(planned) == written.loss(planned)


class Own:
    """A sampling of somebody's own."""

    def __init__(self) -> None:
        self._inner = Poisson(rate=0.2, population=100)

    neighbours = Neighbours.add_remove
    proof = "my own"
    population = 100
    expected = 20.0

    def check(self, n): ...

    def loss(self, *, noise_multiplier):
        return self._inner.loss(noise_multiplier=noise_multiplier)

    def draw(self, n, *, source):
        return self._inner.draw(n, source=source)

    def __repr__(self):
        return "Own()"


class TestRefusals:
    @pytest.fixture
    def path(self, tmp_path) -> Path:
        train(begin(), steps=1).save(tmp_path / "run.pt")
        return tmp_path / "run.pt"

    def test_another_model(self, path):
        for model, reason in (
            (torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Linear(6, 3)), "0.bias"),
            (torch.nn.Linear(4, 3), "0.bias"),
        ):
            before = copy.deepcopy(model.state_dict())
            with pytest.raises(ParameterError, match=f"another model.*{reason}") as caught:
                go_on(path, model=model)
            assert caught.value.parameter == "model"
            assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())

    def test_other_parts_frozen(self, path):
        model = make_model()
        model[0].requires_grad_(False)
        with pytest.raises(ParameterError, match="other parameters are trainable"):
            go_on(path, model=model)

    def test_another_optimiser(self, path):
        model = make_model()
        with pytest.raises(ParameterError, match="SGD, not with Adam"):
            go_on(path, model=model, optimizer=torch.optim.Adam(model.parameters()))
        groups = [{"params": list(part.parameters())} for part in (model[0], model[2])]
        with pytest.raises(ParameterError, match="other groups"):
            go_on(path, model=model, optimizer=torch.optim.SGD(groups, lr=1.0))

    def test_other_data(self, path):
        features, labels = make_data(100)
        with pytest.raises(ParameterError, match="of the form"):
            go_on(path, data=(features[:, :2], labels))
        with pytest.raises(ParameterError, match="of the form"):
            go_on(path, data={"x": features, "y": labels})
        with pytest.raises(ParameterError, match="rounded up to two digits"):
            go_on(path, data=make_data(200))

    def test_other_settings(self, path):
        with pytest.raises(ParameterError, match="a run goes on as it began"):
            go_on(path, clip=Flat(norm=2.0))
        with pytest.raises(ParameterError, match="a run goes on as it began"):
            go_on(path, sampling=FullBatch(population=100))

    def test_parts_of_ones_own_must_be_given_again(self, tmp_path):
        path = tmp_path / "run.pt"
        begin(sampling=Own(), batch_size=None).save(path)
        with pytest.raises(ParameterError, match="Pass the same object as sampling="):
            go_on(path)
        train(go_on(path, sampling=Own()))

    def test_an_account_that_the_run_does_not_have_or_has(self, path, tmp_path):
        with temporary_account(epsilon=9, delta=1e-5) as account:
            with pytest.raises(ParameterError, match="begun without an account"):
                go_on(path, account=account)
            begin(account=account).save(tmp_path / "paid.pt")
            with pytest.raises(ParameterError, match="charged to account 'people'"):
                go_on(tmp_path / "paid.pt")
            with temporary_account(epsilon=9, delta=1e-5) as namesake:
                with pytest.raises(LedgerError, match="no reservation of this run"):
                    go_on(tmp_path / "paid.pt", account=namesake)
                assert namesake.used == 0

    def test_what_is_no_checkpoint(self, tmp_path):
        path = tmp_path / "run.pt"
        path.write_bytes(b"nonsense")
        with pytest.raises(ParameterError, match="no checkpoint"):
            go_on(path)
        torch.save({"weight": torch.zeros(3)}, path)
        with pytest.raises(ParameterError, match="no checkpoint"):
            go_on(path)
        checkpoint_file.write(path, {"settings": "", "format": 2})
        with pytest.raises(ParameterError, match="does not know"):
            go_on(path)

    def test_nothing_in_a_file_is_executed(self, tmp_path):
        class Bomb:
            def __reduce__(self):
                return (os.mkdir, (str(tmp_path / "executed"),))

        torch.save({"format": 1, "settings": Bomb()}, tmp_path / "run.pt")
        with pytest.raises(ParameterError, match="no checkpoint"):
            go_on(tmp_path / "run.pt")
        (tmp_path / "run.pt").write_bytes(pickle.dumps(Bomb()))
        with pytest.raises(ParameterError, match="no checkpoint"):
            go_on(tmp_path / "run.pt")
        assert not (tmp_path / "executed").exists()


def spends(account) -> int:
    return sum(sum(e["steps"]) for e in account.history() if e["kind"] == "spend")


class TestAccounts:
    @pytest.mark.lengthy
    def test_lost_steps_stay_paid_and_are_paid_again(self, tmp_path):
        with temporary_account(epsilon=20, delta=1e-5) as account:
            lost = train(begin(account=account, steps=6), steps=3)
            lost.save(tmp_path / "run.pt")
            train(lost, steps=2)  # and now it crashes
            again = go_on(tmp_path / "run.pt", account=account, source=SeededSource(1))
            assert (again.steps_taken, again.spent.steps) == (3, 5)
            assert len([e for e in account.history() if e["kind"] == "reserve"]) == 2
            train(again)
            assert again.steps_taken == 6
            assert spends(account) == again.spent.steps == 8
            account.ledger.verify()

    @pytest.mark.lengthy
    def test_resuming_often_reserves_only_what_is_missing(self, tmp_path):
        with temporary_account(epsilon=40, delta=1e-5) as account:
            train(begin(account=account, steps=5), steps=1).save(tmp_path / "run.pt")
            for _ in range(3):
                options = {"account": account, "source": SeededSource(2)}
                train(go_on(tmp_path / "run.pt", **options), steps=1)
            reserved = [e for e in account.history() if e["kind"] == "reserve"]
            # The first has one step too few for the second resumption, and so on.
            assert [entry["loss"]["parts"][0][1] for entry in reserved] == [5, 1, 1]
            with go_on(tmp_path / "run.pt", **options) as last:
                train(last)
            assert spends(account) == 1 + 3 + 4
            assert not list(_open_jobs(account))
            account.ledger.verify()

    def test_a_run_that_was_closed_is_reserved_anew(self, tmp_path):
        with temporary_account(epsilon=20, delta=1e-5) as account:
            with begin(account=account, steps=6) as private:
                train(private, steps=2)
                private.save(tmp_path / "run.pt")
            assert not list(_open_jobs(account))
            options = {"account": account, "source": SeededSource(2)}
            train(go_on(tmp_path / "run.pt", **options))
            assert spends(account) == 6

    def test_too_little_left_for_what_was_lost(self, tmp_path):
        with temporary_account(epsilon=9, delta=1e-5) as account:
            private = begin(account=account, steps=20)
            private.save(tmp_path / "run.pt")
            train(private, steps=20)
            spent = account.used
            model = make_model(seed=3)
            with pytest.raises(BudgetExceeded):
                go_on(tmp_path / "run.pt", account=account, source=SeededSource(2), model=model)
            assert account.used == spent

    def test_an_account_that_has_become_another_is_refused(self, tmp_path):
        guarantee = Guarantee(epsilon=20, delta=1e-5)
        with temporary_ledger() as ledger:
            users = ledger.create(
                "users", unit=Unit.column("user"), neighbours="add_remove", guarantee=guarantee
            )
            names = ids(100, users=30)
            begin(account=users, units=names, batch_size=5).save(tmp_path / "run.pt")
            with pytest.raises(ParameterError, match="protects all records"):
                go_on(tmp_path / "run.pt", account=users, source=SeededSource(2))
            options = {"account": users, "source": SeededSource(2)}
            train(go_on(tmp_path / "run.pt", units=names, **options))


def _open_jobs(account):
    settled = {e["job"] for e in account.history() if e["kind"] == "settle"}
    reserved = {e["index"] for e in account.history() if e["kind"] == "reserve"}
    return reserved - settled


@pytest.mark.lengthy
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
def test_a_run_that_is_killed_again_and_again_is_never_undercounted(tmp_path):
    seed = secrets.randbits(64)
    sys.stdout.write(f"seed {seed}\n")  # shown with a failure only
    rng = random.Random(seed)
    with Ledger.open(tmp_path / "budget.db") as ledger:
        ledger.create(
            "people",
            unit=Unit.record(),
            neighbours="add_remove",
            guarantee=Guarantee(epsilon=200, delta=1e-5),
        )
    context = warm_processes()
    results = tmp_path / "results"
    results.touch()
    kills = 0
    for attempt in range(40):
        child = context.Process(target=training, args=(tmp_path,))
        child.start()
        lines = len(results.read_text().splitlines())
        if attempt < 5:  # five times at a random moment, then let it be
            until = lines + rng.randrange(0, 7)
            while child.is_alive() and len(results.read_text().splitlines()) < until:
                time.sleep(0.0005)
            time.sleep(rng.random() * 0.01)
            child.kill()
        child.join(60)
        kills += child.exitcode == -signal.SIGKILL
        if (tmp_path / "model.pt").exists():
            break
        assert child.exitcode == -signal.SIGKILL, "the run failed by itself"
    assert kills >= 1
    with Ledger.open(tmp_path / "budget.db", create=False) as ledger:
        ledger.verify()
        account = ledger["people"]
        made = [int(line) for line in results.read_text().splitlines()]
        assert made[-1] == STEPS
        # Every result was paid for, repeated steps again; a step may be paid for without a result.
        assert len(made) <= spends(account) <= len(made) + kills
        last = account.history()[-1]
        assert last["kind"] == "settle"
    model = make_model(seed=5)
    model.load_state_dict(torch.load(tmp_path / "model.pt", weights_only=True))
    assert np.isfinite(weights(model).numpy()).all()
    saved = checkpoint_file.read(tmp_path / "run.pt")
    assert saved["state"]["taken"] == STEPS
    assert saved["state"]["begun"] >= len(made)
    assert loss_fn(model, make_data(100)).shape == (100,)
