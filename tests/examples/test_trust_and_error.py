"""The plot and table of errors say who has to be trusted for how much of it."""

import pytest


@pytest.fixture(scope="module")
def trust(example):
    return example("trust_and_error")


@pytest.mark.lengthy
def test_less_trust_is_more_error_and_only_devices_alone_get_worse(
    trust, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(trust, "PEOPLE", (1_000, 1_000_000))
    ways = trust.errors()
    few, many = (list(one) for one in zip(*ways.values(), strict=True))
    assert few == sorted(few)
    assert many == sorted(many)
    growth = [b / a for a, b in zip(few, many, strict=True)]
    assert growth[:3] == pytest.approx([1, 1, 1], rel=0.01)
    assert growth[3] < 1
    assert growth[4] == pytest.approx(1000**0.5, rel=0.01)

    file = tmp_path / "errors.svg"
    monkeypatch.setattr(trust, "errors", lambda: ways)
    trust.main(["--plot", str(file)])
    told = capsys.readouterr().out.splitlines()
    assert max(map(len, told[:-1])) <= 80  # the last one is a path
    assert file.read_text().startswith("<?xml")
    # From left to right in the order of trust; where two fall on one place, the later one shows.
    marks = [line.split("|")[1].replace(" ", "") for line in told if "|" in line]
    assert marks == ["12345", "1245"]
