"""Fetch what an issuer publishes: small, soon, and over a channel that says whose it is."""

import time
from collections.abc import Mapping
from http.client import HTTPException, HTTPMessage, HTTPResponse
from ipaddress import ip_address
from typing import IO, Any, Final
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener, getproxies

from discreet._json import read_json

__all__ = ["check_address", "fetch_json"]

TIMEOUT: Final = 5.0  # seconds, all in all
LARGEST: Final = 1 << 18  # bytes


def check_address(url: str) -> None:
    """Raise ``ValueError`` unless an address is https, or http on this very machine.

    >>> check_address("https://login.example.com/tenant"), check_address("http://127.0.0.1:9400")
    (None, None)
    >>> check_address("http://login.example.com")
    Traceback (most recent call last):
        ...
    ValueError: an address must begin with https://, or be of this machine itself
    """
    parts = urlsplit(url)
    is_plain = parts.username is None and parts.port != 0  # an impossible port raises by itself
    is_https = parts.scheme == "https" and bool(parts.hostname)
    if not is_plain or not (is_https or (parts.scheme == "http" and _is_loopback(parts.hostname))):
        raise ValueError("an address must begin with https://, or be of this machine itself")


def fetch_json(url: str) -> Mapping[str, Any]:
    """Return the JSON object at an address; raise nothing but ``ValueError``, with the reason."""
    check_address(url)
    deadline = time.monotonic() + TIMEOUT
    try:
        asked = Request(url, headers={"Accept": "application/json"})  # noqa: S310  checked above
        with _opener.open(asked, timeout=TIMEOUT) as response:
            body = _read(response, deadline)
    except HTTPError as error:
        error.close()
        raise ValueError(f"{url} answered {error.code}") from None
    except (OSError, HTTPException) as error:
        raise ValueError(f"{url} could not be fetched ({error})") from None
    found = read_json(body)
    if not isinstance(found, dict):
        raise ValueError(f"{url} has no JSON object")
    return found


def _read(response: HTTPResponse, deadline: float) -> bytes:
    body = bytearray()
    while chunk := response.read1(1 << 16):
        body += chunk
        # A timeout of a socket begins anew with every byte that trickles in.
        if len(body) > LARGEST or time.monotonic() > deadline:
            raise ValueError("an issuer's answer is too large or too slow")
    return bytes(body)


def _is_loopback(host: str | None) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host or "").is_loopback
    except ValueError:
        return False


class _SameScheme(HTTPRedirectHandler):
    """Follow redirects, but never off https."""

    def redirect_request(
        self,
        req: Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> Request | None:
        check_address(newurl)
        if urlsplit(newurl).scheme != urlsplit(req.full_url).scheme:
            raise ValueError(f"{req.full_url} leads to an address of another kind")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


# To this machine itself nobody goes through a proxy.
_PROXIES: Final = {kind: url for kind, url in getproxies().items() if kind == "https"}
_opener = build_opener(_SameScheme, ProxyHandler(_PROXIES))
