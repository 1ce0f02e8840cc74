"""How one unit's gradient is kept within a norm: where the sensitivity of training comes from.

A clipping says into which groups the parameters fall, and with which factor a unit's gradient of
each group is multiplied, given its norm. The factors are computed where the norms are: nothing
here makes the processor wait for the device, except the one number per step that adapts a norm.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, cast, final, runtime_checkable

import torch
from torch import Tensor

from discreet._exact import Number, exact, float_up, plain, positive, probability, refusal, show
from discreet.errors import ParameterError
from discreet.noise import SYSTEM, Source, rounded_gaussian

__all__ = [
    "Adaptive",
    "AdaptiveState",
    "Automatic",
    "Clipping",
    "Flat",
    "PerLayer",
    "as_clipping",
]

# Gradients are single precision, which ends at 2**-126 and 2**128. Between these limits neither a
# norm nor the quotient of two of them leaves its normal range.
_SMALLEST, _LARGEST = Fraction(2) ** -60, Fraction(2) ** 60
_FINE = 2**20  # steps per unit of the grid on which a count gets its noise


@runtime_checkable
class Clipping(Protocol):
    """Bound what one unit adds to a sum of gradients.

    Claim: a unit whose gradient has the norm n_g in group g contributes factor_g * gradient_g with
    factor_g * n_g <= C_g, so the L2 norm of its whole contribution is at most ``sensitivity`` =
    sqrt(sum of C_g**2). That is the sensitivity of the sum under add-remove and zero-out of one
    unit, and half the sensitivity under replace-one. A factor depends on its own unit alone.

    >>> isinstance(Flat(norm=1.0), Clipping)
    True
    """

    @property
    def sensitivity(self) -> float:
        """The L2 norm that no unit's contribution exceeds."""
        ...

    def groups(self, names: Sequence[str], /) -> tuple[int, ...]:
        """Return the group, 0 to G - 1, of each trainable parameter.

        >>> PerLayer(norm=1.0).groups(("first.weight", "first.bias", "last.weight"))
        (0, 0, 1)
        """
        ...

    def factors(self, norms: Tensor, /) -> Tensor:
        """Return the factors of norms, or of upper bounds of them, of shape (units, G).

        >>> Flat(norm=1.0).factors(torch.tensor([[4.0]])).round(decimals=4)
        tensor([[0.2500]])
        """
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Flat:
    """Scale a unit's whole gradient down to ``norm`` where it is longer.

    Claim: under add-remove and zero-out of one unit the sum of the clipped gradients has the L2
    sensitivity ``norm``, whatever the gradients are: a norm that is not finite gets the factor 0.

    Why: factor = min(1, C' / norm), with C' below C by more than what rounding can add (see
    ``docs/proofs/clipping.md``) [ACGMMTZ16, Algorithm 1].

    >>> Flat(norm=2).sensitivity
    2.0
    >>> factors = Flat(norm=2).factors(torch.tensor([[1.0], [8.0], [float("nan")]]))
    >>> [round(factor, 5) for factor in factors.flatten().tolist()]
    [1.0, 0.25, 0.0]
    """

    norm: Number

    def __post_init__(self) -> None:
        _keep_bound(self, "norm")

    @property
    def sensitivity(self) -> float:
        """The norm itself."""
        return float_up(Fraction(self.norm))

    def groups(self, names: Sequence[str], /) -> tuple[int, ...]:
        """Put all parameters into one group.

        >>> Flat(norm=1).groups(["weight", "bias"])
        (0, 0)
        """
        return (0,) * len(names)

    def factors(self, norms: Tensor, /) -> Tensor:
        """Return min(1, norm / norms).

        >>> Flat(norm=1).factors(torch.zeros(2, 1)).flatten().tolist()
        [1.0, 1.0]
        """
        norms = _at_least_single(norms)
        return _shrinking(_filled(float(self.norm), norms) / norms)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PerLayer:
    """Clip the gradient of every layer on its own.

    A layer is the module that owns a parameter: ``encoder.0.weight`` and ``encoder.0.bias`` belong
    to ``encoder.0``, a parameter of the model itself to the layer of the empty name. Give ``norm``
    for the whole gradient, which is divided evenly (C_l = norm / sqrt(L)), or ``norms``, one for
    each layer by name.

    Claim: the L2 sensitivity under add-remove and zero-out of one unit is sqrt(sum of C_l**2):
    ``norm`` in the first form.

    Why: each layer's part is at most C_l long, and lengths of orthogonal parts add in squares
    [MRTZ18, Algorithm 1].

    >>> PerLayer(norm=1).groups(["conv.weight", "conv.bias", "head.weight"])
    (0, 0, 1)
    >>> PerLayer(norms={"conv": 3, "head": 4}).sensitivity
    5.0
    >>> factors = PerLayer(norms={"conv": 3, "head": 4}).factors(torch.tensor([[6.0, 1.0]]))
    >>> [round(factor, 5) for factor in factors.flatten().tolist()]
    [0.5, 1.0]
    """

    norm: Number | None = None
    norms: Mapping[str, Number] | None = None

    def __post_init__(self) -> None:
        if (self.norm is None) == (self.norms is None):
            raise ParameterError(
                "give either norm, for all layers together, or norms, a number for each layer.",
                parameter="norm",
            )
        if self.norms is None:
            _keep_bound(self, "norm")
            return
        given: object = self.norms
        if not isinstance(given, Mapping) or not given:
            raise refusal("norms", "a mapping from the name of each layer to its norm", given)
        kept = {str(layer): _bound(f"norms[{layer!r}]", c) for layer, c in given.items()}
        object.__setattr__(self, "norms", kept)

    @property
    def sensitivity(self) -> float:
        """The root of the sum of the squared norms, rounded up."""
        if self.norms is None:
            return float_up(Fraction(cast("Number", self.norm)))
        return _root_up(sum((Fraction(c) ** 2 for c in self.norms.values()), Fraction(0)))

    def groups(self, names: Sequence[str], /) -> tuple[int, ...]:
        """Return the layer of each parameter, counted in order of appearance or of ``norms``.

        >>> PerLayer(norms={"head": 1}).groups(["head.weight", "body.weight"])
        Traceback (most recent call last):
            ...
        discreet.errors.ParameterError: norms must name every layer with trainable parameters and
        no other: 'body' is missing.
        """
        layers = [name.rpartition(".")[0] for name in names]
        order = {layer: index for index, layer in enumerate(self.norms or dict.fromkeys(layers))}
        missing = [layer for layer in dict.fromkeys(layers) if layer not in order]
        unused = [layer for layer in order if layer not in layers]
        if missing or unused:
            told = [f"{layer!r} is missing" for layer in missing]
            told += [f"{layer!r} has none" for layer in unused]
            raise ParameterError(
                "norms must name every layer with trainable parameters and no other: "
                + ", ".join(told)
                + ".",
                parameter="norms",
            )
        return tuple(order[layer] for layer in layers)

    def factors(self, norms: Tensor, /) -> Tensor:
        """Return min(1, C_l / norms) for each layer.

        >>> PerLayer(norm=1).factors(torch.full((1, 4), 0.25)).tolist()
        [[1.0, 1.0, 1.0, 1.0]]
        """
        norms = _at_least_single(norms)
        if self.norms is None:
            share = float(cast("Number", self.norm)) / math.sqrt(norms.shape[-1])
            return _shrinking(_filled(share, norms) / norms)
        bounds = tuple(float(c) for c in self.norms.values())
        return _shrinking(_row(bounds, norms.device, norms.dtype) / norms)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Automatic:
    """Scale every gradient to nearly the same length: C / (norm + stability).

    There is no threshold to tune: with this clipping ``norm`` only multiplies the learning rate
    (and the noise with it). Short gradients are lengthened, up to norm / stability times.

    Claim: under add-remove and zero-out of one unit the sum has the L2 sensitivity ``norm``.

    Why: n / (n + stability) < 1 for every n >= 0 [BWZK23].

    >>> factors = Automatic(norm=1, stability=0.5).factors(torch.tensor([[0.5], [9.5]]))
    >>> [round(factor, 5) for factor in factors.flatten().tolist()]
    [1.0, 0.1]
    """

    norm: Number
    stability: Number = 0.01

    def __post_init__(self) -> None:
        _keep_bound(self, "norm")
        _keep_bound(self, "stability")

    @property
    def sensitivity(self) -> float:
        """The norm itself, which no gradient quite reaches."""
        return float_up(Fraction(self.norm))

    def groups(self, names: Sequence[str], /) -> tuple[int, ...]:
        """Put all parameters into one group.

        >>> Automatic(norm=1).groups(["weight", "bias"])
        (0, 0)
        """
        return (0,) * len(names)

    def factors(self, norms: Tensor, /) -> Tensor:
        """Return norm / (norms + stability).

        >>> round(Automatic(norm=1).factors(torch.zeros(1, 1)).item(), 3)
        100.0
        """
        norms = _at_least_single(norms)
        return _normal(_filled(float(self.norm), norms) / (norms + float(self.stability)))


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
    a longer vector [ATMR21, Theorem 1]. The next norm is computed from what was released. The
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
        _keep_bound(self, "initial")
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
        return _root_up(1 / left)

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

    __slots__ = ("norm", "settings", "tally")

    def __init__(self, settings: Adaptive, *, norm: Number) -> None:
        self.settings = settings
        self.norm = float(_bound("norm", norm))
        self.tally: Tensor | None = None

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
        return self.clipping.factors(norms)

    def observe(self, norms: Tensor, /) -> None:
        """Count who is not clipped, without waiting for the device.

        >>> state = Adaptive(initial=1, count_noise=1).start()
        >>> state.observe(torch.tensor([[0.5], [float("nan")], [7.0]]))
        >>> state.tally.item()
        -1
        """
        # Halves as whole numbers: 2 (b - 1/2) is 1 or -1, and integers add up exactly.
        halves = ((norms.detach() <= self.norm).to(torch.int64) * 2 - 1).sum()
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
        self.norm = max(float(_SMALLEST), min(float(_LARGEST), self.norm * math.exp(-move)))


def as_clipping(clip: "Number | Clipping | Adaptive", /) -> Clipping:
    """Return the clipping that is meant: a number is a flat one, an adaptive one is started.

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
        return clip.start()
    if isinstance(clip, Clipping) and not isinstance(clip, type):
        return clip
    wanted = "a norm such as 1.0, or one of Flat, PerLayer, Automatic and Adaptive"
    exact(clip, name="clip", wanted=wanted)
    return Flat(norm=cast("Number", clip))


def _bound(name: str, value: object) -> Number:
    """Return a norm as a plain number, if single precision can hold it comfortably."""
    number = positive(value, name=name)
    if not _SMALLEST <= number <= _LARGEST:
        raise refusal(name, "between 2**-60 and 2**60", value, "Rescale the loss.")
    return plain(value, name=name)


def _root_up(value: Fraction) -> float:
    """Return a float that is not below the root of ``value``."""
    root = math.sqrt(value)
    while Fraction(root) ** 2 < value:
        root = math.nextafter(root, math.inf)
    return root


def _keep_bound(owner: object, name: str) -> None:
    object.__setattr__(owner, name, _bound(name, getattr(owner, name)))


def _at_least_single(norms: Tensor) -> Tensor:
    """Return norms in single precision where they were in half: its slack would be visible."""
    return norms if norms.dtype == torch.float64 else norms.to(torch.float32)


def _slack(dtype: torch.dtype) -> float:
    """Return how far below C to aim: in single precision by four half-ulps.

    Three can be lost, by rounding the bound, the sum of norm and stability, and the quotient. The
    bounds themselves are computed in doubles, so there a few more can, and there is room to spare.
    """
    return 1 - 2.0**-22 if dtype == torch.float32 else 1 - 2.0**-40


def _filled(bound: float, like: Tensor) -> Tensor:
    # A tensor, because number / tensor is reciprocal and product in torch: two roundings, of which
    # the first may underflow. Filled rather than copied, so that nothing waits for the device.
    return torch.full((), bound * _slack(like.dtype), dtype=like.dtype, device=like.device)


@functools.lru_cache(maxsize=16)
def _row(bounds: tuple[float, ...], device: torch.device, dtype: torch.dtype) -> Tensor:
    """Return bounds that differ, copied to the device once."""
    return torch.tensor([bound * _slack(dtype) for bound in bounds], dtype=dtype, device=device)


def _shrinking(quotients: Tensor) -> Tensor:
    return _normal(quotients.clamp(max=1))


def _normal(factors: Tensor) -> Tensor:
    """Return the factors, with 0 for those that are NaN or so small that their rounding shows."""
    return torch.where(factors >= torch.finfo(factors.dtype).tiny, factors, 0.0)
