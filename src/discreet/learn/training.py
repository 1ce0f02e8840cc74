"""A private run: batches and account in one object, so that they cannot part."""

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from types import TracebackType
from typing import Final, Never, SupportsIndex, final

from torch import nn
from torch.optim import Optimizer

from discreet._exact import Number, whole
from discreet.errors import NotCopyable, ParameterError, SessionOver
from discreet.learn.fixing import CheckedModel
from discreet.learn.gradients.loss_function import LossFunction
from discreet.learn.reports import Report, Spent, described
from discreet.learn.run.checkpoint_file import write
from discreet.learn.run.diagnostics import Diagnostics, bar
from discreet.learn.run.optimizer_guard import Guard
from discreet.learn.run.payment import Charges
from discreet.learn.run.promise import Promise
from discreet.learn.run.state import RunState
from discreet.learn.run.step import Drawing, Stepping
from discreet.learn.run.team import Team
from discreet.learn.run.ticket import Batch, require_ticket

__all__ = ["Private"]

_TIMES_SHOWN: Final = 20  # how often the bar works out an epsilon, which may take a tenth second


@final
class Private:
    """A model in private training; :func:`discreet.learn.prepare` makes one.

    Claim: whoever sees the model after every step, the settings and the number of steps learns no
    more than ``spent`` says: (epsilon, delta)-DP for one unit under the neighbouring relation of
    the sampling. With an account, every step is on record in its ledger, durably, before the
    step's batch is drawn.

    Why: each step draws its batch by the accounted sampling, adds up one contribution of each unit
    with an L2 norm of at most the clip, adds Gaussian noise in proportion to the clip and divides
    by a public number: one operation of the loss ``sampling.loss(noise_multiplier=...)``. The rest
    of the step is post-processing. Steps compose adaptively, since the next one depends on the
    data through its own batch and on the past through the released model only.

    It holds for this path alone. What else is computed from the same data (a loss that is printed,
    an accuracy, a learning rate chosen by looking) is a release of its own.

    >>> import torch
    >>> from discreet.learn.preparing import prepare
    >>> rows, labels = torch.randn(1_000, 5), torch.randint(2, (1_000,))
    >>> model = nn.Linear(5, 2)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    >>> def loss_fn(model, batch):
    ...     rows, labels = batch
    ...     return nn.functional.cross_entropy(model(rows), labels, reduction="none")
    >>> with prepare(model, optimizer, (rows, labels), epsilon=3, delta=1e-5, epochs=1,
    ...              batch_size=100, clip=1.0) as private:
    ...     for batch in private.batches():
    ...         private.step(batch, loss_fn)
    >>> private.steps_taken, private.spent.epsilon <= 3
    (10, True)
    """

    def __init__(
        self,
        *,
        model: nn.Module,
        optimizer: Optimizer,
        stepping: Stepping,
        promise: Promise,
        charges: Charges | None,
        team: Team,
        state: RunState,
        progress: bool | None,
        notes: tuple[str, ...],
    ) -> None:
        self.model, self.optimizer, self.notes = model, optimizer, notes
        self._stepping, self._promise, self._charges = stepping, promise, charges
        self._team, self._state, self._show = team, state, progress
        self._guard = Guard(optimizer)
        self._current: Batch | None = None
        self._drawing: Drawing | None = None  # the next step's batch, paid for and being read
        self._is_open = True
        self._checked = CheckedModel(model, stepping.engine.flat.parameters)
        self._tell_noise(self._number)

    @property
    def steps_planned(self) -> int:
        """How many steps the run was prepared for."""
        return self._promise.steps

    @property
    def steps_taken(self) -> int:
        """How many steps have changed the model."""
        return self._state.taken

    @property
    def noise_multiplier(self) -> float:
        """The noise's standard deviation in terms of the clip: in the next step, by its stage."""
        return self._promise.noise_multiplier.at(self._number)

    @property
    def clip(self) -> float:
        """The L2 norm that no unit's contribution exceeds: in the next step, where it changes."""
        return self._stepping.clip(self._number)

    @property
    def _number(self) -> int:  # of the next step, or of the last one when the plan is over
        return min(self._state.done, self.steps_planned - 1)

    @property
    def is_open(self) -> bool:
        """Whether it can make further steps."""
        return self._is_open and self._guard.is_held and self._state.done < self.steps_planned

    @property
    def spent(self) -> Spent:
        """What the steps begun so far cost: certified, also counting steps that failed.

        With ``workers``, the batch of the next step is paid for and drawn during the last one.
        After resuming with an account it counts the steps that a crash lost, as the ledger does.
        """
        begun = self._state.begun
        return Spent(
            epsilon=self._promise.epsilon_of(begun),
            delta=self._promise.delta,
            steps=begun.total(),
            planned=self.steps_planned,
            unit=self._promise.unit,
            neighbours=str(self._promise.sampling.neighbours),
            is_secure=self._stepping.source.is_secure,
        )

    @property
    def reservations(self) -> tuple[int, ...]:
        """The ledger's entries that set its steps aside; none without an account."""
        return () if self._charges is None else tuple(self._charges.indices)

    @property
    def diagnostics(self) -> Diagnostics:
        """The last step from inside: NOT PRIVATE. Only with ``prepare(..., diagnostics=True)``."""
        if self._stepping.monitor is None:
            raise ParameterError(
                "diagnostics are computed from raw data and not private, so they are off. Where "
                "nobody but the owner of the data sees them: prepare(..., diagnostics=True).",
                parameter="diagnostics",
            )
        return self._stepping.monitor.last

    def batches(self) -> Iterator[Batch]:
        """Yield a batch for each step that is left, with a progress bar on a terminal.

        Leaving the loop early is fine; :meth:`close` gives back what was not begun.

        >>> import torch
        >>> from discreet.learn.preparing import prepare
        >>> model = nn.Linear(2, 1)
        >>> private = prepare(model, torch.optim.SGD(model.parameters(), lr=0.1),
        ...                   (torch.randn(100, 2),), noise_multiplier=1, delta=1e-5, steps=3,
        ...                   batch_size=10, clip=1.0)
        >>> len(list(private.batches()))
        3
        """
        self._require_open()
        shows = self._show if self._team.is_first else False
        with bar(shows, total=self.steps_planned, done=self._state.done, describe=self._told) as up:
            for _ in range(self.steps_planned - self._state.done):
                self._current = Batch(self)
                yield self._current
                up(self._state.done)

    def epochs(self) -> Iterator[Iterator[Batch]]:
        """Yield the batches of one epoch after the other; look at *public* data in between.

        An epoch is as many steps as draw each unit once on average.

        >>> import torch
        >>> from discreet.learn.preparing import prepare
        >>> model = nn.Linear(2, 1)
        >>> private = prepare(model, torch.optim.SGD(model.parameters(), lr=0.1),
        ...                   (torch.randn(100, 2),), noise_multiplier=1, delta=1e-5, epochs=2,
        ...                   batch_size=25, clip=1.0)
        >>> for epoch in private.epochs():
        ...     for batch in epoch:
        ...         private.step(batch, lambda model, rows: model(rows[0]).squeeze(1))
        ...     print(private.steps_taken)
        4
        8
        """
        each, batches, done = self._promise.steps_per_epoch, self.batches(), self._state.done
        while done < self.steps_planned:
            size = min(each - done % each, self.steps_planned - done)
            yield islice(batches, size)
            done += size

    def epsilon(self, *, delta: Number) -> float:
        """Return what the steps begun so far cost at another delta: a certified upper bound.

        >>> import torch
        >>> from discreet.learn.preparing import prepare
        >>> model = nn.Linear(2, 1)
        >>> private = prepare(model, torch.optim.SGD(model.parameters(), lr=0.1),
        ...                   (torch.randn(100, 2),), noise_multiplier=1, delta=1e-5, steps=3,
        ...                   batch_size=10, clip=1.0)
        >>> private.step(next(private.batches()), lambda model, rows: model(rows[0]).squeeze(1))
        >>> private.epsilon(delta=1e-7) > private.spent.epsilon
        True
        """
        return self._promise.epsilon_of(self._state.begun, delta=delta)

    def extend(self, *, steps: int) -> None:
        """Go on past the plan by ``steps`` more, at the last noise; reserved first, if paid for.

        ``spent`` then counts up to the new plan, which is what to quote once it was extended: that
        the model made somebody go on is covered, since a plan of all these steps would have shown
        no less. Who extends again and again should have an account, whose budget ends it.

        >>> import torch
        >>> from discreet.learn.preparing import prepare
        >>> model = nn.Linear(2, 1)
        >>> private = prepare(model, torch.optim.SGD(model.parameters(), lr=0.1),
        ...                   (torch.randn(100, 2),), noise_multiplier=1, delta=1e-5, steps=3,
        ...                   batch_size=10, clip=1.0)
        >>> private.extend(steps=2)
        >>> private.steps_planned, len(list(private.batches()))
        (5, 5)
        """
        self._require_open()
        more = whole(steps, name="steps")
        promise, charges, source = self._promise, self._charges, self._stepping.source
        if charges is not None:
            noises = promise.noises(promise.steps, promise.steps + more)
            self._team.lead(lambda: charges.extend(noises, source=source))
        # The noise was chosen for the first plan; what the new one costs is worked out.
        self._promise = replace(promise, steps=promise.steps + more, epsilon=None)

    def step(self, batch: Batch, loss_fn: LossFunction) -> None:
        """Pay for a step, draw its batch, and change the model by the noisy clipped gradient.

        ``loss_fn(model, rows)`` is called with the rows of a micro-batch on the model's device and
        returns one loss for each row. A model or a loss that can not be handled is refused before
        the first step is paid for. What fails later is computed again in smaller parts; a unit that
        fails alone adds nothing, as a row that cannot be read, unseen: each unit still adds its
        own clipped gradient or nothing. Only if rows of zeros fail as well does the step, which
        stays paid, raise a :class:`DataError`; ``prepare(..., debug=True)`` shows all errors.

        >>> import torch
        >>> from discreet.learn.preparing import prepare
        >>> model = nn.Linear(2, 1)
        >>> private = prepare(model, torch.optim.SGD(model.parameters(), lr=0.1),
        ...                   (torch.randn(100, 2),), noise_multiplier=1, delta=1e-5, steps=3,
        ...                   batch_size=10, clip=1.0)
        >>> private.step(torch.randn(10, 2), lambda model, rows: model(rows[0]).squeeze(1))
        Traceback (most recent call last):
            ...
        discreet.errors.ParameterError: step takes a batch of this run's own batches(), got an
        object of type Tensor. ...
        >>> private.step(next(private.batches()), lambda model, rows: model(rows[0]).squeeze(1))
        >>> private.steps_taken
        1
        """
        self._require_open()
        require_ticket(batch, owner=self, current=self._current)
        self._look_again()
        if not callable(loss_fn):
            raise ParameterError(
                "loss_fn must be a function of (model, rows).", parameter="loss_fn"
            )
        self._stepping.try_out(loss_fn)
        batch.is_used = True
        drawing = self._drawing or self._draw()
        self._drawing = None
        self._state.done += 1
        try:
            if self._stepping.rows.is_ahead and self._state.done < self.steps_planned:
                self._drawing = self._draw()
            self._stepping.sum_up(loss_fn, drawing)
            self.optimizer.zero_grad(set_to_none=True)  # of whoever left something there
            self._stepping.hand_over()
            self._tell_noise(drawing.number)
            self._guard.step(self.optimizer)
            self._state.taken += 1
        except BaseException:
            self._stepping.clear()  # it may hold a sum without noise
            raise
        finally:
            self.optimizer.zero_grad(set_to_none=True)
        self._stepping.adapt()
        if self._state.done == self.steps_planned and self._charges is not None:
            self._charges.close()

    def report(self) -> Report:
        """Return the settings, what was spent, and where it is proved: to print or to plot.

        >>> import torch
        >>> from discreet.learn.preparing import prepare
            >>> model = nn.Linear(2, 1)
            >>> private = prepare(model, torch.optim.SGD(model.parameters(), lr=0.1),
            ...                   (torch.randn(100, 2),), noise_multiplier=1, delta=1e-5, steps=3,
            ...                   batch_size=10, clip=1.0)
            >>> print(private.report())
            model       Linear, 3 trainable parameters
            optimiser   SGD
            unit        one record
            neighbours  add_remove
            sampling    Poisson(rate=Fraction(1, 10), population=100)
            ...
        """
        rows = described(
            self._promise,
            model=f"{type(self.model).__name__}, {self._stepping.size} trainable parameters",
            optimizer=type(self.optimizer).__name__,
            taken=self.steps_taken,
            is_secure=self._stepping.source.is_secure,
        )
        if self._promise.adapts or not self._promise.clipping.is_constant:
            rows.append(("clip now", f"{self.clip:.6g}"))
        if self._stepping.monitor is not None:
            rows.append(("last step", str(self._stepping.monitor.last)))
        rows += [("note", note) for note in self.notes]
        return Report(rows=tuple(rows), spent=self.spent, curve=self._promise.epsilon_after)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint that :func:`discreet.learn.resume` goes on from.

        It holds the model, the optimiser, the settings and how far the run is: no key, no noise, no
        data. It is written beside the old one and put in its place at once, so that a crash leaves
        one of them whole.

        >>> import tempfile, torch
        >>> from discreet.learn.preparing import prepare
        >>> model = nn.Linear(2, 1)
        >>> private = prepare(model, torch.optim.SGD(model.parameters(), lr=0.1),
        ...                   (torch.randn(100, 2),), noise_multiplier=1, delta=1e-5, steps=3,
        ...                   batch_size=10, clip=1.0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     private.save(os.path.join(folder, "run.pt"))
        ...     os.listdir(folder)
        ['run.pt']
        """
        self._state.norm = self.clip if self._promise.adapts else None
        document = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "optimizer_kind": type(self.optimizer).__name__,
            "settings": self._promise.to_json(),
            "state": self._state.document,
            "notes": list(self.notes),
            "jobs": [] if self._charges is None else self._charges.indices,
        }
        self._team.lead(lambda: write(path, document))

    def close(self) -> None:
        """End the run: give back what was reserved and not begun, and free the optimiser.

        Do so for public reasons (enough steps, a deadline), not for how raw data looked.

        >>> import torch
        >>> from discreet.learn.preparing import prepare
        >>> model = nn.Linear(2, 1)
        >>> private = prepare(model, torch.optim.SGD(model.parameters(), lr=0.1),
        ...                   (torch.randn(100, 2),), noise_multiplier=1, delta=1e-5, steps=3,
        ...                   batch_size=10, clip=1.0)
        >>> private.close()
        >>> private.is_open
        False
        """
        if self._charges is not None:
            self._charges.close()
        self._leave()

    def __enter__(self) -> "Private":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # When a run breaks may depend on the data, so an error gives nothing back: it can resume.
        if kind is None:
            self.close()
        else:
            self._leave()

    def __repr__(self) -> str:
        model = type(self.model).__name__
        told = f"Private({model}, {self.steps_taken} of {self.steps_planned} steps taken"
        return f"{told}{''.join(f'; {note}' for note in self.notes)})"

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> Never:
        raise NotCopyable(
            "a run cannot be copied or pickled: the copy's steps would not be in its account. Use "
            "private.save(path) and discreet.learn.resume."
        )

    def _draw(self) -> Drawing:
        """Pay for a step and draw its batch: the next one's, too, if rows are read ahead.

        In this order: a crash in between wastes budget, while the opposite order could change the
        model by a batch that nobody paid for.
        """
        number = self._state.done
        noise = self._promise.noise_multiplier.at(number)
        self._team.lead(partial(self._pay, noise))
        self._state.begun[noise] += 1
        return self._stepping.begin(number)

    def _pay(self, noise: float) -> None:
        """Put the step on record. In the first process only."""
        if self._charges is not None:
            self._charges.begin(noise)

    def _tell_noise(self, number: int) -> None:
        tell = getattr(self.optimizer, "tell_noise", None)
        if tell is not None:
            tell(self._stepping.noise_scale(number))

    def _look_again(self) -> None:
        """Check the model whenever it was changed, and now and then in case a loss was."""
        if self._checked.look() or _is_power_of_eight(self._state.done):
            self._stepping.engine.try_again()

    def _told(self) -> str:
        """Describe the run in the bar; epsilon a few times only, as it was at the last of them."""
        every = max(1, self.steps_planned // _TIMES_SHOWN)
        shown = self._state.done // every * every
        told = f"epsilon {self._promise.epsilon_after(shown):.3g}"
        return told if self._stepping.monitor is None else f"{told} ({self._stepping.monitor.last})"

    def _leave(self) -> None:
        self._is_open = False
        self._drawing = None
        self._guard.release()

    def _require_open(self) -> None:
        if not self._is_open:
            raise SessionOver("this run was closed. Prepare another one to train on.")
        if not self._guard.is_held:
            raise SessionOver("another run was prepared with this optimiser. Go on with that one.")


def _is_power_of_eight(number: int) -> bool:
    return number.bit_count() == 1 and number.bit_length() % 3 == 1
