"""Batches: signed as a whole, and nothing else is taken for one."""

import random

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from discreet.errors import DataError, ParameterError
from discreet.shuffle import BatchFacts, read_batch, read_vouching_key
from discreet.shuffle.batches.batch import sign_batch

KEY = Ed25519PrivateKey.generate()
GOOD = {
    "collection": "0123456789abcdef",
    "digest": "00" * 8,
    "number": 1,
    "id": "00" * 16,
    "senders": 5,
    "minimum": 5,
    "limit": 1,
    "dummies": 2,
    "envelopes": 7,
    "length": 3,
}


def test_a_batch_reads_back():
    batch = sign_batch(BatchFacts(**GOOD), b"\n" * 21, key=KEY)
    assert read_batch(batch.raw, key=KEY.public_key()) == batch


def test_any_change_is_noticed():
    raw = sign_batch(BatchFacts(**GOOD), bytes(21), key=KEY).raw
    rng = random.Random(1)
    for place in range(len(raw)):
        changed = bytearray(raw)
        changed[place] ^= rng.randrange(1, 256)
        with pytest.raises(DataError):
            read_batch(bytes(changed), key=KEY.public_key())
    for short in range(len(raw)):
        with pytest.raises(DataError):
            read_batch(raw[:short], key=KEY.public_key())
    with pytest.raises(DataError):
        read_batch(raw + b"\0", key=KEY.public_key())


def test_another_shuffler_is_not_believed():
    raw = sign_batch(BatchFacts(**GOOD), bytes(21), key=Ed25519PrivateKey.generate()).raw
    with pytest.raises(DataError, match="not signed by the shuffler's key"):
        read_batch(raw, key=KEY.public_key())


@pytest.mark.parametrize(
    "change",
    [
        {"senders": 4},  # below the minimum
        {"minimum": 1},
        {"number": 0},
        {"envelopes": 8},  # more than the limit allows
        {"envelopes": 6},  # fewer than senders
        {"limit": 0},
        {"dummies": -1},
        {"senders": 5.0},
        {"senders": True},
        {"collection": "0123456789abcde"},
        {"collection": "0123456789abcdeG"},
        {"id": 7},
    ],
)
def test_facts_that_do_not_hold_together_are_refused(change):
    with pytest.raises(DataError):
        BatchFacts(**GOOD | change)


def test_a_key_that_is_none_is_refused():
    with pytest.raises(ParameterError, match="43 letters"):
        read_vouching_key("abc")
