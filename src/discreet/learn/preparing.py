"""From a model, an optimiser and a dataset to a private run."""

import logging
from fractions import Fraction
from typing import Any, Final, Unpack, get_args

from torch import nn
from torch.optim import Optimizer

from discreet._exact import Number, plain, probability, whole
from discreet._keywords import options_of
from discreet.errors import ParameterError
from discreet.learn.assembly import Parts, assemble, gather
from discreet.learn.choices.adaptive import Adaptive, as_clipping
from discreet.learn.choices.clipping import Clipping
from discreet.learn.choices.sampling import (
    FullBatch,
    Poisson,
    Sampling,
    TruncatedPoisson,
    WithoutReplacement,
)
from discreet.learn.choices.stages import Stages
from discreet.learn.run.payment import Charges
from discreet.learn.run.promise import Promise, trainable
from discreet.learn.run.settings import SamplingName, Training, TrainingOptions
from discreet.learn.run.state import RunState
from discreet.learn.run.units import rounded
from discreet.learn.training import Private
from discreet.ledger import Account
from discreet.noise import SYSTEM, Source
from discreet.privacy import Neighbours

__all__ = ["prepare"]

_NAMES: Final = get_args(SamplingName)
_log = logging.getLogger("discreet.learn")


def prepare(
    model: nn.Module,
    optimizer: Optimizer,
    dataset: object,
    *,
    clip: Number | Clipping | Adaptive | Stages[Number | Clipping],
    sampling: SamplingName | Sampling | None = None,
    units: object = None,
    **options: Unpack[TrainingOptions],
) -> Private:
    """Prepare private training: choose the noise, set aside the budget, and hold the batches.

    ``options`` are the keywords of :class:`TrainingOptions`, among them ``delta``. Give either
    ``epsilon``, for which the smallest noise is found, or ``noise_multiplier``; and
    either ``epochs`` or ``steps``. ``dataset`` is a torch dataset with a length, a TensorDataset,
    or a tuple or dict of tensors (the quickest, on whichever device they are).

    ``clip`` bounds the L2 norm of each unit's gradient: a number, or one of the kinds in
    ``discreet.learn``. Clip and noise multiplier may change on the way, by :class:`Stages` that are
    fixed now; with ``epsilon``, the stages of the noise are relative to each other. ``batch_size``
    is the expected number of units in a batch; batches are drawn by Poisson sampling unless
    ``sampling`` says otherwise. ``micro_batch_size`` is how many units are computed at a time, as
    memory allows; it does not change the result. On a GPU the work on a micro-batch is recorded as
    a CUDA graph and replayed, which is much faster for small models. ``loss_fn`` and the model are
    then run for the recording only: what they hold in Python is compared in each step, and recorded
    anew where it changes. ``graphs=False`` declines that; ``graphs=True`` raises an error where it
    is not possible.

    ``population`` is the public number of units, by which the sampling rate is fixed. Under
    add/remove the true number is private: by default it is rounded up to two digits, and that much
    is then taken as public, as ``notes`` says.

    ``units`` names who is protected where that is not the single row: one id for each row, or the
    name of a column (of a dict or table, whose rows then come without it). A user who is drawn
    brings ``rows_per_unit`` rows along, chosen at random, and counts by their mean.

    With an ``account``, all steps are reserved now, and each is on record before its batch is
    drawn; ``who`` and ``purpose`` are written into the ledger. The account must protect the same
    unit under the same neighbouring relation. Without one, a second run on the same data in this
    process warns of what both cost together, as far as their data can be told to be the same.

    Claim: see :class:`Private`, with ``private.spent`` at most ``epsilon`` at ``delta`` after the
    planned steps.

    Why: the noise is calibrated by :func:`discreet.accounting.calibrate` for the composition of
    the very loss that each step has.

    >>> import torch
    >>> model = nn.Linear(3, 1)
    >>> private = prepare(model, torch.optim.SGD(model.parameters(), lr=0.1),
    ...                   (torch.randn(1_234, 3), torch.randn(1_234)),
    ...                   epsilon=2, delta=1e-5, epochs=3, batch_size=50, clip=1.0)
    >>> private.steps_planned, round(private.noise_multiplier, 2)
    (78, 1.1)
    >>> private.notes[0]
    'the population is taken to be 1300, the size of the dataset rounded up to two digits: that
    much about it is taken as public (declare another one with population=)'
    >>> private.spent.epsilon
    0.0
    """
    asked = options_of(prepare, Training, options)
    clipping = _clipping(clip)
    parts = gather(
        model,
        optimizer,
        dataset,
        units=units,
        rows_per_unit=asked.rows_per_unit,
        making=asked.making,
    )
    chosen, is_rounded = _sampling(sampling, parts, asked)
    steps = asked.steps_of(chosen)
    if sampling == "truncated":
        chosen = _truncated(chosen, asked, steps)
    chosen.check(parts.units.count)
    asked.noise.check(steps, name="noise_multiplier")
    clipping.check(steps, name="clip")
    noise = parts.team.lead(lambda: asked.noise_for(chosen, steps)) or asked.noise
    agreed = parts.team.agree([float(each) for each in noise.values])
    promise = Promise(
        run=SYSTEM.read(8).hex(),
        sampling=chosen,
        clipping=clipping,
        noise_multiplier=asked.noise.with_values(agreed),
        delta=plain(asked.delta, name="delta"),
        steps=steps,
        epsilon=None if asked.epsilon is None else plain(asked.epsilon, name="epsilon"),
        unit=parts.unit,
        rows_per_unit=parts.units.rows_each,
        is_rounded=is_rounded,
        form=parts.rows.form,
        trainable=trainable(parts.model),
        account=None if asked.account is None else asked.account.name,
    )
    notes = _notes(promise, asked.source)
    for note in notes:
        _log.info("%s", note)
    return assemble(
        parts,
        asked,
        promise,
        clippings=clipping.changed(as_clipping),
        state=RunState(),
        pay=lambda account: Charges.reserve(account, promise, asked),
        notes=notes,
    )


def _clipping(clip: object) -> Stages[Clipping | Adaptive]:
    """Return the clippings that are meant, in their stages."""
    if isinstance(clip, Adaptive):
        return Stages(then=clip)
    stages: Stages[Any] = Stages.of(clip)
    if any(isinstance(each, Adaptive) for each in stages.values):
        raise ParameterError(
            "an adaptive clip changes by itself, so it has no stages. Pass Adaptive(...) alone, or "
            "stages of norms.",
            parameter="clip",
        )
    return stages.changed(as_clipping)


def _sampling(sampling: object, parts: Parts, asked: Training) -> tuple[Sampling, bool]:
    """Return the sampling, and whether its population is the rounded size of the data."""
    if sampling is not None and not isinstance(sampling, str):
        return _given(sampling, asked), False
    name, account, population = sampling or "poisson", asked.account, asked.population
    if name not in _NAMES:
        raise ParameterError(
            f"sampling must be one of {', '.join(_NAMES)}, or an object such as Poisson(rate=..., "
            f"population=...), got {name!r}.",
            parameter="sampling",
        )
    relation = _relation(name, account)
    together = 1 if account is None else account.unit.size
    is_rounded = population is None and relation is Neighbours.add_remove
    count = parts.units.count
    if population is not None:
        size = whole(population, name="population")
    else:
        size = whole(rounded(count) if is_rounded else count, name="population")
    if name == "full":
        if asked.batch_size not in (None, size):
            raise ParameterError(
                "a full batch has no batch_size: leave it out.", parameter="batch_size"
            )
        return FullBatch(population=size, neighbours=relation, together=together), is_rounded
    expected = whole(
        asked.batch_size, name="batch_size", hint="It is the expected size of a batch."
    )
    if expected > size:
        raise ParameterError(
            f"batch_size must be at most the population of {size}, got {expected}. Use "
            "sampling='full' to train on everybody in each step.",
            parameter="batch_size",
        )
    if name == "without_replacement":
        return WithoutReplacement(size=expected, population=size), False
    rate = Fraction(expected, size)
    if name == "truncated":
        return Poisson(rate=rate, population=size), is_rounded  # cut when the steps are known
    poisson = Poisson(rate=rate, population=size, neighbours=relation, together=together)
    return poisson, is_rounded


def _relation(name: str, account: Account | None) -> Neighbours:
    """Return the relation that batches of this kind are proved for, the account's if it may be."""
    if name == "without_replacement":
        return Neighbours.replace_one
    known = {"full": tuple(Neighbours), "poisson": (Neighbours.add_remove, Neighbours.zero_out)}
    if account is not None and account.neighbours in known.get(name, ()):
        return account.neighbours
    return Neighbours.add_remove


def _given(sampling: object, asked: Training) -> Sampling:
    if not isinstance(sampling, Sampling) or isinstance(sampling, type):
        raise ParameterError(
            f"sampling must be one of {', '.join(_NAMES)}, or an object such as Poisson(rate=..., "
            f"population=...), got an object of type {type(sampling).__name__}.",
            parameter="sampling",
        )
    for name, value, own in (
        ("population", asked.population, sampling.population),
        ("batch_size", asked.batch_size, sampling.expected),
    ):
        if value is not None and value != own:
            raise ParameterError(
                f"{name} is {own:g} by sampling={sampling!r}: leave {name}= out.", parameter=name
            )
    return sampling


def _truncated(sampling: Sampling, asked: Training, steps: int) -> TruncatedPoisson:
    """Choose a capacity that is exceeded so rarely that it hardly costs: about 8 deviations."""
    from scipy.stats import binom

    assert isinstance(sampling, Poisson)
    tail = max(1e-30, float(probability(asked.delta, name="delta")) * 1e-6 / steps)
    capacity = int(binom.isf(tail, sampling.population, float(sampling.rate))) + 1
    return TruncatedPoisson(
        rate=sampling.rate, capacity=max(1, capacity), population=sampling.population
    )


def _notes(promise: Promise, source: Source) -> tuple[str, ...]:
    notes = []
    size = promise.sampling.population
    if promise.is_rounded:
        notes.append(
            f"the population is taken to be {size}, the size of the dataset rounded up to two "
            "digits: that much about it is taken as public (declare another one with population=)"
        )
    elif promise.sampling.neighbours is not Neighbours.add_remove:
        notes.append(
            f"protected by {promise.sampling.neighbours}: that there are {size} units is public, "
            "what each of them is, is not"
        )
    together = getattr(promise.sampling, "together", 1)
    if together > 1:
        notes.append(f"the noise covers any {together} units that change together")
    if not source.is_secure:
        notes.append("noise and batches come from a seeded source: for tests only")
    return tuple(notes)
