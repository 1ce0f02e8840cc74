"""The keywords of prepare and resume, and the frozen settings that are made of them."""

from fractions import Fraction
from typing import get_type_hints

import pytest
import torch
from private_runs import begin, make_data, make_model

from discreet.errors import ParameterError
from discreet.learn import ExecutionOptions, TrainingOptions, prepare, resume
from discreet.learn.run.settings import Execution, Training

GOOD = {"epsilon": 1, "delta": 1e-5, "epochs": 1}


@pytest.mark.parametrize(
    ("options", "settings"), [(ExecutionOptions, Execution), (TrainingOptions, Training)]
)
def test_every_keyword_is_a_field_of_the_same_type(options, settings):
    assert get_type_hints(options) == get_type_hints(settings)


def test_what_is_required_of_the_one_is_required_of_the_other():
    assert TrainingOptions.__required_keys__ == {"delta"}
    with pytest.raises(TypeError, match="delta"):
        Training(epsilon=1, epochs=1)


def test_a_keyword_that_is_none_is_refused():
    with pytest.raises(TypeError, match="epsilonn"):
        Training(epsilonn=1, delta=1e-5, epochs=1)


def test_bad_numbers_are_refused_before_anything_else_is_looked_at():
    Training(**GOOD)
    for wrong in ({"delta": 0}, {"epochs": -1}, {"epsilon": None}, {"micro_batch_size": 0}):
        with pytest.raises(ParameterError):
            Training(**GOOD | wrong)


@pytest.mark.parametrize("size", [8, 8.0, Fraction(8)])
def test_a_size_is_an_int_however_it_was_written(size):
    for found in (Execution(micro_batch_size=size), Training(**GOOD, micro_batch_size=size)):
        assert type(found.micro_batch_size) is int
        assert found.micro_batch_size == 8


@pytest.mark.parametrize(
    ("wrong", "near"),
    [("epsilonn", "epsilon"), ("clipp", "clip"), ("unit", "units"), ("microbatch_size", "micro_b")],
)
def test_an_unknown_keyword_is_told_with_the_nearest_known_one(wrong, near):
    with pytest.raises(TypeError, match=rf"^prepare\(\) got .*'{wrong}'\. Did you mean '{near}"):
        begin(**{wrong: 1})
    with pytest.raises(TypeError, match=r"^prepare\(\) got .*'zzz'\. It has model, .*who, purpose"):
        begin(zzz=1)


def test_a_keyword_that_is_missing_is_told():
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1)
    with pytest.raises(TypeError, match=r"^prepare\(\) needs the keyword argument 'delta'"):
        prepare(model, optimizer, make_data(9), clip=1, epsilon=1, epochs=1)


def test_resuming_has_fewer_keywords(tmp_path):
    private = begin()
    private.save(tmp_path / "run.pt")
    with pytest.raises(TypeError, match=r"^resume\(\) got .* argument 'epsilon'"):
        resume(tmp_path / "run.pt", private.model, private.optimizer, make_data(100), epsilon=1)
