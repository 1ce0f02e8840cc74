"""What a user's own code says when it fails in a step may show data: none of it leaves `step`."""

import errno

import pytest
import torch
from private_runs import CLASSES, Items, begin, is_late, loss_fn, make_data
from withheld_rows import FAILURES, ROW, Stop, raised, told, warned

from discreet.errors import DataError, ParameterError
from discreet.testing import temporary_account


def later(failure):
    """Return a loss that fails from the first step on, but not when it is tried out."""
    late = []

    def fails(model, batch):
        if late or is_late(batch[0]):
            late.append(True)
            failure()
        return loss_fn(model, batch)

    return fails


def step(private, function=loss_fn):
    private.step(next(private.batches()), function)


class Reading(Items):
    """A dataset that fails as soon as it is read ``after`` rows of it were."""

    def __init__(self, failure, *, after):
        super().__init__(*make_data(100))
        self.failure, self.left = failure, after

    def __getitem__(self, index):
        self.left -= 1
        if self.left < 0:
            self.failure()
        return super().__getitem__(index)


@pytest.mark.parametrize("failure", FAILURES)
def test_a_loss_that_fails_tells_nothing(failure):
    with temporary_account(epsilon=10, delta=1e-5) as account:
        private = begin(account=account)
        with pytest.raises(DataError, match=r"withheld.*stays paid for") as found:
            step(private, later(FAILURES[failure]))
        assert ROW not in told(found.value)
        assert private.spent.steps == 1
        assert [e["steps"] for e in account.history() if e["kind"] == "spend"] == [[1]]


def test_all_failures_read_alike():
    texts = set()
    for failure in FAILURES.values():
        with pytest.raises(DataError) as found:
            step(begin(), later(failure))
        texts.add(str(found.value))
    assert len(texts) == 1


def labels_are(*labels):
    features, _ = make_data(100)
    return features, torch.tensor([*labels] + [0] * (100 - len(labels)))


def test_a_label_that_is_no_class_is_not_printed(capfd):
    private = begin(data=labels_are(0, 0, 0, *[int(ROW)] * 90))
    step(private)  # nine of ten rows add nothing, and nobody hears of it
    assert private.steps_taken == 1
    assert capfd.readouterr() == ("", "")


def test_nor_is_it_when_a_loss_is_tried_out():
    """Made-up rows are made up of numbers that are somebody's."""
    private = begin(data=labels_are(int(ROW), int(ROW), int(ROW)))
    with pytest.raises(DataError, match=r"withheld.*Nothing was spent") as found:
        step(private, loss_fn)
    assert ROW not in told(found.value)
    assert private.spent.steps == 0


@pytest.mark.slow
def test_the_size_of_a_drawn_batch_is_not_told():
    def mean_later(model, batch):
        losses = loss_fn(model, batch)
        return losses[1:] if is_late(losses) else losses

    texts = set()
    for seed in range(4):
        with pytest.raises(DataError, match="stays paid for") as found:
            step(begin(seed=seed), mean_later)
        texts.add(told(found.value).replace(hex(id(found.value)), ""))
    assert not any("shape (" in text or "array(" in text for text in texts)


def test_an_error_that_zeros_make_as_well_is_shown_in_full():
    def wrong(model, batch):
        return loss_fn(model, (batch[0][:, :-1], batch[1]))

    private = begin()
    with pytest.raises(DataError, match="Nothing was spent") as found:
        step(private, wrong)
    assert isinstance(found.value.__cause__, RuntimeError)
    assert "shapes cannot be multiplied" in str(found.value.__cause__)
    assert found.value.__cause__.__context__ is None
    assert private.spent.steps == 0


def test_a_dataset_that_fails_tells_nothing():
    private = begin(data=Reading(FAILURES["chain"], after=0))
    with pytest.raises(ParameterError, match="first rows") as found:
        step(private)
    assert ROW not in told(found.value)
    assert private.spent.steps == 0


def test_a_collate_that_fails_tells_nothing():
    def collate(items):
        raise ValueError(f"cannot stack {ROW}")

    private = begin(data=Items(*make_data(100)), collate=collate)
    with pytest.raises(ParameterError, match="first rows") as found:
        step(private)
    assert ROW not in told(found.value)
    assert private.spent.steps == 0


@pytest.mark.parametrize("failure", [MemoryError(ROW), OSError(errno.EIO, ROW)])
def test_a_machine_that_fails_tells_nothing_and_the_run_goes_on(failure):
    class Short(Items):
        is_short = False

        def __getitem__(self, index):
            if self.is_short:
                raise failure
            return super().__getitem__(index)

    data = Short(*make_data(100))
    private = begin(data=data, steps=5)
    step(private)
    step(private)
    data.is_short = True
    with pytest.raises(DataError, match="withheld") as found:
        step(private)
    assert ROW not in told(found.value)
    data.is_short = False
    step(private)
    assert (private.steps_taken, private.spent.steps) == (3, 4)


def test_a_model_that_fails_tells_nothing():
    class Talkative(torch.nn.Linear):
        is_broken = False

        def forward(self, rows):
            self.is_broken |= is_late(rows)
            if self.is_broken:
                raise ValueError(f"odd row: {ROW}")
            return super().forward(rows)

    with pytest.raises(DataError, match="withheld") as found:
        step(begin(model=Talkative(4, CLASSES)))
    assert ROW not in told(found.value)


def test_warnings_are_withheld_and_make_no_step_fail(recwarn):
    step(begin(), later(warned))  # here, warnings are errors
    assert not [one for one in recwarn if ROW in str(one.message)]


def test_debugging_shows_warnings():
    with pytest.warns(UserWarning, match=ROW):
        step(begin(debug=True), later(warned))


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_whoever_stops_the_process_stops_it_without_a_word(kind):
    with pytest.raises(kind) as found:
        step(begin(), later(lambda: raised(kind(ROW))))
    assert ROW not in told(found.value)


@pytest.mark.parametrize("failure", FAILURES)
def test_debugging_shows_the_error_itself(failure):
    private = begin(debug=True)
    with pytest.raises((Exception, Stop)) as found:
        step(private, later(FAILURES[failure]))
    assert ROW in f"{found.value!r}"
    assert private.spent.steps == 1


def test_a_step_whose_batch_cannot_be_drawn_is_counted(monkeypatch):
    with temporary_account(epsilon=10, delta=1e-5) as account:
        private = begin(account=account)
        private._stepping.try_out(loss_fn)
        monkeypatch.setattr(type(private._stepping), "draw", lambda self: FAILURES["error"]())
        with pytest.raises(DataError, match="stays paid for") as found:
            step(private)
        assert ROW not in told(found.value)
        assert private.spent.steps == 1
