"""Settings of a session: how to pay, and what transactions do to them."""

from fractions import Fraction

import pytest

from discreet.service.wire.protocol.failures import WireFailure
from discreet.service.wire.session.payment import made_offer
from discreet.service.wire.session.variables import SessionVariables


def offer(**settings):
    given = {f"discreet.{name}": value for name, value in settings.items()}
    return made_offer(SessionVariables(given).own, who="ana")


def test_settings_make_an_offer():
    made = offer(epsilon="0.1", delta="1e-9", confidence="90%", purpose="budget", periods="a, b")
    assert (made.epsilon, made.delta) == (Fraction(1, 10), Fraction(1, 10**9))
    assert (made.confidence, made.purpose, made.who) == (Fraction(9, 10), "budget", "ana")
    assert made.periods == ["a", "b"]
    assert offer(share="5%").share == Fraction(1, 20)
    assert offer(within="5%", of="1000").within == 50
    assert offer(within="10", size="500").size == 500


def test_one_way_to_pay_makes_the_others_void():
    settings = SessionVariables({"discreet.epsilon": "0.1"})
    settings.set("discreet.within", "10")
    assert settings.own == {"within": "10"}
    settings.set("discreet.epsilon", "0.2")
    assert settings.own == {"epsilon": "0.2"}


def test_without_a_way_to_pay_there_is_a_hint():
    with pytest.raises(WireFailure) as caught:
        offer()
    assert caught.value.hint.startswith("SET discreet.epsilon = 0.1")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epsilon", "-1"), ("epsilon", "0"), ("epsilon", "abc"), ("epsilon", "1e999999999"),
        ("epsilon", "1" * 40), ("epsilon", "."), ("epsilon", "%"), ("share", "0"),
        ("share", "200%"), ("share", "1e999999999%"), ("within", "-1"), ("confidence", "1"),
        ("delta", "2"), ("size", "1.5"), ("errors", "perhaps"), ("epsilon", "x" * 5000),
        ("epsilom", "1"), ("epsilon", "nan"), ("epsilon", "1/3"), ("of", "0x10"),
    ],
)  # fmt: skip
def test_settings_that_mean_nothing_are_refused_when_they_are_set(name, value):
    with pytest.raises(WireFailure) as caught:
        SessionVariables({f"discreet.{name}": value})
    assert caught.value.code in ("22023", "42704")


def test_a_misspelled_setting_is_known():
    with pytest.raises(WireFailure) as caught:
        SessionVariables({}).set("discreet.epsilom", "1")
    assert caught.value.hint == "Did you mean discreet.epsilon?"


def test_settings_of_a_transaction_end_with_it():
    settings = SessionVariables({"discreet.epsilon": "0.1"})
    settings.begin()
    settings.set("discreet.epsilon", "0.2", is_local=True)
    settings.set("application_name", "x")
    assert settings["discreet.epsilon"] == "0.2"
    settings.end(is_kept=True)
    assert (settings["discreet.epsilon"], settings["application_name"]) == ("0.1", "x")
    settings.begin()
    settings.set("discreet.epsilon", "0.3")
    settings.end(is_kept=False)
    assert settings["discreet.epsilon"] == "0.1"


def test_settings_go_back_to_savepoints():
    settings = SessionVariables({})
    settings.begin()
    settings.set("discreet.epsilon", "0.1")
    settings.mark("a")
    settings.set("discreet.epsilon", "0.2")
    settings.return_to("A", is_released=False)
    assert settings["discreet.epsilon"] == "0.1"
    settings.return_to("a", is_released=True)
    with pytest.raises(WireFailure, match="no savepoint"):
        settings.return_to("a", is_released=False)


def test_resetting_goes_back_to_the_beginning():
    settings = SessionVariables({"discreet.share": "5%", "application_name": "tool"})
    settings.set("discreet.epsilon", "1")
    settings.set("application_name", "")
    settings.reset()
    assert settings.own == {"share": "5%"}
    assert settings["application_name"] == "tool"
    settings.set("discreet.epsilon", "1")
    settings.reset("discreet.epsilon")
    assert "epsilon" not in settings.own


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("client_encoding", "LATIN1", "22023"), ("DateStyle", "German", "22023"),
        ("standard_conforming_strings", "off", "22023"), ("server_version", "17", "55P02"),
        ("session_authorization", "bob", "55P02"), ("transaction_read_only", "off", "22023"),
    ],
)  # fmt: skip
def test_what_answers_are_written_in_cannot_be_changed(name, value, code):
    with pytest.raises(WireFailure) as caught:
        SessionVariables({}).set(name, value)
    assert caught.value.code == code


def test_settings_are_bounded():
    settings = SessionVariables({})
    room = 200 - len(settings.all())
    for number in range(room):
        settings.set(f"my.setting{number}", "x")
    with pytest.raises(WireFailure, match="at most 200"):
        settings.set("one.more", "x")
    settings.begin()
    for _ in range(200):
        settings.mark("again")
    with pytest.raises(WireFailure, match="at most 200"):
        settings.mark("again")
