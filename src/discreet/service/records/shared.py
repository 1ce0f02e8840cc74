"""Secrets that all workers of a gateway must agree on."""

import secrets

from discreet.service.records.records import Records

__all__ = ["shared_secret"]


def shared_secret(records: Records, name: str) -> bytes:
    """Return the secret of this name, which whoever asked first drew.

    >>> import tempfile
    >>> with Records.open(f"{tempfile.mkdtemp()}/gateway.db") as records:
    ...     shared_secret(records, "decoys") == shared_secret(records, "decoys")
    True
    """
    records.run(
        "INSERT INTO shared (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING",
        name=f"secret {name}",
        value=secrets.token_hex(32),
    )
    ((value,),) = records.run("SELECT value FROM shared WHERE name = :name", name=f"secret {name}")
    return bytes.fromhex(value)
