"""The runs of ``discreet train``: paid for together first, then trained and evaluated in turn."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, final

from discreet._exact import Number
from discreet.cli.train.evaluations import Evaluation
from discreet.errors import DiscreetError, MissingExtra

if TYPE_CHECKING:
    from torch import nn

    from discreet.learn import Private, TrainingOptions
    from discreet.learn.recipes import Accuracy, EncodedRows, Recipe
    from discreet.ledger import Account

__all__ = ["Experiment", "Run", "carry_out", "gap", "need_torch", "one_thread"]

NOT_PRIVATE: Final = "NOT PRIVATE"


def need_torch() -> None:
    """Say how to install what training needs, before anything else is done.

    >>> need_torch()
    """
    try:
        import torch  # noqa: F401
    except ImportError:
        raise MissingExtra(room="discreet.learn", needs="torch", extra="learn") from None


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute in one thread: for so small a model several mostly wait for each other.

    >>> with one_thread():
    ...     pass
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """What all runs of a command have in common."""

    recipe: "Recipe"
    classes: int
    epochs: Number
    batch_size: int
    training: "TrainingOptions"  # the other settings of private runs; epsilon is each one's own
    clip: Number | None = None
    learning_rate: Number | None = None
    unit: str | None = None

    @property
    def account(self) -> "Account | None":
        """Who pays."""
        return self.training.get("account")

    def prepare(self, rows: "EncodedRows", epsilon: Number) -> "Private":
        """Prepare one of the runs, and set aside what it costs."""
        options: TrainingOptions = {
            **self.training,
            "epsilon": epsilon,
            "epochs": self.epochs,
            "batch_size": self.batch_size,
        }
        return self.recipe.prepare(
            rows,
            classes=self.classes,
            clip=self.clip,
            learning_rate=self.learning_rate,
            unit=self.unit,
            **options,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One trained model and what is known about it."""

    epsilon: Number | None  # as asked for; None without privacy
    certified: float | None
    delta: Number | None
    steps: int | None
    noise_multiplier: float | None
    accuracy: "Accuracy | None"
    entry: int | None  # of the reservation in the ledger
    unit: str | None = None
    neighbours: str | None = None
    notes: tuple[str, ...] = ()
    model: Any = field(repr=False, compare=False, default=None)

    @property
    def is_private(self) -> bool:
        """Whether it was trained with privacy."""
        return self.epsilon is not None

    def to_dict(self) -> dict[str, Any]:
        """Return what is known, for JSON."""
        accuracy = self.accuracy
        return {
            "private": self.is_private,
            "epsilon": None if self.epsilon is None else float(self.epsilon),
            "certified_epsilon": self.certified,
            "delta": None if self.delta is None else float(self.delta),
            "steps": self.steps,
            "noise_multiplier": self.noise_multiplier,
            "accuracy": None if accuracy is None else accuracy.value,
            "accuracy_error": None if accuracy is None else accuracy.error,
            "ledger_entry": self.entry,
            "unit": self.unit,
            "neighbours": self.neighbours,
        }


def carry_out(
    experiment: Experiment,
    rows: "EncodedRows",
    *,
    epsilons: Sequence[Number],
    twin: bool,
    evaluation: Evaluation | None,
) -> list[Run]:
    """Train once for each epsilon and, where asked for, once without privacy; judge them all."""
    prepared: list[tuple[Number, Private]] = []
    try:
        # All of it is set aside first, or nothing: a comparison that breaks off helps nobody.
        for epsilon in epsilons:
            prepared.append((epsilon, experiment.prepare(rows, epsilon)))
        if evaluation is not None:
            evaluation.begin(len(epsilons) + twin)
    except BaseException:
        _give_back(prepared, evaluation)  # none of it has begun
        raise
    try:
        runs = _trained(experiment, rows, prepared, twin=twin, evaluation=evaluation)
    except KeyboardInterrupt:
        # Stopped by somebody who has seen nothing. When an error stops it that may depend on the
        # data, so then nothing is given back.
        _give_back(prepared, evaluation)
        raise
    if evaluation is not None:
        evaluation.close()
    return runs


def _trained(
    experiment: Experiment,
    rows: "EncodedRows",
    prepared: Sequence[tuple[Number, "Private"]],
    *,
    twin: bool,
    evaluation: Evaluation | None,
) -> list[Run]:
    from discreet.learn.recipes import finish, train_without_privacy

    runs = []
    if twin:
        model = train_without_privacy(
            experiment.recipe,
            rows,
            classes=experiment.classes,
            epochs=experiment.epochs,
            batch_size=experiment.batch_size,
            learning_rate=experiment.learning_rate,
        )
        runs.append(_run(None, None, model, evaluation))
    for epsilon, private in prepared:
        runs.append(_run(epsilon, private, finish(private), evaluation))
    return runs


def _give_back(prepared: Sequence[tuple[Number, "Private"]], evaluation: Evaluation | None) -> None:
    for one in (*(private for _, private in prepared), evaluation):
        with suppress(DiscreetError):
            if one is not None:
                one.close()


def _run(
    epsilon: Number | None,
    private: "Private | None",
    model: "nn.Module",
    evaluation: Evaluation | None,
) -> Run:
    accuracy = None if evaluation is None else evaluation.accuracy(model)
    if private is None:
        return Run(
            epsilon=None, certified=None, delta=None, steps=None, noise_multiplier=None,
            accuracy=accuracy, entry=None, model=model,
        )  # fmt: skip
    spent = private.spent
    return Run(
        epsilon=epsilon,
        certified=spent.epsilon,
        delta=spent.delta,
        steps=spent.steps,
        noise_multiplier=private.noise_multiplier,
        accuracy=accuracy,
        entry=_entry(private),
        unit=spent.unit,
        neighbours=spent.neighbours,
        notes=private.notes,
        model=model,
    )


def _entry(private: "Private") -> int | None:
    return next(iter(private.reservations), None)


def gap(run: Run, runs: Sequence[Run]) -> float | None:
    """Return how much accuracy a private run lost against the one without privacy."""
    twin = next((one for one in runs if not one.is_private), None)
    found = [one.accuracy.value for one in (run, twin) if one is not None and one.accuracy]
    if len(found) < 2 or run is twin or None in found:
        return None
    lost = (found[1] or 0.0) - (found[0] or 0.0)
    return None if math.isnan(lost) else lost
