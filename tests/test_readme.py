"""README works for whoever has nothing but the package, and on an index."""

import re
import subprocess
import sys
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
RELATIVE = re.compile(r"\]\((?!https?:)[^)]*\)|(?:src|srcset)=")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "-d", folder]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """Return a Python that has the wheel, and of this one's packages all but ours.

    A path in a .pth file is searched, but its own .pth files are not read: they would lead an
    editable install to the checkout.
    """
    place = tmp_path_factory.mktemp("venv")
    venv.create(place, with_pip=False)
    (packages,) = place.glob("lib/python*/site-packages")
    with ZipFile(wheel) as packed:
        packed.extractall(packages)
    others = [path for path in sys.path if path.endswith("-packages")]
    (packages / "others.pth").write_text("\n".join(others))
    return place / "bin/python"


def run(python, *words, folder):
    done = subprocess.run(
        [python, *words],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.lengthy
def test_its_blocks_run_where_nothing_but_the_wheel_is(python, tmp_path):
    where = run(python, "-c", "import discreet; print(discreet.__file__)", folder=tmp_path)
    assert where.startswith(str(python.parents[1]))
    blocks = re.findall(r"```python\n(.*?)```", README, re.S)
    assert len(blocks) == 1
    printed = run(python, "-c", blocks[0], folder=tmp_path)
    (shown,) = re.findall(r"<!-- answer -->\n```text\n(.*?)```", README, re.S)
    assert shape(printed) == shape(shown)
    assert printed != shown  # the noise is new each time


def shape(text):
    """Return a text without its noisy numbers, which are as wide as they happen to be."""
    return [re.sub(r"[\d,.]*\d", "#", " ".join(line.split())) for line in text.splitlines()
            if not line.startswith("---")]  # fmt: skip


def test_it_is_short():
    assert len(README.splitlines()) <= 125


@pytest.mark.lengthy
def test_the_index_gets_no_link_that_leads_nowhere(wheel):
    with ZipFile(wheel) as packed:
        (name,) = [one for one in packed.namelist() if one.endswith(".dist-info/METADATA")]
        described = packed.read(name).decode().partition("\n\n")[2]
    assert described.startswith("# discreet")
    assert RELATIVE.search(README)
    assert RELATIVE.findall(described) == []
    assert "a tour" in described


def test_links_lead_to_the_source_once_it_has_an_address():
    sys.path.insert(0, str(ROOT))
    try:
        from hatch_build import readme_elsewhere
    finally:
        sys.path.pop(0)
    told = readme_elsewhere(README, source="https://code.example/discreet/")
    assert "[Contributing](https://code.example/discreet/blob/main/CONTRIBUTING.md)" in told
    assert RELATIVE.findall(told) == []
    for path in re.findall(r"blob/main/([^)#]+)", told):
        assert (ROOT / path).exists(), path
