"""What every test may lean on, and an honest list of what could not run here."""

import atexit
import os
import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

# Tensors of tests are tiny: several threads would mostly wait for each other and for other workers.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A busy machine is no bug: nothing here fails because it took long.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@atexit.register  # early, so that it runs after all other handlers
def _end_with_the_result() -> None:
    """Let the result be the last line: DuckDB's bindings list what they keep until the very end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


@dataclass(frozen=True)
class Component:
    """A program the full suite wants, how to find it and how to get it."""

    name: str
    is_there: bool
    remedy: str = "make setup-system"


def _has_postgres() -> bool:
    return any(Path("/usr/lib/postgresql").glob("*/bin/postgres"))


def _has_jdbc() -> bool:
    return shutil.which("javac") is not None and Path("/usr/share/java/postgresql.jar").exists()


def _has_lightning() -> bool:
    found = find_spec("lightning")  # or a folder of that name, such as that of its tests
    return found is not None and found.origin is not None


COMPONENTS = {
    component.name: component
    for component in (
        Component("java", is_there=shutil.which("java") is not None),
        Component(
            "spark",
            is_there=shutil.which("java") is not None and find_spec("pyspark") is not None,
            remedy="make setup-system, and pip install -e '.[dev]'",
        ),
        Component("postgres", is_there=_has_postgres()),
        Component("psql", is_there=shutil.which("psql") is not None),
        Component("jdbc", is_there=_has_jdbc()),
        Component("curl", is_there=shutil.which("curl") is not None),
        Component("openssl", is_there=shutil.which("openssl") is not None),
        Component(
            "chromium",
            is_there=shutil.which("chromium") is not None and find_spec("playwright") is not None,
            remedy="make setup-system, and pip install -e '.[dev]'",
        ),
        Component("axe", is_there=(Path(__file__).parent / ".programs/axe.min.js").exists()),
        Component(
            "lightning", is_there=_has_lightning(), remedy="pip install -e '.[dev]', or make test"
        ),
        Component(
            "real data",
            is_there=bool(os.environ.get("DISCREET_DATA")),
            remedy="set DISCREET_DATA to a folder of data sets",
        ),
    )
}
OPTIONAL = {"real data"}  # nobody but its owner has it, so nothing may depend on it
REQUIRE_ALL = os.environ.get("DISCREET_REQUIRE") == "all"
_left_out: dict[str, int] = {}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(component): skip where the component is missing")
    missing = [name for name, c in COMPONENTS.items() if not c.is_there and name not in OPTIONAL]
    if REQUIRE_ALL and missing:
        remedies = ", ".join(sorted({COMPONENTS[name].remedy for name in missing}))
        raise pytest.UsageError(f"DISCREET_REQUIRE=all, but missing: {missing}. Try: {remedies}")


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        component = COMPONENTS[mark.args[0]]
        if not component.is_there:
            _left_out[component.name] = _left_out.get(component.name, 0) + 1
            pytest.skip(f"needs {component.name}: {component.remedy}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not _left_out:
        return
    terminalreporter.section("COULD NOT RUN HERE", sep="!", red=True, bold=True)
    for name, tests in _left_out.items():
        remedy = COMPONENTS[name].remedy
        terminalreporter.line(f"{name} is missing: {tests} tests left out. Remedy: {remedy}")


class NoRandomness:
    """A source that must not be read: bad input has to be refused before noise is drawn."""

    is_secure = True

    def read(self, n: int, /) -> bytes:
        raise AssertionError(f"{n} random bytes were drawn")


@pytest.fixture
def no_randomness() -> NoRandomness:
    return NoRandomness()
