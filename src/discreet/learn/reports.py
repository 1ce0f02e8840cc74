"""What a run has cost and under which settings: to print, to show in a notebook, to plot."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import discreet.plotting as plotting
from discreet._exact import Number, show
from discreet.learn.run.promise import Promise

__all__ = ["Report", "Spent"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What the steps begun so far cost together: a certified upper bound.

    Claim: releasing every model state so far, the last one included, is (epsilon, delta)-DP for
    one ``unit`` under ``neighbours``, for a number of steps that was fixed in advance. Whoever
    stops early because of what the model looks like should quote the epsilon of all planned steps.

    >>> spent = Spent(epsilon=0.731, delta=1e-5, steps=120, planned=600, unit="one record",
    ...               neighbours="add_remove")
    >>> print(spent)
    epsilon=0.731 at delta=1e-05 after 120 of 600 steps, for one record under add_remove
    >>> float(spent)
    0.731
    """

    epsilon: float
    delta: Number
    steps: int
    planned: int
    unit: str
    neighbours: str
    is_secure: bool = True

    def __float__(self) -> float:
        return self.epsilon

    def __str__(self) -> str:
        told = (
            f"epsilon={self.epsilon:.4g} at delta={show(self.delta)} after {self.steps} of "
            f"{self.planned} steps, for {self.unit} under {self.neighbours}"
        )
        return told if self.is_secure else f"{told}; SEEDED NOISE, for tests only: protects nobody"


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Report:
    """Tell what a run promised and what it has spent; :meth:`Private.report` makes one.

    Nothing in it depends on the data, except what ``diagnostics=True`` asked for, and that says so.

    >>> spent = Spent(epsilon=0.7, delta=1e-5, steps=1, planned=2, unit="one record",
    ...               neighbours="add_remove")
    >>> report = Report(rows=(("clip", "1"),), spent=spent, curve=lambda step: 0.7 * step ** 0.5)
    >>> print(report)
    clip   1
    spent  epsilon=0.7 at delta=1e-05 after 1 of 2 steps, for one record under add_remove
    """

    rows: tuple[tuple[str, str], ...]
    spent: Spent
    curve: Callable[[int], float] = field(compare=False)
    """Epsilon after a number of steps."""

    @property
    def _all(self) -> list[tuple[str, str]]:
        return [*self.rows, ("spent", str(self.spent))]

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self._all)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in self._all)

    __repr__ = __str__

    def __rich__(self) -> Any:
        from rich.table import Table
        from rich.text import Text

        table = Table(title="private training", show_header=False, title_justify="left")
        for name, value in self._all:
            table.add_row(Text(name, style="bold"), Text(value))
        return table

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th>"
            f"<td style='text-align:left'>{escape(value)}</td></tr>"
            for name, value in self._all
        )
        return f"<table>{rows}</table>"

    def plot(self, path: str | Path | None = None, *, points: int = 24) -> Any:
        """Draw epsilon against steps, as planned and as far as it went; needs matplotlib.

        Returns the figure, and saves it where ``path`` is given.

        >>> spent = Spent(epsilon=0.7, delta=1e-5, steps=1, planned=2, unit="one record",
        ...               neighbours="add_remove")
        >>> report = Report(rows=(), spent=spent, curve=lambda step: 0.7 * step ** 0.5)
        >>> len(report.plot().axes)
        1
        """
        figure, (axes,) = plotting.panels(room="discreet.learn")
        colour = plotting.look().colours[0]
        last = max(self.spent.planned, self.spent.steps)
        steps = sorted({round(last * i / points) for i in range(points + 1)} | {self.spent.steps})
        curve = [self.curve(step) for step in steps]
        done = [step for step in steps if step <= self.spent.steps]
        axes.plot(steps, curve, "--", color=plotting.look().quiet, label="planned")
        axes.plot(done, curve[: len(done)], color=colour, label="spent")
        axes.plot([self.spent.steps], [self.spent.epsilon], "o", color=colour, clip_on=False)
        axes.set(xlabel="steps", ylabel="epsilon", xlim=(0, None), ylim=(0, None))
        plotting.legend(axes)
        plotting.titled(axes, "What training spends, step by step", under=str(self.spent))
        if path is not None:
            plotting.save(figure, path)
        return figure


def described(
    promise: Promise, *, model: str, optimizer: str, taken: int, is_secure: bool
) -> list[tuple[str, str]]:
    """Return the settings of a run, line by line: none depends on the data."""
    sampling = promise.sampling
    origin = "from the operating system's entropy" if is_secure else "SEEDED: protects nobody"
    return [
        ("model", model),
        ("optimiser", optimizer),
        ("unit", promise.unit),
        ("neighbours", str(sampling.neighbours)),
        ("sampling", repr(sampling)),
        ("divided by", f"{sampling.expected:g}, the expected batch size"),
        ("clipping", promise.clipping.told(repr)),
        ("noise", f"{promise.noise_multiplier.told('{:.6g}'.format)} times the clip, {origin}"),
        ("steps", f"{taken} taken of {promise.steps}"),
        _price(promise),
        ("proofs", f"{sampling.proof}; composed by privacy loss distributions"),
        ("account", promise.account or "none: nobody else counts what this run spends"),
    ]


def _price(promise: Promise) -> tuple[str, str]:
    """Return what a step costs, or all of them where they differ."""
    planned = promise.noises(0, promise.steps)
    if len(planned) > 1:
        return "steps cost", repr(promise.loss(planned))
    return "step costs", repr(promise.sampling.loss(noise_multiplier=next(iter(planned))))
