"""Settings: a file, then the environment, then flags; everything that is wrong is said."""

from pathlib import Path

import pytest

from discreet.errors import ParameterError
from discreet.service import GatewaySettings, Role, read_settings

FILE = """
ledger = "budget.db"
datasets = ["people.toml", "visits.toml"]
data = "data"
port = 8080
answer_after = 2
answers_after = { visits = 0.5 }

[issuers.corp]
url = "https://login.example"
audience = "discreet"
roles_claim = "groups"
roles = { research = ["analyst"], office = ["custodian", "auditor"] }
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "gateway.toml"
    path.write_text(FILE)
    return path


def test_paths_are_beside_the_file(file):
    found = read_settings(file, environment={})
    assert found.ledger == str(file.parent / "budget.db")
    assert found.datasets == (file.parent / "people.toml", file.parent / "visits.toml")
    assert found.records_location == str(file.parent / "budget.db.gateway")
    assert (found.seconds_of("people"), found.seconds_of("visits")) == (2.0, 0.5)
    assert found.issuers[0].roles["office"] == (Role.CUSTODIAN, Role.AUDITOR)


def test_the_environment_goes_before_the_file_and_flags_before_both(file):
    told = {"DISCREET_SERVE_PORT": "9000", "DISCREET_SERVE_WORKERS": "3", "PATH": "/bin"}
    found = read_settings(file, environment=told, flags={"workers": 2, "host": None})
    assert (found.port, found.workers, found.host) == (9000, 2, "127.0.0.1")


def test_a_secret_may_come_from_a_file_and_is_not_shown(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("postgresql://gateway:s3cret@db/budget\n")
    found = read_settings(None, environment={"DISCREET_SERVE_LEDGER_FILE": str(secret)})
    assert found.ledger == "postgresql://gateway:s3cret@db/budget"
    assert found.records_location == found.ledger
    assert "s3cret" not in repr(found)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("prot = 1", "Did you mean port?"),
        ("port = 'x'", "port must be a whole number"),
        ("port = true", "port must be a whole number"),
        ("port = 70000", "port must be from 0 to 65535"),
        ("workers = 0", "workers must be at least 1"),
        ("answer_after = -1", "answer_after must be from 0"),
        ("answer_after = nan", "answer_after must be from 0"),
        ("answers_after = 3", "must be a table"),
        ("answers_after = { a = 'x' }", "answers_after.a must be a number"),
        ("datasets = 7", "datasets must be a list"),
        ("datasets = [7]", "datasets must be a text"),
        ("certificate = 'a.pem'", "certificate and certificate_key go together"),
        ("is_metered_openly = 'perhaps'", "must be true or false"),
        ("question_bytes = 3", "question_bytes must be at least"),
        ("issuers = 3", "issuers must be tables"),
        ("[issuers.corp]\nurl = 'https://x'", "audience is missing"),
        ("[issuers.corp]\nurl = 'http://x'\naudience = 'y'", "https://"),
        ("[issuers.corp]\nurl = 'https://x'\naudience = 'y'\nrole = 1", "has no setting"),
        ("[issuers.corp]\nurl = 'https://x'\naudience = 'y'\nroles = 1", "must be a table"),
        ("[issuers.corp]\nurl = 'https://x'\naudience = 'y'\ndefault_roles = ['boss']", "among"),
        ("[issuers.corp]\nurl = 'https://x'\naudience = 'y'\nalgorithms = ['HS256']", "among"),
        ("public_url = 'http://gateway.example'", "begin with https://"),
        ("public_url = 'gateway.example'", "begin with https://"),
        ("public_url = 'https://'", "begin with https://"),
        ("port = 5433\npg_port = 5433", "must be two"),
        ("= 3", "is no TOML"),
    ],
)
def test_what_is_wrong_in_a_file_is_said(tmp_path, text, told):
    path = tmp_path / "gateway.toml"
    path.write_text(text)
    with pytest.raises(ParameterError, match=told):
        read_settings(path, environment={})


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("DISCREET_SERVE_PROT", "1", "Did you mean port?"),
        ("DISCREET_SERVE_PORT", "x", "DISCREET_SERVE_PORT: port must be a whole number"),
        ("DISCREET_SERVE_ISSUERS", "x", "has no setting"),
        ("DISCREET_SERVE_LEDGER_FILE", "/no/such/file", "cannot be read"),
    ],
)
def test_what_is_wrong_in_the_environment_is_said(variable, value, told):
    with pytest.raises(ParameterError, match=told):
        read_settings(None, environment={variable: value})


def test_a_value_and_a_file_with_one_are_not_said_together(tmp_path):
    (tmp_path / "ledger").write_text("postgresql://db/budget")
    told = {
        "DISCREET_SERVE_LEDGER_FILE": str(tmp_path / "ledger"),
        "DISCREET_SERVE_LEDGER": "other.db",
    }
    with pytest.raises(ParameterError, match="not both"):
        read_settings(None, environment=told)


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(ParameterError, match="no such file"):
        read_settings(tmp_path / "none.toml", environment={})


def test_defaults_are_the_safe_ones():
    found = GatewaySettings()
    assert found.is_local
    assert found.answer_after > 0
    assert not found.is_metered_openly
    assert found.data is None
    assert found.datasets == ()
    assert isinstance(Path(found.records_location), Path)
