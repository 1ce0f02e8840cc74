"""API keys as they are kept: enough to recognise one, not enough to make it."""

import json
import time
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, final

from discreet._json import read_json
from discreet.service.records.records import Records

__all__ = ["ApiKey", "add_api_key", "find_api_keys", "revoke_api_key"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key without its secret. Times are of the Unix clock; ``datasets`` None means all.

    ``digest`` is the SHA-256 of the whole key in hex, ``verifier`` a SCRAM verifier as PostgreSQL
    writes it.

    >>> key = ApiKey(id="abc", who="ana", roles=frozenset({"analyst"}), datasets=None,
    ...              digest="...", verifier="...", created=0.0, expires=10.0)
    >>> key.is_good(9.0), key.is_good(10.0)
    (True, False)
    """

    id: str
    who: str
    roles: frozenset[str]
    datasets: frozenset[str] | None
    digest: str = field(repr=False)
    verifier: str = field(repr=False)
    created: float
    expires: float | None = None
    revoked: float | None = None

    def is_good(self, now: float) -> bool:
        """Say whether the key is neither revoked nor expired: see the class.

        >>> ApiKey(id="a", who="ana", roles=frozenset(), datasets=None, digest="", verifier="",
        ...        created=0.0, revoked=5.0).is_good(3.0)
        False
        """
        return self.revoked is None and (self.expires is None or now < self.expires)


def add_api_key(records: Records, key: ApiKey) -> None:
    """Put a new key on record."""
    records.run(
        "INSERT INTO api_keys"
        " (id, who, roles, datasets, digest, verifier, created, expires, revoked) VALUES"
        " (:id, :who, :roles, :datasets, :digest, :verifier, :created, :expires, :revoked)",
        id=key.id,
        who=key.who,
        roles=json.dumps(sorted(key.roles)),
        datasets=None if key.datasets is None else json.dumps(sorted(key.datasets)),
        digest=key.digest,
        verifier=key.verifier,
        created=key.created,
        expires=key.expires,
        revoked=key.revoked,
    )


def find_api_keys(records: Records) -> tuple[ApiKey, ...]:
    """Return all keys, those that are good for nothing any more included, oldest first."""
    rows = records.run(
        "SELECT id, who, roles, datasets, digest, verifier, created, expires, revoked"
        " FROM api_keys ORDER BY created, id"
    )
    return tuple(_api_key(*row) for row in rows)


def revoke_api_key(records: Records, key_id: str) -> bool:
    """End a key for good; false where there is none of this id, or it was revoked before."""
    found = records.run(
        "UPDATE api_keys SET revoked = :now WHERE id = :id AND revoked IS NULL RETURNING id",
        id=key_id,
        now=time.time(),
    )
    return bool(found)


@lru_cache(maxsize=1 << 16)  # every worker reads all of them once a second
def _api_key(*row: Any) -> ApiKey:
    told = dict(zip(ApiKey.__slots__, row, strict=True))
    told["roles"] = frozenset(read_json(told["roles"]))
    if told["datasets"] is not None:
        told["datasets"] = frozenset(read_json(told["datasets"]))
    return ApiKey(**told)
