import hashlib
import hmac
from base64 import b64decode, b64encode

import pytest

from discreet.service.identity.scram import ScramVerifier, decoy


def test_the_example_of_rfc_7677():
    """The whole exchange, as the RFC prints it."""
    salt, password = b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="), "pencil"
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    auth = (
        f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={nonce},s={b64encode(salt).decode()},i=4096,"
        f"c=biws,r={nonce}"
    ).encode()
    verifier = ScramVerifier.of(password, salt=salt)

    proof = b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    signature = hmac.digest(verifier.stored_key, auth, "sha256")
    client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
    assert hashlib.sha256(client_key).digest() == verifier.stored_key

    server = b64encode(hmac.digest(verifier.server_key, auth, "sha256"))
    assert server == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_each_verifier_has_a_salt_of_its_own_and_shows_nothing():
    one, two = ScramVerifier.of("x"), ScramVerifier.of("x")
    assert one.salt != two.salt
    assert repr(one) == "ScramVerifier(iterations=4096)"


def test_a_decoy_has_the_shape_of_the_real_one():
    real, false = ScramVerifier.of("x"), decoy("nobody", b"secret")
    shape = [
        (v.iterations, len(v.salt), len(v.stored_key), len(v.server_key)) for v in (real, false)
    ]
    assert shape[0] == shape[1]
    assert decoy("nobody", b"other") != false
    assert decoy("\ud800\0", b"secret") == decoy("\ud800\0", b"secret")


@pytest.mark.parametrize(
    "text", ["", "md5abc", "SCRAM-SHA-256$1:a", "SCRAM-SHA-1$1:YQ==$YQ==:YQ=="]
)
def test_no_other_text_is_a_verifier(text):
    with pytest.raises(ValueError, match="no SCRAM verifier"):
        ScramVerifier.read(text)
