"""One step from the inside: draw who takes part, add up clipped gradients, add noise."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, final

import numpy as np
import torch

from discreet.errors import DataError, ParameterError
from discreet.learn.choices.adaptive import AdaptiveState
from discreet.learn.choices.clipping import Clipping
from discreet.learn.choices.draws import Indices
from discreet.learn.choices.stages import Stages
from discreet.learn.following.batch_tree import blank, leaves, with_leaves
from discreet.learn.following.calls.chance import kept
from discreet.learn.following.function_identity import identity_of
from discreet.learn.gradients.cuda_graph import Replaying
from discreet.learn.gradients.engine import GradientEngine
from discreet.learn.gradients.loss_function import LossFunction, WeightedLoss, checked_losses
from discreet.learn.noise.grid_noise import add_noise_
from discreet.learn.reading.rows import Rows, moved
from discreet.learn.reading.taking import Taking
from discreet.learn.run.diagnostics import Monitor
from discreet.learn.run.failing_units import add_each, attempt
from discreet.learn.run.promise import Promise
from discreet.learn.run.team import Team
from discreet.learn.run.units import EachRow, UnitRows, Weights
from discreet.noise import Source
from discreet.privacy import Sensitive, quietly

__all__ = ["Drawing", "Stepping"]

_TRIED: Final = 3  # units whose shapes a model is tried out on


@final
@dataclass(frozen=True, slots=True, repr=False)
class Part:
    """A micro-batch that is being read: of how many units, and what each row's loss counts."""

    units: int
    take: Taking
    weights: Weights | None


@final
@dataclass(frozen=True, slots=True, repr=False)
class Drawing:
    """A batch that was drawn for a step: its micro-batches, or how drawing it failed.

    It shows neither. The number of the step, by which it was paid, decides about noise and clip.
    """

    number: int
    parts: list[Part]
    failure: Exception | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Stepping:
    """The data, the engine and the noise of a run. Whether a step is paid for, others see to."""

    rows: Rows
    units: UnitRows
    promise: Promise
    clippings: Stages[Clipping]
    engine: GradientEngine
    adder: GradientEngine | Replaying  # the engine, or graphs of it
    team: Team
    micro_batch_size: int | None
    monitor: Monitor | None  # only for diagnostics, which are not private
    debug: bool  # whether errors of the user's own code are shown, which is not private
    source: Source
    # Rows of zeros that a loss takes, and how many units they are.
    zeros: dict[Any, tuple[Any, int]] = field(default_factory=dict, repr=False)

    @property
    def clipping(self) -> Clipping:
        """How gradients are clipped in the step that is computed, or was last."""
        return self.engine.clipping

    def clip(self, number: int) -> float:
        """Return what no unit's contribution to a step exceeds."""
        return self.clippings.at(number).sensitivity

    @property
    def size(self) -> int:
        """How many numbers are trained."""
        return self.engine.flat.buffer.numel()

    def noise_scale(self, number: int) -> float:
        """Return the standard deviation of the noise in a step's mean gradient."""
        noise = self.promise.gradient_noise(number) * self.clip(number)
        return noise / self.promise.sampling.expected

    def try_out(self, loss_fn: LossFunction) -> None:
        """Refuse what can not be handled before a step is paid for.

        A few rows are read to learn their shapes; the model sees made-up ones. Made up of numbers
        of these rows, so that an error may show one of them: it is told if rows of zeros, which
        show nothing, make it happen as well.
        """
        count = min(_TRIED, self.units.count)
        function = loss_fn if isinstance(self.units, EachRow) else WeightedLoss(loss_fn)
        if not count or self.engine.is_tried(function):
            return
        quiet = partial(
            quietly, outcome="Nothing was spent.", tells_refusals=True, debug=self.debug
        )
        known = quiet(lambda: Sensitive(self._first(loss_fn, count)), what="reading the dataset")
        try:
            quiet(lambda: self._try_on(known), what="loss_fn, or the model,")
        except DataError as error:
            if self.debug:
                raise
            failure = error
        else:
            self._keep_zeros(known)
            return
        raise failure from self._failure_on_zeros(known)

    def _keep_zeros(self, known: Sensitive[tuple[Any, LossFunction, int]]) -> None:
        """Keep rows that show nothing, if the loss takes them."""
        data, function, units = known.reveal_without_noise()
        if self._failure_on_zeros(known) is None and attempt(lambda: blank(data)):
            self.zeros[identity_of(function)] = (blank(data), units)

    def _first(self, loss_fn: LossFunction, count: int) -> tuple[Any, LossFunction, int]:
        rows, weights = self.units.rows(np.arange(count), self.source)
        return self._micro_batch(loss_fn, Part(count, self.rows.begin(rows), weights))

    def _try_on(self, known: Sensitive[tuple[Any, LossFunction, int]]) -> None:
        data, function, units = known.reveal_without_noise()
        self.engine.try_out(function, data, units=units)

    def _failure_on_zeros(
        self, known: Sensitive[tuple[Any, LossFunction, int]]
    ) -> Exception | None:
        """Return how the loss function fails on rows that show nothing, if it does."""
        data, function, _ = known.reveal_without_noise()
        try:
            data = blank(data)
        except Exception:  # something in it has no zero
            return None
        try:
            with torch.no_grad(), kept(self.engine.flat.buffer.device):
                checked_losses(function(self.engine.model, data), data)
        except Exception as error:
            return error
        return None

    def begin(self, number: int) -> Drawing:
        """Draw the batch of a step that is paid for, and begin to read it.

        A failure is told at its use.
        """
        try:
            return Drawing(number, self._parts(*self.team.share(self.team.lead(self.draw))))
        except Exception as error:
            return Drawing(number, [], error)

    def sum_up(self, loss_fn: LossFunction, drawing: Drawing) -> None:
        """Leave the noisy mean gradient of a batch in the buffer.

        What fails on the way may tell who was drawn, or a row.
        """
        outcome = "The step stays paid for, since a batch was drawn."
        self.engine.forget_refusal()
        told: str | None = None
        try:
            quietly(
                lambda: self.compute(loss_fn, drawing),
                what="this step (loss_fn, the model or the dataset; or memory ran out, which "
                "prepare(..., micro_batch_size=) bounds)",
                outcome=outcome,
                debug=self.debug,
            )
        except DataError:
            told = self.engine.refusal
            if told is None:
                raise
        if told is not None:  # a trace sees no row: why it was refused shows nothing of one
            raise ParameterError(f"{told} {outcome}", parameter="model")

    def draw(self) -> tuple[Indices, Weights | None]:
        """Draw the rows of a batch, unit by unit, and what each one's loss counts."""
        drawn = self.promise.sampling.draw(self.units.count, source=self.source)
        return self.units.rows(drawn, self.source)

    def compute(self, loss_fn: LossFunction, drawing: Drawing) -> None:
        """Leave the noisy mean gradient in the buffer. The batch may be empty: noise alone.

        Claim: where the loss function or the model fails on some units, these add nothing and all
        others what they would add without them, so that a unit's contribution is still a function
        of that unit alone, of norm at most the clip, and the step has the loss that was paid for.
        That something failed is not told.

        Why: a micro-batch that fails is computed again by halves, down to single units, which
        fail by themselves or do not. (Skipping the step, or telling that it failed, would let one
        row decide about the contributions of all others, or be seen.) If by now rows of zeros
        fail, which went through before the first step, the reason is not in a unit, and the step
        ends with an error. Not covered: a failure that breaks the device or the process, and the
        time that computing again takes.
        """
        if drawing.failure is not None:
            raise drawing.failure
        parts = drawing.parts
        self.enter(drawing.number)
        if self.debug:
            self._sum(loss_fn, parts, is_careful=False)
        elif not attempt(partial(self._sum, loss_fn, parts, is_careful=False)):
            self.clear()
            self.engine.is_spoilt.fill_(value=True)
        self._add_noise(drawing.number)
        if self._is_spoilt():
            # Rare, and unseen: the sum was thrown away, with the noise on it.
            self._sum(loss_fn, parts, is_careful=True)
            self._add_noise(drawing.number)

    def enter(self, number: int) -> None:
        """Clip as the stage of a step says."""
        clipping = self.clippings.at(number)
        if self.engine.clipping is not clipping:
            self.engine.clipping = clipping

    def _is_spoilt(self) -> bool:
        """Say whether a gradient of any process was not finite."""
        flag = self.engine.is_spoilt.to(torch.int64).reshape(1)
        self.engine.is_spoilt.zero_()
        return self.team.any(bool(flag.item()))

    def _parts(self, rows: Indices, weights: Weights | None) -> list[Part]:
        """Return the micro-batches of this process, which are being read."""
        each = self.units.rows_each
        mine = self.team.part(rows.size // each)
        size = self.micro_batch_size or max(1, len(mine))
        parts = []
        for start in range(mine.start, mine.stop, size):
            stop = min(mine.stop, start + size)
            own = slice(start * each, stop * each)
            counts = None if weights is None else weights[own]
            parts.append(Part(stop - start, self.rows.begin(rows[own]), counts))
        return parts

    def _sum(self, loss_fn: LossFunction, parts: list[Part], *, is_careful: bool) -> None:
        """Add up the clipped gradients of this process's part of the batch."""
        self.clear()
        if isinstance(self.clipping, AdaptiveState):
            self.clipping.tally = None  # nobody is counted twice: a failed step's is forgotten
        if self.monitor is not None:
            self.monitor.begin()
        for part in parts:
            self._add(loss_fn, part, is_careful=is_careful)

    def hand_over(self) -> None:
        """Give the buffer to the parameters as their gradients."""
        self.engine.flat.to_grads()

    def clear(self) -> None:
        """Forget the sum, which after a failed step is one without noise."""
        self.engine.flat.zero_()

    def adapt(self) -> bool:
        """Move the norm of adaptive clipping by a noisy count, which the step has paid for."""
        adapting = self.clipping
        if not isinstance(adapting, AdaptiveState):
            return False
        share = 0.0
        if not self.team.is_alone:
            tally = adapting.tally
            total = torch.zeros(1, dtype=torch.int64) if tally is None else tally.reshape(1).clone()
            self.team.sum_(total)
            adapting.tally = total
        if self.team.is_first:
            share = adapting.release(expected=self.promise.sampling.expected, source=self.source)
        adapting.tally = None
        adapting.update(self.team.agree([share])[0])
        return True

    def _add(self, loss_fn: LossFunction, part: Part, *, is_careful: bool) -> None:
        """Add the clipped gradients of a micro-batch to the buffer."""
        data, function, units = self._micro_batch(loss_fn, part)

        def add(start: int, stop: int) -> None:
            some = data if stop - start == units else _some_units(data, start, stop, units)
            self._accumulate(function, some, stop - start, is_careful=is_careful)

        if not units:
            return
        if is_careful and not self.debug:
            add_each(add, 0, units, save=self._saved, give_up=partial(self._doubt, function))
        else:
            add(0, units)

    def _accumulate(
        self, function: LossFunction, data: Any, units: int, *, is_careful: bool
    ) -> None:
        clipped = self.adder.accumulate(function, data, units=units, is_careful=is_careful)
        if isinstance(self.clipping, AdaptiveState):
            self.clipping.observe(clipped.lengths)
        if self.monitor is not None:
            self.monitor.see(clipped, units)

    def _saved(self) -> Callable[[], None]:
        """Return what undoes a part of a sum that fails half-way."""
        buffer = self.engine.flat.buffer
        before = buffer.clone()

        def undo() -> None:
            buffer.copy_(before)

        return undo

    def _doubt(self, function: LossFunction) -> None:
        """Fail if rows of zeros, which went through before the first step, do not any more."""
        found = self.zeros.get(identity_of(function))
        if found is not None:
            data, units = found
            undo = self._saved()
            self.engine.accumulate(function, data, units=units)
            undo()

    def _micro_batch(self, loss_fn: LossFunction, part: Part) -> tuple[Any, LossFunction, int]:
        """Return the rows, what is computed of them, and how many units they are.

        A row that could not be made counts nothing: it is no unit, or none of its unit's rows.
        """
        device = self.engine.flat.buffer.device
        taken = part.take()
        if part.weights is None:
            units = part.units if taken.is_there is None else int(taken.is_there.sum())
            return moved(taken.kept(), device), loss_fn, units
        counts = part.weights if taken.is_there is None else part.weights * taken.is_there
        weights = torch.from_numpy(counts).to(device)
        return (moved(taken.batch, device), weights), WeightedLoss(loss_fn), part.units

    def _add_noise(self, number: int) -> None:
        """Bring the sums of all processes together, add noise once, hand out what is private."""
        buffer = self.engine.flat.buffer
        self.team.sum_(buffer)
        if self.monitor is not None:
            self.monitor.end(self.team)
        if self.team.is_first:
            add_noise_(
                buffer,
                sensitivity=self.clip(number),
                noise_multiplier=self.promise.gradient_noise(number),
                divide_by=self.promise.sampling.expected,
                source=self.source,
            )
        self.team.spread_(buffer)


def _some_units(data: Any, start: int, stop: int, units: int) -> Any:
    """Return the rows of some units of a micro-batch."""
    each = [tensor.shape[0] // units for tensor in leaves(data)]
    parts = (t[start * n : stop * n] for t, n in zip(leaves(data), each, strict=True))
    return with_leaves(data, iter(list(parts)))
