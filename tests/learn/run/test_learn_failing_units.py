"""A unit that makes a step fail adds nothing, and neither ends the run nor changes the others."""

from typing import Any

import pytest
import torch
from private_runs import Items, begin, loss_fn, make_data, make_model, train, weights
from torch import Tensor, nn

from discreet.errors import DataError
from discreet.learn.gradients.engine import GradientEngine
from discreet.learn.noise.grid_noise import GridNoise
from discreet.testing import SeededSource

ROWS, BAD = 40, 17
FULL: dict[str, Any] = {"sampling": "full", "batch_size": None, "steps": 2}


@pytest.fixture
def silent(monkeypatch):
    """Leave the noise out: what a step changes is then the mean of clipped gradients."""

    def add(buffer: Tensor, *, divide_by: float, **named: Any) -> None:
        buffer /= divide_by

    monkeypatch.setattr("discreet.learn.run.step.add_noise_", add)


def change(data: Any, loss: Any = loss_fn, **options: Any) -> Tensor:
    """Return what a step on everybody changes."""
    private = begin(make_model(), data, **FULL | {"population": ROWS} | options)
    before = weights(private.model)
    private.step(next(private.batches()), loss)
    assert (private.steps_taken, private.spent.steps) == (1, 1)
    return before - weights(private.model)


def without(row: int) -> tuple[Tensor, ...]:
    keep = torch.arange(ROWS) != row
    return tuple(column[keep] for column in make_data(ROWS))


def marked(row: int = BAD) -> tuple[Tensor, Tensor]:
    """Return the data with a row whose label is no class, on which the loss fails."""
    features, labels = make_data(ROWS)
    labels[row] = 77
    return features, labels


class Missing(Items):
    """A dataset with a row that cannot be read."""

    def __getitem__(self, index):
        if index == BAD:
            raise OSError("no such file")
        return super().__getitem__(index)


def collate(items):
    features, labels = torch.utils.data.default_collate(items)
    if (labels == 77).any():
        raise TypeError("cannot stack")
    return features, labels


@pytest.mark.parametrize("micro", [None, 7, 1])
@pytest.mark.parametrize(
    ("data", "options"),
    [
        (marked(), {}),
        (Missing(*make_data(ROWS)), {}),
        (Items(*marked()), {"collate": collate}),
    ],
    ids=["loss", "dataset", "collate"],
)
def test_who_fails_adds_nothing_and_others_what_they_add_anyway(data, options, micro, silent):
    found = change(data, **options, micro_batch_size=micro)
    wanted = change(without(BAD))
    assert torch.allclose(found, wanted, atol=1e-6)
    assert not torch.allclose(change(make_data(ROWS)), wanted, atol=1e-4)  # it would show


def test_users_fail_as_one(silent):
    units = torch.arange(ROWS) // 2
    found = change(marked(), units=units, rows_per_unit=2, population=20)
    features, labels = make_data(ROWS)
    keep = units != BAD // 2
    wanted = change(
        (features[keep], labels[keep]), units=units[keep], rows_per_unit=2, population=20
    )
    assert torch.allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize("most", [3, 10])
def test_what_fails_for_being_large_is_made_in_parts(most, silent, monkeypatch):
    wanted = change(make_data(ROWS))
    accumulate = GradientEngine.accumulate

    def tight(self: GradientEngine, loss: Any, batch: Any, *, units: int, **named: Any) -> Any:
        if units > most:
            raise torch.OutOfMemoryError("out of memory")
        return accumulate(self, loss, batch, units=units, **named)

    monkeypatch.setattr(GradientEngine, "accumulate", tight)
    assert torch.allclose(change(make_data(ROWS)), wanted, atol=1e-6)


def test_a_failure_that_passes_changes_nothing(silent, monkeypatch):
    wanted = change(make_data(ROWS))
    accumulate, calls = GradientEngine.accumulate, []

    def once(self: GradientEngine, *args: Any, **named: Any) -> Any:
        calls.append(named["units"])
        found = accumulate(self, *args, **named)
        if len(calls) == 1:
            raise RuntimeError("try again")  # when all is in the sum already
        return found

    monkeypatch.setattr(GradientEngine, "accumulate", once)
    assert torch.allclose(change(make_data(ROWS)), wanted, atol=1e-6)
    assert calls == [ROWS, ROWS]


def test_a_run_goes_on_to_its_end_and_says_nothing(capfd, recwarn):
    private = begin(make_model(), marked(), batch_size=20, steps=4, seed=None)
    for batch in private.batches():
        private.step(batch, loss_fn)
    assert private.steps_taken == private.spent.steps == 4
    assert capfd.readouterr() == ("", "")
    assert not recwarn.list


def test_the_noise_of_such_a_step_is_that_of_any(monkeypatch):
    """It is drawn twice: what it was added to the first time is thrown away."""
    seen = []
    of = GridNoise.of
    monkeypatch.setattr(GridNoise, "of", lambda **named: seen.append(named) or of(**named))
    change(marked())
    (*_, first, second) = seen
    assert first == second


def test_what_zeros_do_not_survive_is_an_error_and_the_next_step_may_be_made():
    broken = []

    def sometimes(model: nn.Module, batch: Any) -> Tensor:
        if broken:
            raise RuntimeError("the device is lost")
        return loss_fn(model, batch)

    private = begin(steps=4)
    train(private, sometimes, steps=2)  # a loss is tried out before the second, once more
    broken.append(True)
    before = weights(private.model)
    with pytest.raises(DataError, match="stays paid for"):
        train(private, sometimes, steps=1)
    assert torch.equal(weights(private.model), before)
    broken.clear()
    train(private, sometimes, steps=1)
    assert (private.steps_taken, private.spent.steps) == (3, 4)


def test_debugging_shows_the_first_failure():
    private = begin(make_model(), marked(), debug=True, source=SeededSource(1), **FULL)
    with pytest.raises(IndexError, match="77"):
        private.step(next(private.batches()), loss_fn)
