"""The course: its drawings are fresh, its pictures can be drawn, its readers find their way."""

import importlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COURSE = ROOT / "docs/course"
START = ROOT / "docs/start"
READERS = ("custodian", "analyst", "ml-engineer", "telemetry-engineer", "auditor", "learner")


def module(name):
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


def links(text):
    return re.findall(r"(?<!!)\[[^\]]*\]\(([^)#]+\.md)[^)]*\)", text)


def test_the_drawings_of_trust_models_are_fresh():
    made = module("make_diagrams")
    text = made.PAGE.read_text()
    assert made.page(text) == text, "run: python docs/make_diagrams.py"
    drawn = re.findall(r"<figure .*?</figure>", text, re.S)
    assert len(drawn) == len(made.DIAGRAMS) == 5
    # Colours that only one of light and dark could show would be black, white or a default.
    assert all('fill="currentColor"' in one and "\n\n" not in one for one in drawn)


def test_every_picture_is_shown_and_every_picture_shown_is_drawn():
    shown = {
        path.name
        for page in COURSE.glob("*.md")
        for path in map(Path, re.findall(r"!\[[^\]]+\]\((pictures/[^)]+)\)", page.read_text()))
    }
    drawn = module("make_pictures").PICTURES
    assert shown == {f"{name}.png" for name in drawn}
    dark = {f"{name}-dark.png" for name in drawn}
    assert shown | dark == {path.name for path in (COURSE / "pictures").iterdir()}


@pytest.mark.lengthy
@pytest.mark.parametrize("name", ["linkage", "guesses", "neighbours", "membership"])
def test_pictures_can_be_drawn(name, tmp_path):
    light, dark = (path.read_bytes() for path in module("make_pictures").draw(name, tmp_path))
    assert light.startswith(b"\x89PNG")
    assert dark.startswith(b"\x89PNG")
    assert light != dark
    assert min(len(light), len(dark)) > 10_000


@pytest.mark.parametrize("reader", READERS)
def test_each_reader_has_a_path_of_three_pages(reader):
    text = (START / f"{reader}.md").read_text()
    steps = re.findall(r"^(\d)\. \*\*\[[^\]]+\]\(([^)]+)\)", text, re.M)
    assert [number for number, _ in steps] == ["1", "2", "3"]
    assert len({page for _, page in steps}) == 3


def test_the_course_leads_to_all_of_its_pages():
    listed = {link for link in links((COURSE / "index.md").read_text()) if "/" not in link}
    assert listed == {page.name for page in COURSE.glob("*.md")} - {"index.md"}
