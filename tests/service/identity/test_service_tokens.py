import json
import logging
import time
from base64 import urlsafe_b64encode
from concurrent.futures import ThreadPoolExecutor

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from discreet.errors import ParameterError, Unauthenticated
from discreet.ledger.writing.request import text as ledger_text
from discreet.service.identity.doorkeeper import Doorkeeper
from discreet.service.identity.issuers import Issuer
from discreet.service.identity.login import Role
from discreet.service.records import Records

AUDIENCE = "discreet-gateway"
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OWN_KEYS = {
    "a": ec.generate_private_key(ec.SECP256R1()),
    "b": ec.generate_private_key(ec.SECP256R1()),
}
FORGED = ec.generate_private_key(ec.SECP256R1())


def public(key, kid=None, **more):
    if isinstance(key, rsa.RSAPrivateKey):
        told = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    elif isinstance(key, ed25519.Ed25519PrivateKey):
        told = jwt.algorithms.OKPAlgorithm.to_jwk(key.public_key(), as_dict=True)
    else:
        told = jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return told | ({"kid": kid} if kid else {}) | more


@pytest.fixture
def issuer(small_issuer):
    small_issuer.keys = [public(OWN_KEYS["a"], "a", alg="ES256", use="sig")]
    return small_issuer


@pytest.fixture
def records(tmp_path):
    with Records.open(str(tmp_path / "gateway.db")) as opened:
        yield opened


@pytest.fixture
def keeper(issuer, records, clock):
    return Doorkeeper(records, [settings(issuer)], clock=clock)


def settings(issuer, **more):
    told = {"name": "corp", "url": issuer.url, "audience": AUDIENCE} | more
    return Issuer(**{"default_roles": (Role.ANALYST,)} | told)


def token(issuer, *, key=None, algorithm="ES256", header=None, without=(), **claims):
    now = time.time()
    told = {"iss": issuer.url, "aud": AUDIENCE, "sub": "ana", "exp": now + 60, "iat": now} | claims
    told = {name: value for name, value in told.items() if name not in without}
    headers = {"kid": "a"} if header is None else header
    return jwt.encode(told, key or OWN_KEYS["a"], algorithm, headers=headers)


def refused(keeper, text):
    with pytest.raises(Unauthenticated) as caught:
        keeper.login(text)
    assert str(caught.value) == str(Unauthenticated())
    return True


def raw(header, claims, signature=b"x"):
    parts = (json.dumps(header).encode(), json.dumps(claims).encode(), signature)
    return ".".join(urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def test_a_token_lets_in_whom_the_issuer_names(issuer, keeper):
    login = keeper.login(token(issuer, aud=["other", AUDIENCE]))
    assert (login.who, login.roles, login.key) == ("corp:ana", {Role.ANALYST}, None)
    assert login.expires > time.time() + 50
    assert ledger_text(login.who, name="who")


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://elsewhere.example"},
        {"iss": ["x"]},
        {"iss": None},
        {"aud": "another"},
        {"aud": []},
        {"aud": {"discreet-gateway": 1}},
        {"exp": time.time() - 31},
        {"exp": "soon"},
        {"exp": float("inf")},
        {"exp": 10**400},
        {"exp": [1]},
        {"nbf": time.time() + 3600},
        {"iat": time.time() + 3600},
        {"sub": ""},
        {"sub": "a\nb"},
        {"sub": " ana"},
        {"sub": 129 * "x"},
        {"sub": 7},
        {"sub": None},
        *({"without": (name,)} for name in ("iss", "aud", "exp", "sub")),
    ],
)
def test_claims_that_let_nobody_in(issuer, keeper, claims):
    if isinstance(claims.get("iss"), list):
        header, body = {"alg": "ES256", "kid": "a"}, {"iss": ["x"], "aud": AUDIENCE}
        assert refused(keeper, raw(header, body))
        return
    if "iss" in claims and claims["iss"] is None:
        claims = {"without": ("iss",)}
    assert refused(keeper, token(issuer, **claims))


@pytest.mark.parametrize("kind", ["logout+jwt", "secevent+jwt", "application/dpop+JWT"])
def test_other_tokens_of_the_issuer_for_this_audience_are_no_logins(issuer, keeper, kind):
    assert refused(keeper, token(issuer, header={"kid": "a", "typ": kind}))
    assert refused(keeper, token(issuer, events={"http://schemas.openid.net/event/logout": {}}))
    for good in ("JWT", "at+jwt", "application/at+jwt", "jwt", None):
        keeper.login(token(issuer, header={"kid": "a", "typ": good}))


def test_an_issuer_is_meant_to_the_letter(issuer, keeper):
    assert refused(keeper, token(issuer, iss=f"{issuer.url}/"))


def test_clocks_may_differ_a_little(issuer, keeper):
    now = time.time()
    keeper.login(token(issuer, exp=now - 10, iat=now + 10, nbf=now + 10))


def test_forged_signatures(issuer, keeper):
    real = token(issuer)
    assert refused(keeper, token(issuer, key=FORGED))
    head, body, signature = real.split(".")
    assert refused(keeper, f"{head}.{body}.")
    assert refused(keeper, f"{head}.{body}.{signature[:-4]}AAAA")
    other = token(issuer, sub="eve").split(".")[1]
    assert refused(keeper, f"{head}.{other}.{signature}")
    keeper.login(real)


def test_algorithms_that_need_no_private_key(issuer, keeper):
    issuer.keys.append(public(RSA_KEY, "r"))
    claims = {"iss": issuer.url, "aud": AUDIENCE, "sub": "eve", "exp": time.time() + 60}
    for none in ("none", "None", "NONE", ""):
        assert refused(keeper, raw({"alg": none, "kid": "a"}, claims, b""))
        assert refused(keeper, raw({"alg": none}, claims, b""))
    for key, kid in ((OWN_KEYS["a"], "a"), (RSA_KEY, "r")):
        for encoding in (Encoding.PEM, Encoding.DER):
            secret = key.public_key().public_bytes(encoding, PublicFormat.SubjectPublicKeyInfo)
            header = {"alg": "HS256", "kid": kid, "typ": "JWT"}
            unsigned = raw(header, claims, b"").rstrip(".")
            algorithm = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
            signature = urlsafe_b64encode(algorithm.sign(unsigned.encode(), secret)).rstrip(b"=")
            assert refused(keeper, f"{unsigned}.{signature.decode()}")


def test_a_symmetric_key_among_the_public_ones_is_not_used(issuer, keeper):
    secret = b"a secret that everybody can read"
    k = urlsafe_b64encode(secret).rstrip(b"=").decode()
    issuer.keys.append({"kty": "oct", "k": k, "kid": "s", "alg": "HS256"})
    assert refused(keeper, token(issuer, key=secret, algorithm="HS256", header={"kid": "s"}))


def test_keys_in_a_header_are_not_used(issuer, keeper):
    header = {"kid": "f", "jwk": public(FORGED, "f"), "jku": f"{issuer.url}/jwks"}
    assert refused(keeper, token(issuer, key=FORGED, header=header))
    assert refused(keeper, token(issuer, header={"kid": "a", "crit": ["exp"]}))
    assert refused(keeper, raw({"alg": "ES256", "kid": ["a"]}, {"iss": issuer.url}))
    assert refused(keeper, raw({"alg": ["ES256"], "kid": "a"}, {"iss": issuer.url}))


@pytest.mark.parametrize(
    "text",
    ["a.b.c", "..", "....", "", "a", "e30.e30.e30", raw([], {}), raw({}, []), "é.é.é", 9 * "."],
)
def test_what_is_no_token_at_all(keeper, text):
    assert refused(keeper, text)


def test_deep_and_long_tokens(issuer, keeper):
    deep = urlsafe_b64encode(b'{"a":' + 2000 * b"[" + 2000 * b"]" + b"}").rstrip(b"=").decode()
    assert refused(keeper, f"{deep}.{deep}.AA")
    assert refused(keeper, token(issuer, filler=20_000 * "x"))


# Keys


def test_a_key_of_each_kind(issuer, records, clock):
    keys = {
        "RS256": RSA_KEY,
        "PS256": RSA_KEY,
        "ES256": OWN_KEYS["a"],
        "ES384": ec.generate_private_key(ec.SECP384R1()),
        "EdDSA": ed25519.Ed25519PrivateKey.generate(),
    }
    issuer.keys = [public(key, name) for name, key in keys.items()]
    keeper = Doorkeeper(records, [settings(issuer, algorithms=tuple(keys))], clock=clock)
    for name, key in keys.items():
        keeper.login(token(issuer, key=key, algorithm=name, header={"kid": name}))
    fewer = Doorkeeper(records, [settings(issuer, algorithms=("ES256",))], clock=clock)
    assert refused(fewer, token(issuer, key=RSA_KEY, algorithm="RS256", header={"kid": "RS256"}))


@pytest.mark.filterwarnings("ignore::jwt.InsecureKeyLengthWarning")
def test_keys_for_other_ends_are_not_used(issuer, keeper):
    weak = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    issuer.keys = [
        public(OWN_KEYS["a"], "a", use="enc"),
        public(OWN_KEYS["b"], "b", alg="ECDH-ES"),
        public(weak, "w"),
        {"kty": "EC"},
        {"kty": "EC", "crv": "P-256", "x": "?", "y": 7},
        "no key",
        public(RSA_KEY, "r"),
    ]
    assert refused(keeper, token(issuer))
    assert refused(keeper, token(issuer, key=OWN_KEYS["b"], header={"kid": "b"}))
    assert refused(keeper, token(issuer, key=weak, algorithm="RS256", header={"kid": "w"}))
    keeper.login(token(issuer, key=RSA_KEY, algorithm="RS256", header={"kid": "r"}))


def test_a_new_key_is_fetched_and_an_old_one_ends(issuer, keeper, clock):
    old = token(issuer)
    new = token(issuer, key=OWN_KEYS["b"], header={"kid": "b"})
    keeper.login(old)
    issuer.keys = [public(OWN_KEYS["b"], "b")]
    assert refused(keeper, new)  # asked just now
    clock.now += 10
    keeper.login(new)
    assert refused(keeper, old)
    assert issuer.asked == 2


def test_made_up_key_ids_do_not_make_the_gateway_ask_more_than_once_in_ten_seconds(
    issuer, keeper, clock
):
    keeper.login(token(issuer))
    clock.now += 10
    forged = [token(issuer, key=FORGED, header={"kid": f"made-up-{n}"}) for n in range(50)]
    forged += [token(issuer, key=FORGED, header={}) for n in range(10)]
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda text: refused(keeper, text), forged))
    assert issuer.asked == 2
    clock.now += 9.9
    assert refused(keeper, forged[0])
    assert issuer.asked == 2
    clock.now += 0.1
    assert refused(keeper, forged[0])
    assert issuer.asked == 3


def test_a_forged_signature_under_a_known_id_asks_nobody(issuer, keeper, clock):
    keeper.login(token(issuer))
    clock.now += 10
    assert refused(keeper, token(issuer, key=FORGED))
    assert issuer.asked == 1


def test_many_who_come_first_ask_once(issuer, keeper):
    text = token(issuer)
    with ThreadPoolExecutor(8) as pool:
        assert len(list(pool.map(keeper.login, 16 * [text]))) == 16
    assert issuer.asked == 1


def test_keys_are_fetched_anew_after_ten_minutes(issuer, keeper, clock):
    text = token(issuer)
    keeper.login(text)
    clock.now += 599
    keeper.login(text)
    assert issuer.asked == 1
    issuer.keys = []
    clock.now += 1
    assert refused(keeper, text)


def test_two_keys_without_an_id(issuer, keeper):
    issuer.keys = [public(OWN_KEYS["a"]), public(RSA_KEY), public(OWN_KEYS["b"])]
    for key in OWN_KEYS.values():
        keeper.login(token(issuer, key=key, header={}))
    assert refused(keeper, token(issuer, key=FORGED, header={}))
    assert refused(keeper, token(issuer, header={"kid": "a"}))
    assert issuer.asked == 1


def test_a_token_without_an_id_finds_a_new_key(issuer, keeper, clock):
    keeper.login(token(issuer, header={}))
    issuer.keys = [public(OWN_KEYS["b"])]
    clock.now += 10
    keeper.login(token(issuer, key=OWN_KEYS["b"], header={}))


# An issuer in trouble


def test_while_an_issuer_does_not_answer_its_last_keys_go_on(issuer, keeper, clock, caplog):
    text = token(issuer)
    keeper.login(text)
    issuer.answer = 503
    clock.now += 601
    with caplog.at_level(logging.WARNING):
        keeper.login(text)
        keeper.login(text)
    assert issuer.asked == 2
    assert "answered 503" in caplog.text
    assert text.split(".")[2] not in caplog.text


@pytest.mark.parametrize("answer", [404, 500, b"no JSON", b"[]", b"{}", b'{"keys": 3}', b"[" * 300])
def test_an_issuer_without_keys_is_no_fault_of_the_gateway(issuer, keeper, caplog, answer):
    issuer.answer = answer
    text = token(issuer)
    with caplog.at_level(logging.WARNING):
        assert refused(keeper, text)
    assert "issuer corp: no keys, its tokens are not taken" in caplog.text
    assert text.split(".")[1] not in caplog.text


def test_an_issuer_that_is_not_there(small_issuer, records, clock, caplog):
    gone = settings(small_issuer, url="http://127.0.0.1:9")
    keeper = Doorkeeper(records, [gone], clock=clock)
    with caplog.at_level(logging.WARNING):
        assert refused(keeper, token(small_issuer, iss="http://127.0.0.1:9"))
    assert "could not be fetched" in caplog.text


def test_an_answer_without_end_is_left(issuer, keeper, caplog):
    issuer.answer = b'{"keys": "' + bytes(1 << 19) + b'"}'
    with caplog.at_level(logging.WARNING):
        assert refused(keeper, token(issuer))
    assert "too large" in caplog.text


@pytest.mark.parametrize(
    "configuration",
    [
        {"issuer": "https://elsewhere.example"},
        {"jwks_uri": None},
        {"jwks_uri": "http://elsewhere.example/jwks"},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": "//[::1"},
    ],
)
def test_a_configuration_that_leads_astray(issuer, keeper, configuration):
    issuer.configuration = configuration
    assert refused(keeper, token(issuer))
    assert issuer.asked == 0


def test_redirects_stay_on_channels_that_are_safe(issuer, keeper, records, clock, caplog):
    with caplog.at_level(logging.WARNING):
        for astray in ("file:///etc/passwd", "http://elsewhere.example/", "https://127.0.0.1:9/"):
            issuer.redirect = astray
            assert refused(Doorkeeper(records, [settings(issuer)], clock=clock), token(issuer))
    told = [record.getMessage() for record in caplog.records]
    assert "answered 302" in told[0]
    assert "must begin with https://" in told[1]
    assert "address of another kind" in told[2]


def test_keys_at_an_address_of_their_own(issuer, records, clock):
    issuer.configuration = {"issuer": "unused"}
    keeper = Doorkeeper(records, [settings(issuer, jwks_url=f"{issuer.url}/keys")], clock=clock)
    keeper.login(token(issuer))


# Settings


@pytest.mark.parametrize(
    ("claim", "claims"),
    [
        ("groups", {"groups": ["a", "b", "x", 3]}),
        ("groups", {"groups": "a b x"}),
        ("realm.roles", {"realm": {"roles": ["a", "b"]}}),
        ("https://x.example/roles", {"https://x.example/roles": ["b", "a"]}),
    ],
)
def test_roles_come_from_a_claim(issuer, records, clock, claim, claims):
    roles = {"a": (Role.CUSTODIAN,), "b": (Role.AUDITOR, Role.CUSTODIAN)}
    told = settings(issuer, roles_claim=claim, roles=roles, default_roles=())
    login = Doorkeeper(records, [told], clock=clock).login(token(issuer, **claims))
    assert login.roles == {Role.CUSTODIAN, Role.AUDITOR}


@pytest.mark.parametrize(
    "claims", [{}, {"realm": 3}, {"realm": {"roles": {"a": 1}}}, {"realm": []}]
)
def test_without_the_claim_only_the_roles_of_everybody_are_left(issuer, claims):
    told = settings(issuer, roles_claim="realm.roles", roles={"a": (Role.CUSTODIAN,)})
    assert told.roles_of(claims) == {Role.ANALYST}


def test_an_address_counts_only_where_it_was_verified(issuer):
    told = settings(issuer, who_claim="email")
    assert told.who({"email": "ana@x.example", "email_verified": True}) == "corp:ana@x.example"
    assert told.who({"email": "ana@x.example"}) is None
    assert told.who({"email": "ana@x.example", "email_verified": "true"}) is None


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"name": "a:b"}, "name"),
        ({"name": ""}, "name"),
        ({"url": "http://login.example.com"}, "url"),
        ({"url": "https://user:pw@login.example.com"}, "url"),
        ({"url": "https://"}, "url"),
        ({"url": "https://login.example.com:port"}, "url"),
        ({"jwks_url": "ftp://login.example.com"}, "jwks_url"),
        ({"audience": ""}, "audience"),
        ({"audience": ()}, "audience"),
        ({"algorithms": ("none",)}, "algorithms"),
        ({"algorithms": ("ES256", "HS256")}, "algorithms"),
        ({"algorithms": ()}, "algorithms"),
        ({"leeway": float("nan")}, "leeway"),
        ({"leeway": 3600}, "leeway"),
        ({"who_claim": ""}, "who_claim"),
    ],
)
def test_settings_that_would_let_strangers_in(issuer, wrong, match):
    with pytest.raises(ParameterError, match=match) as caught:
        settings(issuer, **wrong)
    assert caught.value.parameter == match


def test_two_issuers_have_two_names(issuer, records):
    other = settings(issuer, url="https://other.example")
    for pair in ([settings(issuer), other], [settings(issuer), settings(issuer, name="x")]):
        with pytest.raises(ParameterError, match="of their own"):
            Doorkeeper(records, pair)
