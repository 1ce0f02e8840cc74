"""What the pages about deployment list is what there is, and the files they ship are sound."""

import configparser
import json
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import MISSING, fields
from pathlib import Path

import pytest
from deployment_page import ABOUT, DEPLOY, PORT, ROOT, section, table

from discreet.service import GatewaySettings, read_settings
from discreet.service.identity.issuers import Issuer
from discreet.service.identity.login import Role
from discreet.service.pages.mounting import every_page
from discreet.service.pages.page import Page
from discreet.service.settings.reading import SETTINGS
from discreet.service.web.metrics import Metrics
from discreet.service.web.routes import routes

# What is listed is what there is


def toml_of(value):
    if value is None:
        return "none"
    if isinstance(value, Path | str):
        return f"`{json.dumps(str(value))}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{json.dumps(value)}`"


def defaults(kind):
    return {
        one.name: one.default if one.default is not MISSING else one.default_factory()
        for one in fields(kind)
        if one.default is not MISSING or one.default_factory is not MISSING
    }


def test_every_setting_is_in_the_table_with_its_default():
    told = {cells[0].strip("`"): cells[1] for cells in table(section("All settings"))}
    known = {**defaults(GatewaySettings), "issuers": {}, "datasets": []}
    assert told == {name: toml_of(value) for name, value in known.items()}
    assert set(told) == SETTINGS


def test_every_key_of_an_issuer_is_in_the_table():
    cells = [row[0] for row in table(section("OpenID Connect"))]
    assert set(re.findall(r"`(\w+)`", " ".join(cells))) == {
        one.name for one in fields(Issuer) if one.name != "name"
    }


def told_of(roles):
    if roles is None:
        return "anybody"
    return "any login" if set(roles) == set(Role) else ", ".join(roles)


def test_every_route_is_in_the_table_and_no_other():
    told = re.search(r"<!-- routes -->\n(.*?)<!-- /routes -->", ABOUT, re.S)[1]
    expected = [
        [
            f"`{one.method} {one.path}`",
            told_of(one.roles),
            one.summary,
        ]
        for one in routes(Metrics(), None, is_metered_openly=False)
    ]
    assert [row[:3] for row in table(told)] == [[cell.strip() for cell in row] for row in expected]


def test_every_page_is_in_the_table_and_no_other():
    told = re.search(r"<!-- pages -->\n(.*?)<!-- /pages -->", ABOUT, re.S)[1]
    expected = [
        [f"`{one.path}`", told_of(one.roles), one.title]
        for one in every_page()
        if isinstance(one, Page)
    ]
    assert table(told) == expected


def test_every_role_is_in_the_table():
    told = ABOUT.partition("## Who may do what")[2]
    assert [row[0] for row in table(told)] == [f"`{role}`" for role in Role]


def test_metrics_that_are_to_be_watched_exist():
    source = Path(sys.modules[Metrics.__module__].__file__).read_text()
    told = set(re.findall(r"discreet_\w+", section("What to watch")))
    assert told
    for name in told:
        assert f'"{name.removesuffix("_total")}"' in source, name


# The files that are shipped


def test_the_example_of_settings_is_one_and_shows_every_setting(tmp_path):
    text = (DEPLOY / "gateway.toml").read_text()
    place = tmp_path / "gateway.toml"
    place.write_text(text)
    assert read_settings(place, environment={}).port == int(PORT)
    everything = re.sub(r"^# (?=\[|\w+ = )", "", text, flags=re.M)
    shown = tomllib.loads(everything)
    assert set(shown) == SETTINGS
    place.write_text(everything)
    assert read_settings(place, environment={}).issuers[0].audience == "discreet"
    known = defaults(GatewaySettings)
    for line in re.findall(r"^# (\w+ = .*)", text, re.M):
        ((name, value),) = tomllib.loads(line).items()
        if known.get(name) is not None:
            wanted = known[name]
            assert value == (list(wanted) if isinstance(wanted, tuple) else wanted), name


def unit():
    parser = configparser.RawConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    text = (DEPLOY / "discreet.service").read_text()
    parser.read_string(re.sub(r"^Environment=(\w+)=", r"Environment.\1=", text, flags=re.M))
    return parser


def test_the_systemd_unit_starts_what_it_checks_as_nobody_special():
    service = unit()["Service"]
    program = "/opt/discreet/bin/discreet"
    assert service["ExecStart"] == f"{program} serve"
    assert service["ExecStartPre"] == f"{program} serve --check"
    assert service["User"] == "discreet"
    folders = [f"/var/lib/{name}" for name in service["StateDirectory"].split()]
    assert service["WorkingDirectory"] == folders[0]
    assert service["Environment.DISCREET_CONFIG"] == f"{folders[0]}/gateway.toml"
    assert service["Environment.DISCREET_LEDGER_ANCHORS"] == folders[1]
    assert int(service["TimeoutStopSec"]) > GatewaySettings().shutdown_seconds + 10
    assert service["NoNewPrivileges"] == "yes"
    assert service["ProtectSystem"] == "strict"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_systemd_understands_the_unit(tmp_path):
    place = tmp_path / "discreet.service"
    text = (DEPLOY / "discreet.service").read_text()
    place.write_text(text.replace("/opt/discreet/bin/discreet", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", place], capture_output=True, text=True, check=False
    )
    told = [line for line in done.stderr.splitlines() if "discreet.service" in line]
    assert (done.returncode, told) == (0, []), done.stderr


def container():
    text = (DEPLOY / "Containerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [tuple(line.split(None, 1)) for line in lines]


def test_the_container_file_copies_what_there_is_and_starts_a_command_that_exists(tmp_path):
    steps = container()
    known = {
        "FROM",
        "WORKDIR",
        "COPY",
        "RUN",
        "ENV",
        "USER",
        "VOLUME",
        "EXPOSE",
        "STOPSIGNAL",
        "CMD",
    }
    assert {word for word, _ in steps} <= known
    for word, rest in steps:
        if word == "COPY" and not rest.startswith("--from"):
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists(), source
    told = dict(steps)
    assert told["EXPOSE"] == PORT
    assert json.loads(told["CMD"]) == ["discreet", "serve"]
    assert told["USER"].split(":")[0] == "10001"  # not root
    shown = dict(rest.split("=", 1) for word, rest in steps if word == "ENV")
    service = unit()["Service"]
    for name in ("DISCREET_CONFIG", "DISCREET_LEDGER_ANCHORS"):
        assert shown[name] == service[f"Environment.{name}"]
    assert set(json.loads(told["VOLUME"])) == {
        str(Path(shown["DISCREET_CONFIG"]).parent),
        shown["DISCREET_LEDGER_ANCHORS"],
    }


def test_the_scrape_is_of_the_route_and_port_that_there_are():
    yaml = pytest.importorskip("yaml")
    ((job,),) = yaml.safe_load((DEPLOY / "prometheus.yml").read_text()).values()
    assert job["metrics_path"] in {
        one.path for one in routes(Metrics(), None, is_metered_openly=False)
    }
    assert job["static_configs"][0]["targets"][0].endswith(f":{PORT}")
    assert job["scheme"] == "https"
