"""Canaries for private training with ``discreet.learn``, made into trainers to be audited."""

from collections.abc import Callable
from copy import deepcopy
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from discreet.audit.canaries.guessing import Coins, Scores
from discreet.errors import DataError, MissingExtra, ParameterError

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["gradient_canaries", "loss_canaries"]

Rows: TypeAlias = "tuple[Tensor, ...]"
RowLoss: TypeAlias = Callable[[Any, Any], Any]
MakeOptimizer: TypeAlias = Callable[[Any], Any]

_LONG = 1e6  # the length of a canary's gradient: far beyond any clip


def gradient_canaries(
    model: "nn.Module",
    loss_fn: RowLoss,
    data: Rows,
    *,
    optimizer: MakeOptimizer | None = None,
    **options: Any,
) -> Callable[[Coins], Scores]:
    """Return a trainer with white-box canaries, for :func:`training`.

    Every canary is a row whose gradient is long and points along a weight of its own, which is
    added to a copy of ``model``: the worst row that there can be, in full view. They go the way of
    all rows: drawn, clipped, added up, noised. A score is where the canary's weight ends.
    ``data`` is a tuple of tensors, ``loss_fn`` and ``options`` are those of
    :func:`discreet.learn.prepare`; ``optimizer`` makes one from parameters (SGD if none is given).

    >>> import torch
    >>> def squares(model, rows):
    ...     return (model(rows[0]) - rows[1]).square().squeeze(1)
    >>> train = gradient_canaries(
    ...     torch.nn.Linear(3, 1), squares, (torch.randn(50, 3), torch.randn(50, 1)),
    ...     epsilon=4, delta=1e-5, steps=2, batch_size=200, clip=1.0, progress=False,
    ... )
    >>> from discreet.audit import training
    >>> training(train, canaries=400, epsilon=4, delta=1e-5, confidence=0.999).passed
    True
    """
    torch = _torch()
    _check(data, options)

    def loss_of_all(host: Any, rows: Any) -> Any:
        *own, which, is_canary = rows
        along = host.canaries(which).squeeze(-1)
        return loss_fn(host.model, tuple(own)) * (1 - is_canary) - _LONG * along * is_canary

    def train(included: Coins) -> Scores:
        host = torch.nn.Module()
        host.model = deepcopy(model)
        host.canaries = torch.nn.Embedding(len(included), 1)
        torch.nn.init.zeros_(host.canaries.weight)
        which = torch.from_numpy(np.flatnonzero(included))
        zeros = torch.zeros(len(data[0]))
        # A canary brings the first row along, because every model can compute that one.
        rows = (
            *(torch.cat([part, part[:1].expand(len(which), *part.shape[1:])]) for part in data),
            torch.cat([zeros.long(), which]),
            torch.cat([zeros, torch.ones(len(which))]),
        )
        _train(host, loss_of_all, rows, optimizer, len(data[0]) + len(included), options)
        return np.asarray(host.canaries.weight.detach().squeeze(1).double().cpu())

    return train


def loss_canaries(
    model: "nn.Module",
    loss_fn: RowLoss,
    data: Rows,
    *,
    canaries: Rows,
    optimizer: MakeOptimizer | None = None,
    **options: Any,
) -> Callable[[Coins], Scores]:
    """Return a trainer with black-box canaries, for :func:`training`.

    ``canaries`` are rows like those of ``data`` that a model learns only by heart, such as rows
    with a wrong label. A score is how far the canary's loss fell between the model as it was and
    the final one, and nothing else is looked at. Everything else is as in
    :func:`gradient_canaries`.

    >>> import torch
    >>> def squares(model, rows):
    ...     return (model(rows[0]) - rows[1]).square().squeeze(1)
    >>> train = loss_canaries(
    ...     torch.nn.Linear(3, 1), squares, (torch.randn(50, 3), torch.zeros(50, 1)),
    ...     canaries=(torch.randn(100, 3), torch.ones(100, 1)),
    ...     epsilon=4, delta=1e-5, steps=2, batch_size=50, clip=1.0, progress=False,
    ... )
    >>> train(np.arange(100) < 50).shape
    (100,)
    """
    torch = _torch()
    _check(data, options)
    if len(canaries) != len(data):
        raise DataError(
            f"canaries must have the {len(data)} parts of a row that data has, not {len(canaries)}."
        )

    def losses(of: Any) -> Any:
        with torch.no_grad():
            return loss_fn(of, canaries).double()

    def train(included: Coins) -> Scores:
        if len(included) != len(canaries[0]):
            raise DataError(
                f"there are {len(canaries[0])} canaries, but coins for {len(included)}. Give "
                f"audit.training canaries={len(canaries[0])}."
            )
        trained = deepcopy(model)
        before = losses(trained)
        chosen = torch.from_numpy(np.flatnonzero(included))
        rows = tuple(
            torch.cat([part, canary[chosen]]) for part, canary in zip(data, canaries, strict=True)
        )
        _train(trained, loss_fn, rows, optimizer, len(data[0]) + len(included), options)
        return np.asarray((before - losses(trained)).cpu())

    return train


def _train(
    model: "nn.Module",
    loss_fn: RowLoss,
    rows: Rows,
    optimizer: MakeOptimizer | None,
    population: int,
    options: dict[str, Any],
) -> None:
    from torch.optim import SGD

    from discreet.learn import prepare

    if not hasattr(options.get("sampling"), "population"):
        # Of the dataset with all canaries: its size may not tell how many of them are in it.
        options = {"population": population} | options
    made = SGD(model.parameters(), lr=0.1) if optimizer is None else optimizer(model.parameters())
    private = prepare(model, made, rows, **options)
    for batch in private.batches():
        private.step(batch, loss_fn)


def _torch() -> Any:
    if find_spec("torch") is None:
        raise MissingExtra(room="discreet.audit", needs="torch", extra="learn")
    import torch

    return torch


def _check(data: object, options: dict[str, Any]) -> None:
    torch = _torch()
    if not isinstance(data, tuple) or not all(isinstance(part, torch.Tensor) for part in data):
        raise DataError("data must be a tuple of tensors, with one row for each example.")
    if not data or not len(data[0]):
        raise DataError("data must have at least one row, beside which the canaries are put.")
    sampling = options.get("sampling")
    if sampling == "without_replacement" or (
        str(getattr(sampling, "neighbours", "add_remove")) != "add_remove"
    ):
        raise ParameterError(
            "canaries are added and removed, which is what the claim must be about: use Poisson "
            "sampling or full batches under add_remove.",
            parameter="sampling",
        )
