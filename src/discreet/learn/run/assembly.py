"""From a model, an optimiser and a dataset to a run: what preparing and resuming have in common."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, sqrt
from typing import final

from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import LBFGS, Optimizer

from discreet._exact import whole
from discreet.errors import ParameterError
from discreet.learn.choices.clipping import Adaptive, AdaptiveState, Clipping, as_clipping
from discreet.learn.fixing import check
from discreet.learn.gradients.cuda_graph import Replaying
from discreet.learn.gradients.engine import Engine
from discreet.learn.noise.grid_noise import GridNoise
from discreet.learn.run.diagnostics import Watch
from discreet.learn.run.payment import Charges, check_account
from discreet.learn.run.rows import Collate, Rows, rows_of
from discreet.learn.run.settings import Settings
from discreet.learn.run.step import Stepping
from discreet.learn.run.team import Team
from discreet.learn.run.units import EachRow, Units, units_of
from discreet.learn.training import Private, State
from discreet.ledger import Account
from discreet.noise import Source
from discreet.privacy import Unit

__all__ = ["Parts", "assemble", "gather", "rounded"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a run is made of, checked."""

    model: nn.Module
    optimizer: Optimizer
    rows: Rows
    units: Units
    by: str | None  # the column of the units, if they come from one
    team: Team

    @property
    def is_grouped(self) -> bool:
        """Whether a unit may have several rows."""
        return not isinstance(self.units, EachRow)

    @property
    def unit(self) -> str:
        """Who is protected, in words."""
        if not self.is_grouped:
            return str(Unit.record())
        return str(Unit.column(self.by)) if self.by else "all records of one id in units"


def gather(
    model: nn.Module,
    optimizer: Optimizer,
    dataset: object,
    *,
    units: object,
    rows_per_unit: int,
    collate: Collate | None,
) -> Parts:
    """Check a model, its optimiser and its data; no value of the data is looked at."""
    if not isinstance(model, nn.Module):
        raise ParameterError(
            f"model must be a torch module, got an object of type {type(model).__name__}.",
            parameter="model",
        )
    inner = model.module if isinstance(model, DistributedDataParallel) else model
    check(inner)
    _check_optimizer(optimizer, inner)
    by = units if isinstance(units, str) else None
    rows = rows_of(dataset, collate, without=by)
    each = whole(rows_per_unit, name="rows_per_unit")
    people, by = units_of(dataset, units, rows=rows.count, rows_each=each)
    team = Team.of(next(inner.parameters()).device)
    return Parts(model=inner, optimizer=optimizer, rows=rows, units=people, by=by, team=team)


def assemble(
    parts: Parts,
    *,
    settings: Settings,
    clipping: Clipping,
    state: State,
    account: Account | None,
    pay: Callable[[Account], Charges],
    micro_batch_size: int | None,
    graphs: bool,
    progress: bool | None,
    diagnostics: bool,
    source: Source,
    notes: tuple[str, ...],
) -> Private:
    """Put a run together. What it costs is set aside last, when all else has been accepted."""
    micro = None
    if micro_batch_size is not None:
        micro = whole(micro_batch_size, name="micro_batch_size")
    team = parts.team
    _check_alike(parts)
    team.align(parts.model)
    engine = Engine(parts.model, clipping=clipping)
    GridNoise.of(  # refuses noise that cannot be drawn, before anything is paid
        sensitivity=clipping.sensitivity,
        noise_multiplier=settings.gradient_noise,
        divide_by=settings.sampling.expected,
        size=engine.flat.buffer.numel(),
    )

    def paid() -> Charges | None:
        if account is None:
            return None
        check_account(account, settings.sampling, grouped=parts.is_grouped, by=parts.by)
        return pay(account)

    charges = team.lead(paid)
    begun = state.begun if charges is None else charges.begun
    state.begun = int(team.agree([float(begun)])[0])
    stepping = Stepping(
        rows=parts.rows,
        units=parts.units,
        settings=settings,
        clipping=clipping,
        engine=engine,
        team=team,
        adder=_adder(engine, clipping, micro or _usual(settings)) if graphs else engine,
        micro_batch_size=micro,
        watch=Watch(engine.flat.buffer.device) if diagnostics else None,
        source=source,
    )
    return Private(
        model=parts.model,
        optimizer=parts.optimizer,
        stepping=stepping,
        settings=settings,
        charges=charges,
        team=team,
        state=state,
        progress=progress,
        notes=notes,
    )


def _adder(engine: Engine, clipping: Clipping, capacity: int) -> Replaying:
    """Return what adds up gradients by replaying graphs, or say why it can not."""
    if engine.flat.buffer.device.type != "cuda":
        raise ParameterError(
            "graphs=True needs a model on a CUDA device. Leave it out elsewhere.",
            parameter="graphs",
        )
    if isinstance(clipping, AdaptiveState):
        raise ParameterError(
            "a graph has one clipping norm, and adaptive clipping another in each step. Leave out "
            "one of the two.",
            parameter="graphs",
        )
    return Replaying(engine, capacity=capacity)


def _usual(settings: Settings) -> int:
    """Return a size that batches seldom exceed: five standard deviations above the expected."""
    expected = settings.sampling.expected
    return ceil(expected + 5 * sqrt(expected))


def started(clip: Clipping | Adaptive, norm: float | None) -> Clipping:
    """Return the clipping of a run, at the norm that a checkpoint remembers, if it adapts."""
    return clip.start(norm=norm) if isinstance(clip, Adaptive) else as_clipping(clip)


def rounded(count: int) -> int:
    """Return a number rounded up to two significant digits, which is then taken as public.

    Up, since accounting for truncated batches needs a population that is not exceeded.

    >>> rounded(60_000), rounded(48_842), rounded(7)
    (60000, 49000, 7)
    """
    unit = int(10 ** max(0, len(str(count)) - 2))
    return -(-count // unit) * unit


def _check_alike(parts: Parts) -> None:
    """Refuse processes that were given different parts of the data: rows are drawn by number."""
    own = [float(parts.rows.count), float(parts.units.count)]
    if parts.team.agree(own) != own:
        raise ParameterError(
            "every process must be given the whole dataset, in the same order; which part of a "
            "batch is whose is decided in each step. Nothing was spent.",
            parameter="dataset",
        )


def _check_optimizer(optimizer: object, model: nn.Module) -> None:
    if not isinstance(optimizer, Optimizer):
        raise ParameterError(
            "optimizer must be a torch optimizer, such as torch.optim.SGD(model.parameters(), "
            f"lr=0.1), got an object of type {type(optimizer).__name__}.",
            parameter="optimizer",
        )
    if isinstance(optimizer, LBFGS):
        raise ParameterError(
            "LBFGS evaluates the loss several times in a step, and only one of them is paid for. "
            "Use an optimiser that takes one gradient, such as SGD or Adam.",
            parameter="optimizer",
        )
    own = {id(parameter) for parameter in model.parameters()}
    theirs = [p for group in optimizer.param_groups for p in group["params"]]
    if any(id(parameter) not in own for parameter in theirs):
        raise ParameterError(
            "the optimiser has parameters that are not the model's, so it would train something "
            "else. Build it from model.parameters(), after discreet.learn.fix(model) if that was "
            "used.",
            parameter="optimizer",
        )
    held = {id(parameter) for parameter in theirs}
    left_out = [n for n, p in model.named_parameters() if p.requires_grad and id(p) not in held]
    if left_out:
        raise ParameterError(
            f"the optimiser does not train {', '.join(left_out[:5])}, whose gradients would be "
            "clipped and noised for nothing. Freeze them with requires_grad_(False), or hand them "
            "to the optimiser.",
            parameter="optimizer",
        )
