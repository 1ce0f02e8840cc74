"""All that a gateway can be told, as one frozen record with safe defaults."""

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final, final
from urllib.parse import urlsplit

from discreet.errors import ParameterError
from discreet.service.identity.issuers import Issuer

__all__ = ["GatewaySettings"]

_PORTS: Final = range(65536)
_AT_LEAST_1: Final = (
    "workers",
    "slots",
    "waiting",
    "requests_per_minute",
    "failed_logins_per_minute",
    "most_misses",
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """Where a gateway listens, what it serves, and what it allows.

    ``datasets`` are declarations as ``discreet protect`` writes them; ``data`` is the folder from
    which custodians may register more over HTTP, None where they may not. ``ledger`` holds the
    budgets of all of them; ``records`` is what workers share besides it: API keys, jobs, misses.

    ``answer_after`` is how many seconds after it began a newly paid answer is given, for each
    release that it takes; ``answers_after`` says it for single datasets. 0 gives answers when they
    are ready, and their time tells about the data. An answer that is not ready by then is not given
    and stays charged; after ``most_misses`` of those a dataset rests until a custodian reopens it.

    ``docs`` is the folder of the built documentation, None the one that came with the package.

    ``slots`` questions run at a time in each worker, at most ``waiting`` of one login wait, and a
    login, or an address without one, makes at most ``requests_per_minute`` and an address fails
    at most ``failed_logins_per_minute``. ``memory`` limits each dataset's engine, and
    ``question_bytes`` the size of a request. ``pages`` are for browsers; False serves programs
    only. ``collections`` are files that ``discreet collect init`` made, each served at
    ``/collections/NAME``, where an address sends at most ``reports_per_minute``, 0 for no limit.
    ``explorer`` lets everybody, without a login, spend the budget of made-up people and watch a
    training on made-up points.

    >>> GatewaySettings(datasets=(Path("people.toml"),), ledger="budget.db").answer_after
    1.0
    """

    host: str = "127.0.0.1"
    port: int = 8000
    pg_port: int | None = None
    workers: int = 1
    certificate: Path | None = None
    certificate_key: Path | None = None
    public_url: str | None = None

    datasets: tuple[Path, ...] = ()
    data: Path | None = None
    docs: Path | None = None
    ledger: str = field(default="budget.db", repr=False)  # an address may hold a password
    ledger_key: Path | None = None
    records: str | None = field(default=None, repr=False)

    answer_after: float = 1.0
    answers_after: Mapping[str, float] = field(default_factory=dict)
    most_misses: int = 5
    slots: int = 4
    waiting: int = 32
    requests_per_minute: int = 6000
    failed_logins_per_minute: int = 120
    question_bytes: int = 65536
    memory: str | None = None
    shutdown_seconds: float = 30.0
    is_metered_openly: bool = False
    pages: bool = True
    explorer: bool = False
    collections: tuple[Path, ...] = ()
    reports_per_minute: int = 6000
    issuers: tuple[Issuer, ...] = ()

    def __post_init__(self) -> None:
        for name in ("port", "pg_port"):
            port = getattr(self, name)
            if port is not None and port not in _PORTS:
                raise ParameterError(f"{name} must be from 0 to 65535, got {port}.", parameter=name)
        if self.port and self.port == self.pg_port:
            raise ParameterError("port and pg_port must be two.", parameter="pg_port")
        for name in _AT_LEAST_1:
            if getattr(self, name) < 1:
                raise ParameterError(f"{name} must be at least 1.", parameter=name)
        if self.reports_per_minute < 0:
            raise ParameterError(
                "reports_per_minute must be at least 0.", parameter="reports_per_minute"
            )
        if self.question_bytes < 1024:
            raise ParameterError(
                "question_bytes must be at least 1024.", parameter="question_bytes"
            )
        for name, seconds in {"answer_after": self.answer_after, **self.answers_after}.items():
            if not 0 <= seconds <= 3600:  # phrased so that NaN fails too
                raise ParameterError(
                    f"{name} must be from 0 to 3600 seconds, got {seconds}.", parameter=name
                )
        if not 0 <= self.shutdown_seconds <= 3600:
            raise ParameterError(
                "shutdown_seconds must be from 0 to 3600.", parameter="shutdown_seconds"
            )
        if (self.certificate is None) != (self.certificate_key is None):
            raise ParameterError(
                "certificate and certificate_key go together: both or neither.",
                parameter="certificate",
            )
        if self.public_url is not None and not _is_encrypted(self.public_url):
            raise ParameterError(
                "public_url must be the address of what encrypts in front of the gateway, and "
                "begin with https://.",
                parameter="public_url",
            )
        names = [one.name for one in self.issuers]
        if len(set(names)) != len(names):
            raise ParameterError("two issuers have the same name.", parameter="issuers")

    @property
    def records_location(self) -> str:
        """Where the records are: beside the ledger, unless said otherwise."""
        if self.records is not None:
            return self.records
        return self.ledger if "://" in self.ledger else f"{self.ledger}.gateway"

    def shared_folder(self, name: str) -> Path:
        """Return a folder for what the workers of one host share and nobody needs to keep.

        >>> GatewaySettings(ledger="/srv/budget.db").shared_folder("explorer")
        PosixPath('/srv/budget.db.gateway.explorer')
        """
        place = self.records_location
        if "://" not in place:
            return Path(f"{place}.{name}")
        digest = sha256(place.encode()).hexdigest()[:16]  # the address may hold a password
        return Path(tempfile.gettempdir()) / f"discreet-{os.getuid()}-{digest}.{name}"

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in ("127.0.0.1", "::1", "localhost")

    def seconds_of(self, dataset: str) -> float:
        """Return how long after it began one release of a dataset is answered.

        >>> GatewaySettings(answers_after={"visits": 0.5}).seconds_of("visits")
        0.5
        """
        return float(self.answers_after.get(dataset, self.answer_after))


def _is_encrypted(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == "https" and bool(parts.hostname)
