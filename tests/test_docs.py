"""The documentation runs, resolves and is complete."""

import importlib
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import get_origin

import pytest

import discreet

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
ROOMS = discreet._ROOMS


def blocks():
    for page in PAGES:
        text = page.read_text()
        if "<!-- notebook -->" in text:
            continue  # its blocks are cells, which go on from one another: tests/test_notebooks.py
        for number, match in enumerate(re.finditer(r"```python\n(.*?)```", text, re.S)):
            name = f"{page.relative_to(ROOT)}:{number + 1}"
            marks = [pytest.mark.needs("spark")] if "pyspark" in match[1] else []
            yield pytest.param(match[1], id=name, marks=marks)


@pytest.mark.lengthy
@pytest.mark.parametrize("code", list(blocks()))
def test_every_code_block_runs_on_its_own(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "<block>", "exec"), {"__name__": "__main__"})


def printing_blocks():
    """Yield the blocks that are followed by what they print."""
    for page in PAGES:
        shown = re.findall(
            r"```python\n((?:(?!```).)*)```\n\n```text\n(.*?)```", page.read_text(), re.S
        )
        for number, (code, output) in enumerate(shown):
            yield pytest.param(code, output, id=f"{page.relative_to(ROOT)}:{number + 1}")


@pytest.mark.lengthy
@pytest.mark.parametrize(("code", "output"), list(printing_blocks()))
def test_blocks_print_what_the_page_shows(code, output, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "<block>", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out == output


@pytest.mark.lengthy
@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_every_example_runs_and_says_something(script, tmp_path):
    run = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert len(run.stdout.splitlines()) >= 3


def test_links_between_pages_lead_somewhere():
    broken = [
        f"{page.relative_to(ROOT)} -> {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text())
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert broken == []


def test_files_and_folders_named_in_pages_exist():
    missing = [
        f"{page.relative_to(ROOT)}: {path}"
        for page in PAGES
        for path in re.findall(
            r"`((?:src|tests|docs|examples|benchmarks)/[\w/.-]+)`", page.read_text()
        )
        if not (ROOT / path).exists()
    ]
    assert missing == []


def test_every_reference_key_is_listed():
    listed = set(re.findall(r"^\*\*\[(\w+)\]\*\*", (ROOT / "docs/references.md").read_text(), re.M))
    sources = [*(ROOT / "src").rglob("*.py"), *PAGES]
    used = {
        key
        for path in sources
        if path.name != "references.md"
        for bracket in re.findall(r"\[([A-Z][^\[\]]*?\d\d[^\[\]]*)\]", path.read_text())
        for key in re.findall(r"(?:^|; )([A-Z][A-Za-z]*\d\d)(?=$|[,;])", bracket)
    }
    assert used - listed == set()
    assert listed - used == set()


def test_proofs_named_in_the_code_exist():
    for path in (ROOT / "src").rglob("*.py"):
        for name in re.findall(r"docs/proofs/([a-z_]+)", path.read_text()):
            assert (ROOT / "docs/proofs" / f"{name}.md").exists(), (path, name)


def program(name):
    """Return a program of docs/."""
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


def make_reference():
    """Return the program that writes the reference."""
    return program("make_reference")


def test_pictures_of_benchmarks_are_drawn_from_the_tables_as_they_stand():
    made = program("make_benchmarks")
    told = json.loads(made.DRAWN.read_text())
    assert told == {name: made.digest(name) for name in made.CHARTS}, "run: make reference"
    for name in told:
        assert f"]({name}.png)" in (made.FOLDER / f"{name}.md").read_text()
        for picture in (f"{name}.png", f"{name}-dark.png"):
            assert (made.FOLDER / picture).read_bytes().startswith(b"\x89PNG")


def test_every_figure_has_a_command_a_day_and_a_commit():
    pages = [page for page in (ROOT / "docs/benchmarks").glob("*.md") if page.stem != "index"]
    assert len(pages) >= 6
    for page in pages:
        told = page.read_text().partition("## Where the figures come from")[2]
        rows = [row for row in told.splitlines() if "`" in row]
        assert rows, page.name
        for row in rows:
            assert re.fullmatch(r"\| .+ \| `.+` \| \d{4}-\d\d-\d\d \| [0-9a-f]{7,} \|", row), row


def public(module):
    """Yield what a room shows, and what the folders show that are entered by their own name."""
    for name in module.__all__:
        value = getattr(module, name)
        yield name, value
        if inspect.ismodule(value):
            yield from ((f"{name}.{inner}", thing) for inner, thing in public(value))


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_is_documented_with_an_example(room):
    module = importlib.import_module(f"discreet.{room}")
    page = (ROOT / "docs/reference" / f"{room}.md").read_text()

    def members(value):
        return make_reference().members(value).items() if inspect.isclass(value) else ()

    for name, value in public(module):
        if callable(value) and get_origin(value) is None:  # the name of a type has no text
            assert ">>>" in (value.__doc__ or ""), f"discreet.{room}.{name} has no example"
        for method, function in members(value):
            inner = getattr(function, "__func__", function)  # of a classmethod
            is_public = inspect.isfunction(inner) and not method.startswith("_")
            # The methods of a suite are the tests of whoever derives from it.
            if is_public and not name.endswith("Conformance"):
                example = f"discreet.{room}.{name}.{method} has no example"
                assert ">>>" in (inner.__doc__ or ""), example
        assert f"`{name}`" in page, f"discreet.{room}.{name} is missing: make reference"


def test_the_reference_is_by_task_and_forgets_no_name(monkeypatch):
    made = make_reference()
    for room in ROOMS:
        assert len(made.tasks(room)) >= 2, room
    monkeypatch.setattr(discreet.client, "__all__", [*discreet.client.__all__, "forgotten"])
    with pytest.raises(ValueError, match=r"each name of client once; look for \['forgotten'\]"):
        made.tasks("client")


def test_the_reference_is_fresh():
    for room in ROOMS:
        text = (ROOT / "docs/reference" / f"{room}.md").read_text()
        assert text == make_reference().page(room), "run: make reference"


def test_every_make_target_is_in_the_readme_or_contributing_guide():
    guide = (ROOT / "README.md").read_text() + (ROOT / "CONTRIBUTING.md").read_text()
    for target in re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.M):
        if target not in {"help", "clean"}:
            assert f"make {target}" in guide, target
