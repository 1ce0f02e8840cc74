"""Who may send: bearer tokens that the shuffler can check without keeping a list of people."""

import base64
import hashlib
import hmac
import re
from typing import Final, Literal, final

from discreet.noise import SYSTEM, Source
from discreet.shuffle.envelopes.keys import plain_text

__all__ = ["Passes", "Role"]

Role = Literal["sender", "analyser"]

_PREFIXES: Final[dict[Role, str]] = {"sender": "ds", "analyser": "da"}
_PASS: Final = re.compile(r"(d[sa])_([a-z2-7]{16})_([A-Za-z0-9_-]{43})")


@final
class Passes:
    """Make and check the tokens of senders, and that of the analyser.

    A token is ``ds_<id>_<mac>``: 80 random bits, and an HMAC of them under the shuffler's secret.

    Claim: who has not the secret cannot make a token that was not issued. So the number of
    different senders in a batch is at most the number of tokens issued, whoever sends.

    Why: HMAC-SHA256 is a pseudorandom function [Bel06]. A token, unlike a signature, leaves nothing
    with which the shuffler could prove to others who sent what.

    >>> passes = Passes(bytes(32))
    >>> token = passes.issue("sender")
    >>> passes.name(token, "sender") == token.split("_")[1], passes.name(token, "analyser")
    (True, None)
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def issue(self, role: Role, *, source: Source = SYSTEM) -> str:
        """Return a new token. It is kept nowhere."""
        name = base64.b32encode(source.read(10)).decode().lower()
        return f"{_PREFIXES[role]}_{name}_{self._mac(role, name)}"

    def name(self, token: str, role: Role) -> str | None:
        """Return the id in a token, None unless it is one of ours for that role."""
        found = _PASS.fullmatch(token)
        if found is None or found[1] != _PREFIXES[role]:
            return None
        return found[2] if hmac.compare_digest(found[3], self._mac(role, found[2])) else None

    def _mac(self, role: Role, name: str) -> str:
        message = f"discreet {role} v1 {name}".encode()
        return plain_text(hmac.digest(self._secret, message, hashlib.sha256))

    def __repr__(self) -> str:
        return "Passes(...)"
