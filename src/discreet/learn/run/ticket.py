"""A batch as the training loop sees it: a ticket, not data."""

from typing import Never, SupportsIndex, final

from discreet.errors import ParameterError, SensitiveValue

__all__ = ["Batch", "require_ticket"]


@final
class Batch:
    """A ticket for one step, from :meth:`Private.batches` to :meth:`Private.step`.

    It holds no data and no size. Who takes part is drawn inside the step, after it was paid for,
    and how many that are is as private as the data.

    >>> import torch
    >>> from discreet.learn.preparing import prepare
    >>> model = torch.nn.Linear(2, 1)
    >>> private = prepare(model, torch.optim.SGD(model.parameters(), lr=0.1),
    ...                   (torch.randn(100, 2),), noise_multiplier=1, delta=1e-5, steps=1,
    ...                   batch_size=10, clip=1.0)
    >>> batch = next(private.batches())
    >>> batch
    Batch(<redacted>)
    >>> len(batch)
    Traceback (most recent call last):
        ...
    discreet.errors.SensitiveValue: a batch cannot be measured: ...
    """

    __slots__ = ("is_used", "owner")

    def __init__(self, owner: object) -> None:
        self.owner = owner
        self.is_used = False

    def __repr__(self) -> str:
        return "Batch(<redacted>)"

    def __len__(self) -> Never:
        raise _refusal("measured")

    def __iter__(self) -> Never:
        raise _refusal("iterated over")

    def __getitem__(self, key: object) -> Never:
        raise _refusal("looked into")

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> Never:
        raise _refusal("copied or pickled")


def require_ticket(batch: object, *, owner: object, current: Batch | None) -> None:
    """Refuse what is not the current ticket of this owner, or was used."""
    if not isinstance(batch, Batch):
        raise ParameterError(
            f"step takes a batch of this run's own batches(), got an object of type "
            f"{type(batch).__name__}. Rows chosen in any other way, such as by a DataLoader, "
            "are not the batch that is accounted. Nothing was spent. Write: for batch in "
            "private.batches(): private.step(batch, loss_fn).",
            parameter="batch",
        )
    if batch.owner is not owner:
        raise ParameterError(
            "this batch belongs to another run. Nothing was spent. Take it from the batches() "
            "of the run whose step it is.",
            parameter="batch",
        )
    if batch.is_used or batch is not current:
        raise ParameterError(
            "each batch is for one step, and this one's has passed. Nothing was spent. Take "
            "the next one from batches().",
            parameter="batch",
        )


def _refusal(verb: str) -> SensitiveValue:
    return SensitiveValue(
        f"a batch cannot be {verb}: who takes part is drawn inside the step and stays there. Hand "
        "it to private.step(batch, loss_fn); loss_fn(model, rows) is given the rows."
    )
