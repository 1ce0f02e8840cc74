"""Whoever says nothing, or too much, before a request has begun is not waited for."""

import contextlib
import json
import socket
import time

import pytest
from gateway_sites import COUNT, QUERY

from discreet.service.running import heads

pytestmark = pytest.mark.lengthy
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: here\r\n"


def ended(url, said, *, drip=b""):
    """Say something, then drip; return what came back before the other side hung up."""
    host, _, port = url.removeprefix("http://").partition(":")
    heard = b""
    with socket.create_connection((host, int(port)), timeout=10) as there:
        try:
            there.sendall(said)
            there.settimeout(0.1)
            ends = time.monotonic() + 5
            while time.monotonic() < ends:
                try:
                    piece = there.recv(65536)
                except TimeoutError:
                    there.sendall(drip)
                    continue
                if not piece:
                    return heard
                heard += piece
        except ConnectionError:
            return heard
    raise AssertionError("nobody hung up")


@pytest.mark.parametrize(
    ("said", "drip"),
    [(b"", b""), (REQUEST, b""), (REQUEST, b"x: y\r\n"), (REQUEST + b"\r\n" + REQUEST, b"x")],
)
def test_a_request_has_to_begin_soon(site, monkeypatch, said, drip):
    monkeypatch.setattr(heads, "_PATIENCE", 0.5)
    with site.running(http=heads.BriefHeads) as url:
        assert ended(url, said, drip=drip).count(b'"alive"') == said.count(b"\r\n\r\n")


def test_headers_have_an_end(site):
    with site.running(http=heads.BriefHeads) as url:
        assert ended(url, REQUEST + b"x: " + 1_000_000 * b"a") == b""


def test_a_connection_is_kept_between_requests(site, monkeypatch):
    monkeypatch.setattr(heads, "_PATIENCE", 0.3)
    with site.running(http=heads.BriefHeads) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=5) as there:
            for _ in range(2):
                there.sendall(REQUEST + b"\r\n")
                while b'"alive"' not in there.recv(65536):
                    pass
                time.sleep(0.6)


BODY = b"Content-Type: application/json\r\n"


@pytest.mark.parametrize(
    ("said", "drip"),
    [
        (REQUEST + b"Content-Length: 99999999999\r\n\r\n", b"x"),
        (REQUEST + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        (REQUEST.replace(b"GET /healthz", b"POST /no") + b"Content-Length: 9999\r\n\r\n", b"x"),
        (REQUEST.replace(b"GET /healthz", b"POST /v1/datasets/people/query") + BODY
         + b"Content-Length: 99999\r\n\r\n", b"x"),
    ],
)  # fmt: skip
def test_the_rest_of_a_request_that_was_answered_is_not_awaited_for_ever(
    site, monkeypatch, said, drip
):
    monkeypatch.setattr(heads, "_PATIENCE", 0.5)
    with site.running(http=heads.BriefHeads) as url:
        assert ended(url, said, drip=drip).count(b"HTTP/1.1 ") == 1


def test_a_body_that_comes_in_time_may_come_in_pieces(site, monkeypatch):
    monkeypatch.setattr(heads, "_PATIENCE", 0.4)
    body = json.dumps(COUNT).encode()
    head = (
        f"POST {QUERY} HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n"
        f"Authorization: {site.header('ana')['Authorization']}\r\nContent-Length: {len(body)}\r\n"
    )
    with site.running(http=heads.BriefHeads) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=10) as there:
            for _ in range(2):
                there.sendall(head.encode() + b"\r\n")
                for at in range(0, len(body), 20):
                    there.sendall(body[at : at + 20])
                    time.sleep(0.2)
                assert there.recv(65536).startswith(b"HTTP/1.1 200")
                time.sleep(0.6)


def test_whoever_takes_no_answers_is_not_waited_for(site, monkeypatch):
    monkeypatch.setattr(heads, "_STALLED", 0.5)
    asked = REQUEST.replace(b"/healthz", b"/v1/openapi.json") + b"\r\n"
    with site.running(http=heads.BriefHeads) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        with socket.socket() as there:
            there.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            there.connect((host, int(port)))
            there.sendall(200 * asked)
            time.sleep(4)
            there.settimeout(5)
            heard = 0
            with contextlib.suppress(ConnectionError):
                while piece := there.recv(1 << 20):
                    heard += len(piece)
    assert heard < 10_000_000  # what was on its way, of twenty million


def test_whoever_is_slow_gets_the_whole_answer(site, monkeypatch):
    monkeypatch.setattr(heads, "_STALLED", 1.0)
    asked = REQUEST.replace(b"/healthz", b"/v1/openapi.json") + b"\r\n"
    with site.running(http=heads.BriefHeads) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=10) as there:
            there.sendall(400 * asked)
            answers, piece, ends = 0, b"", time.monotonic() + 60
            while answers < 400 and time.monotonic() < ends:
                piece = piece[-11:] + there.recv(1 << 17)
                answers += piece.count(b"HTTP/1.1 200")
                time.sleep(0.02)
    assert answers == 400
