"""Gateways on small data: in this process, on real sockets, and as users run them."""

import contextlib
import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import uvicorn
from starlette.testclient import TestClient

import discreet
from discreet.ledger import Ledger
from discreet.service import Gateway, GatewaySettings, Records, Role, create, create_app
from discreet.service.running.worker import _beside

ROWS = 400
QUERY = "/v1/datasets/people/query"
GRANT = {"epsilon": 30, "delta": 1e-6, "reason": "board"}
KEY = {"who": "dora", "roles": ["analyst"]}
COUNT = {"question": "SELECT COUNT(*) AS n FROM people", "epsilon": 0.1}


@dataclass(frozen=True, kw_only=True)
class Site:
    """Where a gateway was set up, what its settings are, and the keys of its logins."""

    folder: Path
    settings: GatewaySettings
    keys: dict[str, str]

    def header(self, who):
        return {"Authorization": f"Bearer {self.keys[who]}"} if who else {}

    @contextlib.contextmanager
    def served(self, *, raises=False):
        """Serve in this process; yield a client."""
        app = create_app(Gateway.open(self.settings))
        with TestClient(app, raise_server_exceptions=raises) as client:
            yield client

    @contextlib.contextmanager
    def running(self, **more):
        """Serve over real sockets, from a thread of this process; yield the address."""
        app = create_app(Gateway.open(self.settings), beside=_beside)
        server = uvicorn.Server(
            uvicorn.Config(app, port=0, log_level="error", lifespan="on", ws="none", **more)
        )
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)
            assert not thread.is_alive()


def people(rows=ROWS, *, seed=0):
    dice = np.random.default_rng(seed)
    return pa.table(
        {
            "person": np.arange(rows),
            "age": dice.integers(18, 90, rows),
            "region": dice.choice(["north", "south"], rows),
            "income": dice.integers(0, 100_000, rows),
        }
    )


def make_site(folder, *, policy="deny", epsilon=20, data=None, others_only=False, **more):
    """Protect two datasets and make keys: ana and ben ask, chris looks after, audrey checks.

    With ``others_only`` whoever calls protects the people.
    """
    (folder / "data").mkdir()
    pq.write_table(people() if data is None else data, folder / "data" / "people.parquet")
    pq.write_table(people(seed=1), folder / "data" / "others.parquet")
    settings = {
        "ledger": str(folder / "budget.db"),
        "datasets": (folder / "people.toml", folder / "others.toml"),
        "data": folder / "data",
        "answer_after": 0.0,
        "requests_per_minute": 10**7,
        "failed_logins_per_minute": 10**7,
        **more,
    }
    with Ledger.open(settings["ledger"], key=settings.get("ledger_key")) as ledger:
        for name in ("others",) if others_only else ("people", "others"):
            with discreet.protect(
                folder / "data" / f"{name}.parquet",
                name=name,
                unit="person",
                rows=1,
                guarantee=discreet.Guarantee(epsilon=epsilon, delta=1e-6),
                policy=policy,
                ledger=ledger,
                columns={"income": {"bounds": (0, 100_000)}, "age": {"bounds": (0, 100)}},
                override="other people" if name == "others" else None,
            ) as tables:
                tables.save(folder / f"{name}.toml")
    made = GatewaySettings(**settings)
    with Records.open(made.records_location) as records:
        roles = {
            "ana": [Role.ANALYST],
            "ben": [Role.ANALYST],
            "chris": [Role.CUSTODIAN],
            "audrey": [Role.AUDITOR],
        }
        keys = {who: create(records, who=who, roles=given)[1] for who, given in roles.items()}
        _, keys["scoped"] = create(records, who="ana", roles=[Role.ANALYST], datasets=["others"])
        _, keys["scoped custodian"] = create(
            records, who="chris", roles=[Role.CUSTODIAN], datasets=["others"]
        )
    return Site(folder=folder, settings=made, keys=keys)


_given = set()


def free_port():
    """Return a port on which nothing listens, and that was not returned before."""
    while True:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        if port not in _given:
            _given.add(port)
            return port


@contextlib.contextmanager
def processes(site, *, workers, **more):
    """Run ``discreet serve`` as a user would; yield its address and its process."""
    port = free_port()
    settings = {**TOML, **more}
    config = site.folder / "gateway.toml"
    config.write_text(
        "\n".join(f"{name} = {json.dumps(value)}" for name, value in settings.items())
    )
    command = [sys.executable, "-m", "discreet", "serve", "--config", str(config)]
    with (site.folder / "log.txt").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--port", str(port), "--workers", str(workers)],
            stdout=log, stderr=log, cwd=site.folder,
        )  # fmt: skip
        try:
            for _ in range(600):
                with contextlib.suppress(OSError, http.client.HTTPException):
                    if asked(port, "GET", "/readyz")[0] == 200:
                        break
                assert process.poll() is None, (site.folder / "log.txt").read_text()
                time.sleep(0.1)
            yield port, process
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) in (0, -signal.SIGTERM, 128 + signal.SIGTERM)


TOML = {
    "ledger": "budget.db",
    "datasets": ["people.toml", "others.toml"],
    "answer_after": 0.0,
    "waiting": 1000,
    "requests_per_minute": 10**7,
}


def asked(port, method, path, *, key=None, body=None, request=None):
    """Make one request on a connection of its own; return status and document."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    header = {"Content-Type": "application/json"}
    header |= {"Authorization": f"Bearer {key}"} if key else {}
    header |= {"Idempotency-Key": request} if request else {}
    try:
        connection.request(method, path, json.dumps(body) if body else None, header)
        found = connection.getresponse()
        return found.status, json.loads(found.read())
    finally:
        connection.close()
