"""The report that every attack returns."""

import json

import pytest

from discreet.attacks import AttackReport
from discreet.errors import ParameterError


def report(**changed):
    facts = {
        "attack": "reconstruction", "measure": "bits right", "success": 0.96, "baseline": 0.5,
        "interval": (0.94, 0.98), "confidence": 0.95, "trials": 128, "allowed": 0.99,
        "summary": "Nearly all bits come out.", "details": {"queries": 512},
    }  # fmt: skip
    return AttackReport(**facts | changed)


def test_json_holds_everything():
    read = json.loads(report().to_json())
    assert read["details"] == {"queries": 512}
    assert set(read) == set(AttackReport.__dataclass_fields__)


def test_text_fits_a_terminal_and_names_what_the_guarantee_allows():
    text = str(report(summary="word " * 60))
    assert max(map(len, text.splitlines())) <= 80
    assert "at most 99%" in text


def test_chance_is_not_success():
    assert report().is_better_than_guessing
    assert not report(success=0.51, interval=(0.42, 0.6)).is_better_than_guessing


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_pictures_before_and_after(tmp_path, ending):
    pytest.importorskip("matplotlib")
    drawn = report().plot(tmp_path / f"both.{ending}", beside=report(success=0.5, interval=(0, 1)))
    assert drawn.stat().st_size > 1000


def test_an_unknown_kind_of_picture_is_refused(tmp_path):
    with pytest.raises(ParameterError, match=r"\.png"):
        report().plot(tmp_path / "picture.nothing")


def test_what_is_nearly_all_is_not_called_all_and_what_is_allowed_is_rounded_up():
    text = str(report(success=0.99961, interval=(0.9990, 0.99999), allowed=0.73106))
    assert "99.961% (99.9% to 99.999% at" in text
    assert "at most 73.2%" in text
