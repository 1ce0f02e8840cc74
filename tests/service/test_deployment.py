"""What the page about deployment says is done here, step by step, with its own commands."""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deployment_page import DEPLOY, PORT, blocks, section
from service_tokens import id_token, put_claims

from discreet.datasets import census
from discreet.ledger import Ledger
from discreet.testing import PostgresServer

pytestmark = [pytest.mark.lengthy, pytest.mark.needs("curl"), pytest.mark.needs("openssl")]


class Host:
    """A folder in which the commands of the page run, with ``discreet`` on the path."""

    def __init__(self, folder, tools, port):
        self.folder, self.port = folder, port
        shown = {name: value for name, value in os.environ.items() if "DISCREET" not in name}
        # Where discreet comes from, for the interpreter that the tests run with.
        inside = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "USER": "tester"}
        self.environment = {**shown, **inside, "PATH": f"{tools}:{shown['PATH']}"}
        self.environment.pop("COLUMNS", None)

    def said(self, text):
        """Return a text of the page with a port that is free here."""
        return text.replace(PORT, str(self.port))

    def run(self, script, *, fails=False, **more):
        done = subprocess.run(
            ["bash", "-eu", "-c", self.said(script)],
            cwd=self.folder,
            env={**self.environment, **more},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert (done.returncode != 0) == fails, f"{script}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    @contextlib.contextmanager
    def serving(self, command="discreet serve", *, place=".", **more):
        """Run what serves, until it is ready; stop it as systemd would."""
        log = self.folder / "log.txt"
        with log.open("wb") as out:
            process = subprocess.Popen(
                shlex.split(command), cwd=self.folder / place, env={**self.environment, **more},
                stdout=out, stderr=out,
            )  # fmt: skip
        try:
            for _ in range(900):
                assert process.poll() is None, log.read_text()
                with contextlib.suppress(AssertionError):
                    self.run("curl -sf --cacert gateway.pem https://localhost:8443/readyz", **more)
                    break
                time.sleep(0.1)
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) in (0, -signal.SIGTERM, 128 + signal.SIGTERM)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
def host(tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, words in (("discreet", " -W ignore -m discreet"), ("python3", "")):
        made = tools / name
        made.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)}{words} "$@"\n')
        made.chmod(0o755)
    folder = tmp_path / "discreet"
    (folder / "data").mkdir(parents=True)
    pq.write_table(pa.table(census(2000)), folder / "data/people.parquet")
    return Host(folder, tools, free_port())


def follow(host, *titles):
    return [host.run(block) for title in titles for block in blocks(title)]


def set_up(host):
    """Follow the page up to where it serves; return the keys by name."""
    follow(host, "Protect the data", "A certificate")
    settings = (DEPLOY / "gateway.toml").read_text()
    (host.folder / "gateway.toml").write_text(host.said(settings))
    (checked,) = follow(host, "Settings")
    (shown,) = blocks("Settings", "console")
    shown = host.said(shown).replace("/var/lib/discreet", str(host.folder))
    assert checked == shown
    (told,) = follow(host, "The first logins")
    keys = dict(re.findall(r"The key of (\w+), .*\n\s+(dk_\w+)", told))
    assert set(keys) == {"ana", "chris", "prometheus"}
    (host.folder / "ana.header").write_text(f"Authorization: Bearer {keys['ana']}\n")
    return keys


def test_the_steps_lead_to_answers_over_tls(host):
    keys = set_up(host)
    serve, ask = blocks("Serve, and ask")
    command = re.search(r"^CMD (.*)$", (DEPLOY / "Containerfile").read_text(), re.M)[1]
    assert shlex.join(json.loads(command)) == serve.strip()
    assert "sound" in host.run(f"{serve.strip()} --check")
    with host.serving(serve):
        answer = json.loads(host.run(ask))
        assert answer["rows"][0]["n"] == pytest.approx(1000, abs=1000)
        assert json.loads(host.run(ask))["entry"] == answer["entry"]  # repeated, not charged again
        host.run(ask.replace("--cacert gateway.pem", ""), fails=True)  # nobody vouches for it
        # What Prometheus does, with the file that is shipped.
        page = host.run(
            f"curl -sf --cacert gateway.pem -H 'Authorization: Bearer {keys['prometheus']}' "
            "https://localhost:8443/metrics"
        )
        assert 'discreet_missed_answers{dataset="people"} 0.0' in page
        host.run("curl -sf --cacert gateway.pem https://localhost:8443/metrics", fails=True)
    with Ledger.open(host.folder / "budget.db", read_only=True) as ledger:
        assert {one["who"] for one in ledger.history() if one["kind"] == "charge"} == {"ana"}


@pytest.mark.slow
def test_backup_beside_the_gateway_restore_elsewhere_and_refuse_old_copies(host):
    set_up(host)
    serve, ask = blocks("Serve, and ask")
    backup, restore = blocks("Back up, and restore")
    with host.serving(serve):
        host.run(ask)
        host.run(backup)
        # The witness, meanwhile.
        told = follow(host, "A witness")
        assert "Cosigned" in told[1]
        assert "witness.example/w1" in told[2]
        host.run(ask.replace("age > 40", "age > 50").replace("first", "second"))
    assert "entries verified" in host.run(restore)
    with host.serving(serve, place="restored"):
        quote = json.loads(host.run(ask.replace("/query", "/quote")))
        assert quote["fits"]
        assert quote["budgets"][0]["used"] > 0
    # The new host cannot know that more was charged meanwhile; who remembers can.
    host.run("cd restored; discreet ledger verify --pinned ../backup/checkpoint.txt")
    host.run("discreet ledger checkpoint --out latest.txt")
    refused = host.run(
        "discreet ledger verify --ledger restored/budget.db --pinned latest.txt", fails=True
    )
    assert "rolled back" in refused
    # The old host knows by itself: its anchor was not restored.
    host.run("rm budget.db budget.db-*; cp backup/budget.db .")
    for command in ("serve --check", "serve", "keys create eve --role analyst"):
        assert "rolled back" in host.run(f"discreet {command}", fails=True)


PROVIDER = """
import oidc_provider_mock, time
with oidc_provider_mock.run_server_in_thread() as server:
    print(f"port {server.server_port}", flush=True)
    time.sleep(600)
"""


def test_tokens_of_a_real_issuer_get_the_roles_that_the_settings_say(host):
    set_up(host)
    (settings,) = blocks("OpenID Connect", "toml")
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", PROVIDER],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as provider:
        try:
            issuer = int(re.fullmatch(r"port (\d+)\n", provider.stdout.readline())[1])
            config = host.folder / "gateway.toml"
            local = settings.replace("https://login.example.com", f"http://localhost:{issuer}")
            config.write_text(f"{config.read_text()}\n{local}")
            put_claims(issuer, "ana", {"groups": ["research", "chess"]})
            put_claims(issuer, "dora", {"groups": ["data-office"]})
            serve, ask = blocks("Serve, and ask")
            with host.serving(serve):
                found = {}
                for who, audience in (
                    ("ana", "discreet"),
                    ("dora", "discreet"),
                    ("eve", "discreet"),
                    ("ana", "chess"),
                ):
                    token = id_token(issuer, audience, who)
                    (host.folder / "ana.header").write_text(f"Authorization: Bearer {token}\n")
                    found[who, audience] = host.run(
                        ask.replace("--fail", "-w '%{http_code}'").replace("first", who)
                    )[-3:]
        finally:
            provider.kill()
    # Ana asks; a custodian does not, nor somebody without a role, nor a token for another service.
    assert list(found.values()) == ["200", "403", "403", "401"]
    with Ledger.open(host.folder / "budget.db", read_only=True) as ledger:
        assert [one["who"] for one in ledger.history() if one["kind"] == "charge"] == ["corp:ana"]


@pytest.mark.slow
@pytest.mark.needs("postgres")
def test_the_steps_for_postgresql_lead_to_two_hosts_on_one_ledger(host):
    with PostgresServer() as server:
        place = re.search(r"@(.*)/", server.url)[1]

        def here(text):
            return text.replace("db.example:5432", place)

        (host.folder / "roles.sql").write_text(blocks("PostgreSQL", "sql")[0])
        host.run(f"psql -v ON_ERROR_STOP=1 -q -f roles.sql {shlex.quote(server.url)}")
        passwords, new = blocks("PostgreSQL")
        host.run(here(passwords))
        host.run(here(new))
        assert "choose-one" not in (host.folder / "people.toml").read_text()
        follow(host, "A certificate")
        tables = re.sub(
            r"^(datasets|ledger) .*\n", "", (DEPLOY / "gateway.toml").read_text(), flags=re.M
        )
        (settings,) = blocks("PostgreSQL", "toml")
        (host.folder / "gateway.toml").write_text(host.said(here(settings) + tables))
        host.environment["PGPASSFILE"] = str(host.folder / "pgpass")
        assert f"postgresql://{place}/budget, " in host.run("discreet serve --check")
        keys = dict(
            re.findall(r"The key of (\w+), .*\n\s+(dk_\w+)", follow(host, "The first logins")[0])
        )
        (host.folder / "ana.header").write_text(f"Authorization: Bearer {keys['ana']}\n")
        serve, ask = blocks("Serve, and ask")
        second = Host(host.folder, host.folder.parent / "tools", free_port())
        second.environment["PGPASSFILE"] = host.environment["PGPASSFILE"]
        anchors = host.folder / "anchors-of-the-second"
        anchors.mkdir()
        with (
            host.serving(serve),
            second.serving(
                serve, DISCREET_SERVE_PORT=str(second.port), DISCREET_LEDGER_ANCHORS=str(anchors)
            ),
        ):
            answer = json.loads(host.run(ask))
            assert json.loads(second.run(ask))["entry"] == answer["entry"]
        # Who checks the books reads the ledger, changes nothing, and does not see the records.
        books = f"postgresql://books:choose-another@{place}/budget"
        assert "entries verified" in host.run(f"discreet ledger verify --ledger {books}")
        told = f"psql {books} -c 'DELETE FROM discreet_ledger.entries'"
        assert "permission denied" in host.run(told, fails=True)
        told = f"psql {books} -c 'SELECT * FROM discreet_gateway.api_keys'"
        assert "permission denied" in host.run(told, fails=True)
        dump = re.search(r"`(pg_dump [^`]*)`", section("Back up, and restore"))[1]
        if shutil.which("pg_dump"):
            host.run(f"{dump} --file=both.dump postgresql://discreet@{place}/budget")
            assert (host.folder / "both.dump").stat().st_size > 10_000
