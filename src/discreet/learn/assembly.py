"""From a model, an optimiser and a dataset to a run: what preparing and resuming have in common."""

import warnings
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from math import ceil, sqrt
from typing import final

from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from discreet._exact import whole
from discreet.errors import ParameterError, PrivacyWarning
from discreet.learn.choices.clipping import Clipping
from discreet.learn.choices.stages import Stages
from discreet.learn.fixing import check
from discreet.learn.gradients.cuda_graph import Replaying
from discreet.learn.gradients.engine import GradientEngine
from discreet.learn.noise.grid_noise import GridNoise
from discreet.learn.reading.rows import Making, Rows, rows_of
from discreet.learn.run.diagnostics import Monitor
from discreet.learn.run.optimizer_guard import check_optimizer
from discreet.learn.run.other_runs import notice
from discreet.learn.run.payment import Charges, check_account
from discreet.learn.run.promise import Promise
from discreet.learn.run.settings import Execution
from discreet.learn.run.state import RunState
from discreet.learn.run.step import Stepping
from discreet.learn.run.team import Team
from discreet.learn.run.units import EachRow, UnitRows, units_of
from discreet.learn.training import Private
from discreet.ledger import Account
from discreet.privacy import Unit

__all__ = ["Parts", "assemble", "gather"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a run is made of, checked."""

    model: nn.Module
    optimizer: Optimizer
    dataset: object  # as it was given
    rows: Rows
    units: UnitRows
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
    making: Making,
) -> Parts:
    """Check a model, its optimiser and its data; no value of the data is looked at."""
    if not isinstance(model, nn.Module):
        raise ParameterError(
            f"model must be a torch module, got an object of type {type(model).__name__}.",
            parameter="model",
        )
    inner = model.module if isinstance(model, DistributedDataParallel) else model
    check(inner)
    check_optimizer(optimizer, inner)
    by = units if isinstance(units, str) else None
    rows = rows_of(dataset, making, without=by)
    each = whole(rows_per_unit, name="rows_per_unit")
    people, by = units_of(dataset, units, rows=rows.count, rows_each=each)
    team = Team.of(next(inner.parameters()).device)
    return Parts(
        model=inner,
        optimizer=optimizer,
        dataset=dataset,
        rows=rows,
        units=people,
        by=by,
        team=team,
    )


def assemble(
    parts: Parts,
    execution: Execution,
    promise: Promise,
    *,
    clippings: Stages[Clipping],
    state: RunState,
    pay: Callable[[Account], Charges],
    notes: tuple[str, ...],
) -> Private:
    """Put a run together. What it costs is set aside last, when all else has been accepted."""
    team, account = parts.team, execution.account
    _check_alike(parts)
    team.align(parts.model)
    engine = GradientEngine(parts.model, clipping=clippings.at(state.done))
    _check_stages(engine, promise, clippings)

    capacity = execution.micro_batch_size or _usual(promise)
    adder = _adder(engine, execution, capacity)

    def paid() -> Charges | None:
        if account is None:
            return None
        check_account(account, promise.sampling, grouped=parts.is_grouped, by=parts.by)
        return pay(account)

    charges = team.lead(paid)
    begun = state.begun if charges is None else charges.begun
    noises = sorted(set(promise.noise_multiplier.values))
    agreed = team.agree([float(begun[noise]) for noise in noises])
    state.begun = +Counter({z: int(n) for z, n in zip(noises, agreed, strict=True)})
    stepping = Stepping(
        rows=parts.rows,
        units=parts.units,
        promise=promise,
        clippings=clippings,
        engine=engine,
        team=team,
        adder=adder,
        micro_batch_size=execution.micro_batch_size,
        monitor=Monitor(engine.flat.buffer.device) if execution.diagnostics else None,
        debug=execution.debug,
        source=execution.source,
    )
    private = Private(
        model=parts.model,
        optimizer=parts.optimizer,
        stepping=stepping,
        promise=promise,
        charges=charges,
        team=team,
        state=state,
        progress=execution.progress,
        notes=notes,
    )
    if account is None and team.is_first:
        _tell_of_others(private, parts, promise, state)
    return private


def _tell_of_others(private: Private, parts: Parts, promise: Promise, state: RunState) -> None:
    """Warn of what runs on the same data cost together, where no account adds them up."""
    self = weakref.ref(private)

    def planned() -> int:
        run = self()
        return run.steps_planned if run is not None and run.is_open else 0

    told = notice(parts.dataset, promise, state, planned=planned)
    if told:
        private.notes += (told,)
        warnings.warn(told, PrivacyWarning, stacklevel=4)


def _check_stages(engine: GradientEngine, promise: Promise, clippings: Stages[Clipping]) -> None:
    """Refuse layers without a norm, and noise that cannot be drawn, before anything is paid."""
    noise = promise.noise_multiplier
    starts = {0}  # the first steps of all stages
    for stages in (noise, clippings):
        starts.update(accumulate(steps for steps, _ in stages.pairs))
    for number in sorted(starts):
        clipping = clippings.at(number)
        clipping.groups(engine.flat.names)
        GridNoise.of(
            sensitivity=clipping.sensitivity,
            noise_multiplier=promise.gradient_noise(number),
            divide_by=promise.sampling.expected,
            size=engine.flat.buffer.numel(),
        )


def _adder(
    engine: GradientEngine, execution: Execution, capacity: int
) -> GradientEngine | Replaying:
    """Return what adds up gradients: on a GPU by replaying graphs, unless that was declined."""
    is_there = engine.flat.buffer.device.type == "cuda"
    if execution.graphs and not is_there:
        raise ParameterError(
            "graphs=True needs a model on a CUDA device. Leave it out elsewhere.",
            parameter="graphs",
        )
    is_wanted = not execution.debug if execution.graphs is None else execution.graphs
    if not (is_there and is_wanted):
        return engine
    return Replaying(engine, capacity=capacity, is_asked=execution.graphs is True)


def _usual(promise: Promise) -> int:
    """Return a size that batches seldom exceed: five standard deviations above the expected."""
    expected = promise.sampling.expected
    return ceil(expected + 5 * sqrt(expected))


def _check_alike(parts: Parts) -> None:
    """Refuse processes that were given different parts of the data: rows are drawn by number."""
    own = [float(parts.rows.count), float(parts.units.count)]
    if parts.team.agree(own) != own:
        raise ParameterError(
            "every process must be given the whole dataset, in the same order; which part of a "
            "batch is whose is decided in each step. Nothing was spent.",
            parameter="dataset",
        )
