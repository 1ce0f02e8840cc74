"""API keys: made here, shown once, and recognised by their digest.

A key reads ``dk_<id>_<secret>``: the id is public, the secret has 256 random bits. So nobody can
try secrets, and SHA-256 is kept instead of a slow hash for passwords, which would let strangers
keep the gateway busy.
"""

import hashlib
import re
import secrets
import time
from collections.abc import Iterable
from string import ascii_letters, ascii_lowercase, digits
from typing import Final

from discreet.errors import ParameterError
from discreet.service.identity.login import Login, Role
from discreet.service.identity.scram import ScramVerifier
from discreet.service.records.api_keys import (
    ApiKey,
    add_api_key,
    find_api_keys,
    revoke_api_key,
)
from discreet.service.records.records import Records

__all__ = ["PREFIX", "ApiKey", "all_keys", "create", "digest_of", "id_of", "login_of", "revoke"]

PREFIX: Final = "dk_"
LONGEST_NAME: Final = 128
_LATEST: Final = 253_370_764_800.0  # 9999-01-01, the last year that dates can be written of
_ID_LETTERS: Final = ascii_lowercase + "234567"
_KEY: Final = re.compile(r"dk_([a-z2-7]{10})_[A-Za-z0-9]{43}")


def create(
    records: Records,
    *,
    who: str,
    roles: Iterable[Role],
    datasets: Iterable[str] | None = None,
    expires: float | None = None,
) -> tuple[ApiKey, str]:
    """Make a key for somebody; return it, and its text, which is nowhere kept.

    ``datasets`` limits the key to some; ``expires`` is a time of the Unix clock.

    >>> import tempfile
    >>> with Records.open(f"{tempfile.mkdtemp()}/gateway.db") as records:
    ...     key, text = create(records, who="ana", roles=[Role.ANALYST])
    ...     text.startswith(f"dk_{key.id}_"), [each.who for each in all_keys(records)]
    (True, ['ana'])
    """
    now = time.time()
    _check(who, expires, now)
    given = _roles(roles)
    limits = None if datasets is None else _datasets(datasets)
    key_id = _drawn(_ID_LETTERS, 10)
    text = f"{PREFIX}{key_id}_{_drawn(ascii_letters + digits, 43)}"
    key = ApiKey(
        id=key_id,
        who=who,
        roles=given,
        datasets=limits,
        digest=digest_of(text),
        verifier=ScramVerifier.of(text).text,
        created=now,
        expires=expires,
    )
    add_api_key(records, key)
    return key, text


def all_keys(records: Records) -> tuple[ApiKey, ...]:
    """Return all keys, oldest first, those that were revoked or expired included.

    >>> import tempfile
    >>> with Records.open(f"{tempfile.mkdtemp()}/gateway.db") as records:
    ...     all_keys(records)
    ()
    """
    return find_api_keys(records)


def revoke(records: Records, key_id: str) -> bool:
    """End a key for good, within a second everywhere; false where there was none to end.

    >>> import tempfile
    >>> with Records.open(f"{tempfile.mkdtemp()}/gateway.db") as records:
    ...     key, _ = create(records, who="ana", roles=[Role.ANALYST])
    ...     revoke(records, key.id), revoke(records, key.id)
    (True, False)
    """
    return revoke_api_key(records, key_id)


def digest_of(text: str) -> str:
    """Return what is kept of a key.

    >>> digest_of("dk_")[:8]
    'f1cbf2bc'
    """
    return hashlib.sha256(text.encode()).hexdigest()


def id_of(text: str) -> str | None:
    """Return the id of a key, or None if this does not look like a key.

    >>> id_of("dk_abcdefghij_" + 43 * "x"), id_of("dk_abc_x")
    ('abcdefghij', None)
    """
    found = _KEY.fullmatch(text)
    return found[1] if found else None


def login_of(key: ApiKey) -> Login:
    """Return whom a key lets in. Roles that this version does not know give nothing."""
    return Login(
        who=key.who,
        roles=frozenset(role for role in Role if role in key.roles),
        datasets=key.datasets,
        expires=key.expires,
        key=key.id,
    )


def _drawn(letters: str, length: int) -> str:
    return "".join(secrets.choice(letters) for _ in range(length))


def _check(who: object, expires: float | None, now: float) -> None:
    # A ":" is in every name that an issuer gives, so that keys and tokens never share a name.
    if not _is_name(who, longest=LONGEST_NAME) or ":" in str(who) or who == "*":
        raise ParameterError(
            f"who must be a text of 1 to {LONGEST_NAME} printable characters, without a colon and "
            "without blanks at its ends, and not just *.",
            parameter="who",
        )
    if expires is not None and not now < expires < _LATEST:
        raise ParameterError(
            "expires must be a time to come before the year 9999, in seconds of the Unix clock.",
            parameter="expires",
        )


def _roles(roles: Iterable[Role]) -> frozenset[Role]:
    try:
        given = frozenset(Role(role) for role in roles)
    except ValueError:
        given = frozenset()
    if not given:
        raise ParameterError(f"roles must be one or more of {', '.join(Role)}.", parameter="roles")
    return given


def _datasets(datasets: Iterable[str]) -> frozenset[str]:
    named = frozenset() if isinstance(datasets, str) else frozenset(datasets)
    if not named or not all(_is_name(one, longest=200) for one in named):
        raise ParameterError(
            "datasets must be names of one or more datasets, or None for all.",
            parameter="datasets",
        )
    return named


def _is_name(value: object, *, longest: int) -> bool:
    is_text = isinstance(value, str) and value.isprintable() and value == value.strip()
    return is_text and 1 <= len(str(value)) <= longest
