"""What one may ask of a run: the keywords of ``prepare`` and ``resume``, and their frozen form."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Final, Literal, Required, TypedDict, final

from discreet._exact import Number, float_up, positive, probability, whole
from discreet.accounting import Loss, calibrate
from discreet.errors import ParameterError
from discreet.learn.choices.sampling import Sampling
from discreet.learn.choices.stages import Stages, loss_of_steps
from discreet.learn.reading.making import Collate, Transform
from discreet.learn.reading.rows import Making
from discreet.ledger import Account
from discreet.noise import SYSTEM, Source

__all__ = [
    "Execution",
    "ExecutionOptions",
    "SamplingName",
    "Training",
    "TrainingOptions",
]

_WIDEST: Final = 2**33  # between the least and the most noise that can be drawn

SamplingName = Literal["poisson", "truncated", "without_replacement", "full"]


class ExecutionOptions(TypedDict, total=False):
    """Keywords of :func:`prepare` and :func:`resume` alike: who pays, and how the work is done.

    None of them changes what is promised.

    ``account``: where every step is charged. ``transform``: from an item of the dataset to a row.
    ``collate``: from a list of one item to a batch of one row, as a DataLoader's has it; it never
    sees two. ``workers``: processes that read rows ahead of their use. ``micro_batch_size``: how
    many units are computed at a time. ``graphs``: replay CUDA graphs; by default where a GPU is
    there and it is safe. ``progress``: show a bar; by default on a terminal. ``diagnostics``: look
    at raw data, NOT PRIVATE. ``debug``: let errors of ``loss_fn``, the model and the dataset
    through, which may show data. ``source``: of all randomness.

    >>> import torch
    >>> from discreet.learn import prepare
    >>> how: ExecutionOptions = {"micro_batch_size": 64, "diagnostics": True}
    >>> model, data = torch.nn.Linear(3, 1), (torch.randn(1_000, 3),)
    >>> private = prepare(model, torch.optim.SGD(model.parameters(), lr=0.1), data, clip=1.0,
    ...                   noise_multiplier=1, delta=1e-5, steps=1, batch_size=500, **how)
    >>> private.step(next(private.batches()), lambda model, rows: model(rows[0]).squeeze(1))
    >>> private.diagnostics.units > 300
    True
    """

    account: Account | None
    transform: Transform | None
    collate: Collate | None
    workers: int
    micro_batch_size: int | None
    graphs: bool | None
    progress: bool | None
    diagnostics: bool
    debug: bool
    source: Source


class TrainingOptions(ExecutionOptions, total=False):
    """Keywords of :func:`prepare`: how private the run is, how long it is, and who asks for it.

    ``epsilon`` or ``noise_multiplier``, at ``delta``; both where the noise follows a schedule,
    :class:`Stages`, whose numbers are then relative to each other. ``epochs`` or ``steps``, of
    ``batch_size`` units out of a public ``population``, ``rows_per_unit`` of each. ``who`` and
    ``purpose``, for the ledger. And those of :class:`ExecutionOptions`.

    >>> import torch
    >>> from discreet.learn import prepare
    >>> options: TrainingOptions = {
    ...     "epsilon": 2, "delta": 1e-5, "epochs": 3, "batch_size": 50, "progress": False
    ... }
    >>> model, data = torch.nn.Linear(3, 1), (torch.randn(1_000, 3),)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> prepare(model, optimizer, data, clip=1.0, **options).steps_planned
    60
    """

    epsilon: Number | None
    delta: Required[Number]
    epochs: Number | None
    steps: int | None
    batch_size: int | None
    noise_multiplier: Number | Stages[Number] | None
    population: int | None
    rows_per_unit: int
    who: str
    purpose: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """How the work of a run is done and who pays for it: :class:`ExecutionOptions`, checked."""

    account: Account | None = None
    transform: Transform | None = None
    collate: Collate | None = None
    workers: int = 0
    micro_batch_size: int | None = None
    graphs: bool | None = None
    progress: bool | None = None
    diagnostics: bool = False
    debug: bool = False
    source: Source = SYSTEM

    def __post_init__(self) -> None:
        if self.account is not None and not isinstance(self.account, Account):
            raise ParameterError(
                f"account must be an account of a ledger, got an object of type "
                f"{type(self.account).__name__}. Open one with Ledger.open(path)[name].",
                parameter="account",
            )
        if self.micro_batch_size is not None:  # 8.0 is a whole number, too, but no size of a slice
            size = whole(self.micro_batch_size, name="micro_batch_size")
            object.__setattr__(self, "micro_batch_size", size)

    @property
    def making(self) -> Making:
        """How rows are made."""
        return Making(
            transform=self.transform, collate=self.collate, workers=self.workers, debug=self.debug
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Training(Execution):
    """What was asked of a run: :class:`TrainingOptions`, checked."""

    epsilon: Number | None = None
    delta: Number
    epochs: Number | None = None
    steps: int | None = None
    batch_size: int | None = None
    noise_multiplier: Number | Stages[Number] | None = None
    population: int | None = None
    rows_per_unit: int = 1
    who: str = "trainer"
    purpose: str = "training"

    def __post_init__(self) -> None:
        probability(self.delta, name="delta", hint="Gaussian noise needs a delta above 0.")
        Execution.__post_init__(self)
        is_staged = isinstance(self.noise_multiplier, Stages)
        if (self.epsilon is None) == (self.noise_multiplier is None) and not is_staged:
            raise ParameterError(
                "give either epsilon=, for which the noise is found, or noise_multiplier=, for "
                "which private.spent tells the epsilon. Both go together only if noise_multiplier "
                "is a schedule, Stages(...), of which epsilon sets the level.",
                parameter="epsilon",
            )
        if (self.epochs is None) == (self.steps is None):
            raise ParameterError(
                "give either epochs= or steps=; an epoch is population / batch_size steps.",
                parameter="epochs",
            )
        for name in ("epsilon", "epochs"):
            if getattr(self, name) is not None:
                positive(getattr(self, name), name=name)
        noises = [positive(noise, name="noise_multiplier") for noise in self.noise.values]
        if self.epsilon is not None and max(noises) > _WIDEST * min(noises):
            raise ParameterError(
                "the stages of noise_multiplier must be within 2**33 times each other, or one of "
                "them is noise that cannot be drawn.",
                parameter="noise_multiplier",
            )

    @property
    def noise(self) -> Stages[Number]:
        """The noise multipliers that were asked for, or how large they are to each other."""
        return Stages.of(1 if self.noise_multiplier is None else self.noise_multiplier)

    def steps_of(self, sampling: Sampling) -> int:
        """Return how many steps were asked for, with batches like these."""
        if self.steps is not None:
            return whole(self.steps, name="steps")
        rounds = positive(self.epochs, name="epochs")
        return max(1, ceil(rounds * sampling.population / Fraction(sampling.expected)))

    def noise_for(self, sampling: Sampling, steps: int) -> Stages[float]:
        """Return the noise multipliers that were asked for, or the least that keep epsilon."""
        given = self.noise.changed(lambda noise: positive(noise, name="noise_multiplier"))
        unit = 1 if self.epsilon is None else max(given.values)

        def times(level: float) -> Stages[float]:
            return given.changed(lambda noise: float_up(noise / unit * Fraction(level)))

        def loss(level: float) -> Loss:
            return loss_of_steps(sampling, times(level).spans(0, steps))

        if self.epsilon is None:
            return times(1.0)
        delta = probability(self.delta, name="delta")
        return times(calibrate(loss, epsilon=self.epsilon, delta=delta))
