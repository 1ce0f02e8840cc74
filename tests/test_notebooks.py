"""The tutorials that are notebooks run, draw, and come to the site with their outputs."""

import importlib
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def make_notebooks():
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        return importlib.import_module("make_notebooks")
    finally:
        sys.path.pop(0)


def pages():
    """Return the tutorials that say of themselves that they are notebooks."""
    found = sorted((ROOT / "docs/tutorials").glob("*.md"))
    return [page for page in found if "\n<!-- notebook -->\n" in page.read_text()]


def outputs(made):
    return [output for cell in made.cells for output in cell.get("outputs", ())]


def test_there_are_notebooks_and_no_link_leads_out_of_one(make_notebooks):
    assert make_notebooks.pages() == pages()
    assert len(pages()) >= 4
    for page in pages():
        made = make_notebooks.notebook(page)
        words = "".join(cell.source for cell in made.cells if cell.cell_type == "markdown")
        assert "](" not in words, page.name
        assert "<!-- notebook -->" not in words


@pytest.mark.lengthy
@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_a_notebook_runs_prints_and_draws(page, make_notebooks, tmp_path):
    import nbformat

    made = make_notebooks.executed(page)  # raises if a cell does
    nbformat.validate(made)
    printed = [one["text"] for one in outputs(made) if one.output_type == "stream"]
    cells = sum(cell.cell_type == "code" for cell in made.cells)
    assert len(printed) >= min(3, cells - 1)  # one may only draw
    assert not [one for one in outputs(made) if one.get("name") == "stderr"]
    text, pictures = make_notebooks.with_outputs(page.read_text(), made, name=page.stem)
    assert pictures
    assert all(content.startswith(b"\x89PNG") for content in pictures.values())
    for name in pictures:
        assert f"]({name})" in text
    assert printed[0].strip().splitlines()[0] in text
    assert f"]({page.stem}.ipynb)" in text
    nbformat.write(made, tmp_path / "made.ipynb")
    assert json.loads((tmp_path / "made.ipynb").read_text())["nbformat"] == 4


def test_the_site_shows_a_page_as_it_is_where_nothing_was_executed(make_notebooks, monkeypatch):
    from types import SimpleNamespace

    monkeypatch.setattr(make_notebooks, "BUILD", ROOT / "none")
    monkeypatch.setattr(make_notebooks, "_made", {})
    assert make_notebooks.on_files([], config=None) == []
    page = SimpleNamespace(file=SimpleNamespace(src_uri="tutorials/first-table.md"))
    assert make_notebooks.on_page_markdown("as it is", page=page) == "as it is"
