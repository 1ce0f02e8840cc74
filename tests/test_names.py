"""One word, one meaning: no two classes of the package share a name."""

import ast
from collections import defaultdict
from importlib import import_module
from pathlib import Path

import pytest

import discreet

SOURCE = Path(discreet.__file__).parent


def classes():
    """Return where each class without a leading underscore is defined, but for inner ones."""
    places = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(SOURCE)))
    return places


@pytest.mark.lengthy
def test_no_two_classes_share_a_name():
    assert {name: places for name, places in classes().items() if len(places) > 1} == {}


def test_no_two_rooms_give_different_things_one_name():
    homes = defaultdict(set)
    for room in discreet._ROOMS:
        module = import_module(f"discreet.{room}")
        for name in module.__all__:
            homes[name].add(id(getattr(module, name)))
    assert [name for name, things in homes.items() if len(things) > 1] == []


def test_accounting_is_told_epsilon_and_delta_by_name():
    """Also between its own files: two fractions in a row look alike, and one of them is delta."""
    positional = {
        f"{path.name}: {node.name}"
        for path in sorted((SOURCE / "accounting").rglob("*.py"))
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
        if {"epsilon", "delta"} & {one.arg for one in node.args.args}
        if node.name not in ("scaled",)  # one number for another
    }
    assert positional == set()
