"""A norm that follows the gradients, learnt privately on the way."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import cast, final

import torch
from torch import Tensor

from discreet._exact import Number, exact, plain, positive, probability, refusal, show
from discreet.errors import ParameterError
from discreet.learn.choices.clipping import Clipping, Flat
from discreet.learn.choices.factors import (
    LARGEST,
    SMALLEST,
    at_least_single,
    bound,
    filled,
    keep_bound,
    root_up,
    shrinking,
)
from discreet.noise import SYSTEM, Source, rounded_gaussian

__all__ = ["Adaptive", "AdaptiveState", "as_clipping"]

_FINE = 2**20  # steps per unit of the grid on which a count gets its noise


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptive:
    """Let the norm follow a quantile of the gradients' norms, learnt privately on the way.

    Each step also releases, with Gaussian noise of standard deviation ``count_noise``, how many
    units of the batch were not clipped, and moves the norm: C <- C exp(-learning_rate * (share -
    quantile)). A twentieth of the expected batch size is a good ``count_noise``: the count is then
    nearly free.

    Claim: with :meth:`gradient_noise` instead of the noise multiplier z on the gradient, gradient
    and count together have the loss of one Gaussian mechanism with noise multiplier z, for the
    unit and the neighbouring relation of the gradient, also on a sampled batch.

    Why: the count adds up b_i - 1/2, so a unit moves it by 1/2; both are one Gaussian mechanism on
    a longer vector [ATMR21, Theorem 1]. A gradient of zero adds 0 to both, so that a unit that is
    zeroed out is as one that is not there. The next norm is computed from what was released. The
    count is a multiple of 1/2, and its noise is drawn exactly and rounded to a finer grid.

    >>> adaptive = Adaptive(initial=1.0, quantile=0.5, learning_rate=0.2, count_noise=25)
    >>> round(adaptive.gradient_noise(1.0), 6)
    1.0002
    >>> state = adaptive.start()
    >>> state.update(1.0)  # nobody was clipped: the norm shrinks
    >>> round(state.norm, 4)
    0.9048
    """

    initial: Number
    count_noise: Number
    quantile: Number = 0.5
    learning_rate: Number = 0.2

    def __post_init__(self) -> None:
        keep_bound(self, "initial")
        if not Fraction(2) ** -10 <= positive(self.count_noise, name="count_noise") <= 2**30:
            raise refusal("count_noise", "between 2**-10 and 2**30 units", self.count_noise)
        probability(self.quantile, name="quantile")
        positive(self.learning_rate, name="learning_rate")
        for name in ("count_noise", "quantile", "learning_rate"):
            object.__setattr__(self, name, plain(getattr(self, name), name=name))

    def gradient_noise(self, noise_multiplier: Number, /) -> float:
        """Return the noise multiplier of the gradient alone, so that both cost what is asked.

        (z**-2 - (2 * count_noise)**-2)**(-1/2), rounded up.

        >>> round(Adaptive(initial=1, count_noise=1).gradient_noise(1.2), 6)
        1.5
        >>> Adaptive(initial=1, count_noise=0.5).gradient_noise(1)
        Traceback (most recent call last):
            ...
        discreet.errors.ParameterError: count_noise must be above noise_multiplier / 2 = 0.5, got
        0.5. The count alone would cost all there is; take a twentieth of the expected batch size.
        """
        z = positive(noise_multiplier, name="noise_multiplier")
        left = 1 / z**2 - 1 / (2 * Fraction(self.count_noise)) ** 2
        if left <= 0:
            raise ParameterError(
                f"count_noise must be above noise_multiplier / 2 = {float(z / 2):.6g}, got "
                f"{show(self.count_noise)}. The count alone would cost all there is; take a "
                "twentieth of the expected batch size.",
                parameter="count_noise",
            )
        return root_up(1 / left)

    def start(self, *, norm: Number | None = None) -> "AdaptiveState":
        """Return a state at the initial norm, or at the norm that a checkpoint remembers.

        >>> Adaptive(initial=3, count_noise=5).start().clipping
        Flat(norm=3.0)
        """
        return AdaptiveState(self, norm=self.initial if norm is None else norm)


@final
class AdaptiveState:
    """Hold the current norm of adaptive clipping; use it as the clipping of a step.

    In each step: clip with it, :meth:`observe` the norms of each part of the batch, then
    :meth:`release` the noisy share and :meth:`update` with it. ``tally`` is what was observed in
    this step, in halves, and is not private; processes that share a batch add theirs up.

    >>> state = Adaptive(initial=1, count_noise=1).start()
    >>> state.sensitivity, state.factors(torch.tensor([[0.5]])).item()
    (1.0, 1.0)
    >>> state.observe(torch.tensor([[0.5], [3.0], [0.9]]))
    >>> state.tally.item()
    1
    >>> state.update(state.release(expected=3))
    >>> state.norm != 1.0, state.tally
    (True, None)
    """

    __slots__ = ("_limits", "norm", "settings", "tally")

    def __init__(self, settings: Adaptive, *, norm: Number) -> None:
        self.settings = settings
        self.norm = float(bound("norm", norm))
        self.tally: Tensor | None = None
        self._limits: dict[tuple[torch.device, torch.dtype], Tensor] = {}

    def __repr__(self) -> str:
        return f"AdaptiveState(norm={self.norm!r}, settings={self.settings!r})"

    @property
    def clipping(self) -> Flat:
        """Flat clipping at the current norm."""
        return Flat(norm=self.norm)

    @property
    def sensitivity(self) -> float:
        """The current norm."""
        return self.norm

    def groups(self, names: Sequence[str], /) -> tuple[int, ...]:
        """Put all parameters into one group.

        >>> Adaptive(initial=1, count_noise=1).start().groups(["weight", "bias"])
        (0, 0)
        """
        return (0,) * len(names)

    def factors(self, norms: Tensor, /) -> Tensor:
        """Return min(1, norm / norms) for the current norm.

        >>> state = Adaptive(initial=1, count_noise=1).start()
        >>> state.factors(torch.zeros(1, 1)).item()
        1.0
        """
        norms = at_least_single(norms)
        return shrinking(self.limit(norms) / norms)

    def limit(self, like: Tensor, /) -> Tensor:
        """Return the norm, less what rounding may take: one tensor, which changes with the norm.

        So a recorded step, which reads it anew, has the norm of the step.

        >>> state = Adaptive(initial=1, count_noise=1).start()
        >>> limit = state.limit(torch.zeros(1))
        >>> state.update(1.0)
        >>> round(limit.item(), 4)
        0.9048
        """
        key = (like.device, like.dtype)
        if key not in self._limits:
            self._limits[key] = filled(self.norm, like)
        return self._limits[key]

    def observe(self, norms: Tensor, /) -> None:
        """Count who is not clipped, without waiting for the device; whoever adds nothing is nobody.

        >>> state = Adaptive(initial=1, count_noise=1).start()
        >>> state.observe(torch.tensor([[0.5], [float("nan")], [7.0], [0.0]]))
        >>> state.tally.item()
        -1
        """
        # Halves as whole numbers: 2 (b - 1/2) is 1 or -1, and integers add up exactly.
        seen = norms.detach()
        halves = (((seen <= self.norm).to(torch.int64) * 2 - 1) * (seen != 0)).sum()
        self.tally = halves if self.tally is None else self.tally + halves

    def release(self, *, expected: Number, source: Source = SYSTEM) -> float:
        """Return the noisy share of units that were not clipped, and forget the tally.

        ``expected`` is the expected batch size: the true one is private.

        >>> state = Adaptive(initial=1, count_noise=0.001).start()
        >>> state.observe(torch.tensor([[0.5], [0.6], [0.7], [7.0]]))
        >>> round(state.release(expected=4), 2)
        0.75
        """
        size = positive(expected, name="expected")
        halves = 0 if self.tally is None else int(self.tally.item())
        self.tally = None
        noise = rounded_gaussian(_FINE * Fraction(self.settings.count_noise), source=source)
        # Sum and noise lie on one grid of 2**-20: the sum is exact and the noise rounded to it.
        return float((Fraction(halves, 2) + Fraction(noise, _FINE)) / size + Fraction(1, 2))

    def update(self, share: float, /) -> None:
        """Move the norm by a released share.

        >>> state = Adaptive(initial=1, count_noise=1, quantile=0.5).start()
        >>> state.update(0.5)
        >>> state.norm
        1.0
        """
        gap = float(exact(share, name="share") - Fraction(self.settings.quantile))
        # A wild share must not end the training: what was released is private, so any rule may
        # follow. One step changes the norm at most a thousandfold, within the range of a norm.
        move = max(-7.0, min(7.0, float(self.settings.learning_rate) * gap))
        self.norm = max(float(SMALLEST), min(float(LARGEST), self.norm * math.exp(-move)))
        for limit in self._limits.values():
            limit.copy_(filled(self.norm, limit))


def as_clipping(clip: Number | Clipping | Adaptive, /, *, norm: float | None = None) -> Clipping:
    """Return the clipping that is meant: a number is a flat one, an adaptive one is started.

    ``norm`` is where a checkpoint left an adaptive one.

    >>> as_clipping(1.5)
    Flat(norm=1.5)
    >>> as_clipping(Adaptive(initial=1, count_noise=5)).sensitivity
    1.0
    >>> as_clipping("flat")
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: clip must be a norm such as 1.0, or one of Flat, PerLayer,
    Automatic and Adaptive, got 'flat'.
    """
    if isinstance(clip, Adaptive):
        return clip.start(norm=norm)
    if isinstance(clip, Clipping) and not isinstance(clip, type):
        return clip
    wanted = "a norm such as 1.0, or one of Flat, PerLayer, Automatic and Adaptive"
    exact(clip, name="clip", wanted=wanted)
    return Flat(norm=cast("Number", clip))
