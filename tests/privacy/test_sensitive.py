"""A secret goes in; nothing but `reveal_without_noise` brings it out."""

import copy
import json
import logging
import operator
import pickle
import traceback

import numpy as np
import pytest

from discreet.errors import DataError, DiscreetError, SensitiveValue
from discreet.privacy import Sensitive

SECRET = 8_675_309


@pytest.fixture
def box():
    return Sensitive(SECRET)


@pytest.mark.parametrize(
    "show",
    [
        repr,
        str,
        ascii,
        format,
        lambda b: f"{b:,.2f} {b!r} {b!s} {b:>30}",
        lambda b: "%s %r %a" % (b, b, b),  # noqa: UP031
        lambda b: "{} {:x}".format(b, b),  # noqa: UP032
        lambda b: repr([b, {"k": b}, (b,)]),
        lambda b: repr(b.map(lambda x: x + 1)),
        lambda b: " ".join(dir(b)),
    ],
)
def test_nothing_shows_the_value(box, show):
    text = show(box)
    assert str(SECRET) not in text.replace(",", "").replace("_", "")
    assert f"{SECRET:x}" not in text


def test_logs_are_redacted(box, caplog):
    logging.getLogger("demo").warning("total is %s", box)
    assert str(SECRET) not in caplog.text
    assert "redacted" in caplog.text


@pytest.mark.parametrize("copier", [copy.copy, copy.deepcopy])
def test_copying_is_refused(box, copier):
    with pytest.raises(SensitiveValue, match="cannot be copied"):
        copier(box)
    with pytest.raises(SensitiveValue):
        copy.deepcopy({"nested": [box]})


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickling_is_refused(box, protocol):
    with pytest.raises(SensitiveValue, match="cannot be pickled"):
        pickle.dumps([box], protocol=protocol)


@pytest.mark.parametrize("state", ["__getstate__", "__reduce__"])
def test_state_is_refused(box, state):
    with pytest.raises(SensitiveValue):
        getattr(box, state)()
    with pytest.raises(TypeError):
        vars(box)


@pytest.mark.parametrize(
    "peek",
    [
        lambda b: b == SECRET,
        lambda b: b != SECRET,
        lambda b: SECRET == b,  # noqa: SIM300
        lambda b: b < 10**9,
        lambda b: b <= 10**9,
        lambda b: b > 0,
        lambda b: b >= 0,
        lambda b: sorted([b, Sensitive(1)]),
        lambda b: np.int64(3) == b,
        lambda b: np.arange(3) == b,
        hash,
        bool,
        len,
        list,
        np.asarray,
        lambda b: {b},
        lambda b: 3 in b,
        lambda b: "yes" if b else "no",
        lambda b: not b,
    ],
)
def test_peeking_is_refused(box, peek):
    with pytest.raises(SensitiveValue) as caught:
        peek(box)
    assert isinstance(caught.value, DiscreetError)
    assert str(SECRET) not in str(caught.value)


@pytest.mark.parametrize(
    "use",
    [int, float, operator.index, json.dumps, lambda b: b + 1, lambda b: "%d" % b],  # noqa: UP031
)
def test_using_it_as_a_number_fails_without_telling(box, use):
    with pytest.raises(TypeError) as caught:
        use(box)
    assert str(SECRET) not in str(caught.value)


def test_reveal_is_the_one_way_out(box):
    assert box.reveal_without_noise() == SECRET
    assert box.map(lambda x: x * 2).reveal_without_noise() == 2 * SECRET


def test_errors_inside_map_are_redacted_with_all_they_carry():
    secret = Sensitive("alice@example.org")
    with pytest.raises(DataError, match="raised ValueError") as caught:
        secret.map(int)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    whole = "".join(traceback.format_exception(caught.value))
    assert "alice" not in whole.replace('Sensitive("alice@example.org")', "")


def test_interrupts_pass_through_map():
    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Sensitive(1).map(interrupt)


def test_nothing_can_be_hung_on_it(box):
    with pytest.raises(AttributeError):
        box.note = 1
