"""Noise for a summed gradient: round it to a grid, add Gaussian noise on the grid, divide.

No float noise ever meets a float sum: a sum of floats has low-order bits that tell what was added.
On a grid both are integers, and the released number depends on their sum alone.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from discreet._exact import Number, float_up, positive, show, whole
from discreet.errors import ParameterError
from discreet.learn.noise.chacha import KEY_BYTES
from discreet.learn.noise.keyed_gaussian import LARGEST_SIGMA, exact_noise
from discreet.noise import SYSTEM, Source, rounded_gaussian

__all__ = ["FLOAT_SLACK", "GridNoise", "add_noise_", "grid_of", "noised"]

FLOAT_SLACK: Final = 2.0**-10
"""What floating-point sums may add to a unit's contribution, relative to the sensitivity.

An assumption about the arithmetic, not a theorem: see ``docs/proofs/gradient_noise.md``.
"""

_FINENESS: Final = 10  # the grid's rounding adds at most 2**-10 of the sensitivity
_CHUNK: Final = 1 << 18  # elements; keeps the intermediate arrays in the processor's cache
_FARTHEST: Final = 2.0**51  # steps; steps and noise together stay exact in a double
_LEAST_NOISE, _MOST_NOISE = Fraction(1, 1 << 13), Fraction(1 << 20)
_LARGEST_EXPONENT: Final = 900


def grid_of(*, sensitivity: Number, size: int) -> float:
    """Return the spacing on which a gradient of ``size`` entries is rounded and noised.

    The largest power of two with grid * sqrt(size) <= 2**-10 * sensitivity.

    >>> grid_of(sensitivity=1, size=100) == 2.0**-14
    True
    """
    bound = positive(sensitivity, name="sensitivity")
    square = bound**2 / (whole(size, name="size") << 2 * _FINENESS)
    exponent = (square.numerator.bit_length() - square.denominator.bit_length()) // 2 + 1
    while Fraction(4) ** exponent > square:
        exponent -= 1
    if abs(exponent) > _LARGEST_EXPONENT:
        raise ParameterError(
            f"sensitivity must be of an ordinary magnitude, got {show(sensitivity)}: doubles end "
            "near there. Scale the loss.",
            parameter="sensitivity",
        )
    return 2.0**exponent


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GridNoise:
    """The three numbers that noising needs: the grid, sigma in its steps, a step of the result.

    >>> GridNoise.of(sensitivity=1, noise_multiplier=2, divide_by=8, size=4)
    GridNoise(grid=0.00048828125, sigma=4104.0, unit_per_step=6.103515625e-05)
    """

    grid: float
    sigma: float
    unit_per_step: float

    @classmethod
    def of(
        cls, *, sensitivity: Number, noise_multiplier: Number, divide_by: Number, size: int
    ) -> "GridNoise":
        """Derive them from checked parameters, every rounding towards more noise.

        >>> GridNoise.of(sensitivity=1, noise_multiplier=1, divide_by=1, size=1).sigma
        1026.0
        """
        bound = positive(sensitivity, name="sensitivity", hint="It is the clipping norm in L2.")
        multiplier = positive(noise_multiplier, name="noise_multiplier")
        if not _LEAST_NOISE <= multiplier <= _MOST_NOISE:
            raise ParameterError(
                f"noise_multiplier must be between 2**-13 and 2**20, got {show(noise_multiplier)}: "
                "below there is no privacy to speak of, above no gradient.",
                parameter="noise_multiplier",
            )
        divisor = positive(divide_by, name="divide_by", hint="It is the expected batch size.")
        grid = grid_of(sensitivity=sensitivity, size=size)
        unit = float_up(Fraction(grid) / divisor)
        if not 2.0**-1000 < unit < 2.0**1000:
            raise ParameterError(
                f"divide_by must be of an ordinary magnitude, got {show(divide_by)}. "
                "It is the expected batch size.",
                parameter="divide_by",
            )
        distance = bound * (1 + Fraction(FLOAT_SLACK)) / Fraction(grid) + _root_up(size)
        return cls(grid=grid, sigma=float_up(multiplier * distance), unit_per_step=unit)


def _root_up(size: int) -> Fraction:
    """Return sqrt(size), or a little more."""
    square = size << 64
    root = math.isqrt(square)
    return Fraction(root + (root * root < square), 1 << 32)


def add_noise_(
    buffer: Tensor,
    *,
    sensitivity: Number,
    noise_multiplier: Number,
    divide_by: Number,
    source: Source = SYSTEM,
) -> None:
    """Round a summed gradient to a grid, add Gaussian noise on it, and divide, all in place.

    Entries that are not finite count as 0 and huge ones as 2**51 steps, without a word: an error
    would tell about the data.

    Claim: if the sums of neighbouring data are finite and differ by at most
    ``sensitivity * (1 + FLOAT_SLACK)`` in L2 norm, the result is a post-processing of the Gaussian
    mechanism with this ``noise_multiplier``, for the unit and the neighbouring relation that the
    sensitivity was computed for.

    Why: ``docs/proofs/gradient_noise.md``. Rounding moves neighbours at most grid * sqrt(size)
    further apart, for which the noise is widened; adding rounded noise to a multiple of the grid is
    rounding their sum.

    How the source is expanded: on CUDA, 32 bytes of it are the key of ChaCha20, fresh in each call
    and kept nowhere; elsewhere :func:`discreet.noise.rounded_gaussian` reads from it.

    >>> gradient = torch.zeros(1000)
    >>> add_noise_(gradient, sensitivity=1, noise_multiplier=2, divide_by=1)
    >>> bool(1 < gradient.std() < 3)
    True
    """
    _check(buffer)
    plan = GridNoise.of(
        sensitivity=sensitivity,
        noise_multiplier=noise_multiplier,
        divide_by=divide_by,
        size=buffer.numel(),
    )
    flat = buffer.detach().view(-1)
    if _has_kernel(flat) and plan.sigma <= LARGEST_SIGMA:
        _add_on_gpu(flat, plan, source.read(KEY_BYTES))
    elif flat.device.type == "cpu":
        _add_on_cpu(flat.numpy(), plan, source)
    else:
        host = flat.cpu()
        _add_on_cpu(host.numpy(), plan, source)
        flat.copy_(host)


def _check(buffer: Tensor) -> None:
    if buffer.dtype not in (torch.float32, torch.float64) or not buffer.is_contiguous():
        raise ParameterError(
            "buffer must be a contiguous tensor of float32 or float64, got "
            f"{buffer.dtype} with strides {tuple(buffer.stride())}. Sum gradients in float32.",
            parameter="buffer",
        )


def _has_kernel(buffer: Tensor) -> bool:
    # torch calls AMD's devices cuda too; their doubles' square root is not promised to be exact.
    return buffer.is_cuda and torch.version.cuda is not None and find_spec("triton") is not None


def _add_on_cpu(entries: npt.NDArray[Any], plan: GridNoise, source: Source) -> None:
    for start in range(0, entries.size, _CHUNK):
        part = entries[start : start + _CHUNK]
        part[:] = noised(part, rounded_gaussian(plan.sigma, part.size, source=source), plan)


def _add_on_gpu(buffer: Tensor, plan: GridNoise, key: bytes, *, widen: float = 1.0) -> None:
    from discreet.learn.noise.triton_noise import add_keyed_noise_  # Triton takes a while to load

    left = add_keyed_noise_(
        buffer,
        key=key,
        sigma=plan.sigma,
        steps_per_unit=1 / plan.grid,
        unit_per_step=plan.unit_per_step,
        widen=widen,
    )
    if left.numel():  # about 30 * 2**-53 * sigma of all, depending on the key alone
        noise = [exact_noise(key, index, sigma=plan.sigma) for index in left.tolist()]
        results = noised(buffer[left].cpu().numpy(), np.array(noise), plan)
        buffer[left] = torch.from_numpy(results).to(buffer.device)


def noised(
    entries: npt.NDArray[Any], noise: npt.NDArray[np.int64], plan: GridNoise
) -> npt.NDArray[Any]:
    """Return what becomes of these entries with this noise, in steps.

    >>> plan = GridNoise(grid=0.5, sigma=1.0, unit_per_step=0.25)
    >>> noised(np.array([1.1, np.nan, -np.inf]), np.array([3, 1, 0]), plan)
    array([1.25, 0.25, 0.  ])
    """
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is clamped
        steps = entries.astype(np.float64)
        steps *= 1 / plan.grid
        np.rint(steps, out=steps)
        np.clip(steps, -_FARTHEST, _FARTHEST, out=steps)
        steps[~np.isfinite(entries)] = 0
        total = steps.astype(np.int64)
        total += noise
        # A function of the exact sum alone, so all that follows is post-processing.
        result: npt.NDArray[Any] = (total * plan.unit_per_step).astype(entries.dtype)
    return result
