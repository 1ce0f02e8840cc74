"""Which way a norm is computed: by Triton or by torch, in which precision, how much at a time.

Triton kernels on NVIDIA GPUs that have them, plain torch elsewhere (and for float64, and for
float32 where TF32 is not allowed: there cuBLAS is both exact and faster). Both compute the same
sums; float32 accumulates 16-bit and 32-bit input, float64 its own.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from importlib.util import find_spec
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

from discreet.learn.norms.triton_tiles import Precision

__all__ = [
    "allows_tf32",
    "chain",
    "chunks",
    "has_triton",
    "plainly",
    "row_norms",
    "squares",
    "triton_precision",
    "underflow",
    "wide",
    "without_tf32",
]

# What an intermediate result may take. A CPU wants it near its caches: measured on 3 x 3
# convolutions, chunks of 4 MB are two to three times as fast as chunks of 64 MB.
CPU_CHUNK_BYTES = 4 << 20
GPU_CHUNK_BYTES = 64 << 20
LEAST_SHARED = 160 << 10
_BLOCK = 256  # numbers that are added up in one go

_P = ParamSpec("_P")
_R = TypeVar("_R")


def plainly(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Run without recording gradients, and without autocast rounding what we sum."""

    @wraps(function)
    def plain(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        first = next(v for v in (*args, *kwargs.values()) if isinstance(v, Tensor))
        if first.is_cuda and first.device.index != torch.cuda.current_device():
            with torch.cuda.device(first.device):  # where Triton launches
                return plain(*args, **kwargs)
        # Entering a context takes as long as a small kernel, so only where it is needed.
        if torch.is_grad_enabled() or torch.is_autocast_enabled(first.device.type):
            with torch.no_grad(), torch.autocast(first.device.type, enabled=False):
                return function(*args, **kwargs)
        return function(*args, **kwargs)

    return plain


@cache
def _is_triton_installed() -> bool:
    return find_spec("triton") is not None


@cache
def _is_supported(device: torch.device) -> bool:
    # Tiles are made for the shared memory of data centres' GPUs; others have half as much.
    properties = torch.cuda.get_device_properties(device)
    shared = getattr(properties, "shared_memory_per_block_optin", 0)
    return torch.version.cuda is not None and properties.major >= 8 and shared >= LEAST_SHARED


def has_triton(tensor: Tensor) -> bool:
    return tensor.is_cuda and _is_triton_installed() and _is_supported(tensor.device)


def triton_precision(a: Tensor, b: Tensor, *, is_convolution: bool) -> Precision | None:
    """Return how Triton should multiply these, or None where torch should."""
    dtypes = {a.dtype, b.dtype}
    if not dtypes <= {torch.float32, torch.float16, torch.bfloat16} or not has_triton(a):
        return None
    if max(a[:1].numel(), b[:1].numel(), a.shape[1] ** 2) >= 2**31:  # kernels count in 32 bits
        return None
    if torch.float32 not in dtypes:
        return "ieee"  # products of 16-bit numbers are exact
    return "tf32" if allows_tf32(is_convolution) else None


def allows_tf32(is_convolution: bool) -> bool:
    """Say whether the user lets float32 products of this kind be rounded to TF32."""
    backend = torch.backends.cudnn if is_convolution else torch.backends.cuda.matmul
    try:
        return bool(backend.allow_tf32)
    except RuntimeError:  # the newer settings are in use, and torch refuses to mix them
        settings = backend.conv if is_convolution else backend
        return bool(settings.fp32_precision == "tf32")


@contextmanager
def without_tf32() -> Iterator[None]:
    """Let float32 products be whole, whatever the user lets them be rounded to."""
    cudnn: Any = torch.backends.cudnn
    kinds: list[Any] = [torch.backends.cuda.matmul]
    kinds += [getattr(cudnn, name, None) for name in ("conv", "rnn")]
    newer = [(kind, kind.fp32_precision) for kind in kinds if hasattr(kind, "fp32_precision")]
    try:
        products, others = torch.get_float32_matmul_precision(), cudnn.allow_tf32
    except RuntimeError:  # the newer settings are in use, and torch refuses to mix them
        try:
            for kind, _ in newer:
                kind.fp32_precision = "ieee"
            yield
        finally:
            for kind, precision in newer:
                kind.fp32_precision = precision
        return
    try:
        torch.set_float32_matmul_precision("highest")
        cudnn.allow_tf32 = False
        yield
    finally:
        torch.set_float32_matmul_precision(products)
        cudnn.allow_tf32 = others
        for kind, precision in newer:  # "none" is not the same as what it stands for
            kind.fp32_precision = precision


def chunks(a: Tensor, b: Tensor, *, numbers: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Split along the examples so that ``numbers`` intermediate numbers for each fit."""
    size = 8 if torch.float64 in (a.dtype, b.dtype) else 4
    limit = GPU_CHUNK_BYTES if a.is_cuda else CPU_CHUNK_BYTES
    at_once = max(1, limit // (size * max(1, numbers)))
    return zip(torch.split(a, at_once), torch.split(b, at_once), strict=True)


def wide(tensor: Tensor) -> Tensor:
    """Return the tensor in at least 32 bits."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()


def row_norms(rows: Tensor) -> Tensor:
    """Return the norm of each row, in at least 32 bits.

    A CPU adds up a long row of 32-bit numbers one by one and loses the small ones, so that norms
    come out too small: by 1e-4 for a row of four million. Norms of blocks, norms of these, and so
    on, have no sum of more than a block of terms.

    >>> row_norms(torch.ones(1, 4096))
    tensor([64.])
    """
    kind = wide(rows[:0]).dtype
    whole = rows.shape[1] // _BLOCK
    if rows.is_cuda or whole < 2:
        norms: Tensor = torch.linalg.vector_norm(rows, dim=1, dtype=kind)
        return norms
    blocks = rows[:, : whole * _BLOCK].unflatten(1, (whole, _BLOCK))
    parts = [torch.linalg.vector_norm(blocks, dim=2, dtype=kind)]
    rest = rows[:, whole * _BLOCK :]
    parts.append(torch.linalg.vector_norm(rest, dim=1, keepdim=True, dtype=kind))
    return row_norms(torch.cat(parts, 1))


def chain(numbers: int) -> int:
    """Return how many sums follow each other in :func:`row_norms` of so many numbers.

    >>> chain(100), chain(1_000_000)
    (100, 528)
    """
    if numbers < 2 * _BLOCK:
        return numbers
    return _BLOCK + chain(numbers // _BLOCK + 1)


def squares(tensor: Tensor) -> Tensor:
    """Return the squared norm of each example.

    >>> squares(torch.ones(1, 3000))
    tensor([3000.])
    """
    return row_norms(tensor.flatten(1)).square()


def underflow(dtype: torch.dtype) -> float:
    """Return what the root of a square may lack because the square was too small for its kind.

    An operation whose result is not a normal number may give anything between 0 and the smallest
    normal number, where denormals are flushed; sums and products are in at least 32 bits.

    >>> underflow(torch.bfloat16) == 2.0**-63
    True
    """
    return 2.0**-511 if dtype == torch.float64 else 2.0**-63
