"""What the front end needs of the rest of the gateway, and nothing more."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from discreet.service.identity.login import Login
from discreet.tables import Offer, Quote, Result

__all__ = ["WireDesk", "WireDoor", "WireVerifier"]


class WireDesk(Protocol):
    """Does what a login asks for; every call may raise an error of :mod:`discreet.errors`."""

    def visible(self, login: Login) -> list[str]:
        """Return the datasets that a login may see."""

    def tables(self, login: Login, dataset: str) -> Mapping[str, Mapping[str, str]]:
        """Return the columns of a dataset's tables, with their types in DuckDB's words."""

    async def columns(
        self,
        login: Login,
        dataset: str,
        question: str,
        *,
        errors: bool,
        periods: Sequence[str] | None,
    ) -> Mapping[str, str]:
        """Return the columns that an answer would have, with types: free, and without its data."""

    async def quote(self, login: Login, dataset: str, question: str, offer: Offer) -> Quote:
        """Price a question. Free."""

    async def answer(
        self, login: Login, dataset: str, question: str, offer: Offer, *, degrade: bool
    ) -> Result:
        """Charge for a question and answer it; ``degrade`` takes more noise if only that fits."""

    def remaining(self, login: Login, dataset: str) -> float:
        """Return the share of the budget that is left."""


class WireVerifier(Protocol):
    """What SCRAM-SHA-256 needs to know of a secret (RFC 5803), which does not tell the secret."""

    @property
    def salt(self) -> bytes:
        """The salt of the password."""

    @property
    def iterations(self) -> int:
        """How often it was hashed."""

    @property
    def stored_key(self) -> bytes:
        """The hash of the client's key."""

    @property
    def server_key(self) -> bytes:
        """The server's key."""


class WireDoor(Protocol):
    """Knows who is who; raises :class:`discreet.errors.Unauthenticated` for anybody else."""

    def login(self, token: str) -> Login:
        """Return whose an API key or a token of an issuer is."""

    def scram(self, user: str) -> WireVerifier:
        """Return the verifier of an API key by its id: a made-up one, if it is unknown."""

    def login_by_id(self, user: str) -> Login:
        """Return whose an API key is, by its id, once its secret was shown to be known."""
