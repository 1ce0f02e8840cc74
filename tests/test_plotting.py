"""One look for every plot."""

import itertools
import sys

import pytest

from discreet import plotting
from discreet.errors import MissingExtra, ParameterError


def luminance(colour):
    """Return the relative luminance of a colour, as WCAG 2 has it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


# What colours become for the two most frequent kinds of colour blindness, on linear RGB
# [Vienot, Brettel, Mollon 1999].
BLINDNESS = {
    "protanopia": ((0.11238, 0.88762, 0.0), (0.11238, 0.88762, 0.0), (0.00401, -0.00401, 1.0)),
    "deuteranopia": ((0.29275, 0.70725, 0.0), (0.29275, 0.70725, 0.0), (-0.02234, 0.02234, 1.0)),
}


def seen(colour, kind):
    linear = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in linear]
    return [sum(w * c for w, c in zip(row, linear, strict=True)) ** (1 / 2.2)
            if sum(w * c for w, c in zip(row, linear, strict=True)) > 0 else 0.0
            for row in BLINDNESS[kind]]  # fmt: skip


@pytest.fixture(params=["light", "dark"])
def look(request):
    if request.param == "light":
        yield plotting.look()
    else:
        with plotting.dark():
            yield plotting.look()


def test_what_is_written_and_drawn_stands_out_from_its_ground(look):
    assert contrast(look.ink, look.ground) >= 7
    assert contrast(look.quiet, look.ground) >= 4.5
    for colour in look.colours[:3]:  # those that the library itself draws with
        assert contrast(colour, look.ground) >= 3, colour


@pytest.mark.parametrize("kind", BLINDNESS)
def test_the_first_colours_differ_for_colour_blind_eyes(look, kind):
    for one, other in itertools.combinations(look.colours[:2], 2):
        gap = sum((a - b) ** 2 for a, b in zip(seen(one, kind), seen(other, kind), strict=True))
        assert gap**0.5 > 0.3, (one, other)
    # The test can fail: pure red and a green of its brightness are told apart by hue alone.
    red_green = zip(seen("#c80000", kind), seen("#5a6e00", kind), strict=True)
    assert sum((a - b) ** 2 for a, b in red_green) ** 0.5 < 0.3


def test_nothing_global_changes():
    import matplotlib

    before = dict(matplotlib.rcParams)
    with plotting.dark():
        figure, (axes,) = plotting.panels(room="discreet.plotting")
    assert dict(matplotlib.rcParams) == before
    assert matplotlib.colors.to_hex(figure.get_facecolor()) == "#1e2129"
    figure.canvas.draw()  # outside: what is made late has the look as well
    tick = axes.xaxis.get_major_ticks()[0]
    assert tick.label1.get_color() == "#e8eaed"


def test_the_terminal_says_dark_by_its_environment(monkeypatch):
    monkeypatch.setenv("DISCREET_PLOTS", "dark")
    assert plotting.look().ground == "#1e2129"


def test_intervals_are_drawn_over_bars_with_caps():
    _, (axes,) = plotting.panels(room="discreet.plotting")
    axes.bar([0], [10.0])
    plotting.interval(axes, [0], [10.0], [[1.0], [2.0]])
    (arms,) = axes.collections
    assert arms.get_segments()[0][:, 1].tolist() == [9.0, 12.0]
    assert arms.get_zorder() > axes.patches[0].get_zorder()
    assert len(axes.lines) == 2  # the caps


def test_titles_are_texts():
    figure, (axes,) = plotting.panels(room="discreet.plotting")
    plotting.titled(axes, "$\\frac{", under="$$")
    figure.canvas.draw()


@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf"])
def test_files_have_the_kind_that_they_are_called(tmp_path, ending):
    figure, _ = plotting.panels(room="discreet.plotting")
    begins = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[ending]
    assert plotting.save(figure, tmp_path / f"a{ending}").read_bytes().startswith(begins)


def test_what_cannot_be_written_is_refused(tmp_path):
    figure, _ = plotting.panels(room="discreet.plotting")
    with pytest.raises(ParameterError, match=r"must end in .png"):
        plotting.save(figure, tmp_path / "a.doc")
    with pytest.raises(ParameterError, match="cannot be written"):
        plotting.save(figure, tmp_path / "no" / "a.png")


def test_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r"discreet.tables needs .*discreet\[plot\]"):
        plotting.panels(room="discreet.tables")
