"""No request hides in another one: what two readers might take for different things is refused."""

import json
import socket

import pytest
from gateway_sites import COUNT, QUERY, make_site, processes

from discreet.ledger import Ledger

pytestmark = pytest.mark.lengthy
BODY = json.dumps(COUNT).encode()
CHUNKED = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
LENGTH = f"Content-Length: {len(BODY)}\r\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    site = make_site(tmp_path_factory.mktemp("site"))
    with processes(site, workers=1) as (port, _):
        yield site, port


def answers(port, said):
    """Send bytes, and return all that comes until the other side hangs up."""
    found = b""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(said)
        connection.shutdown(socket.SHUT_WR)
        while more := connection.recv(65536):
            found += more
    return found


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        (f"{LENGTH}Transfer-Encoding: chunked\r\n", CHUNKED),
        (f"{LENGTH}Content-Length: 3\r\n", BODY),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", CHUNKED),
        ("Transfer-Encoding: xchunked\r\n", CHUNKED),
        ("Transfer-Encoding : chunked\r\n", CHUNKED),
        (f"{LENGTH}X: a\r\n b\r\n", BODY),
        ("Content-Length: -1\r\n", BODY),
        ("Content-Length: 99999999999999999999999\r\n", BODY),
        (f"{LENGTH}Authorization: Bearer {{other}}\r\n", BODY),
        (f"{LENGTH}Idempotency-Key: a\r\nIdempotency-Key: b\r\n", BODY),
    ],
)
def test_a_request_that_can_be_read_in_two_ways_is_read_in_none(place, headers, body):
    site, port = place
    head = (
        f"POST {QUERY} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {site.keys['ana']}\r\n"
        f"Content-Type: application/json\r\n{headers.format(other=site.keys['ben'])}\r\n"
    )
    hidden = f"GET /v1/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {site.keys['ben']}\r\n\r\n"
    found = answers(port, head.encode() + body + hidden.encode())
    assert found.startswith(b"HTTP/1.1 400 ")
    assert b'"rows"' not in found
    with Ledger.open(site.settings.ledger, read_only=True) as ledger:
        assert not [one for one in ledger.history() if one["kind"] == "charge"]


@pytest.mark.parametrize(
    "path",
    ["/v1/datasets/others%2F..%2Fpeople/query", "/v1/datasets/people%00/query", "//v1/me",
     "/v1/datasets/others/../people/query", "/v1/datasets/%ff%fe/query",
     "/v1/datasets/PEOPLE/query",
     "/v1/datasets/people/query/", "/v1/datasets//people/query"],
)  # fmt: skip
def test_an_address_that_only_looks_like_another_leads_nowhere(place, path):
    site, port = place
    head = (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {site.keys['ana']}\r\n"
        f"Content-Type: application/json\r\nConnection: close\r\n{LENGTH}\r\n"
    )
    assert answers(port, head.encode() + BODY).startswith(b"HTTP/1.1 404 ")
