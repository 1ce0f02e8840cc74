"""How one unit's gradient is kept within a norm: where the sensitivity of training comes from.

A clipping says into which groups the parameters fall, and with which factor a unit's gradient of
each group is multiplied, given its norm. The factors are computed where the norms are: nothing
here makes the processor wait for the device, except the one number per step that adapts a norm.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, cast, final, runtime_checkable

import torch  # noqa: F401 - for the examples
from torch import Tensor

from discreet._exact import Number, float_up, refusal
from discreet.errors import ParameterError
from discreet.learn.choices.factors import (
    at_least_single,
    bound,
    filled,
    keep_bound,
    normal,
    root_up,
    row,
    shrinking,
)

__all__ = ["Automatic", "Clipping", "Flat", "PerLayer"]


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
        keep_bound(self, "norm")

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
        norms = at_least_single(norms)
        return shrinking(filled(float(self.norm), norms) / norms)


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
            keep_bound(self, "norm")
            return
        given: object = self.norms
        if not isinstance(given, Mapping) or not given:
            raise refusal("norms", "a mapping from the name of each layer to its norm", given)
        kept = {str(layer): bound(f"norms[{layer!r}]", c) for layer, c in given.items()}
        object.__setattr__(self, "norms", kept)

    @property
    def sensitivity(self) -> float:
        """The root of the sum of the squared norms, rounded up."""
        if self.norms is None:
            return float_up(Fraction(cast("Number", self.norm)))
        return root_up(sum((Fraction(c) ** 2 for c in self.norms.values()), Fraction(0)))

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
        norms = at_least_single(norms)
        if self.norms is None:
            share = float(cast("Number", self.norm)) / math.sqrt(norms.shape[-1])
            return shrinking(filled(share, norms) / norms)
        bounds = tuple(float(c) for c in self.norms.values())
        return shrinking(row(bounds, norms.device, norms.dtype) / norms)


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
        keep_bound(self, "norm")
        keep_bound(self, "stability")

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
        norms = at_least_single(norms)
        return normal(filled(float(self.norm), norms) / (norms + float(self.stability)))
