"""The keywords of prepare and resume, and the frozen settings that are made of them."""

from typing import get_type_hints

import pytest

from discreet.errors import ParameterError
from discreet.learn import ExecutionOptions, TrainingOptions
from discreet.learn.run.settings import Execution, Training


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
    good = {"epsilon": 1, "delta": 1e-5, "epochs": 1}
    Training(**good)
    for wrong in ({"delta": 0}, {"epochs": -1}, {"epsilon": None}, {"micro_batch_size": 0}):
        with pytest.raises(ParameterError):
            Training(**good | wrong)
