"""The runs of ``discreet train``: paid for together first, then trained and evaluated in turn."""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Protocol, final

from discreet._exact import Number, show
from discreet.errors import DiscreetError, MissingExtra

if TYPE_CHECKING:
    from torch import nn

    from discreet.learn import Private
    from discreet.learn.recipes.encoding import EncodedRows
    from discreet.learn.recipes.evaluation import Accuracy, PrivateAccuracy
    from discreet.learn.recipes.recipe import Recipe
    from discreet.ledger import Account, Job

__all__ = ["Evaluation", "OnPrivate", "OnPublic", "Run", "Settings", "carry_out", "need_torch"]

APART: Final = Fraction(1, 10)  # the share of units that a private evaluation keeps out of training
NOT_PRIVATE: Final = "NOT PRIVATE"


def need_torch() -> None:
    """Say how to install what training needs, before anything else is done.

    >>> need_torch()
    """
    try:
        import torch  # noqa: F401
    except ImportError:
        raise MissingExtra(room="discreet.learn", needs="torch", extra="learn") from None


class Evaluation(Protocol):
    """How a model is judged, and on whom."""

    @property
    def words(self) -> str:
        """On whom, to be printed."""
        ...

    def begin(self, models: int, /) -> None:
        """Set aside what judging so many models costs, or raise."""
        ...

    def accuracy(self, model: "nn.Module", /) -> "Accuracy":
        """Judge a model."""
        ...

    def close(self) -> None:
        """Give back what was not used."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OnPublic:
    """Judge models on rows that were declared public: free, and exact."""

    rows: "EncodedRows"
    words: str

    def begin(self, models: int, /) -> None:
        """Nothing: it is free."""

    def close(self) -> None:
        """Nothing: it is free."""

    def accuracy(self, model: "nn.Module", /) -> "Accuracy":
        from discreet.learn.recipes.encoding import NO_LABEL
        from discreet.learn.recipes.evaluation import Accuracy

        return Accuracy.on_public(model, self.rows.take(self.rows.labels != NO_LABEL))


@final
class OnPrivate:
    """Judge models on private rows, with noise, each time for a price that was set aside."""

    def __init__(
        self,
        rows: "EncodedRows",
        mechanism: "PrivateAccuracy",
        account: "Account",
        *,
        who: str,
        purpose: str,
    ) -> None:
        self._rows, self._mechanism, self._account = rows, mechanism, account
        self._who, self._purpose = who, purpose
        self._job: Job | None = None

    @property
    def words(self) -> str:
        """On whom."""
        return (
            f"a random tenth of the units, kept out of training, with noise for "
            f"epsilon={show(self._mechanism.epsilon)} each"
        )

    def begin(self, models: int, /) -> None:
        """Set aside what judging so many models costs."""
        loss = self._mechanism.loss * models
        self._job = self._account.reserve(loss, who=self._who, purpose=self._purpose)

    def close(self) -> None:
        """Give back what was not used."""
        if self._job is not None:
            self._job.close()

    def accuracy(self, model: "nn.Module", /) -> "Accuracy":
        from discreet.learn.recipes.encoding import NO_LABEL
        from discreet.learn.recipes.evaluation import correct

        assert self._job is not None  # begun
        self._job.spend(self._mechanism.loss)  # before the rows are touched
        rows = self._rows.take(self._rows.labels != NO_LABEL)
        return self._mechanism.release(correct(model, rows), units=rows.units)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What all runs of a command have in common."""

    recipe: "Recipe"
    classes: int
    delta: Number
    epochs: Number
    batch_size: int
    clip: Number | None = None
    learning_rate: Number | None = None
    account: "Account | None" = None
    unit: str | None = None
    rows_per_unit: int = 1
    population: int | None = None
    who: str = "trainer"
    purpose: str = "training"
    progress: bool | None = None


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
    settings: Settings,
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
            prepared.append((epsilon, _prepared(settings, rows, epsilon)))
        if evaluation is not None:
            evaluation.begin(len(epsilons) + twin)
    except BaseException:
        _give_back(prepared, evaluation)  # none of it has begun
        raise
    try:
        runs = _trained(settings, rows, prepared, twin=twin, evaluation=evaluation)
    except KeyboardInterrupt:
        # Stopped by somebody who has seen nothing. When an error stops it that may depend on the
        # data, so then nothing is given back.
        _give_back(prepared, evaluation)
        raise
    if evaluation is not None:
        evaluation.close()
    return runs


def _trained(
    settings: Settings,
    rows: "EncodedRows",
    prepared: Sequence[tuple[Number, "Private"]],
    *,
    twin: bool,
    evaluation: Evaluation | None,
) -> list[Run]:
    from discreet.learn.recipes.recipe import finish, train_without_privacy

    runs = []
    if twin:
        model = train_without_privacy(
            settings.recipe,
            rows,
            classes=settings.classes,
            epochs=settings.epochs,
            batch_size=settings.batch_size,
            learning_rate=settings.learning_rate,
        )
        runs.append(_run(None, None, model, evaluation))
    for epsilon, private in prepared:
        runs.append(_run(epsilon, private, finish(private), evaluation))
    return runs


def _prepared(settings: Settings, rows: "EncodedRows", epsilon: Number) -> "Private":
    return settings.recipe.prepare(
        rows,
        classes=settings.classes,
        epsilon=epsilon,
        delta=settings.delta,
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        clip=settings.clip,
        learning_rate=settings.learning_rate,
        account=settings.account,
        unit=settings.unit,
        rows_per_unit=settings.rows_per_unit,
        population=settings.population,
        who=settings.who,
        purpose=settings.purpose,
        progress=settings.progress,
    )


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
