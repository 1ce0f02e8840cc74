"""Examples are scripts: they are imported from their folder, by name."""

import importlib
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="session")
def example():
    def imported(name):
        sys.path.insert(0, str(EXAMPLES))
        try:
            return importlib.import_module(name)
        finally:
            sys.path.pop(0)

    return imported
