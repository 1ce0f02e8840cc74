"""Checkpoints: a run that was interrupted goes on, and what it has cost is never forgotten."""

import os
from typing import Any, Unpack

from torch import nn
from torch.optim import Optimizer

from discreet._keywords import options_of
from discreet.errors import ParameterError
from discreet.learn.assembly import Parts, assemble, gather
from discreet.learn.choices.adaptive import Adaptive, as_clipping
from discreet.learn.choices.clipping import Clipping
from discreet.learn.choices.sampling import Sampling
from discreet.learn.choices.stages import Stages
from discreet.learn.run.checkpoint_file import read
from discreet.learn.run.payment import Charges
from discreet.learn.run.promise import Promise, trainable
from discreet.learn.run.settings import Execution, ExecutionOptions
from discreet.learn.run.state import RunState
from discreet.learn.run.units import rounded
from discreet.learn.training import Private
from discreet.ledger import Account

__all__ = ["resume"]


def resume(
    path: str | os.PathLike[str],
    model: nn.Module,
    optimizer: Optimizer,
    dataset: object,
    *,
    clip: Clipping | Adaptive | Stages[Clipping] | None = None,
    sampling: Sampling | None = None,
    units: object = None,
    **options: Unpack[ExecutionOptions],
) -> Private:
    """Go on with a run from its checkpoint: with the same settings, and with fresh randomness.

    ``model``, ``optimizer``, ``dataset``, ``units``, ``collate`` and ``account`` are passed as
    they were to ``prepare``, and so are a ``sampling`` and a ``clip`` of one's own; weights and the
    optimiser's state come from the checkpoint, and so does everything that was promised.
    ``options`` are the keywords of :class:`ExecutionOptions`.

    Claim: as for :class:`Private`. Steps that were made after the checkpoint was written are lost
    and repeated, with new batches and new noise. With an account they stay paid, the repetitions
    are paid again, from an extra reservation where needed, and ``spent`` counts both. Without an
    account nobody knows of them: ``spent`` counts what the checkpoint knows, so it is right only if
    nothing of the lost steps was kept.

    >>> import os, tempfile, torch
    >>> from discreet.learn.preparing import prepare
    >>> model, data = nn.Linear(2, 1), (torch.randn(100, 2),)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> private = prepare(model, optimizer, data, noise_multiplier=1, delta=1e-5, steps=3,
    ...                   batch_size=10, clip=1.0)
    >>> def loss_fn(model, rows):
    ...     return model(rows[0]).squeeze(1)
    >>> private.step(next(private.batches()), loss_fn)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "run.pt")
    ...     private.save(path)
    ...     private = resume(path, model, optimizer, data)
    >>> for batch in private.batches():
    ...     private.step(batch, loss_fn)
    >>> private.steps_taken, private.spent.steps
    (3, 3)
    """
    execution = options_of(resume, Execution, options)
    document = read(path)
    promise = Promise.from_json(document["settings"], sampling=sampling, clipping=clip)
    state = RunState.read(document["state"], first=promise.noise_multiplier.at(0))
    _check_account(promise, execution.account)
    parts = gather(
        model,
        optimizer,
        dataset,
        units=units,
        rows_per_unit=1 if units is None else promise.rows_per_unit,
        making=execution.making,
    )
    _check_data(parts, promise)
    _load(document, promise, parts.model, optimizer)
    return assemble(
        parts,
        execution,
        promise,
        clippings=promise.clipping.changed(lambda clip: as_clipping(clip, norm=state.norm)),
        state=state,
        pay=lambda account: Charges.resume(
            account, promise, done=state.done, source=execution.source
        ),
        notes=tuple(document["notes"]),
    )


def _check_account(promise: Promise, account: Account | None) -> None:
    given = None if account is None else account.name
    if given == promise.account:
        return
    if promise.account is None:
        told = "was begun without an account. Leave account= out, or prepare a new run with it."
    else:
        told = f"is charged to account {promise.account!r}. Pass it as account=."
    raise ParameterError(f"this run {told} Nothing was spent.", parameter="account")


def _check_data(parts: Parts, promise: Promise) -> None:
    """Refuse data that is not what the run was prepared for, as far as that is public."""
    if parts.unit != promise.unit:
        raise ParameterError(
            f"this run protects {promise.unit}, not {parts.unit}. Nothing was spent. Pass units= "
            "as when it was prepared.",
            parameter="units",
        )
    if parts.rows.form != promise.form:
        raise ParameterError(
            f"this run was prepared for rows of the form ({promise.form}), not "
            f"({parts.rows.form}). Nothing was spent.",
            parameter="dataset",
        )
    size = promise.sampling.population
    if promise.is_rounded and rounded(parts.units.count) != size:
        raise ParameterError(
            f"this run was prepared for a dataset whose size is {size}, rounded up to two digits, "
            "and this one's is not. Nothing was spent. Pass the same dataset.",
            parameter="dataset",
        )
    promise.sampling.check(parts.units.count)


def _load(
    document: dict[str, Any], promise: Promise, model: nn.Module, optimizer: Optimizer
) -> None:
    """Bring back weights and the optimiser's state, or refuse before anything is changed."""
    saved, own = document["model"], model.state_dict()
    wrong = sorted(
        name
        for name in saved.keys() | own.keys()
        if name not in saved or name not in own or saved[name].shape != own[name].shape
    )
    if wrong or trainable(model) != promise.trainable:
        named = ", ".join(wrong[:5]) or "other parameters are trainable"
        raise ParameterError(
            f"this is another model than the one in the checkpoint: {named}. Nothing was spent or "
            "changed. Build the model as it was when the run was prepared.",
            parameter="model",
        )
    if type(optimizer).__name__ != document["optimizer_kind"]:
        raise ParameterError(
            f"the checkpoint was written with {document['optimizer_kind']}, not with "
            f"{type(optimizer).__name__}. Nothing was spent or changed. Pass the same optimiser.",
            parameter="optimizer",
        )
    try:
        optimizer.load_state_dict(document["optimizer"])
    except (ValueError, KeyError) as error:
        raise ParameterError(
            "the optimiser has other groups of parameters than the one in the checkpoint. Nothing "
            "was spent. Build it as it was when the run was prepared.",
            parameter="optimizer",
        ) from error
    model.load_state_dict(saved)
