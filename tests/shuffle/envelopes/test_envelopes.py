"""Envelopes: the bytes are those of RFC 9180, they fit one place, and nothing crashes them."""

import os
import random
from collections import Counter

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from shuffle_rooms import collection

from discreet.errors import DataError, ParameterError
from discreet.shuffle import Envelopes, SealingKey, UnsealingKey

KEY = UnsealingKey.generate()
OURS = Envelopes(collection=b"c" * 8, digest=b"d" * 8, report=36)

# RFC 9180, appendix A.3.1.1: DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, base mode.
VECTOR = {
    "secret": "f3ce7fdae57e1a310d87f1ebbde6f328be0a99cdbcadf4d6589cf29de4b8ffd2",
    "point": "04fe8c19ce0905191ebc298a9245792531f26f0cece2460639e8bc39cb7f706a826a779b4cf969b8a"
    "0e539c7f62fb3d30ad6aa8f80e30f1d128aafd68a2ce72ea0",
    "enc": "04a92719c6195d5085104f469a8b9814d5838ff72b60501e2c4466e5e67b325ac98536d7b61a1af4b78e5"
    "b7f951c0900be863c403ce65c9bfcb9382657222d18c4",
    "info": "4f6465206f6e2061204772656369616e2055726e",
    "aad": "436f756e742d30",
    "plaintext": "4265617574792069732074727574682c20747275746820626561757479",
    "ciphertext": "5ad590bb8baa577f8619db35a36311226a896e7342a6d836d8b7bcd2f20b6c7f9076ac232e3ab252"
    "3f39513434",
}


def of_the_rfc() -> dict[str, bytes]:
    return {name: bytes.fromhex(text) for name, text in VECTOR.items()}


def test_the_suite_is_that_of_the_rfc():
    """By the library's inner door, as its public one takes no additional data and this has some."""
    from cryptography.hazmat.bindings._rust import openssl

    from discreet.shuffle.envelopes.sealing import _SUITE

    v = of_the_rfc()
    secret = ec.derive_private_key(int.from_bytes(v["secret"]), ec.SECP256R1())
    sealed = v["enc"] + v["ciphertext"]
    opened = openssl.hpke._decrypt_with_aad(_SUITE, sealed, secret, info=v["info"], aad=v["aad"])
    assert opened == v["plaintext"]


def test_what_was_sealed_opens_and_never_looks_the_same():
    report = os.urandom(36)
    first, second = (OURS.seal(report, key=KEY.public) for _ in range(2))
    assert OURS.open(first, key=KEY) == OURS.open(second, key=KEY) == report
    assert first[:17] == second[:17] == b"\1" + b"c" * 8 + b"d" * 8
    assert first[17:] != second[17:]
    assert report not in first


def test_every_envelope_of_a_collection_has_one_length():
    envelopes = Envelopes.of(collection())
    lengths = {len(envelopes.seal(os.urandom(envelopes.report), key=KEY.public)) for _ in range(20)}
    assert lengths == {envelopes.length}
    with pytest.raises(DataError, match="has 34 bytes, but this one has 33"):
        envelopes.seal(bytes(33), key=KEY.public)


@pytest.mark.parametrize("change", [{"collection": b"C" * 8}, {"digest": b"D" * 8}])
def test_an_envelope_fits_its_own_collection_and_parameters_alone(change):
    foreign = Envelopes(**{"collection": b"c" * 8, "digest": b"d" * 8, "report": 36} | change)
    sealed = foreign.seal(bytes(36), key=KEY.public)
    assert OURS.open(sealed, key=KEY) is None
    assert OURS.open(OURS.header + sealed[17:], key=KEY) is None  # with a header of ours, too


def test_another_key_opens_nothing():
    assert OURS.open(OURS.seal(bytes(36), key=KEY.public), key=UnsealingKey.generate()) is None


def test_a_changed_bit_is_noticed_wherever_it_is():
    sealed = OURS.seal(bytes(36), key=KEY.public)
    for place in range(OURS.length):
        changed = bytearray(sealed)
        changed[place] ^= 1 << place % 8
        assert OURS.open(bytes(changed), key=KEY) is None, place


def fuzzed(count: int, rng: random.Random) -> Counter[str]:
    good = [OURS.seal(bytes(36), key=KEY.public) for _ in range(50)]
    found: Counter[str] = Counter()
    for number in range(count):
        envelope = bytearray(rng.choice(good))
        kind = number % 7
        if kind == 1:
            envelope[rng.randrange(len(envelope))] ^= rng.randrange(1, 256)
        elif kind == 2:
            del envelope[rng.randrange(len(envelope)) :]
        elif kind == 3:
            envelope = bytearray(rng.randbytes(rng.randrange(300)))
        elif kind == 4:
            envelope[17:] = rng.randbytes(OURS.length - 17)
        elif kind == 5:  # a point that is none, or none of the curve
            point = b"\4" + rng.choice([bytes(64), b"\xff" * 64, rng.randbytes(64)])
            envelope[17:82] = rng.choice([point, bytes(65), b"\2" + point[1:]])
        elif kind == 6:
            envelope += rng.randbytes(rng.randrange(1, 9))
        opened = OURS.open(bytes(envelope), key=KEY)
        found["opened" if opened is not None else "refused"] += 1
    return found


def test_whatever_comes_is_opened_or_refused():
    assert fuzzed(700, random.Random(1)) == {"opened": 100, "refused": 600}


@pytest.mark.slow
def test_none_of_a_hundred_thousand_envelopes_crashes_and_exactly_the_good_ones_open():
    rng = random.Random(os.urandom(8))
    assert fuzzed(100_002, rng) == {"opened": 14_286, "refused": 85_716}


@pytest.mark.parametrize(
    "text",
    ["", "abc", "A" * 87, "é" * 87, "=" * 87, KEY.public.text + "=", KEY.public.text[:-1]],
    ids=["none", "short", "point", "letters", "padding", "long", "cut"],
)
def test_a_key_that_is_none_is_refused(text):
    with pytest.raises(ParameterError, match="a point of P-256"):
        SealingKey.read(text)


def test_a_secret_key_shows_nothing():
    assert repr(KEY) == "UnsealingKey(...)"
    assert UnsealingKey.read(KEY.kept).public == KEY.public
