"""Where a server is, how to get in, and which schema is meant."""

import re
from collections.abc import Mapping
from typing import Any, final

from discreet.errors import MissingExtra, ParameterError
from discreet.ledger.stores.postgres.errors import ConnectionLost
from discreet.ledger.stores.postgres.wire import Session, Statement

__all__ = ["Address", "split_schema"]

DEFAULT_SCHEMA = "discreet_ledger"


@final
class Address:
    """Where a server is and how to get in. Nothing that it says shows the password.

    >>> Address("postgresql://ana:secret@db.example/budget")
    Address(budget on db.example)
    >>> Address("postgresql://ana:secret@db.example:port/budget")
    Traceback (most recent call last):
    discreet.errors.ParameterError: this is no address of a PostgreSQL database. Write \
postgresql://user:password@host:port/database, with signs like @ and / in the password \
written as %40 and %2F.
    """

    def __init__(self, url: str) -> None:
        psycopg = _psycopg()
        try:
            self._options: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(url)
            int(self._options.get("port") or 0)
        except (psycopg.Error, ValueError):
            # What libpq says of a bad address repeats it, with the password.
            raise ParameterError(
                "this is no address of a PostgreSQL database. Write "
                "postgresql://user:password@host:port/database, with signs like @ and / in the "
                "password written as %40 and %2F.",
                parameter="location",
            ) from None

    def __repr__(self) -> str:
        return f"Address({self})"

    def __str__(self) -> str:
        host = self._options.get("host") or self._options.get("hostaddr") or "this machine"
        port = f":{self._options['port']}" if "port" in self._options else ""
        return f"{self._options.get('dbname') or 'the default database'} on {host}{port}"

    def connect(self, settings: Mapping[str, str]) -> "Session":
        """Open a session with these settings, or raise ConnectionLost."""
        psycopg = _psycopg()
        defaults = {
            "application_name": "discreet ledger",
            "connect_timeout": "10",
            # A server whose machine vanished says nothing; give up on it after half a minute.
            "keepalives_idle": "10",
            "keepalives_interval": "5",
            "keepalives_count": "4",
            "tcp_user_timeout": "30000",
        }
        certain = {"autocommit": True, "client_encoding": "utf8"}
        try:
            connection = psycopg.connect(**{**defaults, **self._options, **certain})
        except psycopg.Error as error:
            raise ConnectionLost(self._without_password(str(error)), sent=False) from None
        try:
            session = Session(connection)
            session.ask(
                *((Statement("", f"SET {name} = {value}"), ()) for name, value in settings.items())
            )
        except BaseException:
            connection.close()
            raise
        return session

    def _without_password(self, message: str) -> str:
        password = self._options.get("password")
        message = " ".join(message.split())
        return message.replace(password, "***") if password else message


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise MissingExtra(room="discreet.ledger", needs="psycopg", extra="postgres") from None
    return psycopg


def split_schema(url: str) -> tuple[str, str]:
    """Take the schema out of an address, for libpq does not know it.

    >>> split_schema("postgresql://host/db?sslmode=require&schema=hr")
    ('postgresql://host/db?sslmode=require', 'hr')
    """
    base, _, query = url.partition("?")
    options = [option for option in query.split("&") if option]
    named = [option.partition("=")[2] for option in options if option.startswith("schema=")]
    schema = named[-1] if named else DEFAULT_SCHEMA
    if not re.fullmatch("[a-z][a-z0-9_]{0,62}", schema) or schema.startswith("pg_"):
        raise ParameterError(
            "a schema is named by small letters, digits and _, at most 63, and begins with a "
            "letter, but not with pg_.",
            parameter="schema",
        )
    rest = "&".join(option for option in options if not option.startswith("schema="))
    return (f"{base}?{rest}" if rest else base), schema
