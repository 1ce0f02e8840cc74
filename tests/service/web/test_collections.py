"""Collections that a gateway serves beside its datasets."""

import shutil

import pytest
from starlette.testclient import TestClient

from discreet import local
from discreet.errors import ParameterError
from discreet.ledger import Ledger
from discreet.local.wire import encode, read_parameters
from discreet.privacy import Guarantee
from discreet.service import Gateway, GatewaySettings, check_servable, create_app, read_settings


@pytest.fixture
def settings(tmp_path):
    with Ledger.open(tmp_path / "budget.db") as ledger:
        ledger.create(
            "devices", unit="device", neighbours="replace_one", guarantee=Guarantee(epsilon=2)
        )
        local.Collection.open(
            ledger,
            tmp_path / "moods.reports",
            name="moods",
            account="devices",
            randomiser=local.DirectResponse(domain=3, epsilon=2),
            a_day=2,
            lifetime=2,
            minimum=10,
            who="ana",
            purpose="survey",
        ).close()
    (tmp_path / "gateway.toml").write_text(
        'collections = ["moods.reports"]\nledger = "budget.db"\nreports_per_minute = 0\n'
    )
    return read_settings(tmp_path / "gateway.toml", environment={})


def test_reports_are_taken_without_a_login_and_pages_stay_where_they_are(settings):
    check_servable(settings)
    with TestClient(create_app(Gateway.open(settings))) as client:
        at = "/collections/moods"
        parameters = read_parameters(client.get(f"{at}/parameters").content)
        reports = encode(parameters, parameters.randomiser.release([2] * 30))
        assert client.post(f"{at}/reports", content=b"".join(reports)).status_code == 202
        assert client.get(f"{at}/estimate").json()["published"]["n"] == 30
        assert client.get("/collections/other/parameters").status_code == 404
        assert client.get("/healthz").status_code == 200


def test_collections_of_one_name_are_refused(settings, tmp_path):
    (tmp_path / "more").mkdir()
    shutil.copy(tmp_path / "moods.reports", tmp_path / "more")
    files = tmp_path / "moods.reports", tmp_path / "more/moods.reports"
    gateway = Gateway.open(GatewaySettings(ledger=settings.ledger, collections=files))
    try:
        with pytest.raises(ParameterError, match="files of different names"):
            create_app(gateway)
    finally:
        gateway.close()
