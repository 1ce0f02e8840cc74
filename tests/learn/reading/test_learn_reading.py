"""Rows are made one at a time: no code that makes a row sees another one, or fails for it."""

import os
import random
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from private_runs import Items, begin, loss_fn, make_data, train, weights
from torch import nn
from torch.utils.data import default_collate

from discreet.errors import DataError, ParameterError
from discreet.learn.reading.making import RowMaker
from discreet.learn.reading.workers import Workers
from discreet.testing import temporary_account

ROWS = 100


def step(private, function=loss_fn):
    private.step(next(private.batches()), function)


class Odd(Items):
    """A dataset with one row that is not like the others."""

    def __init__(self, row: object, *, at: int = 60) -> None:
        super().__init__(*make_data(ROWS))
        self._row, self._at = row, at

    def __getitem__(self, index):
        if index != self._at:
            return super().__getitem__(index)
        if isinstance(self._row, Exception):
            raise self._row
        return self._row


def mixup(items):
    features, labels = default_collate(items)
    return features / 2 + features.flip(0) / 2, labels


def standardised(items):
    features, labels = default_collate(items)
    return features - features.mean(0) * (len(features) > 1), labels


@pytest.mark.parametrize("collate", [mixup, standardised])
def test_a_collate_that_mixes_has_nothing_to_mix(collate):
    found = weights(train(begin(data=Items(*make_data(ROWS)), collate=collate)).model)
    assert torch.equal(found, weights(train(begin(data=make_data(ROWS))).model))


@pytest.mark.parametrize("build", [Items, lambda x, y: (x, y), lambda x, y: {"x": x, "y": y}])
def test_a_transform_sees_one_item(build):
    features, labels = make_data(ROWS)

    def negative(item):
        x, y = item.values() if isinstance(item, dict) else item
        assert x.shape == features.shape[1:]
        return -x, y

    found = weights(train(begin(data=build(features, labels), transform=negative)).model)
    assert torch.equal(found, weights(train(begin(data=(-features, labels))).model))


ODD_ROWS = {
    "fails": ValueError("no such image"),
    "not found": FileNotFoundError("7.png"),
    "longer": (torch.ones(9), torch.tensor(1)),
    "another type": (torch.ones(4, dtype=torch.float64), torch.tensor(1)),
    "another number": (torch.ones(4), 1.5),
    "less": (torch.ones(4),),
    "nothing": None,
    "no tensor": ("x", "y"),
    "empty": (),
}


@pytest.mark.parametrize("batch", ["poisson", "full"])
@pytest.mark.parametrize("row", ODD_ROWS.values(), ids=ODD_ROWS)
def test_an_odd_row_counts_nothing_and_changes_nobody_elses(row, batch):
    """The same run in which that row's loss is zero has the same sums, to the last bits."""
    features, labels = make_data(ROWS)
    counts = torch.ones(ROWS)
    counts[60] = 0

    def counted(model, batch):
        return loss_fn(model, batch[:2]) * batch[2]

    size = {"sampling": "full", "batch_size": None} if batch == "full" else {"batch_size": 20}
    wanted = begin(data=(features, labels, counts), **size)
    for ticket in wanted.batches():
        wanted.step(ticket, counted)
    found = train(begin(data=Odd(row), **size)).model
    assert torch.allclose(weights(found), weights(wanted.model), rtol=0, atol=1e-6)


@pytest.mark.parametrize("row", ODD_ROWS.values(), ids=ODD_ROWS)
def test_an_odd_row_counts_nothing_among_the_rows_of_its_user(row):
    users = torch.arange(ROWS) // 2
    private = train(begin(data=Odd(row), units=users, rows_per_unit=2, batch_size=10))
    assert private.steps_taken == private.steps_planned
    assert torch.isfinite(weights(private.model)).all()


@pytest.mark.parametrize("at", [0, 3])
def test_an_odd_row_among_the_first_does_not_decide(at):
    assert train(begin(data=Odd((torch.ones(9), 1.5), at=at))).steps_taken > 0


def test_rows_of_many_forms_are_refused_before_anything_is_paid():
    rows = [(torch.ones(2 + i % 5), 1) for i in range(ROWS)]
    private = begin(data=rows)
    with pytest.raises(ParameterError, match="one fixed length"):
        step(private)
    assert private.spent.steps == 0


def test_a_collate_that_gives_several_rows_for_one_is_refused():
    private = begin(data=Items(*make_data(ROWS)), collate=lambda items: default_collate(items * 2))
    with pytest.raises(ParameterError, match="one row"):
        step(private)


def test_errors_are_shown_to_who_may_see_them():
    with pytest.raises(ValueError, match="no such image"):
        train(begin(data=Odd(ODD_ROWS["fails"]), sampling="full", batch_size=None, debug=True))


class TestWorkers:
    @pytest.mark.lengthy
    @pytest.mark.parametrize("micro", [None, 7])
    def test_they_read_the_same_rows(self, micro):
        settings = {"sampling": "full", "batch_size": None, "micro_batch_size": micro}
        data = Items(*make_data(ROWS))
        found = train(begin(data=data, workers=2, **settings)).model
        wanted = train(begin(data=data, **settings)).model
        assert torch.equal(weights(found), weights(wanted))

    @pytest.mark.lengthy
    def test_a_batch_is_paid_for_before_it_is_read_ahead(self):
        with temporary_account(epsilon=10, delta=1e-5) as account:
            private = begin(data=Items(*make_data(ROWS)), workers=1, account=account, steps=3)
            begun = []
            for batch in private.batches():
                private.step(batch, loss_fn)
                spends = [e for e in account.history() if e["kind"] == "spend"]
                begun.append(private.spent.steps)
                assert sum(sum(e["steps"]) for e in spends) == begun[-1]
            assert begun == [2, 3, 3]

    @pytest.mark.lengthy
    def test_a_run_that_ends_early_stays_charged_for_the_batch_it_drew(self):
        private = begin(data=Items(*make_data(ROWS)), workers=1, steps=9)
        step(private)
        private.close()
        assert (private.steps_taken, private.spent.steps) == (1, 2)

    @pytest.mark.lengthy
    def test_an_odd_row_is_left_out_there_too(self):
        private = train(begin(data=Odd(ODD_ROWS["fails"]), workers=2, batch_size=90))
        assert private.steps_taken == private.steps_planned

    @pytest.mark.lengthy
    @pytest.mark.parametrize("deaths", [1, 99])
    def test_one_that_dies_costs_a_step_at_most(self, tmp_path, deaths):
        parent, left = os.getpid(), tmp_path / "deaths"
        left.write_text("0")

        class Deadly(Items):
            def __getitem__(self, index):
                if os.getpid() != parent and (more := int(left.read_text())):
                    left.write_text(str(more - 1))
                    os._exit(1)
                return super().__getitem__(index)

        private = begin(data=Deadly(*make_data(ROWS)), workers=1, steps=6, batch_size=50)
        step(private)
        step(private)
        private._drawing.parts[0].take()  # has been read
        left.write_text(str(deaths))
        step(private)
        with nullcontext() if deaths == 1 else pytest.raises(DataError, match="stays paid"):
            step(private)
        left.write_text("0")
        step(private)
        step(private)
        assert (private.steps_taken, private.spent.steps) == (6 - (deaths > 1), 6)

    @pytest.mark.lengthy
    def test_every_one_has_chance_of_its_own(self):
        def drawn(item):
            return torch.tensor([random.random(), float(torch.rand(()))])

        maker = RowMaker([0] * 64, drawn, None, True)
        rows = torch.cat(Workers(maker, 3).begin(np.arange(64))())
        assert len(rows.unique(dim=0)) == 64

    def test_their_number_is_checked(self):
        with pytest.raises(ParameterError, match="workers"):
            begin(data=Items(*make_data(ROWS)), workers=-1)


def test_many_views_of_a_row_count_as_one():
    """Augmentation multiplicity, as the guide has it: the mean over copies of a row's loss."""
    copies = 4

    def many(model, batch):
        features, labels = (part.repeat_interleave(copies, 0) for part in batch)
        noisy = features + 0.1 * torch.randn_like(features)
        losses = nn.functional.cross_entropy(model(noisy), labels, reduction="none")
        return losses.unflatten(0, (-1, copies)).mean(1)

    private = begin(data=make_data(ROWS))
    for batch in private.batches():
        private.step(batch, many)
    assert private.steps_taken == private.steps_planned
