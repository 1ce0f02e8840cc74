"""What fails quietly says no more than that; what is ours and never shows a value may be told."""

import threading
import warnings

import pytest
from withheld_rows import FAILURES, ROW, raised, told, warned

from discreet.errors import DataError, ParameterError
from discreet.privacy import quietly

ASKED = {"what": "this", "outcome": "Nothing was spent."}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_tells_nothing(failure):
    with pytest.raises(DataError, match=r"this failed.*withheld.*Nothing was spent\.") as found:
        quietly(FAILURES[failure], **ASKED)
    assert ROW not in told(found.value)


def test_a_refusal_is_told_without_its_past():
    def refuses():
        row = ROW
        try:
            int(row + " euros")
        except ValueError as error:
            error.add_note(row)
            raise ParameterError("scale must be positive.", parameter="scale") from error

    with pytest.raises(ParameterError) as found:
        quietly(refuses, tells_refusals=True, **ASKED)
    assert str(found.value) == "scale must be positive. Nothing was spent."
    assert found.value.parameter == "scale"
    assert ROW not in told(found.value)


def test_a_refusal_of_somebody_elses_kind_is_not_told():
    class Theirs(DataError):
        """Made by a caller."""

    with pytest.raises(DataError, match="withheld") as found:
        quietly(lambda: raised(Theirs(ROW)), tells_refusals=True, **ASKED)
    assert type(found.value) is DataError
    assert ROW not in told(found.value)


def test_warnings_are_withheld_here_and_nowhere_else():
    inside, outside = threading.Event(), threading.Event()

    def waits():
        warned()
        inside.set()
        assert outside.wait(10)

    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        other = threading.Thread(target=lambda: quietly(waits, **ASKED))
        other.start()
        assert inside.wait(10)
        warnings.warn("seen meanwhile", stacklevel=1)
        outside.set()
        other.join()
        quietly(warned, **ASKED)
        warnings.warn("seen afterwards", stacklevel=1)
    assert [str(one.message) for one in shown] == ["seen meanwhile", "seen afterwards"]


def test_filters_do_not_pile_up():
    with warnings.catch_warnings():
        before = len(warnings.filters)
        for _ in range(5):
            warnings.simplefilter("always")  # puts its own first, and knows it again
            quietly(lambda: None, **ASKED)
        assert len(warnings.filters) <= before + 2
