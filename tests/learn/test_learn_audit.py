"""Canary audits of private training: what one step, or a short run, gives away about one unit.

The audited unit, the canary, has a gradient far longer than the clip, in a direction that the
attacker knows and looks along. A row's loss is its product with the weights, so a row is its own
gradient whatever the weights are, and the steps of one run are independent repetitions of one step.

A claim is what the trainer itself says it has spent. Audits look at large deltas: the claim holds
for each, and thousands of samples tell nothing about events of chance 1e-5.
"""

import gc
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import planted_bugs as bugs
import pytest
import torch
from scipy.special import ndtr
from torch import nn
from torch.utils.data import DataLoader

from discreet import audit
from discreet.errors import ParameterError, SensitiveValue
from discreet.learn import (
    Adaptive,
    Automatic,
    FullBatch,
    PerLayer,
    Poisson,
    Stages,
    TruncatedPoisson,
    WithoutReplacement,
    prepare,
)
from discreet.testing import SeededSource, dkw_band

pytestmark = pytest.mark.lengthy

FALSE_ALARM = 1e-9  # chance that a correct trainer fails an audit
SOME, MANY = 400, 1_000  # samples of each of two neighbouring datasets
SLOWLY = 1e-3  # how fast an adaptive norm moves
LONG = 1000.0  # the norm of a canary's gradient, where the clip is 1

# A trainer whose releases can be seen ---------------------------------------------------------


class Layers(nn.Module):
    """A weight for each column, every one of them a layer."""

    def __init__(self, size):
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(1, 1, bias=False) for _ in range(size))

    def forward(self, rows):
        return sum(part(rows[:, i : i + 1]) for i, part in enumerate(self.parts))


def straight(size):
    return nn.Linear(size, 1, bias=False)


def product(model, rows):
    return model(rows).squeeze(1)


def start(dataset, *, model=straight, **settings):
    built = model(dataset.shape[1])
    optimizer = torch.optim.SGD(built.parameters(), lr=1.0)
    return prepare(built, optimizer, dataset, **{"clip": 1.0, "progress": False} | settings)


def step(private, batch):
    """Make one step from weights of zero and return what it released: the change."""
    with torch.no_grad():
        for parameter in private.model.parameters():
            parameter.zero_()
    private.step(batch, product)
    return -nn.utils.parameters_to_vector(private.model.parameters()).detach()


def updates(private):
    """Make all steps of a run: (steps, weights)."""
    return torch.stack([step(private, batch) for batch in private.batches()]).numpy()


def updates_and_counts(private):
    """Make all steps, and read off the norm that adapts how many were counted below it."""
    seen = []
    for batch in private.batches():
        norm = private.clip
        change = step(private, batch).double() / norm
        share = np.log(norm / private.clip) / SLOWLY
        seen.append([*change.tolist(), share])
    return np.array(seen)


def batch_sizes(private):
    """Make all steps, and look at how many units took part, which nobody should."""
    seen = []
    for batch in private.batches():
        step(private, batch)
        seen.append([private.diagnostics.units])
    return np.array(seen)


# Attacks --------------------------------------------------------------------------------------


def along(seen):
    """Look along the first weight, the canary's, and add up the steps."""
    return seen[:, :, 0].sum(1)


def length(seen):
    return np.linalg.norm(seen, axis=(1, 2))


def spread(seen):
    """Look at how far the steps lie apart along the first weight."""
    return np.ptp(seen[:, :, 0], axis=1)


def judged(first, second, spent):
    return audit.mechanism(
        lambda values, n: values,
        pair=(first.astype(np.float64), second.astype(np.float64)),
        epsilon=spent.epsilon,
        delta=spent.delta,
        samples=len(first),
        confidence=1 - FALSE_ALARM,
        batch=True,
    )


def visible(first, second):
    """Return how many standard errors the mean of one kind is from that of the other."""
    return abs(first.mean() - second.mean()) / np.sqrt((first.var() + second.var()) / len(first))


OTHERS = torch.tensor([[0.0, 0.5, 0, 0], [0, 0, 9.0, 0], [0, 0, 0, -20.0]])
CANARY = torch.tensor([[LONG, 0, 0, 0]])
ADDED = torch.cat([OTHERS, CANARY]), OTHERS
ZEROED = torch.cat([OTHERS, CANARY]), torch.cat([OTHERS, 0 * CANARY])
SEVERAL = torch.cat([OTHERS, CANARY.expand(3, 4)]), OTHERS
REPLACED = torch.cat([OTHERS, CANARY]), torch.cat([OTHERS, -CANARY])


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One canary: two neighbouring datasets, and what an attacker computes from the updates."""

    settings: Callable[[], dict[str, Any]]
    pair: tuple[Any, Any] = ADDED
    only: tuple[dict[str, Any], dict[str, Any]] = ({}, {})  # settings that belong to the data
    see: Callable[[Any], Any] = updates
    look: Callable[[Any], Any] = along  # from (samples, steps, weights) to (samples,)
    steps: int = 1
    in_new_runs: bool = False  # every sample in a run of its own, instead of all in one

    def audit(self, samples, **broken):
        return judged(*self.samples(samples, **broken))

    def samples(self, samples, **broken):
        """Return what was seen of each dataset, and the claim."""
        settings = {"noise_multiplier": 0.6, "delta": 0.1} | self.settings()
        see = broken.pop("see", self.see)

        def begin(which, steps):
            made = {name: make() for name, make in broken.items()}
            data, only = self.pair[which], self.only[which]
            return start(data, steps=steps, **settings | only | made)

        def release(which):
            if self.in_new_runs:
                seen = np.stack([see(begin(which, self.steps)) for _ in range(samples)])
            else:
                seen = see(begin(which, samples * self.steps)).reshape(samples, self.steps, -1)
            return self.look(seen)

        once = begin(0, self.steps)
        see(once)
        return release(0), release(1), once.spent


def summed(seen):
    return seen.sum(1)


def largest(seen):
    return seen.max(1)


def first_step(seen):
    return seen[:, 0]


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """Many canaries at once, each in a direction of its own: the first half is in, the rest not.

    What a canary does is seen in its own weight only, and for the real trainer weights are
    independent: each has its own noise and, by Poisson sampling, its own coins. So one run gives
    hundreds of samples of both kinds, in and out [SNJ23], and the false alarm is as stated.
    """

    settings: Callable[[], dict[str, Any]]
    data: Callable[[], Any]
    look: Callable[[Any], Any] = summed  # from (samples, steps, weights) to (samples, weights)
    steps: int = 1

    def audit(self, repeats, **broken):
        data = self.data()
        settings = self.settings() | {name: make() for name, make in broken.items()}
        once = start(data, steps=self.steps, **settings)
        updates(once)
        seen = updates(start(data, steps=repeats * self.steps, **settings))
        values = self.look(seen.reshape(repeats, self.steps, -1))
        inside, outside = np.split(values, 2, axis=1)
        return judged(inside.ravel(), outside.ravel(), once.spent)


def canaries(count):
    """Return ``count`` canaries that are there, in a space with room for as many that are not."""
    return LONG * torch.eye(2 * count)[:count]


def canaries_and_blanks(count):
    """Return the same, with a row of zeros in the place of each canary that is not there.

    By Poisson sampling that releases what a dataset without the row does, so the claim covers it.
    """
    return torch.cat([canaries(count), torch.zeros(count, 2 * count)])


def batches_of_opposites(count, *, epoch, each):
    """Return batches in which all rows pull one way, save the canaries or zeros of the first.

    All batches have ``each`` rows for each direction, so that one has a row less of these where
    the canary or the zeros are: an attacker who sees the batch with the canary knows it by 2C, the
    batch with the zeros by C.
    """
    opposites = -LONG * torch.eye(2 * count).repeat(epoch * each, 1)
    opposites[: 2 * count] = canaries_and_blanks(count)
    return opposites


# The real trainer -----------------------------------------------------------------------------

HALF = Fraction(1, 2)
LAYERED = torch.cat([OTHERS, torch.full((1, 4), LONG)]), OTHERS
USERS = torch.cat([OTHERS, OTHERS, CANARY.expand(50, 4)]), torch.cat([OTHERS, OTHERS])

ONE_STEP = {
    "full batch": Attack(settings=lambda: {"sampling": FullBatch(population=4)}),
    "full batch, replaced": Attack(
        pair=REPLACED,
        settings=lambda: {
            "sampling": FullBatch(population=4, neighbours="replace_one"),
            "noise_multiplier": 1.2,
        },
    ),
    "full batch, zeroed out": Attack(
        pair=ZEROED,
        settings=lambda: {"sampling": FullBatch(population=4, neighbours="zero_out")},
    ),
    "full batch, three together": Attack(
        pair=SEVERAL,
        settings=lambda: {"sampling": FullBatch(population=4, together=3), "noise_multiplier": 1.8},
    ),
    "Poisson, zeroed out": Attack(
        pair=ZEROED,
        settings=lambda: {
            "sampling": Poisson(rate=HALF, population=4, neighbours="zero_out"),
            "noise_multiplier": 0.4,
        },
    ),
    "Poisson, three together": Attack(
        pair=SEVERAL,
        settings=lambda: {
            "sampling": Poisson(rate=HALF, population=4, together=3),
            "noise_multiplier": 0.8,
        },
    ),
    "Poisson, one for another": Attack(
        pair=REPLACED,
        settings=lambda: {
            "sampling": Poisson(rate=HALF, population=4, together=2),
            "noise_multiplier": 0.6,
        },
    ),
    "adaptive, zeroed out": Attack(
        pair=ZEROED,
        see=updates_and_counts,
        look=lambda seen: -seen[:, 0, -1],
        settings=lambda: {
            "sampling": FullBatch(population=4, neighbours="zero_out"),
            "clip": Adaptive(initial=1, count_noise=0.52, learning_rate=SLOWLY),
            "noise_multiplier": 1,
        },
    ),
    "Poisson": Attack(
        settings=lambda: {"sampling": Poisson(rate=HALF, population=4), "noise_multiplier": 0.4}
    ),
    "truncated Poisson": Attack(
        settings=lambda: {
            "sampling": TruncatedPoisson(rate=Fraction(3, 10), capacity=3, population=4),
        }
    ),
    "without replacement": Attack(
        pair=REPLACED,
        settings=lambda: {
            "sampling": WithoutReplacement(size=2, population=4),
            "noise_multiplier": 0.8,
        },
    ),
    "micro-batches of one": Attack(
        settings=lambda: {"sampling": FullBatch(population=4), "micro_batch_size": 1}
    ),
    "per layer": Attack(
        pair=LAYERED,
        look=lambda seen: seen.sum((1, 2)),
        settings=lambda: {
            "sampling": FullBatch(population=4),
            "clip": PerLayer(norm=1),
            "model": Layers,
        },
    ),
    "automatic": Attack(
        settings=lambda: {"sampling": FullBatch(population=4), "clip": Automatic(norm=1)}
    ),
    "adaptive": Attack(
        # The canary is counted as clipped: half a unit off a count with noise 0.8, and the clip
        # off a sum with noise 0.6472: the two are weighed as the likelihood does.
        see=updates_and_counts,
        look=lambda seen: 4 * seen[:, 0, 0] / 0.6472**2 - 4 * seen[:, 0, -1] / 2 / 0.8**2,
        settings=lambda: {
            "sampling": FullBatch(population=4),
            "clip": Adaptive(initial=1, count_noise=0.8, learning_rate=SLOWLY),
        },
    ),
    "users": Attack(
        pair=USERS,
        only=({"units": [0, 1, 2, 0, 1, 2] + [7] * 50}, {"units": [0, 1, 2, 0, 1, 2]}),
        settings=lambda: {"sampling": FullBatch(population=4), "rows_per_unit": 3},
    ),
}

SHORT_RUN = Attack(
    steps=10,
    in_new_runs=True,
    settings=lambda: {"sampling": Poisson(rate=HALF, population=4), "noise_multiplier": 1.2},
)

CROWDS = {
    "a step, full batch": Crowd(
        data=lambda: canaries(250),
        settings=lambda: {
            "sampling": FullBatch(population=250), "noise_multiplier": 0.6, "delta": 0.1
        },
    ),
    "a step, Poisson": Crowd(
        data=lambda: canaries(250),
        settings=lambda: {
            "sampling": Poisson(rate=HALF, population=250), "noise_multiplier": 0.4, "delta": 0.1
        },
    ),
    "a step, zeroed out": Crowd(
        data=lambda: canaries_and_blanks(250),
        settings=lambda: {
            "sampling": Poisson(rate=HALF, population=500, neighbours="zero_out"),
            "noise_multiplier": 0.4,
            "delta": 0.1,
        },
    ),
    "a step, two together": Crowd(
        data=lambda: canaries(250).repeat(2, 1),
        settings=lambda: {
            "sampling": Poisson(rate=Fraction(3, 10), population=500, together=2),
            "noise_multiplier": 0.6,
            "delta": 0.1,
        },
    ),
    "a short run": Crowd(
        data=lambda: canaries(250),
        steps=15,
        settings=lambda: {
            "sampling": Poisson(rate=HALF, population=250), "noise_multiplier": 1.6, "delta": 0.1
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ["full batch", "Poisson"])
def test_one_step_gives_away_no_more_than_it_says(name):
    found = ONE_STEP[name].audit(200)
    assert found.passed, found


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_STEP)
def test_one_step_of_any_kind_gives_away_no_more_than_it_says(name):
    first, second, spent = ONE_STEP[name].samples(MANY)
    found = judged(first, second, spent)
    assert found.passed, found
    assert visible(first, second) > 4  # as it should be: else there would be nothing to protect


@pytest.mark.slow
def test_a_short_run_gives_away_no_more_than_it_says():
    first, second, spent = SHORT_RUN.samples(SOME)
    found = judged(first, second, spent)
    assert found.passed, found
    assert visible(first, second) > 4


@pytest.mark.slow
def test_a_run_in_stages_gives_away_no_more_than_it_says(monkeypatch):
    """Little noise first, much later: charged as if the last stage were all, it is convicted.

    A sample is a step of each stage; all of a stage's are made in one run, one after the other.
    """

    def run(which, each):
        stages = Stages((each, 0.5), then=4)
        settings = {"sampling": FullBatch(population=4), "delta": 0.1}
        return start(ADDED[which], steps=2 * each, noise_multiplier=stages, **settings)

    def look(which):
        early, late = np.split(updates(run(which, MANY))[:, 0], 2)
        return early / 0.5**2 + late / 4**2  # as the likelihood does

    def spent():
        once = run(0, 1)
        updates(once)
        return once.spent

    first, second = look(0), look(1)
    assert visible(first, second) > 4
    honest = judged(first, second, spent())
    assert honest.passed, honest
    bugs.charge_the_last_stage(monkeypatch)
    broken = judged(first, second, spent())
    assert broken.epsilon < honest.epsilon / 4
    assert not broken.passed, broken


@pytest.mark.parametrize("name", CROWDS)
def test_many_canaries_give_away_no_more_than_it_says(name):
    found = CROWDS[name].audit(20)
    assert found.passed, found


@pytest.mark.slow
@pytest.mark.parametrize("name", CROWDS)
def test_what_it_says_is_not_far_from_the_truth(name):
    found = CROWDS[name].audit(400)
    assert found.passed, found
    assert found.epsilon_lower > 0.6 * found.epsilon


def test_the_noise_follows_its_law_and_a_fifth_less_would_show(monkeypatch):
    """Without the detour over canaries: what an empty dataset releases is the noise itself."""
    steps, size, expected, noise = 40, 500, 8, 1.5
    settings = {
        "sampling": Poisson(rate=HALF, population=2 * expected),
        "noise_multiplier": noise,
        "delta": 1e-5,
        "steps": steps,
    }

    def gap():
        drawn = np.sort(updates(start(torch.zeros(0, size), **settings)).ravel()) * expected
        below = np.arange(drawn.size + 1) / drawn.size
        law = ndtr(drawn / noise)
        return max(np.max(below[1:] - law), np.max(law - below[:-1]))

    # The noise is wider by 2**-9 at most, for roundings, and lies on a grid as fine: that moves a
    # distribution function by less than 0.001. A fifth less moves it by 0.054, more than two bands.
    band = dkw_band(steps * size, false_alarm=FALSE_ALARM) + 0.001
    assert 2 * band < 0.054
    assert gap() <= band
    bugs.little_noise(monkeypatch)
    assert gap() > band


# Planted bugs ---------------------------------------------------------------------------------
#
# Each is audited twice, with the same attack: the trainer as it is passes, the broken one is
# convicted, though it claims the same. Numbers of samples are such that in simulations the proved
# bound lies above the claim by more than six of its standard deviations.


def unchanged(patch):
    """Leave the trainer as it is."""


@dataclass(frozen=True, kw_only=True)
class Bug:
    """A mistake, and an attack that finds it."""

    attack: Attack | Crowd
    samples: int
    broken: Callable[[], dict[str, Any]] = dict  # settings, each by a function that makes it
    patch: Callable[[pytest.MonkeyPatch], None] = unchanged


def weak(sampling, **settings):
    """Return settings with so much noise that a claim of any use is broken by little."""
    return lambda: {"sampling": sampling, "noise_multiplier": 4, "delta": 1e-5, **settings}


TEN = Fraction(1, 10)

BUGS = {
    "the sum is clipped, not each": Bug(
        # The others pull it to -C, and the canary from there to +C.
        attack=Attack(
            pair=(torch.cat([-CANARY, 2 * CANARY]), -CANARY),
            settings=lambda: {
                "sampling": FullBatch(population=2),
                "noise_multiplier": 0.7,
                "delta": 0.3,
            },
        ),
        samples=3_000,
        patch=bugs.clip_the_sum,
    ),
    "divided by the realised size": Bug(
        # The canary's gradient may be zero: that it is there halves the noise.
        attack=Attack(
            pair=(torch.zeros(2, 64), torch.zeros(1, 64)),
            look=length,
            settings=weak(FullBatch(population=2)),
        ),
        samples=SOME,
        broken=lambda: {"sampling": lambda: bugs.DividedByRealisedSize(2)},
    ),
    "nothing is clipped": Bug(
        attack=Attack(settings=weak(FullBatch(population=4))),
        samples=SOME,
        broken=lambda: {"clip": bugs.Unclipped},
    ),
    "each layer is clipped to C": Bug(
        attack=Attack(
            pair=LAYERED,
            look=lambda seen: seen.sum((1, 2)),
            settings=lambda: {
                "sampling": FullBatch(population=4),
                "clip": PerLayer(norm=1),
                "model": Layers,
                "noise_multiplier": 0.7,
                "delta": 0.3,
            },
        ),
        samples=3_000,
        broken=lambda: {"clip": lambda: bugs.EachLayerFully([f"parts.{i}" for i in range(4)])},
    ),
    "the batch size is shown": Bug(
        attack=Attack(
            pair=(CANARY, CANARY[:0]),
            settings=weak(Poisson(rate=HALF, population=4), diagnostics=True),
        ),
        samples=MANY,
        broken=lambda: {"see": batch_sizes},
    ),
    "the same noise in each step": Bug(
        # It cancels between steps with the canary and steps without.
        attack=Attack(
            look=spread,
            steps=8,
            settings=lambda: {
                "sampling": Poisson(rate=HALF, population=4),
                "noise_multiplier": 8,
                "delta": 1e-5,
            },
        ),
        samples=SOME,
        patch=bugs.same_noise_each_step,
    ),
    "the same noise in each run": Bug(
        attack=Attack(settings=weak(FullBatch(population=4)), in_new_runs=True),
        samples=SOME,
        broken=lambda: {"source": lambda: SeededSource(7)},
    ),
    "a fifth too little noise": Bug(
        attack=CROWDS["a step, full batch"],
        samples=400,
        patch=bugs.little_noise,
    ),
    "a fifth too little noise, in a run": Bug(
        attack=CROWDS["a short run"],
        samples=400,
        patch=bugs.little_noise,
    ),
    "noise for a smaller clip": Bug(
        attack=CROWDS["a step, full batch"],
        samples=400,
        broken=lambda: {"clip": bugs.Understated},
    ),
    "rows are shuffled": Bug(
        # Poisson sampling leaves somebody out of ten steps with chance 0.35, shuffling never does.
        attack=Crowd(
            data=lambda: canaries_and_blanks(200),
            look=largest,
            steps=10,
            settings=lambda: {
                "sampling": Poisson(rate=TEN, population=400),
                "noise_multiplier": 0.3,
                "delta": 0.5,
            },
        ),
        samples=100,
        broken=lambda: {"sampling": lambda: bugs.Shuffled(population=400, epoch=10, order="rows")},
    ),
    "batches are shuffled": Bug(
        # The worst case of [CGKKMSZ24a]: the canary against others that all pull the other way.
        attack=Crowd(
            data=lambda: batches_of_opposites(100, epoch=10, each=2),
            look=largest,
            steps=10,
            settings=lambda: {
                "sampling": Poisson(rate=TEN, population=4_000),
                "noise_multiplier": 0.5,
                "delta": 0.2,
            },
        ),
        samples=100,
        broken=lambda: {
            "sampling": lambda: bugs.Shuffled(population=4_000, epoch=10, order="batches")
        },
    ),
    "two units have one coin": Bug(
        attack=CROWDS["a step, two together"],
        samples=400,
        broken=lambda: {
            "sampling": lambda: bugs.OneCoinForTwo(rate=Fraction(3, 10), population=500)
        },
    ),
    "a null is counted": Bug(
        attack=ONE_STEP["adaptive, zeroed out"],
        samples=3_000,
        patch=bugs.count_the_zeroed,
    ),
    "batches come in one order": Bug(
        attack=Crowd(
            data=lambda: batches_of_opposites(100, epoch=10, each=2),
            look=first_step,
            steps=10,
            settings=lambda: {
                "sampling": Poisson(rate=TEN, population=4_000),
                "noise_multiplier": 0.5,
                "delta": 0.2,
            },
        ),
        samples=100,
        broken=lambda: {
            "sampling": lambda: bugs.Shuffled(population=4_000, epoch=10, order="nothing")
        },
    ),
}
IN_SHORT = {"nothing is clipped": 600, "a fifth too little noise": 400, "rows are shuffled": 40}


@pytest.mark.parametrize("name", [name for name, bug in BUGS.items() if bug.patch is not unchanged])
def test_a_planted_bug_fits_the_trainer_and_does_not_stop_it(name, monkeypatch):
    """A twin whose seam has moved fails in each step, and its bug is not tried at all."""
    bug = BUGS[name]
    bug.patch(monkeypatch)
    with pytest.raises(TypeError, match="takes"):
        bugs.replace(monkeypatch, bugs.GradientEngine, "accumulate", lambda self, batch: None)
    attack = bug.attack
    data = attack.pair[0] if isinstance(attack, Attack) else attack.data()
    private = start(data, steps=1, **{"noise_multiplier": 0.6, "delta": 0.1} | attack.settings())
    assert np.isfinite(updates(private)).all()


@pytest.mark.parametrize("name", IN_SHORT)
def test_a_planted_bug_is_found(name, monkeypatch):
    bug = BUGS[name]
    bug.patch(monkeypatch)
    found = bug.attack.audit(IN_SHORT[name], **bug.broken())
    assert not found.passed, found


@pytest.fixture
def _few_things_to_look_at():
    """Let a run that is begun look at what came after this only, not at all that was imported."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("_few_things_to_look_at")
@pytest.mark.slow
@pytest.mark.parametrize("name", BUGS)
def test_any_planted_bug_is_found_and_is_not_seen_where_it_is_not(name, monkeypatch):
    bug = BUGS[name]
    honest = bug.attack.audit(bug.samples)
    assert honest.passed, honest
    bug.patch(monkeypatch)
    broken = bug.attack.audit(bug.samples, **bug.broken())
    assert broken.epsilon == pytest.approx(honest.epsilon)  # it is believed
    assert not broken.passed, broken


# Bugs that cannot be written down -------------------------------------------------------------

SETTINGS = {
    "sampling": Poisson(rate=HALF, population=4), "noise_multiplier": 1, "delta": 1e-5, "steps": 3
}  # fmt: skip


def test_batches_of_a_loader_are_refused():
    loader = DataLoader(OTHERS, batch_size=2, shuffle=True)
    model = straight(4)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    with pytest.raises(ParameterError, match="shuffled batches"):
        prepare(model, optimizer, loader, **SETTINGS, clip=1.0)
    private = start(OTHERS, **SETTINGS)
    with pytest.raises(ParameterError, match="not the batch that is accounted"):
        private.step(next(iter(loader)), product)
    assert private.spent.steps == 0


def test_a_batch_serves_once_and_shows_nothing():
    private = start(OTHERS, **SETTINGS)
    batch = next(private.batches())
    with pytest.raises(SensitiveValue):
        len(batch)
    private.step(batch, product)
    with pytest.raises(ParameterError, match="one step"):
        private.step(batch, product)
    with pytest.raises(ParameterError, match="not private"):
        private.diagnostics  # noqa: B018


def test_losses_that_were_summed_or_mixed_are_refused():
    for wrong in (
        lambda model, rows: product(model, rows).mean(),
        lambda model, rows: product(model, rows) / len(rows),
        lambda model, rows: product(model, rows) / rows.norm(),
        lambda model, rows: product(model, rows).cumsum(0),
    ):
        private = start(torch.randn(50, 4), **SETTINGS | {"sampling": FullBatch(population=50)})
        with pytest.raises(ParameterError):
            private.step(next(private.batches()), wrong)


def test_a_step_past_the_account_is_refused():
    private = start(OTHERS, **SETTINGS)
    product(private.model, OTHERS).sum().backward()
    with pytest.raises(ParameterError, match="not in its account"):
        private.optimizer.step()


def test_seeded_noise_is_marked():
    private = start(OTHERS, **SETTINGS, source=SeededSource(7))
    assert not private.spent.is_secure
    assert "seeded source" in repr(private)


@pytest.mark.parametrize(
    ("place", "value"),
    [(place, value) for place in (0, 30) for value in (np.nan, np.inf, -np.inf, 3e38, 1e30)],
)
def test_a_canary_that_is_no_number_neither_stops_nor_shows(place, value):
    """Whether a step fails would be a release, too."""
    rows = torch.full((40, 4), 0.25)
    rows[place, 0] = value
    private = start(
        rows, sampling=FullBatch(population=1), noise_multiplier=0.01, delta=1e-5, steps=1
    )
    (seen,) = updates(private)
    # 39 rows and a canary of norm at most 1; eight deviations of the noise.
    assert np.abs(seen - 39 * 0.25).max() <= 1 + 0.08
