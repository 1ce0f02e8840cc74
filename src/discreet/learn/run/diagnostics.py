"""Looking on: a progress bar, and diagnostics from raw data for whoever asked for them."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from discreet.learn.gradients.engine import Clipped
from discreet.learn.run.team import Team

__all__ = ["Diagnostics", "Monitor", "bar"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostics:
    """What the last step looked like inside. NOT PRIVATE: computed from raw data, without noise.

    Never publish it, and never let it decide anything about a model that will be published.

    >>> print(Diagnostics(loss=0.52, clipped=0.4, units=1013))
    NOT PRIVATE: loss 0.52, clipped 40%, 1013 units
    """

    loss: float
    clipped: float
    units: int

    def __str__(self) -> str:
        return f"NOT PRIVATE: loss {self.loss:.4g}, clipped {self.clipped:.0%}, {self.units} units"


@final
class Monitor:
    """Add up diagnostics over the micro-batches of a step, without waiting for the device."""

    def __init__(self, device: torch.device) -> None:
        self._sums: Tensor = torch.zeros(3, dtype=torch.float64, device=device)

    def begin(self) -> None:
        """Forget the step before."""
        self._sums.zero_()

    def see(self, clipped: Clipped, units: int) -> None:
        """Take in a micro-batch."""
        loss = clipped.losses.detach().sum(dtype=torch.float64)
        count = (clipped.factors.detach() < 1).any(-1).sum()
        self._sums += torch.stack([loss, count.to(loss.dtype), loss.new_tensor(float(units))])

    def end(self, team: Team) -> None:
        """Add up what the processes have seen."""
        team.sum_(self._sums)

    @property
    def last(self) -> Diagnostics:
        """The last step, over all its units."""
        loss, count, units = self._sums.tolist()
        many = max(1.0, units)
        return Diagnostics(loss=loss / many, clipped=count / many, units=int(units))


@contextmanager
def bar(
    show: bool | None, *, total: int, done: int, describe: Callable[[], str]
) -> Iterator[Callable[[int], None]]:
    """Show a bar, by default on a terminal only; yield what tells it how many steps are done."""
    if show is None:
        show = sys.stderr is not None and sys.stderr.isatty()
    if not show:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    columns = (BarColumn(), MofNCompleteColumn(), Remaining(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(describe(), total=total, completed=done)
        yield lambda now: progress.update(task, completed=now, description=describe())
