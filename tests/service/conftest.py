"""A gateway on small data, asked in this process as over the wire."""

import pytest
from gateway_sites import make_site


@pytest.fixture
def site(tmp_path):
    return make_site(tmp_path)


@pytest.fixture
def client(site):
    with site.served() as made:
        yield made
