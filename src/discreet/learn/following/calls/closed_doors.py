"""Ways past the rules that no torch function mode sees, closed while a forward pass runs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch

from discreet.learn.following.axis.labels import counts_units
from discreet.learn.following.axis.refusals import refusal
from discreet.learn.following.axis.symbolic import UnitCount

_SEEDING: Final = "sets the seed of draws, which are then numbers of places in the batch"
_AWAY: Final = "leaves what is followed"
_DOORS: Final[tuple[tuple[Any, str, str], ...]] = (
    *((owner, name, _SEEDING) for owner in (torch, torch.random)
      for name in ("manual_seed", "seed", "set_rng_state")),
    *((torch.cuda, name, _SEEDING) for name in
      ("manual_seed", "manual_seed_all", "seed", "seed_all", "set_rng_state")),
    (torch.utils.dlpack, "to_dlpack", _AWAY),
    (torch, "to_dlpack", _AWAY),
)  # fmt: skip


def _refusing(name: str, reason: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise refusal(name, reason, advice="Leave it out of the forward pass.")

    return refuse


_CLOSED: Final = [
    (owner, name, _refusing(name, reason)) for owner, name, reason in _DOORS if hasattr(owner, name)
]


@contextmanager
def closed_doors() -> Iterator[None]:
    """Refuse to set seeds, and to hand tensors to other libraries."""
    with _replaced(_CLOSED):
        yield


@contextmanager
def unspoken(count: UnitCount) -> Iterator[None]:
    """Refuse to write the number of units down: its text is another one in a trace."""
    kinds: tuple[Any, ...] = (torch.SymInt, torch.SymFloat, torch.SymBool)
    with _replaced([(kind, "__repr__", _silent(kind.__repr__, count)) for kind in kinds]):
        yield


@contextmanager
def _replaced(things: list[tuple[Any, str, Any]]) -> Iterator[None]:
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in things]
    for owner, name, new in things:
        setattr(owner, name, new)
    try:
        yield
    finally:
        for owner, name, old in before:
            setattr(owner, name, old)


def _silent(plain: Callable[[Any], str], count: UnitCount) -> Callable[[Any], str]:
    def spoken(number: Any) -> str:
        if not count.is_inside and counts_units(number):
            raise refusal("the number of examples", "is turned into text", advice="Leave it out.")
        return plain(number)

    return spoken
