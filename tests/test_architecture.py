"""The house is as it is drawn."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def drawing():
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        import make_architecture
    finally:
        sys.path.pop(0)
    return make_architecture


@pytest.fixture(scope="module")
def page():
    return (ROOT / "docs" / "ARCHITECTURE.md").read_text()


def test_the_picture_is_that_of_the_contracts(drawing, page):
    assert drawing.house() in page, "run: make reference"


def test_every_folder_says_what_it_is_for_and_is_on_the_map(drawing, page):
    for name, purpose in drawing.purposes().items():
        assert purpose.endswith("."), name
        assert f"| `{name}` | {purpose} |" in page, "run: make reference"


def test_inner_packages_hold_no_logic():
    """An ``__init__`` is a table of contents: a docstring, imports and ``__all__``."""
    allowed = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)
    busy = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "src/discreet").glob("*/**/__init__.py")
        if not all(isinstance(part, allowed) for part in ast.parse(path.read_text()).body)
    ]
    assert busy == []
