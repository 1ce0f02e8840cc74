"""Tokens that an independent OpenID provider hands out over its own protocol."""

import re
import subprocess
import sys
import time

import pytest
from service_tokens import id_token

from discreet.errors import Unauthenticated
from discreet.service.identity.doorkeeper import Doorkeeper
from discreet.service.identity.issuers import Issuer
from discreet.service.identity.login import Role
from discreet.service.records import Records

pytestmark = pytest.mark.lengthy
PROVIDER = """
import oidc_provider_mock, time
with oidc_provider_mock.run_server_in_thread() as server:
    print(f"port {server.server_port}", flush=True)
    time.sleep(600)
"""


@pytest.fixture(scope="module")
def port():
    """A process of its own, for its libraries warn of each other."""
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", PROVIDER],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as provider:
        try:
            yield int(re.fullmatch(r"port (\d+)\n", provider.stdout.readline())[1])
        finally:
            provider.kill()


@pytest.fixture
def records(tmp_path):
    with Records.open(str(tmp_path / "gateway.db")) as opened:
        yield opened


def test_an_id_token_of_a_real_provider_lets_in_its_user(port, records):
    issuer = Issuer(
        name="mock",
        url=f"http://localhost:{port}",
        audience="gateway",
        default_roles=(Role.ANALYST,),
    )
    keeper = Doorkeeper(records, [issuer])
    token = id_token(port, "gateway", "ana@example.com")
    login = keeper.login(token)
    assert login.who == "mock:ana@example.com"
    assert login.expires > time.time()
    with pytest.raises(Unauthenticated):
        keeper.login(id_token(port, "another client", "ana@example.com"))
    with pytest.raises(Unauthenticated):
        keeper.login(token[:-8] + "AAAAAAAA")
