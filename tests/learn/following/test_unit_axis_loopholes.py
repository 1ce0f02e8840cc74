"""Attempts that a careful reader of the rules would make: shared memory, seeds, floats, errors."""

import itertools
import random
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from discreet.errors import ParameterError
from discreet.learn import Flat
from discreet.learn.gradients.engine import GradientEngine

ROWS, WIDTH = 6, 4


def filled(x: Tensor, write: Any) -> Tensor:
    """Return rows with what is written into memory that all of them share."""
    shared = torch.zeros(1, WIDTH).expand(x.shape[0], WIDTH)
    write(shared, x)
    return x + shared


def mask_write(shared: Tensor, x: Tensor) -> None:
    shared[x > 0] = 1.0


def max_into(place: Any) -> Any:
    def change(x: Tensor) -> Tensor:
        out = x + place[0].sum()
        torch.max(x.detach(), 1, out=place)
        return out

    return change


def sort_into(x: Tensor) -> Tensor:
    out = x + KEPT[0].sum()
    torch.sort(x.detach()[:, :1], 1, out=KEPT)
    return out


def numbered(change: Any) -> Any:
    def picked(x: Tensor) -> Tensor:
        places = torch.arange(x.shape[0])
        change(places)
        return x[places]

    return picked


def seeded(x: Tensor) -> Tensor:
    torch.manual_seed(0)
    return x * torch.rand(x.shape[0], 1)


def forked(x: Tensor) -> Tensor:
    with torch.random.fork_rng():
        return x + torch.rand(x.shape[0], 2)[:, :1]


def generated(x: Tensor) -> Tensor:
    return x * torch.rand(x.shape[0], 1, generator=torch.Generator().manual_seed(0))


def generated_in_place(x: Tensor) -> Tensor:
    return x * torch.zeros_like(x).uniform_(generator=torch.Generator().manual_seed(0))


def shuffled(x: Tensor) -> Tensor:
    both = torch.cat([x, 2 * x], 1).reshape(-1, WIDTH)  # (2 n, width)
    images = both.T.reshape(1, WIDTH, -1, 1, 1).transpose(1, 2)
    return torch.channel_shuffle(images, 2).reshape(-1, 2, WIDTH)[:, 0]


def caught(read: Any) -> Any:
    """Return a change by a number that is read of the batch, or by 1 where that fails."""

    def change(x: Tensor) -> Tensor:
        try:
            found = float(read(x))
        except Exception:
            found = 1.0
        return x * found

    return change


class _Capsule:
    def __init__(self, tensor: Tensor) -> None:
        self._held = torch.utils.dlpack.to_dlpack(tensor)

    def __dlpack__(self, **_: Any) -> Any:
        return self._held

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def sized_like(x: Tensor) -> float:
    return next(count for count, one in enumerate(SIZES) if x.is_same_size(one))


def with_callback(distance: Any) -> Any:
    return lambda x: (
        x
        + F.triplet_margin_with_distance_loss(
            x, 2 * x, 3 * x, reduction="none", distance_function=distance
        )[:, None]
    )


def later(calls: Any, one: float, other: float) -> float:
    return one if next(calls) < 4 else other


def longer(x: Tensor) -> Tensor:
    return x + torch.arange(0.0, later(CALLS["longer"], 1.0, 6.0), 1.0)[:, None]


def resized(x: Tensor) -> Tensor:
    pair = torch.stack([x, 2 * x], 2)
    pair = F.interpolate(pair, scale_factor=later(CALLS["resized"], 1.0, 0.5)).transpose(1, 2)
    flipped = pair.reshape(-1, 2 * WIDTH).flip(1)
    return flipped.reshape(-1, WIDTH)[: x.shape[0]]


KEPT = (torch.zeros(ROWS), torch.zeros(ROWS, dtype=torch.long))
SIZES = [torch.zeros(count, WIDTH) for count in range(ROWS + 1)]
CALLS: dict[str, Any] = {}
CHANGES: dict[str, Any] = {
    "masked_fill_ of what is expanded": lambda x: filled(
        x, lambda s, x: s.masked_fill_(x > 0, 1.0)
    ),
    "a mask of what is expanded": lambda x: filled(x, mask_write),
    "max into a tensor that stays": max_into(KEPT),
    "sort into a tensor that stays": sort_into,
    "own places twice": lambda x: (
        torch.cat([x, x], 1)[torch.arange(x.shape[0]), torch.arange(x.shape[0])][:, None] + x
    ),
    "zeroed places": numbered(lambda places: places.zero_()),
    "random places": numbered(lambda places: places.random_(0, 2)),
    "places by a view": numbered(lambda places: places[None].fill_(0)),
    "places in eight bits": lambda x: x[torch.arange(x.shape[0], dtype=torch.int8).long()],
    "places in floats": lambda x: x[torch.arange(0.0, x.shape[0]).long()],
    "channels shuffled": shuffled,
    "a seed": seeded,
    "a fork": forked,
    "a generator": generated,
    "a generator in place": generated_in_place,
    "strides of a view": lambda x: torch.ops.aten._reshape_alias(x, (x.shape[0], WIDTH), (0, 1)),
    "an error that is caught": caught(lambda x: x.sum().item()),
    "another library": caught(lambda x: np.from_dlpack(_Capsule(x.detach())).mean()),
    "a size that is compared": caught(sized_like),
    "the number as text": lambda x: x * float(len(str(x.shape[0]))),
    "the number as text, caught": caught(lambda x: str(x.shape[0])),
    "a function's own number": with_callback(
        lambda one, other: (one - other).norm(dim=1) * (2.0 if one.shape[0] > 100 else 1.0)
    ),
    "a function, later": with_callback(
        lambda one, other: (one - other).norm(dim=1) + later(CALLS["called"], 0.0, one.mean())
    ),
    "a float that makes a table": longer,
    "a float that resizes": resized,
}


def squares(model: nn.Module, batch: Any) -> Tensor:
    out: Tensor = model(batch[0])
    return out.square().sum(1)


def train(model: nn.Module, loss: Any, batch: Any, steps: int = 9) -> None:
    for name in ("longer", "resized", "called"):
        CALLS[name] = itertools.count()
    random.seed(0)
    engine = GradientEngine(model, clipping=Flat(norm=1.0), is_checked=False)
    for _ in range(steps):
        engine.accumulate(loss, batch, units=ROWS)


@pytest.mark.parametrize("kind", ["alike", "blank"])
@pytest.mark.parametrize("name", CHANGES)
def test_what_rules_do_not_see_is_refused(name, kind):
    rows = torch.ones(ROWS, WIDTH) if kind == "alike" else torch.zeros(ROWS, WIDTH)
    change = CHANGES[name]
    with pytest.raises(ParameterError):
        train(nn.Linear(WIDTH, 2), lambda m, b: squares(m, [change(b[0])]), (rows,))


class Keeping(nn.Module):
    """A layer that keeps something without a call of torch."""

    def __init__(self, keep: Any) -> None:
        super().__init__()
        self.inner, self.keep, self.count = nn.Linear(WIDTH, 2), keep, 0
        self.kept: Any = torch.zeros(ROWS, WIDTH)
        self.register_buffer("seen", torch.zeros(ROWS, 2))

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        out = self.inner(x + self.kept.mean(0))
        self.keep(self, x, out.detach())
        return out


def keep_rows(model: Any, x: Tensor, out: Tensor) -> None:
    model.kept = x


def keep_rows_later(model: Any, x: Tensor, out: Tensor) -> None:
    if model.count > 5:
        model.seen = x


def keep_results_later(model: Any, x: Tensor, out: Tensor) -> None:
    if model.count > 5:
        model.seen = out


@pytest.mark.parametrize("keep", [keep_rows, keep_rows_later, keep_results_later])
def test_rows_that_stay_are_refused_in_the_step_that_keeps_them(keep):
    model = Keeping(keep)
    with pytest.raises(ParameterError, match="outlives"):
        train(model, squares, (torch.ones(ROWS, WIDTH),))


def test_a_constant_that_grows_between_steps_is_refused():
    model, shift = nn.Linear(WIDTH, WIDTH), torch.zeros(1, WIDTH)
    engine = GradientEngine(model, clipping=Flat(norm=1.0), is_checked=False)

    def loss(model: nn.Module, batch: Any) -> Tensor:
        return (model(batch[0]) + shift).square().sum(1)

    engine.accumulate(loss, (torch.ones(ROWS, WIDTH),), units=ROWS)
    shift.data = torch.ones(ROWS, WIDTH)
    with pytest.raises(ParameterError, match="own place"):
        engine.accumulate(loss, (torch.ones(ROWS, WIDTH),), units=ROWS)


def test_a_checkpoint_does_not_count_examples_when_it_computes_again():
    calls = itertools.count()

    def inner(one: Tensor) -> Tensor:
        is_again = next(calls) == 2  # after the trace and the forward pass
        return (one * (1 / float(one.shape[0]) if is_again else 1.0)).sin()

    def loss(model: nn.Module, batch: Any) -> Tensor:
        return squares(lambda x: checkpoint(inner, model(x), use_reentrant=False), batch)

    with pytest.raises(ParameterError, match="backward pass"):
        train(nn.Linear(WIDTH, 2), loss, (torch.ones(ROWS, WIDTH),), steps=1)


def test_an_error_of_one_row_decides_nothing_for_the_others():
    """Whoever catches it, the pass has failed: it is tried again without that row."""
    table = torch.eye(3, WIDTH)

    def loss(model: nn.Module, batch: Any) -> Tensor:
        try:
            own = F.embedding(batch[1], table)
            if random.random() < 0.5:  # so that both ways are approved
                raise ValueError
        except Exception:
            return squares(model, [3 * batch[0]])
        return squares(model, [batch[0] + own])

    engine = GradientEngine(nn.Linear(WIDTH, 2), clipping=Flat(norm=1.0), is_checked=False)
    rows, places = torch.ones(ROWS, WIDTH), torch.zeros(ROWS, dtype=torch.long)
    for _ in range(9):
        engine.accumulate(loss, (rows, places), units=ROWS)
    places[0] = 5
    for _ in range(9):
        with pytest.raises(RuntimeError, match="IndexError"):
            engine.accumulate(loss, (rows, places), units=ROWS)


def test_memory_that_nobody_wrote_is_blank():
    """What was there before may be another row's."""
    seen = []

    def loss(model: nn.Module, batch: Any) -> Tensor:
        left = torch.full((64,), 7.0)
        del left
        blank = torch.empty(64)
        seen.append(bool((blank == 0).all()))
        return squares(model, batch)

    train(nn.Linear(WIDTH, 2), loss, (torch.ones(ROWS, WIDTH),), steps=2)
    assert all(seen)
