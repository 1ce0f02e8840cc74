"""Whoever says nothing, or too much, before a request has begun is not waited for."""

import socket
import time

import pytest

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
