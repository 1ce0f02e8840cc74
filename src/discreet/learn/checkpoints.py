"""Checkpoints: a run that was interrupted goes on, and what it has cost is never forgotten."""

import os
import pickle
import tempfile
import warnings
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn
from torch.optim import Optimizer

from discreet._version import __version__
from discreet.errors import ParameterError
from discreet.learn.choices.clipping import Adaptive, Clipping
from discreet.learn.choices.sampling import Sampling
from discreet.learn.run.assembly import Parts, assemble, gather, rounded, started
from discreet.learn.run.payment import Charges, require_account
from discreet.learn.run.rows import Collate
from discreet.learn.run.settings import Settings
from discreet.learn.training import Private, State
from discreet.ledger import Account
from discreet.noise import SYSTEM, Source

__all__ = ["resume", "write"]

_FORMAT: Final = 1


def resume(
    path: str | os.PathLike[str],
    model: nn.Module,
    optimizer: Optimizer,
    dataset: object,
    *,
    account: Account | None = None,
    units: object = None,
    micro_batch_size: int | None = None,
    graphs: bool = False,
    collate: Collate | None = None,
    sampling: Sampling | None = None,
    clip: Clipping | Adaptive | None = None,
    progress: bool | None = None,
    diagnostics: bool = False,
    source: Source = SYSTEM,
) -> Private:
    """Go on with a run from its checkpoint: with the same settings, and with fresh randomness.

    ``model``, ``optimizer``, ``dataset``, ``units``, ``collate`` and ``account`` are passed as
    they were to ``prepare``; weights and the optimiser's state come from the checkpoint, and so
    does everything that was promised.

    Claim: as for :class:`Private`. Steps that were made after the checkpoint was written are lost
    and repeated, with new batches and new noise. With an account they stay paid, the repetitions
    are paid again, from an extra reservation where needed, and ``spent`` counts both. Without an
    account nobody knows of them: ``spent`` counts what the checkpoint knows, so it is right only if
    nothing of the lost steps was kept.

    >>> import os, tempfile
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
    require_account(account)
    document = read(path)
    settings = Settings.from_json(document["settings"], sampling=sampling, clipping=clip)
    state = State(**document["state"])
    _check_account(settings, account)
    parts = gather(
        model,
        optimizer,
        dataset,
        units=units,
        rows_per_unit=1 if units is None else settings.rows_per_unit,
        collate=collate,
    )
    _check_data(parts, settings)
    _load(document, settings, parts.model, optimizer)

    def pay(account: Account) -> Charges:
        return Charges.resume(
            account,
            settings.step_loss,
            steps=settings.steps - state.done,
            run=settings.run,
            source=source,
        )

    return assemble(
        parts,
        settings=settings,
        clipping=started(settings.clipping, state.norm),
        state=state,
        account=account,
        pay=pay,
        micro_batch_size=micro_batch_size,
        graphs=graphs,
        progress=progress,
        diagnostics=diagnostics,
        source=source,
        notes=tuple(document["notes"]),
    )


def write(path: str | os.PathLike[str], document: dict[str, Any]) -> None:
    """Write a checkpoint in place of an older one, whole or not at all."""
    target = Path(path)
    document = {"format": _FORMAT, "discreet": __version__, **document}
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            torch.save(document, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    if os.name == "posix":  # the new name must survive a power cut, too
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a checkpoint; nothing in it is executed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about files that are none of ours
            document = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, EOFError, RuntimeError) as error:
        raise _no_checkpoint(path) from error
    if not isinstance(document, dict) or "format" not in document or "settings" not in document:
        raise _no_checkpoint(path)
    if document["format"] != _FORMAT:
        raise ParameterError(
            f"{path} was written by discreet {document.get('discreet')}, in a form that this "
            "version does not know. Go on with that version, or a newer one.",
            parameter="path",
        )
    return document


def _no_checkpoint(path: str | os.PathLike[str]) -> ParameterError:
    return ParameterError(
        f"{os.fspath(path)} is no checkpoint of a private run. Write one with private.save(path).",
        parameter="path",
    )


def _check_account(settings: Settings, account: Account | None) -> None:
    given = None if account is None else account.name
    if given == settings.account:
        return
    if settings.account is None:
        told = "was begun without an account. Leave account= out, or prepare a new run with it."
    else:
        told = f"is charged to account {settings.account!r}. Pass it as account=."
    raise ParameterError(f"this run {told} Nothing was spent.", parameter="account")


def _check_data(parts: Parts, settings: Settings) -> None:
    """Refuse data that is not what the run was prepared for, as far as that is public."""
    if parts.unit != settings.unit:
        raise ParameterError(
            f"this run protects {settings.unit}, not {parts.unit}. Nothing was spent. Pass units= "
            "as when it was prepared.",
            parameter="units",
        )
    if parts.rows.form != settings.form:
        raise ParameterError(
            f"this run was prepared for rows of the form ({settings.form}), not "
            f"({parts.rows.form}). Nothing was spent.",
            parameter="dataset",
        )
    size = settings.sampling.population
    if settings.is_rounded and rounded(parts.units.count) != size:
        raise ParameterError(
            f"this run was prepared for a dataset whose size is {size}, rounded up to two digits, "
            "and this one's is not. Nothing was spent. Pass the same dataset.",
            parameter="dataset",
        )
    settings.sampling.check(parts.units.count)


def _load(
    document: dict[str, Any], settings: Settings, model: nn.Module, optimizer: Optimizer
) -> None:
    """Bring back weights and the optimiser's state, or refuse before anything is changed."""
    saved, own = document["model"], model.state_dict()
    trainable = tuple(
        (name, tuple(p.shape)) for name, p in model.named_parameters() if p.requires_grad
    )
    wrong = sorted(
        name
        for name in saved.keys() | own.keys()
        if name not in saved or name not in own or saved[name].shape != own[name].shape
    )
    if wrong or trainable != settings.trainable:
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
