"""Trainers with a mistake in them: each has been made in real code, and each looks harmless.

Nothing is rewritten: the mistake sits in the real trainer, at one of its seams. Where the seam is a
protocol (a clipping, a sampling) it is an object that tells the account one thing and does another;
where there is none, a function of the trainer is replaced. So every mistake is accounted as if it
were not there, and only an audit can tell.
"""

from collections import Counter
from inspect import Parameter, signature

import numpy as np
import torch

from discreet.accounting import GaussianLoss
from discreet.learn import Flat, FullBatch, PerLayer, Poisson, Private
from discreet.learn.choices.adaptive import AdaptiveState
from discreet.learn.gradients.engine import Clipped, GradientEngine
from discreet.learn.run import step as _stepping
from discreet.learn.run.promise import Promise
from discreet.noise import SYSTEM, uniform_integers
from discreet.privacy import Neighbours
from discreet.testing import SeededSource

# Clippings whose sensitivity is not what they say.


class Unclipped:
    """Leave every gradient as it is, and believe it short."""

    sensitivity = 1.0

    def groups(self, names):
        return (0,) * len(names)

    def factors(self, norms):
        return torch.ones_like(norms)


class EachLayerFully:
    """Clip every layer to C and take C for the whole, which is longer: sqrt(layers) * C."""

    sensitivity = 1.0

    def __init__(self, layers):
        self._true = PerLayer(norms=dict.fromkeys(layers, 1.0))

    def groups(self, names):
        return self._true.groups(names)

    def factors(self, norms):
        return self._true.factors(norms)


class Understated:
    """Clip to 1 and scale the noise to 0.8."""

    sensitivity = 0.8

    def groups(self, names):
        return (0,) * len(names)

    def factors(self, norms):
        return Flat(norm=1.0).factors(norms)


# Samplings that are not drawn as they are accounted.


class DividedByRealisedSize:
    """Everybody takes part, and the noisy sum is divided by how many that are."""

    neighbours = Neighbours.add_remove
    proof = "none"

    def __init__(self, population):
        self.population = population
        self.expected = float(population)

    def check(self, n):
        pass

    def loss(self, *, noise_multiplier):
        return GaussianLoss(noise_multiplier=noise_multiplier)

    def draw(self, n, *, source=SYSTEM):
        self.expected = float(max(1, n))
        return FullBatch(population=self.population).draw(n, source=source)


class Shuffled:
    """Go through the rows in batches of one size, in a new order each epoch: a DataLoader's way.

    ``order`` is what is shuffled: "rows", or whole "batches" that were put together once, or
    "nothing". Accounted as if each row took part in each step with chance 1 / steps in an epoch.
    """

    neighbours = Neighbours.add_remove
    proof = "none"

    def __init__(self, *, population, epoch, order):
        self.population, self.epoch, self.order = population, epoch, order
        self.expected = population / epoch
        self._left = []

    def check(self, n):
        assert n == self.population

    def loss(self, *, noise_multiplier):
        return GaussianLoss(noise_multiplier=noise_multiplier).sampled(rate=1 / self.epoch)

    def draw(self, n, *, source=SYSTEM):
        if not self._left:
            rows = permuted(n, source) if self.order == "rows" else np.arange(n)
            batches = np.split(rows, self.epoch)
            turns = permuted(self.epoch, source) if self.order == "batches" else range(self.epoch)
            self._left = [batches[turn] for turn in turns]
        return np.sort(self._left.pop(0))


class OneCoinForTwo:
    """Toss one coin for a unit and its partner, half the data away, accounted as two coins."""

    neighbours = Neighbours.add_remove
    proof = "none"
    together = 2

    def __init__(self, *, rate, population):
        self.population, self._honest = population, Poisson(rate=rate, population=population // 2)
        self._claimed = Poisson(rate=rate, population=population, together=2)
        self.expected = self._claimed.expected

    def check(self, n):
        assert n == self.population

    def loss(self, *, noise_multiplier):
        return self._claimed.loss(noise_multiplier=noise_multiplier)

    def draw(self, n, *, source=SYSTEM):
        first = self._honest.draw(n // 2, source=source)
        return np.concatenate([first, first + n // 2])


def permuted(n, source):
    return np.argsort(uniform_integers(1 << 60, n, source=source))


# Parts of the trainer, replaced.


def replace(patch, owner, name, twin):
    """Put a twin in the place of a function, if it takes what the function takes."""
    taken = {twin_name for twin_name, _ in _parameters(twin)}
    wanted = {(each, kind) for each, kind in _parameters(getattr(owner, name)) if each not in taken}
    is_open = any(kind is Parameter.VAR_KEYWORD for _, kind in _parameters(twin))
    if any(kind is not Parameter.KEYWORD_ONLY or not is_open for _, kind in wanted):
        raise TypeError(f"{name} of the trainer takes {sorted(each for each, _ in wanted)} as well")
    patch.setattr(owner, name, twin)


def _parameters(function):
    return [(each.name, each.kind) for each in signature(function).parameters.values()]


def clip_the_sum(patch):
    """Clip the sum of a micro-batch's gradients, not each of them."""

    def accumulate(self, loss_fn, batch, *, units, is_careful=True):
        losses = loss_fn(self.model, batch)
        grads = torch.autograd.grad(losses.sum(), self.flat.parameters)
        whole = torch.cat([grad.flatten() for grad in grads])
        norm = whole.norm().reshape(1, 1)
        factor = self.clipping.factors(norm)
        self.flat.buffer += factor[0, 0] * whole
        return Clipped(norms=norm, factors=factor, losses=losses.detach())

    replace(patch, GradientEngine, "accumulate", accumulate)


def little_noise(patch):
    """Add noise that is a fifth too small."""
    real = _stepping.add_noise_

    def add(buffer, *, noise_multiplier, **named):
        real(buffer, noise_multiplier=0.8 * noise_multiplier, **named)

    replace(patch, _stepping, "add_noise_", add)


def charge_the_last_stage(patch):
    """Take the noise of the last stage for that of all steps, when they are charged."""

    def noises(self, start, stop):
        return Counter({self.noise_multiplier.then: stop - start})

    def pay(self):
        number, last = self._state.done, self._promise.noise_multiplier.then
        self._team.lead(lambda: self._pay(last))
        self._state.begun[last] += 1
        return self._stepping.begin(number)

    replace(patch, Promise, "noises", noises)
    replace(patch, Private, "_draw", pay)


def count_the_zeroed(patch):
    """Count a unit without a gradient as one that is not clipped: it then adds 1/2, not 0."""

    def observe(self, norms):
        halves = (norms <= self.norm).to(torch.int64).sum() * 2 - norms.numel()
        self.tally = halves if self.tally is None else self.tally + halves

    patch.setattr(AdaptiveState, "observe", observe)


def same_noise_each_step(patch):
    """Start the noise from one key in every step, however secret that is."""
    real, key = _stepping.add_noise_, int.from_bytes(SYSTEM.read(8), "big")

    def add(buffer, *, source, **named):
        real(buffer, source=SeededSource(key), **named)

    replace(patch, _stepping, "add_noise_", add)
