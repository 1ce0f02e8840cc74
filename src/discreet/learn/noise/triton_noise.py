# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators
"""The GPU's way to noise: ``keyed_gaussian`` as one Triton kernel, fused with the rounding.

One lane computes one ChaCha20 block and noises eight elements with it; nothing but the buffer is
read or written. Where doubles cannot tell how a noise rounds, the element keeps its old value and
its index goes onto a list, for the host to finish.

The fused multiply-adds that the compiler makes drop roundings that the window allows for, so the
window holds with and without them.
"""

import struct
from typing import Any

import torch
from torch import Tensor

from discreet.learn.noise import keyed_gaussian as law
from discreet.learn.noise.chacha import key_words

try:
    import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import triton.language as tl  # type: ignore[import-not-found, import-untyped, unused-ignore]
except ImportError:  # the module can be imported, and read, where there is no GPU
    triton = tl = None

constexpr: Any = tl.constexpr if tl is not None else object

__all__ = ["add_keyed_noise_"]


def add_keyed_noise_(
    buffer: Tensor,
    *,
    key: bytes,
    sigma: float,
    steps_per_unit: float,
    unit_per_step: float,
    widen: float = 1.0,
) -> Tensor:
    """Round, add noise and scale in place; return the indices of elements left as they were.

    ``steps_per_unit`` is 1 / grid, and ``unit_per_step`` what a step of the result is worth.
    """
    size = buffer.numel()
    # Four times what is expected and some: too little room costs a second pass and nothing else.
    room = 1024 + int(size * sigma * 2.0**-46)
    found = _launch(buffer, room, True, key, sigma, steps_per_unit, unit_per_step, widen)
    count = int(found[0])
    if count > room:
        found = _launch(buffer, count, False, key, sigma, steps_per_unit, unit_per_step, widen)
    return found[1 : count + 1]


def _launch(buffer: Tensor, room: int, is_writing: bool, key: bytes, *numbers: float) -> Tensor:
    """Run the kernel. Without writing it finds the same elements and changes none."""
    found = torch.zeros(1 + room, dtype=torch.int64, device=buffer.device)
    tiles = triton.cdiv(buffer.numel(), law.PER_BLOCK * law.LANES)
    # Signed, and doubles as their bits: Triton would choose a type by the value of an integer, and
    # single precision for a float.
    words = struct.unpack("<8i", struct.pack("<8I", *key_words(key)))
    bits = [struct.unpack("<q", struct.pack("<d", number))[0] for number in numbers]
    with torch.cuda.device(buffer.device if buffer.is_cuda else -1):
        _noise_kernel[(tiles,)](
            buffer,
            found,
            buffer.numel(),
            room,
            buffer.numel() if is_writing else 0,
            *words,
            *bits,
            LANES=law.LANES,
            num_warps=law.LANES // 32,
        )
    return found


def _jit(**options: Any) -> Any:
    return triton.jit(**options) if triton is not None else lambda function: function


# Only arithmetic may meet such constants: a comparison rounds them to single precision first.
if tl is not None:
    _SINE = tl.constexpr(law.SINE[::-1])
    _COSINE = tl.constexpr(law.COSINE[::-1])
    _LOGARITHM = tl.constexpr(law.LOGARITHM[::-1])
    _TWO_LN2 = tl.constexpr(law.TWO_LN2)
    _SQRT_HALF_BITS = tl.constexpr(law.SQRT_HALF_BITS)
    _PER_RADIUS = tl.constexpr(law.PER_RADIUS)
    _PER_INVERSE = tl.constexpr(law.PER_INVERSE)
    _PER_PREFIX = tl.constexpr(law.PER_PREFIX)
    _SLACK = tl.constexpr(law.SLACK)
    _TO_WHOLE = tl.constexpr(1.5 * 2.0**52)  # adding it leaves no place for a fraction
    _FARTHEST = tl.constexpr(2.0**51)
    _INFINITY = tl.constexpr(float("inf"))


@_jit()
def _rotated(x, distance: constexpr):
    return (x << distance) | (x >> (32 - distance))


@_jit()
def _quarter_round(a, b, c, d):
    a += b
    d = _rotated(d ^ a, 16)
    c += d
    b = _rotated(b ^ c, 12)
    a += b
    d = _rotated(d ^ a, 8)
    c += d
    b = _rotated(b ^ c, 7)
    return a, b, c, d


@_jit()
def _polynomial(falling: constexpr, count: constexpr, x):
    value = x * falling[0] + falling[1]
    for i in tl.static_range(2, count):
        value = value * x + falling[i]
    return value


@_jit()
def _joined(low, high):
    return low.to(tl.uint64) | (high.to(tl.uint64) << 32)


@_jit()
def _radius(u):
    bits = u.to(tl.float64).to(tl.int64, bitcast=True)
    k = (bits - _SQRT_HALF_BITS) >> 52
    m = (bits - (k << 52)).to(tl.float64, bitcast=True)
    s = (m - 1.0) / (m + 1.0)
    halvings = (64 - k).to(tl.int32).to(tl.float64)
    square = halvings * _TWO_LN2 - s * _polynomial(_LOGARITHM, 11, s * s)
    radius = tl.sqrt(square)
    inverse = tl.rsqrt(square.to(tl.float32)).to(tl.float64)
    power = ((1023 - k) << 52).to(tl.float64, bitcast=True)
    return radius, radius * _PER_RADIUS + inverse * (_PER_INVERSE + _PER_PREFIX * power)


@_jit()
def _circle(angle):
    turned = angle + (1 << 61)
    rest = (turned & ((1 << 62) - 1)).to(tl.int64) - (1 << 61)
    t = rest.to(tl.float64) * (2.0**-61)
    square = t * t
    across = t * _polynomial(_SINE, 9, square)
    along = _polynomial(_COSINE, 9, square)
    is_odd = (turned & (1 << 62)) != 0
    cosine = tl.where(is_odd, across, along).to(tl.uint64, bitcast=True)
    sine = tl.where(is_odd, along, across).to(tl.uint64, bitcast=True)
    cosine ^= (turned + (1 << 62)) & 0x8000000000000000
    sine ^= turned & 0x8000000000000000
    return cosine.to(tl.float64, bitcast=True), sine.to(tl.float64, bitcast=True)


@_jit()
def _add(buffer, found, element, size, room, written, value, window, inward, outward):
    nearest = (value + _TO_WHOLE) - _TO_WHOLE
    is_inside = element < size
    gap = tl.abs(value - nearest) + window  # never NaN: an infinite window is an open case
    entry = tl.load(buffer + element, mask=is_inside, other=0.0).to(tl.float64)
    steps = tl.where(tl.abs(entry) < _INFINITY, entry * inward, 0.0)
    steps = tl.minimum(tl.maximum(steps, -_FARTHEST), _FARTHEST)
    total = ((steps + _TO_WHOLE) - _TO_WHOLE) + nearest
    result = (total * outward).to(buffer.dtype.element_ty)
    tl.store(buffer + element, result, mask=(element < written) & (gap <= 0.5))
    is_open = is_inside & (gap > 0.5)
    one = tl.full(element.shape, 1, tl.int64)
    slot = tl.atomic_add(found + tl.zeros_like(element), one, mask=is_open, sem="relaxed")
    tl.store(found + 1 + slot, element, mask=is_open & (slot < room))


# Values must not choose among compiled variants: a key that 16 divides is no better than others.
@_jit(
    do_not_specialize=[
        *("size", "room", "written"),
        *("k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"),
        *("sigma_bits", "inward_bits", "outward_bits", "widen_bits"),
    ]
)
def _noise_kernel(
    buffer,
    found,
    size,
    room,
    written,
    k0,
    k1,
    k2,
    k3,
    k4,
    k5,
    k6,
    k7,
    sigma_bits,
    inward_bits,
    outward_bits,
    widen_bits,
    LANES: constexpr,  # noqa: N803 - Triton's habit for constants
):
    sigma = sigma_bits.to(tl.float64, bitcast=True)
    inward = inward_bits.to(tl.float64, bitcast=True)
    outward = outward_bits.to(tl.float64, bitcast=True)
    sigma_widened = sigma * widen_bits.to(tl.float64, bitcast=True)
    tile = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, LANES)
    counter = tile * LANES + lane
    zero = tl.zeros((LANES,), tl.uint32)
    c12 = counter.to(tl.uint32)
    c13 = (counter >> 32).to(tl.uint32)
    c4 = zero + k0.to(tl.uint32, bitcast=True)
    c5 = zero + k1.to(tl.uint32, bitcast=True)
    c6 = zero + k2.to(tl.uint32, bitcast=True)
    c7 = zero + k3.to(tl.uint32, bitcast=True)
    c8 = zero + k4.to(tl.uint32, bitcast=True)
    c9 = zero + k5.to(tl.uint32, bitcast=True)
    c10 = zero + k6.to(tl.uint32, bitcast=True)
    c11 = zero + k7.to(tl.uint32, bitcast=True)
    x0, x1, x2, x3 = zero + 0x61707865, zero + 0x3320646E, zero + 0x79622D32, zero + 0x6B206574
    x4, x5, x6, x7, x8, x9, x10, x11 = c4, c5, c6, c7, c8, c9, c10, c11
    x12, x13, x14, x15 = c12, c13, zero, zero
    for _ in range(10):
        x0, x4, x8, x12 = _quarter_round(x0, x4, x8, x12)
        x1, x5, x9, x13 = _quarter_round(x1, x5, x9, x13)
        x2, x6, x10, x14 = _quarter_round(x2, x6, x10, x14)
        x3, x7, x11, x15 = _quarter_round(x3, x7, x11, x15)
        x0, x5, x10, x15 = _quarter_round(x0, x5, x10, x15)
        x1, x6, x11, x12 = _quarter_round(x1, x6, x11, x12)
        x2, x7, x8, x13 = _quarter_round(x2, x7, x8, x13)
        x3, x4, x9, x14 = _quarter_round(x3, x4, x9, x14)
    x0 += 0x61707865
    x1 += 0x3320646E
    x2 += 0x79622D32
    x3 += 0x6B206574
    x4, x5, x6, x7, x8, x9 = x4 + c4, x5 + c5, x6 + c6, x7 + c7, x8 + c8, x9 + c9
    x10, x11, x12, x13 = x10 + c10, x11 + c11, x12 + c12, x13 + c13
    pairs = (
        (_joined(x0, x1), _joined(x2, x3)),
        (_joined(x4, x5), _joined(x6, x7)),
        (_joined(x8, x9), _joined(x10, x11)),
        (_joined(x12, x13), _joined(x14, x15)),
    )
    element = tile * (8 * LANES) + lane
    for i in tl.static_range(4):
        radius, window = _radius(pairs[i][0])
        cosine, sine = _circle(pairs[i][1])
        reach, window = radius * sigma, window * sigma_widened + _SLACK
        _add(buffer, found, element, size, room, written, reach * cosine, window, inward, outward)
        element += LANES
        _add(buffer, found, element, size, room, written, reach * sine, window, inward, outward)
        element += LANES
