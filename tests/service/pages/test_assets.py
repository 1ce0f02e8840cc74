"""What pages load: little, from here, and with its licences."""

import gzip

import pytest
from gateway_sites import make_site

from discreet.service.pages.rendering.assets import Assets

MOST = 80_000  # bytes of all of it, compressed


@pytest.fixture
def site(tmp_path):
    """A gateway in this process; no browser is needed."""
    return make_site(tmp_path)


def test_all_of_it_is_small():
    sizes = {
        name: len(gzip.compress(one.content, 9)) for name, one in Assets() if name[-3:] != "txt"
    }
    assert sum(sizes.values()) < MOST, sizes


def test_what_others_wrote_comes_with_its_licence():
    names = [name for name, _ in Assets()]
    scripts = {name.split(".")[0] for name in names if name.startswith("vendor/")}
    assert {f"{one}.LICENSE.txt" for one in scripts} <= set(names)


def test_browsers_keep_them_until_one_changes(client):
    assets = Assets()
    for name, asset in assets:
        found = client.get(assets.address(name))
        assert found.content == asset.content
        assert "immutable" in found.headers["cache-control"]
    assert client.get("/assets/000000000000/pages.css").status_code == 404
    assert client.get(f"/assets/{assets.version}/../page.py").status_code == 404


def test_nothing_of_them_names_another_place():
    for name, asset in Assets():
        if name.startswith("vendor/") or not name.endswith(("js", "css")):
            continue
        assert b"//" not in asset.content.replace(b"// ", b"").replace(b"//\n", b""), name
