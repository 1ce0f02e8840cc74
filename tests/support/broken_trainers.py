"""Private training written by hand, and ways in which it has been written wrong.

A plain loop in torch, small enough to read: draw, compute gradients, clip and add up, add noise.
Each canary has an axis of its own, on which a few other rows, its mates, may lie too: so a row is
its coefficient on its axis, and all canaries are seen in one run. Every mistake replaces one part
of the loop and leaves the account as it was.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from discreet.accounting import GaussianLoss

__all__ = ["BROKEN", "PlainLoop"]

LONG = 1000.0  # where the clip is 1


def each_by_its_coin(here, rate, step):
    return here & (torch.rand(here.shape) < rate)


def alone(rows, here):
    """Let every row have its own gradient."""
    return rows


def clip_each(gradients, here):
    return (gradients.clamp(-1, 1) * here).sum(1)


def gaussian(size, scale):
    return scale * torch.randn(size)


def total(updates):
    return updates.sum(0)


@dataclass(frozen=True, kw_only=True)
class PlainLoop:
    """A trainer to be audited: takes coins, returns scores. By default it is honest."""

    noise: float = 2.0
    steps: int = 1
    rate: float = 1.0
    canary: float = LONG
    mates: tuple[float, ...] = ()
    look: Callable[[Any], Any] = total  # from (steps, canaries) to (canaries,)
    draw: Callable[..., Any] = each_by_its_coin
    compute: Callable[..., Any] = alone
    clip_and_add: Callable[..., Any] = clip_each
    make_noise: Callable[..., Any] = gaussian
    momentum: float = 0.0

    @property
    def claim(self):
        step = GaussianLoss(noise_multiplier=self.noise)
        return (step if self.rate == 1 else step.sampled(rate=self.rate)) * self.steps

    def __call__(self, included):
        canary = torch.from_numpy(included)[:, None]
        rows = torch.tensor([self.canary, *self.mates]).expand(len(included), -1)
        present = torch.cat([canary, torch.ones(rows[:, 1:].shape, dtype=torch.bool)], 1)
        updates, inertia = [], torch.zeros(len(included))
        for step in range(self.steps):
            here = self.draw(present, self.rate, step)
            inertia = self.momentum * inertia + self.clip_and_add(self.compute(rows, here), here)
            updates.append(inertia + self.make_noise(len(included), self.noise))
        return self.look(torch.stack(updates)).numpy()


# The parts, written wrong -----------------------------------------------------------------------


def clip_the_average(gradients, here):
    """Clip the average of a micro-batch, and count it as often as it has rows."""
    size = here.sum(1).clamp(min=1)
    return ((gradients * here).sum(1) / size).clamp(-1, 1) * size


def add_only(gradients, here):
    return (gradients * here).sum(1)


def count_often(gradients, here):
    """Draw with replacement: a row that is drawn four times is clipped and added four times."""
    return 4 * clip_each(gradients, here)


def count_layers(gradients, here):
    """Clip each of sixteen layers to the norm: what all of them add has three times that norm."""
    return 16**0.5 * clip_each(gradients, here)


def centred(rows, here):
    """Subtract the mean of the batch, as batch normalisation does."""
    mean = (rows * here).sum(1, keepdim=True) / here.sum(1, keepdim=True).clamp(min=1)
    return rows - mean


def relative(rows, here):
    """Divide by the largest of the batch, as losses with negatives in the batch do."""
    return rows / (rows * here).abs().amax(1, keepdim=True).clamp(min=1e-9)


def with_the_others(rows, here):
    """Give every row a part of the others, as attention across a batch does."""
    seen = rows * here
    return seen + seen.sum(1, keepdim=True)


def in_turn(epoch):
    """Let every row take part once in an epoch, in a known order."""

    def draw(here, rate, step):
        return here & (torch.arange(len(here)) % epoch == step % epoch)[:, None]

    return draw


def own_turn(epoch):
    def look(updates):
        turns = torch.arange(updates.shape[1]) % epoch
        return updates.gather(0, turns[None])[0]

    return look


def everybody(here, rate, step):
    return here


def scaled(factor):
    def noise(size, scale):
        return factor * scale * torch.randn(size)

    return noise


def in_sixteen_parts(size, scale):
    """Share the noise among micro-batches: each has a sixteenth of the deviation."""
    return sum(scale / 16 * torch.randn(size) for _ in range(16))


def the_same_for_all(size, scale):
    return scale * torch.randn(()).expand(size)


def from_one_seed(size, scale):
    """Seed the noise anew in every step."""
    return scale * torch.randn(size, generator=torch.Generator().manual_seed(20_260))


def spread(updates):
    return updates.amax(0) - updates.amin(0)


def downwards(updates):
    return -updates.sum(0)


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """A part written wrong, in settings in which it shows; without it, the loop is honest."""

    broken: dict[str, Any]
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def honest(self):
        return PlainLoop(**self.settings)

    @property
    def trainer(self):
        return PlainLoop(**self.settings | self.broken)


AGAINST = {"canary": 4 * LONG, "mates": (-LONG,) * 2}

BROKEN = {
    "the average of a micro-batch is clipped": Mistake(
        settings=AGAINST, broken={"clip_and_add": clip_the_average}
    ),
    "nothing is clipped": Mistake(broken={"clip_and_add": add_only}),
    "a row is drawn four times": Mistake(broken={"clip_and_add": count_often}),
    "the batch's mean is subtracted": Mistake(
        settings={"mates": (0.0,) * 6, "look": downwards}, broken={"compute": centred}
    ),
    "the batch's largest divides": Mistake(
        settings={"mates": (0.9,) * 6, "look": downwards}, broken={"compute": relative}
    ),
    "rows are mixed up": Mistake(
        settings={"mates": (-LONG / 10,) * 4}, broken={"compute": with_the_others}
    ),
    "the noise is a quarter": Mistake(broken={"make_noise": scaled(0.25)}),
    "each of sixteen layers is clipped fully": Mistake(broken={"clip_and_add": count_layers}),
    "the noise is shared out": Mistake(broken={"make_noise": in_sixteen_parts}),
    "all weights get the same noise": Mistake(broken={"make_noise": the_same_for_all}),
    "the noise is seeded anew": Mistake(
        settings={"steps": 6, "rate": 0.5, "look": spread}, broken={"make_noise": from_one_seed}
    ),
    "batches in turn, accounted as sampled": Mistake(
        settings={"steps": 200, "rate": 0.005, "noise": 1.5, "look": own_turn(200)},
        broken={"draw": in_turn(200)},
    ),
    "everybody, accounted as sampled": Mistake(
        settings={"steps": 10, "rate": 0.1}, broken={"draw": everybody}
    ),
    "momentum before the noise": Mistake(
        settings={"steps": 8, "noise": 8.0}, broken={"momentum": 0.9}
    ),
}
