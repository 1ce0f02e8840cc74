"""The way to a gateway: broken, hostile, slow, encrypted, shared by threads."""

import gc
import json
import ssl
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

import discreet
from discreet.client.address import read_address
from discreet.client.connections import ConnectionPool
from discreet.client.payment import offer_members
from discreet.client.problems import error_of
from discreet.client.transport import GatewayCall, Token, Transport
from discreet.errors import (
    AccountNotFound,
    AlreadyCharged,
    BudgetExceeded,
    DataError,
    DiscreetError,
    LedgerError,
    LedgerUnavailable,
    Missed,
    NotAllowed,
    ParameterError,
    Refused,
    TryLater,
    Unauthenticated,
)
from discreet.service.web.problems import problem_of
from discreet.tables import Offer

COUNT = "SELECT COUNT(*) AS n FROM people"
PROBLEM = "application/problem+json"
ME = GatewayCall("GET", "/v1/me")


def charges(both):
    with both.local() as here:
        return sum(one["kind"] == "charge" for one in here.account.history())


@pytest.mark.parametrize("after", [0, 5, 30, 400])
def test_a_connection_that_breaks_in_the_answer_is_tried_again_and_charged_once(
    both, cutter, after
):
    cut, asked = cutter(both.url), f"{COUNT} WHERE income > {after}"
    cut.after = after
    with discreet.connect(cut.url, token=both.site.keys["ana"], dataset="people") as tables:
        before = charges(both)
        cut.cuts = 1
        answer = tables.sql(asked, epsilon=1)
        assert charges(both) == before + 1
        asks = [one for one in cut.sent if asked.encode() in one]
        keys = [line for one in asks for line in one.split(b"\r\n") if b"Idempotency" in line]
        assert len(asks) == 2
        assert len(set(keys)) == 1
        assert tables.receipt(answer).is_proven


def test_a_connection_that_breaks_twice_is_given_up_with_the_key_to_ask_again(both, cutter):
    cut, asked = cutter(both.url), f"{COUNT} WHERE income > 1000"
    with discreet.connect(cut.url, token=both.site.keys["ana"], dataset="people") as tables:
        before = charges(both)
        cut.cuts = 2
        with pytest.raises(LedgerUnavailable, match=r"broke the connection.*key=") as found:
            tables.sql(asked, epsilon=1)
        assert found.value.may_be_recorded
        assert charges(both) == before + 1
        key = str(found.value).partition("key='")[2].partition("'")[0]
        assert tables.sql(asked, epsilon=1, key=key).is_recalled
        assert charges(both) == before + 1


def test_what_has_no_key_at_the_gateway_is_not_sent_twice(both, cutter):
    cut = cutter(both.url)
    with discreet.connect(cut.url, token=both.site.keys["ana"], dataset="people") as tables:
        workload = tables.plan([f"{COUNT} WHERE income > 2000"], epsilon=1)
        for act in (workload.release, lambda: tables.begin(COUNT, epsilon=1)):
            cut.cuts, sent = 1, len(cut.sent)
            with pytest.raises(LedgerUnavailable, match="may have been charged") as found:
                act()
            assert found.value.may_be_recorded
            assert len(cut.sent) == sent + 1


def test_idle_connections_are_kept_and_renewed(both, cutter):
    cut = cutter(both.url)
    with discreet.connect(cut.url, token=both.site.keys["ana"], dataset="people") as tables:
        for _ in range(5):
            assert tables.remaining <= 1
        assert cut.connections == 1
        (idle,) = tables._wire._pool._idle
        idle.sock.shutdown(2)
        assert tables.remaining <= 1
        assert cut.connections == 2


def test_threads_share_a_connection_pool(both):
    with both.remote() as tables, ThreadPoolExecutor(8) as pool:
        asked = [f"{COUNT} WHERE income > {3000 + n}" for n in range(24)]
        answers = list(pool.map(lambda one: tables.sql(one, epsilon=0.1), asked))
        assert [one.question for one in answers] == asked
        assert len({one.receipt.index for one in answers}) == 24
        assert len(tables._wire._pool._idle) <= 8


def test_a_closed_client_says_so_and_a_forgotten_one_closes_itself(both):
    tables = both.remote()
    tables.close()
    with pytest.raises(LedgerUnavailable, match="Connect again"):
        _ = tables.remaining
    forgotten = both.remote()
    pool = forgotten._wire._pool
    workload = forgotten.plan([COUNT], epsilon=1)
    del forgotten
    gc.collect()
    assert workload.release()[0].columns == ("n",)
    del workload
    gc.collect()
    assert pool.is_closed


def test_a_fork_begins_anew():
    pool = ConnectionPool(read_address("http://127.0.0.1:1"), None)
    pool._idle, pool._process = ["a connection of the parent's"], -1
    with pytest.raises(OSError):
        pool.take(ends=time.monotonic() + 5, fresh=False)


def reply(status, body=b"{}", *, kind="application/json", more=""):
    head = (
        f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    )
    return lambda request: [head.encode() + body]


def wire(url, **more):
    return Transport(read_address(url), Token("dk_very_secret"), timeout=5, **more)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (reply(200, b"not json"), "no JSON document"),
        (reply(200, b"[1]"), "no JSON document"),
        (reply(200, b"\xff\xfe"), "no JSON document"),
        (reply(200, b"[" * 100_000), "no JSON document"),
        (reply(200, b"<html>", kind="text/html"), "something else than JSON"),
        (reply(200, kind="application/json", more="Content-Encoding: gzip\r\n"), "else than JSON"),
        (reply(302, more="Location: https://evil.example/\r\n"), "redirect, which is not followed"),
        (reply(307, more="Location: /elsewhere\r\n"), "redirect, which is not followed"),
        (reply(404, b"gone", kind="text/plain"), "status 404 and no problem document"),
        (reply(400, b"nope", kind="application/problem+json"), "no JSON document"),
        (reply(101), "status 101"),
        (reply(204, b""), "something else than JSON|no JSON"),
        (lambda r: [b"SSH-2.0-OpenSSH_9.6\r\n"], "something else than HTTP"),
        (lambda r: [b"HTTP/1.1 200 OK\r\n" + b"X: " + b"a" * 100_000], "something else than HTTP"),
        (lambda r: [b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n"], "else than HTTP"),
        (lambda r: [b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n" + b"a" * 5000], "bytes"),
        (lambda r: [b"HTTP/1.1 200 OK\r\n\r\n" + b"a" * 5000], "more than 1,000 bytes"),
        (reply(502, b"bad", kind="text/html"), "not behind its address"),
        (reply(503, b"bad", kind="text/html"), "not behind its address"),
        (reply(503, b"", kind="text/html", more="Retry-After: 7\r\n"), "takes no more"),
        (reply(429, b"", kind="text/html", more="Retry-After: 7\r\n"), "takes no more"),
        (reply(400, b'{"detail": "\\u001b[2Jodd"}', kind=PROBLEM), r"^\[2Jodd"),
        (reply(400, b'{"detail": "dk_very_secret?"}', kind=PROBLEM), r"^\.\.\.\?"),
    ],
)  # fmt: skip
def test_strange_answers_give_clear_errors(impostor, answer, told):
    fake = impostor(answer)
    client = wire(fake.url, largest=1000 if "bytes" in told else 10**7)
    with pytest.raises(DiscreetError, match=told) as found:
        client.call(ME)
    assert "dk_very_secret" not in str(found.value)
    assert found.value.__cause__ is None
    assert fake.requests <= 2
    if isinstance(found.value, TryLater):
        assert found.value.seconds == 7
    client.close()


@pytest.mark.parametrize(
    "drip", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: "]
)
def test_a_gateway_that_drips_is_given_up_in_time(impostor, drip):
    def answer(request):
        yield drip
        for _ in range(100):
            time.sleep(0.05)
            yield b"a"

    fake = impostor(answer)
    client = Transport(read_address(fake.url), Token("dk"), timeout=0.3)
    start = time.monotonic()
    with pytest.raises(LedgerUnavailable, match=r"did not answer in 0\.3 seconds") as found:
        client.call(ME._replace(is_paid=True, key="mine"))
    assert found.value.may_be_recorded
    assert "key='mine'" in str(found.value)
    assert time.monotonic() - start < 3
    client.close()


def test_nobody_there_costs_nothing():
    for url in ("http://127.0.0.1:1", "http://[::1]:1"):
        with pytest.raises(LedgerUnavailable, match=r"cannot be reached .* Nothing was spent"):
            wire(url).call(ME)
    long = Transport(read_address(f"https://{'a' * 70}.example"), Token("dk"), timeout=5)
    with pytest.raises(LedgerUnavailable, match="cannot be reached"):
        long.call(ME)


@pytest.mark.parametrize(
    "url",
    ["http://gateway.example", "http://10.0.0.7:8000", "http://0.0.0.0:8000",
     "http://127.0.0.1.evil.example", "http://localhost.evil.example", "ftp://127.0.0.1",
     "127.0.0.1",
     "https://", "https://ana:secret@gateway.example", "https://gateway.example?x=1",
     "https://gateway.example#x", "https://gateway.example/\r\nX: y", "https://h:99999", "", 7,
     None,
     "http://127.0.0.1\\@evil.example"],
)  # fmt: skip
def test_bad_addresses_are_refused(url):
    with pytest.raises(ParameterError) as found:
        discreet.connect(url, token="dk")
    assert found.value.parameter == "url"
    assert "secret" not in str(found.value)


def test_good_addresses_are_read():
    told = [
        str(read_address(one))
        for one in ("http://localhost:8000/", "https://[::1]", "https://h:443/a/b/")
    ]
    assert told == ["http://localhost:8000", "https://[::1]", "https://h/a/b"]
    assert not read_address("http://gateway.example", insecure=True).is_secure


def test_timeouts_and_certificates_are_checked(tmp_path):
    for wrong in (0, -1, float("nan"), "7"):
        with pytest.raises(ParameterError) as found:
            discreet.connect("http://127.0.0.1:1", token="dk", timeout=wrong)
        assert found.value.parameter == "timeout"
    (tmp_path / "none.pem").write_text("nothing")
    for wrong in (tmp_path / "none.pem", tmp_path / "missing.pem", 7):
        with pytest.raises(ParameterError) as found:
            discreet.connect("https://127.0.0.1:1", token="dk", certificates=wrong)
        assert found.value.parameter == "certificates"


def certificate(folder):
    """Make a key and a certificate for 127.0.0.1."""
    from ipaddress import ip_address

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "gateway")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    both = folder / "both.pem"
    both.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    only = folder / "only.pem"
    only.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return both, only


def test_tls_is_verified(tmp_path):
    import socket

    both, only = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]

    def serve():
        while True:
            try:
                near, _ = server.accept()
            except OSError:
                return
            try:
                with context.wrap_socket(near, server_side=True) as safe:
                    safe.recv(65536)
                    safe.sendall(reply(200, b'{"who": "ana"}')(b"")[0])
            except OSError:
                near.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with pytest.raises(LedgerUnavailable, match="certificate is not trusted"):
        discreet.connect(f"https://127.0.0.1:{port}", token="dk_very_secret", dataset="people")
    trusting = wire(f"https://127.0.0.1:{port}", context=ssl.create_default_context(cafile=only))
    assert trusting.call(ME) == {"who": "ana"}
    trusting.close()
    with pytest.raises(LedgerUnavailable, match="cannot be reached"):
        wire(f"https://localhost:{port}", context=ssl.create_default_context(cafile=only)).call(ME)
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join(10)


def facts(error):
    named = {n: v for n, v in vars(error).items() if n != "offer"}
    return type(error), str(error), named


@pytest.mark.parametrize(
    "error",
    [
        Unauthenticated(),
        NotAllowed("no role."),
        AccountNotFound("none."),
        AlreadyCharged(entry=7),
        BudgetExceeded(used=0.25, would_be=1.25, budget="it", account="a", still="s", way_out="w"),
        BudgetExceeded(used=0.25, would_be=float("inf")),
        Refused(code="star", line=1, column=8, reason="Why.", remedy="What."),
        TryLater("later.", seconds=3.0),
        TryLater("later."),
        Missed("missed."),
        ParameterError("bad.", parameter="epsilon"),
        ParameterError("bad.", parameter="tables.people.unit"),
        LedgerUnavailable("full.", may_be_recorded=True),
        LedgerUnavailable("full."),
        DataError("unreadable."),
        LedgerError("conflict."),
    ],
    ids=lambda error: type(error).__name__,
)
def test_every_error_comes_back_as_it_was(error):
    document = json.loads(problem_of(error).body)
    back = error_of(document)
    if getattr(error, "parameter", "") == "tables.people.unit":
        assert back.parameter == "tables"
        return
    if isinstance(error, LedgerUnavailable):  # the reason, which names places, stays there
        assert isinstance(back, LedgerUnavailable)
        assert back.may_be_recorded == error.may_be_recorded
        assert "full" not in str(back)
        return
    assert facts(back) == facts(error)


def test_problems_without_their_facts_are_told_all_the_same():
    for kind in ("refused", "already-charged", "budget-exceeded", "invalid", "no such kind"):
        found = error_of({"type": f"urn:discreet:problem:{kind}", "detail": "what happened"})
        assert type(found) is DiscreetError
        assert str(found) == "what happened"
    late = error_of({"type": "urn:discreet:problem:try-later", "detail": "x"}, retry_after="4")
    assert late.seconds == 4
    errors = [{"where": "epsilon.float", "what": "..."}]
    bad = error_of({"type": "urn:discreet:problem:invalid", "detail": "x", "errors": errors})
    assert bad.parameter == "epsilon"


def test_offers_are_sent_exactly_or_to_the_safe_side():
    def sent(**fields):
        return offer_members(Offer(**fields), purpose=None)

    assert sent(epsilon=0.1) == {"epsilon": 0.1}
    assert sent(epsilon=Fraction(1, 10)) == {"epsilon": "1/10"}
    assert sent(epsilon=Fraction(1, 10), delta=Fraction(1, 3))["delta"] == "1/3"
    assert sent(share="5%") == {"share": "5%"}
    assert sent(share="0.125%") == {"share": "0.125%"}
    assert sent(share=0.25) == {"share": 0.25}
    for odd in (Fraction(10**20, 3 * 10**20 + 1), Fraction(2, 7 * 10**16)):
        assert Fraction(sent(epsilon=odd)["epsilon"]) < odd
        assert Fraction(sent(share=odd)["share"]) < odd
        assert Fraction(sent(within=odd)["within"]) < odd
    close = Fraction(10**20 - 1, 10**20 + 7)
    assert Fraction(sent(epsilon=1, confidence=close)["confidence"]) >= close
    assert sent(epsilon=10**400)["epsilon"] > 1e308
    assert sent(epsilon=1, periods="2026-01")["periods"] == ["2026-01"]
    assert offer_members(Offer(epsilon=1), purpose="a report")["purpose"] == "a report"


@pytest.mark.lengthy
def test_the_client_knows_nothing_of_the_service():
    program = (
        "import sys, discreet; discreet.connect; discreet.RemoteTables; "
        "print([m for m in sys.modules if m.startswith('discreet.service') or m in "
        "('starlette', 'pydantic', 'uvicorn', 'scipy', 'duckdb', 'pyarrow', 'rich')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
