"""The catalogue: complete, passing, and as quiet as it says."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from discreet import audit, mechanisms
from discreet.errors import ParameterError

ROOT = Path(__file__).parents[3]
NAMES = [entry.name for entry in audit.CATALOGUE]


def test_every_mechanism_has_an_entry_or_a_reason_why_not():
    covered = {type(entry.mechanism).__name__ for entry in audit.CATALOGUE}
    assert covered & set(audit.NOT_AUDITED) == set()
    assert covered | set(audit.NOT_AUDITED) == set(mechanisms.__all__)
    for reason in audit.NOT_AUDITED.values():
        quoted = reason.split("'")[1:2]
        assert set(quoted) <= set(NAMES)


def test_names_are_distinct_and_fit_the_table():
    assert len(set(NAMES)) == len(NAMES)
    assert max(map(len, NAMES)) <= 28


@pytest.mark.parametrize("entry", audit.CATALOGUE, ids=lambda entry: entry.name)
def test_an_entry_can_travel_and_is_made_for_what_is_certified(entry):
    assert pickle.loads(pickle.dumps(entry)).name == entry.name
    assert entry.certified <= float(entry.epsilon) * (1 + 1e-9)
    # Not far below either: an audit against a loose bound would find nothing.
    assert entry.certified >= 0.99 * float(entry.epsilon)


@pytest.mark.lengthy
def test_the_catalogue_passes_with_few_samples():
    """At most one false alarm in a million runs, by the union bound over the entries."""
    report = audit.run_catalogue(audit.CATALOGUE, samples=1_000, false_alarm=1e-6)
    assert report.passed, str(report)
    assert [line.name for line in report.lines] == NAMES
    assert max(map(len, str(report).splitlines()[:-1])) <= 80


def short_laplace(mechanism, value, n):
    return np.full(n, float(value)) + np.random.default_rng().laplace(scale=0.5, size=n)


def made(**changes):
    laplace = next(entry for entry in audit.CATALOGUE if entry.name == "Laplace")
    fields = {name: getattr(laplace, name) for name in laplace.__dataclass_fields__}
    return audit.CatalogueEntry(**(fields | changes))


@pytest.mark.lengthy
def test_a_mechanism_that_leaks_more_fails_in_other_processes_too():
    broken = made(name="half the noise", release=short_laplace)
    report = audit.run_catalogue([broken, made()], samples=50_000, processes=2)
    assert not report.passed
    assert [line.verdict for line in report.lines] == ["FAILED", "passed"]
    assert "1 of 2 passed, 1 FAILED" in str(report)
    told = json.loads(report.to_json())
    assert [line["verdict"] for line in told["lines"]] == ["FAILED", "passed"]
    assert report.to_csv().splitlines()[1].startswith("half the noise,1.0,0.0,1.0,")
    assert "| half the noise | 1 | 0 | 1 |" in report.to_markdown()


def test_a_loss_above_what_was_asked_for_fails_as_well():
    lax = made(name="asked for less", epsilon=0.5)
    (line,) = audit.run_catalogue([lax], samples=1_000).lines
    assert line.lower <= line.upper
    assert line.verdict == "FAILED"


def constant(mechanism, value, n):
    return np.zeros(n)


def test_a_pass_that_learned_nothing_is_called_blind():
    report = audit.run_catalogue([made(release=constant)], samples=1_000)
    assert report.passed
    assert report.lines[0].verdict == "blind"
    assert "0 of 1 passed, 1 blind (nothing learned)" in str(report)
    assert json.loads(report.to_json())["lines"][0]["power"] is None


@pytest.mark.parametrize(
    ("bad", "name"),
    [
        ({"samples": 5}, "samples"),
        ({"false_alarm": 0}, "false_alarm"),
        ({"processes": 0}, "processes"),
    ],
)
def test_bad_parameters_are_named(bad, name):
    with pytest.raises(ParameterError) as caught:
        audit.run_catalogue(audit.CATALOGUE, **bad)
    assert caught.value.parameter == name
    with pytest.raises(ParameterError, match="entries"):
        audit.run_catalogue([])


def test_every_entry_is_kept_and_none_failed():
    kept = audit.kept_catalogue()
    told = "run: discreet audit all --write src/discreet/audit/catalogue/kept.json"
    assert [line.name for line in kept.report.lines] == NAMES, told
    assert kept.report.passed


def test_the_page_shows_what_is_kept():
    page = (ROOT / "docs/explanation/audit-catalogue.md").read_text()
    kept = audit.kept_catalogue()
    assert kept.report.to_markdown() in page, "run: python docs/make_catalogue.py"
    assert kept.day in page
    assert kept.command in page
