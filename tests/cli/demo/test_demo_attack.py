"""`discreet demo attack`: four attacks on one page."""

import pytest
from rich.console import Console
from typer.testing import CliRunner

from discreet.cli import app
from discreet.cli.demo import attack as demo
from discreet.errors import MissingExtra, ParameterError


@pytest.mark.lengthy
def test_the_story_shows_before_and_after_and_fits(tmp_path):
    picture = tmp_path / "attacks.png"
    line = ["demo", "attack", "--plot", str(picture)]
    result = CliRunner().invoke(app, line, env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    for scene in demo.SCENES:
        assert scene.name in result.output.lower()
    lines = result.output.splitlines()
    head = next(i for i, one in enumerate(lines) if one.startswith("attack "))
    assert lines[head].split() == ["attack", "measure", "before", "after", "guessing", "allowed"]
    assert [one for one in lines if len(one) > 80 and len(one.split()) > 1] == []
    rates = [[float(word.strip("%")) for word in one.split() if word.endswith("%")]
             for one in lines[head + 1 :]]  # fmt: skip
    rows = [one for one in rates if len(one) >= 4]
    assert len(rows) >= 3
    assert picture.stat().st_size > 1000


def test_without_a_component_the_rest_is_told(monkeypatch, capsys):
    def missing():
        raise MissingExtra(room="discreet.attacks", needs="torch", extra="learn")

    monkeypatch.setattr(demo, "SCENES", (demo.Scene("members told", "A network.", missing),))
    demo.run_demo_attack(Console(width=80), plot=None)
    assert "Left out: discreet.attacks needs torch" in capsys.readouterr().out


def test_a_picture_that_cannot_be_drawn_is_refused_first(tmp_path):
    with pytest.raises(ParameterError, match="picture"):
        demo.run_demo_attack(Console(), plot=tmp_path / "attacks.exe")
