"""Tokens: only those that were issued are let in, each for what it is for."""

import random

import pytest

from discreet.shuffle.shuffler.senders import Passes


@pytest.fixture
def passes():
    return Passes(b"secret" * 6)


def test_a_token_names_its_sender_and_no_two_are_alike(passes):
    tokens = [passes.issue("sender") for _ in range(100)]
    assert len({passes.name(token, "sender") for token in tokens} - {None}) == 100


def test_roles_do_not_mix(passes):
    sender, analyser = passes.issue("sender"), passes.issue("analyser")
    assert passes.name(sender, "analyser") is passes.name(analyser, "sender") is None
    turned = "da" + sender[2:]
    assert passes.name(turned, "analyser") is None


def test_another_secret_knows_none_of_them(passes):
    assert Passes(b"another" * 5).name(passes.issue("sender"), "sender") is None


def test_changed_tokens_are_none(passes):
    rng = random.Random(1)
    token = passes.issue("sender")
    letters = "abcdefghijklmnopqrstuvwxyz234567ABCé_-= "
    for place in range(len(token)):
        other = rng.choice([one for one in letters if one != token[place]])
        assert passes.name(token[:place] + other + token[place + 1 :], "sender") is None
    for wrong in ("", "ds_", token[:-1], token + "A", token.upper(), token + "\n"):
        assert passes.name(wrong, "sender") is None


def test_they_do_not_show_their_secret(passes):
    assert repr(passes) == "Passes(...)"
