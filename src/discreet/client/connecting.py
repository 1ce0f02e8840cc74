"""Connecting to a gateway."""

import ssl
from os import PathLike, fspath

from discreet._exact import Number, positive
from discreet.client.address import read_address
from discreet.client.description import named
from discreet.client.remote_tables import RemoteTables
from discreet.client.transport import Token, Transport, Wire
from discreet.errors import ParameterError

__all__ = ["connect"]


def connect(
    url: str,
    *,
    token: str,
    dataset: str | None = None,
    purpose: str | None = None,
    timeout: Number = 60,
    certificates: "str | PathLike[str] | None" = None,
    vkey: str | None = None,
    insecure: bool = False,
) -> RemoteTables:
    """Return the tables behind a gateway, with the methods of those that are protected here.

    ``token`` is an API key, or a token of an issuer that the gateway trusts. ``dataset`` may be
    left out where the login sees one only. ``purpose`` is what questions are asked for, unless they
    say otherwise. A request that is not answered in ``timeout`` seconds is given up.

    TLS is verified, with the authorities of the system or those in the file ``certificates``; a
    token is not sent in the clear to another machine unless ``insecure``. ``vkey`` is the public
    key of the gateway's ledger; left out, it is taken from the gateway's first word.

    >>> connect("http://gateway.example", token="dk_...")
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: http:// would show the token to everybody on the way to
    gateway.example. Use https://, or insecure=True where the way is protected otherwise.
    """
    address, secret = read_address(url, insecure=insecure), Token(token)
    seconds = float(positive(timeout, name="timeout"))
    context = _context(certificates) if address.is_secure else None
    wire = Transport(address, secret, timeout=seconds, context=context)
    try:
        name = _only(wire) if dataset is None else _named(dataset)
        return RemoteTables(wire, name, purpose=purpose, vkey=vkey)
    except BaseException:
        wire.close()
        raise


def _context(certificates: "str | PathLike[str] | None") -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=certificates and fspath(certificates))
    except (OSError, TypeError) as error:  # of which those of TLS are a kind
        raise ParameterError(
            f"certificates must be a file with certificates ({type(error).__name__}).",
            parameter="certificates",
        ) from None


def _named(dataset: object) -> str:
    if isinstance(dataset, str) and dataset not in ("", ".", "..") and "/" not in dataset:
        return dataset
    raise ParameterError("dataset must be the name of one.", parameter="dataset")


def _only(wire: Wire) -> str:
    """Return the dataset of a login that sees one."""
    found = named(wire)
    if len(found) == 1:
        return _named(found[0])
    listed = f"one of {', '.join(sorted(found))}" if found else "one, but this login sees none"
    raise ParameterError(f"say which dataset: dataset= must be {listed}.", parameter="dataset")
