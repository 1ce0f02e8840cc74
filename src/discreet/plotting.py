"""One look for every plot: colours that all eyes tell apart, and intervals that can be seen.

The colours are those of Okabe and Ito, brightened where the ground is dark. Everything that the
library draws looks like this; notebooks and programs of yours may, too. Figures are made without
pyplot, so nothing global changes. Needs matplotlib (extra ``plot``).
"""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, final

from discreet.errors import MissingExtra, ParameterError

__all__ = [
    "Look",
    "dark",
    "dated",
    "interval",
    "legend",
    "look",
    "panels",
    "save",
    "style",
    "titled",
]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The colours of a plot: its ground, what is written and drawn on it, and what is compared.

    ``quiet`` is for what matters less: axes, guesses, values that are mostly noise.

    >>> look().colours[0]
    '#0072b2'
    """

    ground: str
    ink: str
    quiet: str
    grid: str
    colours: tuple[str, ...]


_LIGHT: Final = Look(
    ground="#ffffff",
    ink="#1b1f24",
    quiet="#6a737d",
    grid="#e3e6e9",
    colours=("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"),
)
_DARK: Final = Look(
    ground="#1e2129",
    ink="#e8eaed",
    quiet="#9aa4ae",
    grid="#363c47",
    colours=("#56b4e9", "#f0803c", "#2fc49b", "#e39bc2", "#f0c24b", "#9cc3e6"),
)
_is_dark: Final[ContextVar[bool]] = ContextVar("is_dark", default=False)


@contextmanager
def dark() -> Iterator[None]:
    """Draw on a dark ground whatever is drawn inside.

    From a terminal ``DISCREET_PLOTS=dark`` says the same.

    >>> with dark():
    ...     look().ground
    '#1e2129'
    """
    before = _is_dark.set(True)
    try:
        yield
    finally:
        _is_dark.reset(before)


def look() -> Look:
    """Return the colours that are drawn with here and now.

    >>> look().ground
    '#ffffff'
    """
    return _DARK if _is_dark.get() or os.environ.get("DISCREET_PLOTS") == "dark" else _LIGHT


def style() -> dict[str, Any]:
    """Return the look as settings of matplotlib, for ``matplotlib.rc_context`` and notebooks.

    >>> style()["axes.spines.top"]
    False
    """
    now = look()
    return {
        "axes.axisbelow": True,
        "axes.edgecolor": now.quiet,
        "axes.facecolor": now.ground,
        "axes.labelcolor": now.ink,
        "axes.prop_cycle": import_module("cycler").cycler(color=now.colours),
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlelocation": "left",
        "axes.titlesize": 12,
        "axes.titleweight": "bold",
        "figure.facecolor": now.ground,
        "font.size": 10,
        "grid.color": now.grid,
        "legend.frameon": False,
        "lines.linewidth": 2,
        "savefig.facecolor": now.ground,
        "text.color": now.ink,
        "xtick.color": now.quiet,
        "xtick.labelcolor": now.ink,
        "ytick.color": now.quiet,
        "ytick.labelcolor": now.ink,
    }


def panels(
    count: int = 1,
    *,
    room: str,
    size: tuple[float, float] = (7.0, 4.2),
    columns: int = 1,
    in_notebook: bool = False,
) -> tuple[Any, list[Any]]:
    """Return a figure with so many axes, in rows of ``columns``.

    ``size`` is that of all, in inches. ``room`` is who needs matplotlib, where it is missing.
    ``in_notebook`` makes a figure that pyplot shows, where somebody has it loaded.

    >>> figure, (left, right) = panels(2, room="discreet.plotting", columns=2)
    >>> len(figure.axes)
    2
    """
    shape = {"nrows": -(-count // columns), "ncols": min(columns, count)}
    try:
        with import_module("matplotlib").rc_context(style()):
            if in_notebook and "matplotlib.pyplot" in sys.modules:
                figure = sys.modules["matplotlib.pyplot"].figure(figsize=size, layout="constrained")
            else:
                made = import_module("matplotlib.figure").Figure
                figure = made(figsize=size, layout="constrained")
            axes = list(figure.subplots(**shape, squeeze=False).ravel())
    except ImportError:
        raise MissingExtra(room=room, needs="matplotlib", extra="plot") from None
    for one in axes[count:]:
        one.remove()
    for one in axes[:count]:
        _dress(one)
    return figure, axes[:count]


def titled(axes: Any, title: str, *, under: str = "") -> None:
    """Say above what is seen, and under it in smaller letters of what.

    Both are texts, also with dollar signs in them, which would begin a formula.

    >>> _, (axes,) = panels(room="discreet.plotting")
    >>> titled(axes, "Nobody is singled out", under="1,000 people")
    >>> axes.get_title(loc="left")
    'Nobody is singled out'
    """
    axes.set_title(
        title,
        loc="left",
        fontsize=12,
        fontweight="bold",
        color=look().ink,
        pad=22 if under else 8,
        parse_math=False,
    )
    if under:
        place = {"xy": (0, 1), "xycoords": "axes fraction", "xytext": (0, 8)}
        axes.annotate(
            under,
            **place,
            textcoords="offset points",
            fontsize=9,
            color=look().quiet,
            parse_math=False,
        )


def interval(axes: Any, at: Any, values: Any, arms: Any, **how: Any) -> None:
    """Draw intervals over what is there; ``arms`` reach down and up from ``values``.

    >>> _, (axes,) = panels(room="discreet.plotting")
    >>> interval(axes, [0], [4.0], [[1.0], [2.0]])
    >>> axes.collections[0].get_segments()[0][:, 1].tolist()
    [3.0, 6.0]
    """
    drawn = {"fmt": "none", "ecolor": look().ink, "elinewidth": 1.6, "capsize": 5, "capthick": 1.6}
    axes.errorbar(at, values, yerr=arms, **drawn | how)


def dated(axes: Any) -> None:
    """Write days and hours across as briefly as they can be told apart.

    >>> from datetime import date
    >>> _, (axes,) = panels(room="discreet.plotting")
    >>> _ = axes.plot([date(2026, 1, 1), date(2026, 3, 1)], [1, 2])
    >>> dated(axes)
    """
    dates = import_module("matplotlib.dates")
    locator = dates.AutoDateLocator(minticks=3, maxticks=8)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))


def legend(axes: Any, *listed: Any, **where: Any) -> None:
    """Say which colour is what, where nothing is drawn; ``listed`` are handles and labels.

    >>> _, (axes,) = panels(room="discreet.plotting")
    >>> _ = axes.plot([1, 2], label="ours")
    >>> legend(axes)
    >>> axes.get_legend().get_texts()[0].get_text()
    'ours'
    """
    axes.legend(*listed, frameon=False, fontsize=9, labelcolor=look().ink, **where)


def save(figure: Any, path: str | Path, *, parameter: str = "path") -> Path:
    """Write a figure into a file, whose ending decides the format: .png, .svg, .pdf.

    >>> import os, tempfile
    >>> figure, _ = panels(room="discreet.plotting")
    >>> save(figure, os.path.join(tempfile.mkdtemp(), "empty.svg")).suffix
    '.svg'
    """
    file = Path(path)
    kind = file.suffix.removeprefix(".").lower()
    if kind not in figure.canvas.get_supported_filetypes():
        raise ParameterError(
            f"a plot must end in .png, .svg or .pdf, got {file.name!r}.", parameter=parameter
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a font without a name's letters draws boxes
            figure.savefig(file, dpi=150, format=kind)
    except OSError as error:
        raise ParameterError(
            f"{path} cannot be written ({error.strerror}).", parameter=parameter
        ) from None
    return file


def _dress(axes: Any) -> None:
    """Say again what is not looked up before it is drawn, when the settings are others' again."""
    now = look()
    axes.tick_params(color=now.quiet, labelcolor=now.ink)
    axes.grid(visible=True, axis="y", color=now.grid, linewidth=0.8)
    axes.set_prop_cycle(color=now.colours)
