"""SCRAM-SHA-256: the vector of RFC 7677, and what must not get through."""

import base64

import pytest
from wire_gateway import KnownVerifier

from discreet.errors import Unauthenticated
from discreet.service.wire.auth.scram import ScramExchange
from discreet.service.wire.protocol.failures import WireFailure

NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = (
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
)
FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def exchange(binding=None, password="pencil"):
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    verifier = KnownVerifier.of(password, salt=salt, iterations=4096)
    return ScramExchange(verifier, binding=binding, nonce=NONCE)


def test_the_example_of_rfc_7677():
    scram = exchange()
    assert scram.first("SCRAM-SHA-256", FIRST) == SERVER_FIRST
    assert scram.final(FINAL) == SERVER_FINAL


def test_another_password_does_not_get_through():
    scram = exchange(password="pen")
    scram.first("SCRAM-SHA-256", FIRST)
    with pytest.raises(Unauthenticated):
        scram.final(FINAL)


@pytest.mark.parametrize(
    "final",
    [
        b"", b"p=", b",p=", FINAL.replace(b"biws", b"eSws"), FINAL.replace(b"rOpr", b"rOps"),
        FINAL[:-5], FINAL[:-1] + b"!", FINAL.replace(b"p=d", b"p=e"), FINAL.partition(b",p=")[0],
        FINAL.replace(b"c=biws,", b""),
    ],
)  # fmt: skip
def test_no_changed_proof_gets_through(final):
    scram = exchange()
    scram.first("SCRAM-SHA-256", FIRST)
    with pytest.raises(Unauthenticated):
        scram.final(final)


@pytest.mark.parametrize(
    "first",
    [
        b"", b"\xff", b"n", b"n,,", b"n,,n=user", b"n,,n=user,r=", b"n,a=admin,n=user,r=x",
        b"x,,n=user,r=x", b"p=tls-unique,,n=,r=x", b"p=tls-server-end-point,,n=,r=x",
        b"n,,m=ext,n=user,r=x",
    ],
)  # fmt: skip
def test_no_other_first_message_is_taken(first):
    with pytest.raises(WireFailure) as caught:
        exchange().first("SCRAM-SHA-256", first)
    assert caught.value.is_fatal


def test_a_client_that_was_not_told_of_channel_binding_is_warned():
    """Somebody in between took the better mechanism off the list."""
    with pytest.raises(WireFailure, match="did not arrive"):
        exchange(binding=b"hash").first("SCRAM-SHA-256", b"y,,n=,r=x")
    with pytest.raises(WireFailure, match="not offered"):
        exchange().first("SCRAM-SHA-256-PLUS", b"p=tls-server-end-point,,n=,r=x")
    with pytest.raises(WireFailure, match="not known"):
        exchange(binding=b"hash").first("SCRAM-SHA-256-PLUS", b"n,,n=,r=x")
