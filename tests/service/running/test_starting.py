"""What a gateway refuses before it serves, and how its workers end that cannot begin."""

import asyncio
import json
import shlex
import socket
import ssl
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from gateway_sites import make_site
from typer.testing import CliRunner

from discreet.cli import app
from discreet.cli.service.serving import _welcome
from discreet.errors import ParameterError
from discreet.service import Demo, Gateway, GatewaySettings, check_servable
from discreet.service.running.worker import CONFIG, _beside, _certificate

IN_USE = "Address already in use"


def write_pair(folder, name, *, password=None):
    """Write a certificate and its key as PEM files; return both."""
    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(who, who, key.public_key(), x509.random_serial_number())
    made = builder.not_valid_before(now).not_valid_after(now + timedelta(days=1))
    secret = (
        serialization.NoEncryption()
        if password is None
        else serialization.BestAvailableEncryption(password)
    )
    files = folder / f"{name}.pem", folder / f"{name}.key"
    form = serialization.PrivateFormat.PKCS8
    files[0].write_bytes(made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, form, secret))
    return files


def settings(pair):
    return GatewaySettings(
        datasets=("people.toml",), host="0.0.0.0", certificate=pair[0], certificate_key=pair[1]
    )


def test_a_certificate_with_its_key_may_be_served(tmp_path):
    check_servable(settings(write_pair(tmp_path, "good")))


def test_a_certificate_that_cannot_be_used_is_named_and_no_password_is_asked(tmp_path):
    good = write_pair(tmp_path, "good")
    locked = write_pair(tmp_path, "locked", password=b"secret")
    nothing = tmp_path / "nothing.pem"
    for pair in (locked, (good[0], locked[1]), (good[1], good[1]), (nothing, good[1])):
        with pytest.raises(
            ParameterError, match="cannot be used as certificate and key"
        ) as refused:
            check_servable(settings(pair))
        assert str(pair[0]) in str(refused.value)


def test_nothing_and_tokens_in_the_clear_are_refused():
    with pytest.raises(ParameterError, match="there is nothing to serve"):
        check_servable(GatewaySettings())
    with pytest.raises(ParameterError, match="in the clear"):
        check_servable(GatewaySettings(datasets=("people.toml",), host="0.0.0.0"))


def test_the_data_folder_must_be_one(tmp_path):
    with pytest.raises(ParameterError, match="data must be a folder"):
        check_servable(GatewaySettings(data=tmp_path / "none"))


def test_a_certificate_may_stand_behind_its_key_in_one_file(tmp_path):
    certificate, key = write_pair(tmp_path, "good")
    both = tmp_path / "both.pem"
    both.write_text("of localhost\n" + key.read_text() + certificate.read_text())
    found = _certificate(settings((both, both)))
    assert found == ssl.PEM_cert_to_DER_cert(certificate.read_text())


@pytest.mark.parametrize("name", ["LEDGER", "LEDGER_FILE", "RECORDS", "DATASETS"])
def test_the_demo_touches_nothing_that_the_environment_speaks_of(tmp_path, monkeypatch, name):
    monkeypatch.setenv(f"DISCREET_SERVE_{name}", str(tmp_path / "real.db"))
    told = CliRunner().invoke(app, ["serve", "--demo", "--check"])
    assert told.exit_code == 2
    assert f"unset DISCREET_SERVE_{name} first" in " ".join(told.stderr.split())
    assert list(tmp_path.iterdir()) == []


def run(site, *words, timeout=120):
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "discreet", *words],
        cwd=site.folder, capture_output=True, text=True, check=False, timeout=timeout,
    )  # fmt: skip


@pytest.mark.lengthy
def test_the_check_refuses_what_serving_would_refuse(tmp_path):
    site = make_site(tmp_path)
    config = site.folder / "gateway.toml"
    config.write_text('ledger = "budget.db"\ndatasets = ["people.toml"]\n')
    fine = run(site, "serve", "--check")
    assert fine.returncode == 0
    assert "people: epsilon 20, delta 1e-06, 100% left, answers after 1 s" in fine.stdout
    assert run(site, "serve", "--check", "--host", "0.0.0.0").returncode == 2
    config.write_text("")
    assert "nothing to serve" in run(site, "serve", "--check").stderr


@pytest.mark.lengthy
def test_workers_are_not_begun_for_a_gateway_that_cannot_open(tmp_path):
    site = make_site(tmp_path)
    config = site.folder / "gateway.toml"
    config.write_text('ledger = "budget.db"\ndatasets = ["gone.toml"]\nworkers = 2\n')
    done = run(site, "serve", "--port", "0")
    assert done.returncode == 2
    assert done.stderr == "discreet: gone.toml: there is no such file.\n"


WORKER = """
import multiprocessing

def begin():
    from discreet.service.running.worker import app
    app()

if __name__ == "__main__":
    worker = multiprocessing.get_context("spawn").Process(target=begin)
    worker.start()
    worker.join()
    raise SystemExit(worker.exitcode)
"""


@pytest.mark.lengthy
def test_a_worker_that_cannot_begin_says_why_in_a_line_and_without_a_traceback(
    tmp_path, monkeypatch
):
    config = tmp_path / "gateway.toml"
    config.write_text('ledger = "budget.db"\ndatasets = ["gone.toml"]\n')
    monkeypatch.setenv(CONFIG, str(config))
    (tmp_path / "begin.py").write_text(WORKER)
    done = subprocess.run(
        [sys.executable, tmp_path / "begin.py"], capture_output=True, text=True, check=False
    )
    (line,) = map(json.loads, done.stderr.splitlines())
    assert done.returncode == 1
    assert line["event"] == "not started"
    assert "there is no ledger" in line["why"]


@pytest.mark.lengthy
@pytest.mark.parametrize("days", ["nan", "-3", "0", "soon"])
def test_keys_live_for_a_number_of_days(tmp_path, days):
    site = make_site(tmp_path)
    (site.folder / "gateway.toml").write_text('ledger = "budget.db"\n')
    done = run(site, "keys", "create", "zoe", "--role", "analyst", "--days", days)
    assert done.returncode == 2
    assert "--days" in done.stderr


def test_the_commands_that_the_demo_shows_can_be_copied(tmp_path, monkeypatch, capsys):
    """From a terminal of 80 columns: a line break inside a header or JSON would break them."""
    monkeypatch.setenv("COLUMNS", "80")
    key = f"dk_abcdefghij_{43 * 'x'}"
    demo = Demo(config=tmp_path, keys=dict.fromkeys(("ana", "chris", "audrey"), key))
    _welcome(GatewaySettings(pg_port=5433), demo)
    shown = capsys.readouterr().out
    curl, psql = (
        shlex.split(shown[at : shown.index("\n", shown.index("\\\n", at) + 2)])
        for at in (shown.index("curl"), shown.index("PGPASSWORD"))
    )
    assert curl[:4] == ["curl", "http://127.0.0.1:8000/v1/datasets/salaries/query", "-H",
                        f"Authorization: Bearer {key}"]  # fmt: skip
    assert json.loads(curl[curl.index("-d") + 1])["epsilon"] == 0.5
    assert psql[:2] == [f"PGPASSWORD={key}", "psql"]
    assert psql[-2:] == ["abcdefghij", "salaries"]


@pytest.mark.parametrize("group", ["keys", "audit", "attack", "ledger"])
def test_a_group_of_commands_by_itself_shows_its_help_and_no_mistake(group):
    told = CliRunner().invoke(app, [group])
    assert "mistake" not in told.output
    assert "--help" in told.output


@pytest.mark.lengthy
@pytest.mark.parametrize("option", ["--port", "--pg-port"])
def test_a_port_that_is_taken_is_told_and_no_demo_is_announced(tmp_path, option):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ports = {"--port": "0", "--pg-port": "0", option: str(port)}
        flags = [word for pair in ports.items() for word in pair]
        done = CliRunner().invoke(app, ["serve", "--demo", *flags])
    assert done.exit_code != 0
    told = " ".join(done.output.split())
    name = option.strip("-").replace("-", "_")
    assert f"nothing can listen on {name} {port} of 127.0.0.1: Address already in use" in told
    assert "The gateway is at" not in told


def test_a_worker_whose_port_for_postgresql_is_taken_says_so_in_a_line(tmp_path, caplog):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        site = make_site(tmp_path, pg_port=port)

        async def begin(gateway):
            async with _beside(gateway):
                pass

        with (
            closing(Gateway.open(site.settings)) as gateway,
            pytest.raises(OSError, match="in use"),
        ):
            asyncio.run(begin(gateway))
    said = [record.getMessage() for record in caplog.records]
    (line,) = [json.loads(text) for text in said if "not started" in text]
    assert line["why"] == f"nothing can listen on pg_port {port} of 127.0.0.1: {IN_USE}."
