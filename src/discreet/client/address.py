"""Where a gateway is: read from its address, and refused where a token would be overheard."""

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, final
from urllib.parse import urlsplit

from discreet.errors import ParameterError

__all__ = ["GatewayAddress", "read_address"]

_PORTS: Final = {"https": 443, "http": 80}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayAddress:
    """A gateway's host and port, whether TLS protects the way there, and the path before ours.

    >>> print(read_address("https://gateway.example/stats/"))
    https://gateway.example/stats
    """

    is_secure: bool
    host: str
    port: int
    prefix: str

    def __str__(self) -> str:
        scheme = "https" if self.is_secure else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[scheme] else f":{self.port}"
        return f"{scheme}://{host}{port}{self.prefix}"


def read_address(url: str, *, insecure: bool = False) -> GatewayAddress:
    """Return the address in a URL; without TLS only of this machine, unless ``insecure``.

    >>> read_address("http://gateway.example")
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: http:// would show the token to everybody on the way to
    gateway.example. Use https://, or insecure=True where the way is protected otherwise.
    """
    wanted = "url must be such as https://gateway.example or http://127.0.0.1:8000"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except (ValueError, AttributeError, TypeError):
        host = None
    if host is None or parts.scheme not in _PORTS or not _is_plain(url):
        raise ParameterError(f"{wanted}.", parameter="url")
    if "@" in parts.netloc:  # it would be shown wherever the address is
        raise ParameterError(f"{wanted}, without a name or password.", parameter="url")
    if parts.query or parts.fragment:
        raise ParameterError(f"{wanted}, without anything behind its path.", parameter="url")
    is_secure = parts.scheme == "https"
    if not (is_secure or insecure or _is_here(host)):
        raise ParameterError(
            f"http:// would show the token to everybody on the way to {host}. Use https://, or "
            "insecure=True where the way is protected otherwise.",
            parameter="url",
        )
    return GatewayAddress(
        is_secure=is_secure,
        host=host,
        port=_PORTS[parts.scheme] if port is None else port,
        prefix=parts.path.rstrip("/"),
    )


def _is_plain(url: str) -> bool:
    return url.isascii() and url.isprintable() and " " not in url and "\\" not in url


def _is_here(host: str) -> bool:
    """Whether a host is this machine, whatever a name server says."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
