"""What a browser seals, Python opens: HPKE of RFC 9180, with the RFC's vector."""

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from discreet import local
from discreet.local.wire import parameters_of, sort_out

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.lengthy]

SUITE = Suite(KEM.P256, KDF.HKDF_SHA256, AEAD.AES_128_GCM)

# RFC 9180, appendix A.3.1: base mode, the message with sequence number 0.
RFC = {
    "info": "4f6465206f6e2061204772656369616e2055726e",
    "ephemeral": "4995788ef4b9d6132b249ce59a77281493eb39af373d236a1fe415cb0c2d7beb",
    "encapsulated": "04a92719c6195d5085104f469a8b9814d5838ff72b60501e2c4466e5e67b325ac98536d7b6"
    "1a1af4b78e5b7f951c0900be863c403ce65c9bfcb9382657222d18c4",
    "public": "04fe8c19ce0905191ebc298a9245792531f26f0cece2460639e8bc39cb7f706a826a779b4cf969b8a"
    "0e539c7f62fb3d30ad6aa8f80e30f1d128aafd68a2ce72ea0",
    "message": "4265617574792069732074727574682c20747275746820626561757479",
    "aad": "436f756e742d30",
    "sealed": "5ad590bb8baa577f8619db35a36311226a896e7342a6d836d8b7bcd2f20b6c7f9076ac232e3ab252"
    "3f39513434",
}
HEX = """
  const bytes = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
  const hex = (all) => [...all].map((one) => one.toString(16).padStart(2, "0")).join("");
"""
SEAL = (
    "async (given) => {"
    + HEX
    + """
  const part = (name) => bytes(given[name]);
  let ephemeral;
  if (given.ephemeral) {
    const base64 = (all) => btoa(String.fromCharCode(...all)).replace(/[+]/g, "-")
      .replace(/[/]/g, "_").replace(/=/g, "");
    const point = part("encapsulated");
    const curve = { name: "ECDH", namedCurve: "P-256" };
    const [x, y, d] = [point.slice(1, 33), point.slice(33), part("ephemeral")].map(base64);
    const jwk = { kty: "EC", crv: "P-256", x, y, d };
    ephemeral = {
      privateKey: await crypto.subtle.importKey("jwk", jwk, curve, false, ["deriveBits"]),
      publicKey: await crypto.subtle.importKey("raw", point, curve, true, []),
    };
  }
  const how = { info: part("info"), aad: part("aad"), ephemeral };
  return hex(await local.seal(part("public"), part("message"), how));
}"""
)
ENVELOPE = (
    "async ({ parameters, key, value }) => {"
    + HEX
    + """
  const report = (await local.simulate(parameters))(value);
  return [hex(report), hex(await local.envelope(bytes(key), report))];
}"""
)


def point_of(key):
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


@pytest.fixture(scope="module")
def key():
    return ec.generate_private_key(ec.SECP256R1())


def test_the_vector_of_the_rfc(device, module):
    assert device(module).evaluate(SEAL, RFC) == RFC["encapsulated"] + RFC["sealed"]


@pytest.mark.parametrize("message", [b"", b"x", bytes(range(256)) * 40], ids=len)
@pytest.mark.parametrize("info", [b"", b"some context"])
def test_python_opens_what_a_browser_seals(device, key, message, info):
    page = device()
    given = {"public": point_of(key).hex(), "info": info.hex(), "message": message.hex(), "aad": ""}
    one, two = (bytes.fromhex(page.evaluate(SEAL, given)) for _ in range(2))
    assert one[:65] != two[:65]  # another key each time
    assert len(one) == len(message) + 81
    assert SUITE.decrypt(one, key, info=info) == SUITE.decrypt(two, key, info=info) == message


def test_an_envelope_is_bound_to_its_header(device, key):
    randomiser = local.HadamardResponse(domain=1000, epsilon=1)
    parameters = parameters_of(randomiser, name="x", a_day=1, lifetime=1)
    given = {"parameters": parameters.document, "key": point_of(key).hex(), "value": 7}
    report, envelope = (bytes.fromhex(one) for one in device().evaluate(ENVELOPE, given))
    header, sealed = envelope[:17], envelope[17:]
    assert header == b"\1" + bytes.fromhex(parameters.collection) + parameters.digest
    label = b"discreet envelope v1"
    assert SUITE.decrypt(sealed, key, info=label + header) == report
    assert sort_out(parameters, [report]).accepted == 1
    with pytest.raises(InvalidTag):
        SUITE.decrypt(sealed, key, info=label + bytes(17))


def test_a_point_that_is_none_of_the_curve_is_refused(device):
    given = RFC | {"public": "04" + "11" * 64}
    told = f"(given) => ({SEAL})(given).then(() => null, (problem) => problem.name)"
    assert device().evaluate(told, given) == "DataError"
