"""What an attack achieved: one kind of report for all of them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, final

import discreet.plotting as plotting
from discreet._words import fit, percent

__all__ = ["AttackReport", "Detail", "draw", "share"]

Detail: TypeAlias = "bool | int | float | str | list[Detail] | dict[str, Detail] | None"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AttackReport:
    """Hold how far an attack came, beside how far one comes who has seen nothing.

    ``success`` and ``baseline`` are rates of the same ``measure``; ``interval`` holds the true
    rate of success with probability ``confidence``. ``allowed`` is the most that a guarantee
    lets any attack reach, where there is one. ``details`` are facts of this attack, as JSON.

    >>> report = AttackReport(
    ...     attack="linkage", measure="people singled out", success=0.32, interval=(0.31, 0.33),
    ...     baseline=0.0, confidence=0.95, trials=30_000,
    ...     summary="32% of the people are alone with their age, sex and job.",
    ... )
    >>> print(report)
    linkage: 32% of the people are alone with their age, sex and job.
      people singled out  32% (31% to 33% at 95% confidence, 30,000 trials)
      without the attack  0%
    >>> report.is_better_than_guessing
    True
    """

    attack: str
    measure: str
    success: float
    baseline: float
    interval: tuple[float, float]
    confidence: float
    trials: int
    summary: str
    allowed: float | None = None
    details: Mapping[str, Detail] = field(default_factory=dict)

    @property
    def is_better_than_guessing(self) -> bool:
        """Whether all of the interval lies above the baseline."""
        return self.interval[0] > self.baseline

    def to_json(self) -> str:
        """Return the report for programs.

        >>> AttackReport(
        ...     attack="linkage", measure="people", success=1, interval=(0.9, 1), baseline=0,
        ...     confidence=0.95, trials=40, summary="All are found.",
        ... ).to_json().splitlines()[1]
        '  "attack": "linkage",'
        """
        facts = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return json.dumps(facts | {"details": dict(self.details)}, indent=2, allow_nan=False)

    def plot(self, path: str | Path, *, beside: "AttackReport | None" = None) -> Path:
        """Draw success and baseline, and another report beside them, into a file.

        >>> report = AttackReport(
        ...     attack="linkage", measure="people", success=1, interval=(0.9, 1), baseline=0,
        ...     confidence=0.95, trials=40, summary="All are found.",
        ... )
        >>> report.plot("before.png")  # doctest: +SKIP
        PosixPath('before.png')
        """
        reports = {"": self} if beside is None else {"before": self, "after": beside}
        return draw(reports, path=path)

    def __str__(self) -> str:
        low, high = self.interval
        rows = [
            (
                self.measure,
                f"{share(self.success)} ({share(low)} to {share(high)} "
                f"at {share(self.confidence)} confidence, {self.trials:,} trials)",
            ),
            ("without the attack", share(self.baseline)),
        ]
        if self.allowed is not None:
            rows.append(("the guarantee allows", f"at most {percent(self.allowed, up=True)}"))
        wide = max(len(name) for name, _ in rows)
        lines = [f"  {name:<{wide}}  {text}" for name, text in rows]
        return "\n".join(
            fit(line, indent="    ") for line in [f"{self.attack}: {self.summary}", *lines]
        )


def draw(reports: Mapping[str, AttackReport], *, path: str | Path) -> Path:
    """Draw the success of several reports as bars with intervals, baselines as lines across."""
    figure, (axes,) = plotting.panels(room="discreet.attacks", size=(6.0, 4.4))
    look = plotting.look()
    for place, report in enumerate(reports.values()):
        low, high = report.interval
        error = [[100 * max(0.0, report.success - low)], [100 * max(0.0, high - report.success)]]
        colour = look.colours[1 - place % 2]  # of what is in danger, and of what is protected
        axes.bar(place, 100 * report.success, width=0.55, color=colour, alpha=0.8)
        plotting.interval(axes, [place], [100 * report.success], error)
        levels = {
            "guessing": (report.baseline, "--", look.ink),
            "allowed": (report.allowed, ":", look.colours[2]),
        }
        for label, (level, style, colour) in levels.items():
            if level is not None:
                ends = [place - 0.4, place + 0.4]
                axes.plot(ends, [100 * level] * 2, style, color=colour, label=label)
    first = next(iter(reports.values()))
    axes.set_xticks(range(len(reports)), list(reports))
    axes.set(ylabel=f"{first.measure}, %", ylim=(0, 105))
    handles, labels = axes.get_legend_handles_labels()
    known = dict(zip(labels, handles, strict=True))
    plotting.legend(axes, known.values(), known.keys())
    plotting.titled(
        axes,
        f"How far {first.attack} comes",
        under=f"intervals of {share(first.confidence)}, {first.trials:,} trials",
    )
    return plotting.save(figure, path)


def share(rate: float) -> str:
    """Write a rate in percent with three digits that count, more where it is close to all.

    >>> share(0.32), share(0.001), share(1.0), share(0.9984), share(0.99961)
    ('32%', '0.1%', '100%', '99.8%', '99.961%')
    """
    text = f"{100 * rate:.3g}%"
    return percent(rate, up=False) if rate < 1 and text == "100%" else text
