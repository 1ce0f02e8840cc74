"""Issuers of tokens (OpenID Connect) that a gateway trusts, and what their claims mean here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

from discreet.errors import ParameterError
from discreet.service.identity.fetching import check_address
from discreet.service.identity.login import Role

__all__ = ["ALGORITHMS", "Issuer"]

# The kind and curve of key that each signature takes. None of them is symmetric: whoever can check
# an HS256 token can make it, and a public key would do as its secret.
ALGORITHMS: Final[Mapping[str, tuple[str, str | None]]] = {
    "RS256": ("RSA", None),
    "RS384": ("RSA", None),
    "RS512": ("RSA", None),
    "PS256": ("RSA", None),
    "PS384": ("RSA", None),
    "PS512": ("RSA", None),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Issuer:
    """An issuer of tokens, and who its tokens let in.

    ``name`` comes before every name that it gives, as in ``corp:ana``. ``url`` and ``audience``
    are what tokens must say in ``iss`` and ``aud``. ``roles_claim`` names a claim, or with dots a
    claim inside claims, whose values ``roles`` translates; everybody gets ``default_roles`` too.
    Without any a token opens nothing. Keys are looked up at ``jwks_url``, or where the issuer's
    ``/.well-known/openid-configuration`` says.

    >>> corp = Issuer(name="corp", url="https://login.example.com", audience="discreet",
    ...               roles_claim="groups", roles={"research": (Role.ANALYST,)})
    >>> corp.who({"sub": "ana"}), corp.roles_of({"groups": ["research", "chess"]})
    ('corp:ana', frozenset({<Role.ANALYST: 'analyst'>}))
    """

    name: str
    url: str
    audience: str | tuple[str, ...]
    algorithms: tuple[str, ...] = ("RS256", "ES256")
    who_claim: str = "sub"
    roles_claim: str | None = None
    roles: Mapping[str, tuple[Role, ...]] = field(default_factory=dict)
    default_roles: tuple[Role, ...] = ()
    jwks_url: str | None = None
    leeway: float = 30.0

    def __post_init__(self) -> None:
        def require(is_so: bool, name: str, what: str) -> None:
            if not is_so:
                raise ParameterError(f"{name} of an issuer must be {what}.", parameter=name)

        what = "a text of 1 to 60 printable characters, without a colon"
        require(_is_text(self.name, longest=60) and ":" not in self.name, "name", what)
        for name, url in (("url", self.url), ("jwks_url", self.jwks_url or self.url)):
            try:
                check_address(url)
            except ValueError:
                require(False, name, "an address that begins with https://")
        require(bool(self.audiences) and all(self.audiences), "audience", "a text, or several")
        known = bool(self.algorithms) and set(self.algorithms) <= set(ALGORITHMS)
        require(known, "algorithms", f"among {', '.join(ALGORITHMS)}")
        require(0 <= self.leeway <= 300, "leeway", "0 to 300 seconds")
        require(_is_text(self.who_claim, longest=100), "who_claim", "the name of a claim")

    @property
    def audiences(self) -> tuple[str, ...]:
        """The audiences, of which a token must name one."""
        return (self.audience,) if isinstance(self.audience, str) else tuple(self.audience)

    def who(self, claims: Mapping[str, Any]) -> str | None:
        """Return whom claims are about, or None if that cannot stand in a ledger.

        >>> Issuer(name="corp", url="https://id.example", audience="x").who({"sub": "ana"})
        'corp:ana'
        """
        name = claims.get(self.who_claim)
        if not isinstance(name, str) or not _is_text(name, longest=128):
            return None
        if self.who_claim == "email" and claims.get("email_verified") is not True:
            return None  # anybody may call himself by anybody's address
        return f"{self.name}:{name}"

    def roles_of(self, claims: Mapping[str, Any]) -> frozenset[Role]:
        """Return the roles that claims give.

        >>> Issuer(name="corp", url="https://id.example", audience="x").roles_of({"sub": "ana"})
        frozenset()
        """
        value: Any = claims
        if self.roles_claim is None:
            value = None
        elif self.roles_claim in claims:  # names of claims are often addresses, with dots in them
            value = claims[self.roles_claim]
        else:
            for step in self.roles_claim.split("."):
                value = value.get(step) if isinstance(value, dict) else None
        values = value.split() if isinstance(value, str) else value
        told = [one for one in values if isinstance(one, str)] if isinstance(values, list) else []
        given = (role for one in told for role in self.roles.get(one, ()))
        return frozenset((*self.default_roles, *given))


def _is_text(value: str, *, longest: int) -> bool:
    return 1 <= len(value) <= longest and value.isprintable() and value == value.strip()
