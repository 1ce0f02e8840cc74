"""A computed norm is never below the true one, however small or large the numbers are."""

import itertools
import math
import os
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from discreet.learn import Flat
from discreet.learn.following.contributions import (
    Contribution,
    Dense,
    Lookup,
    Outer,
    Rounding,
    Tied,
)
from discreet.learn.gradients.engine import GradientEngine
from discreet.learn.gradients.norm_bounds import NormBounds
from discreet.learn.rules.convolution import Convolution, Geometry

UNITS = 3
IS_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if IS_INTERPRETED or not torch.cuda.is_available() else "cuda"
CUT_OFF = Rounding(square=2.0**-20, product=2.0**-8)

with_triton = pytest.mark.skipif(
    find_spec("triton") is None or not (torch.cuda.is_available() or IS_INTERPRETED),
    reason="needs triton and a GPU, or TRITON_INTERPRET=1",
)
# Of one side and of the other: from the smallest denormal number to where squares overflow.
SCALES = [1e-44, 1e-39, 1e-30, 1e-21, 1e-12, 1.0, 1e9, 1e18, 1e19, 1e27, 1e36]
CLIPS = [2.0**-60, 1e-5, 1.0, 2.0**60]


@pytest.fixture(params=[False, True], ids=["denormal", "flushed"])
def flushed(request: pytest.FixtureRequest) -> Iterator[bool]:
    if not torch.set_flush_denormal(request.param):
        pytest.skip("this processor cannot flush denormals")
    yield request.param
    torch.set_flush_denormal(False)


def geometry(groups: int = 1, *, is_transposed: bool = False) -> Geometry:
    return Geometry((1, 1), (1, 1), (1, 1), (0, 0), groups, is_transposed)


def part(
    kind: str, left: float, right: float, dtype: torch.dtype, device: str = "cpu"
) -> Contribution:
    """Return gradients of one kind, whose two sides have these sizes."""

    def draw(scale: float, *shape: int) -> Tensor:
        found = torch.randn(UNITS, *shape, dtype=torch.float64) * scale
        found = found if dtype == torch.float64 else found.clamp(-1e38, 1e38).to(dtype)
        return found.to(device)

    def convolved(channels: int, outputs: int, side: int, groups: int = 1) -> Convolution:
        shape = torch.Size((outputs, channels // groups, 3, 3))
        x, grad = draw(right, channels, side, side), draw(left, outputs, side, side)
        return Convolution(x, grad, shape, geometry(groups), UNITS)

    outer = {"one": (1, 40, 30), "gram": (4, 60, 50), "formed": (40, 6, 7)}
    index = torch.randint(0, 12, (UNITS, 5))
    if kind in outer:
        positions, rows, columns = outer[kind]
        return Outer(draw(left, positions, rows), draw(right, positions, columns))
    if kind == "dense":
        return Dense(draw(left, 50, 100))
    if kind == "lookup":
        return Lookup(index, draw(left, 5, 8), 12)
    if kind == "tied":
        sides = draw(left, 4, 12), draw(right, 4, 8)
        return Tied(Outer(*sides), Lookup(index, draw(left * right, 5, 8), 12))
    if kind == "transposed":
        x, grad = draw(right, 4, 5, 5), draw(left, 6, 5, 5)
        return Convolution(x, grad, torch.Size((4, 6, 3, 3)), geometry(is_transposed=True), UNITS)
    sizes = {"patches": (3, 4, 6), "shifted": (64, 64, 3), "grouped": (4, 6, 5, 2)}
    return convolved(*sizes[kind])


KINDS = ["dense", "one", "gram", "formed", "lookup", "tied", "patches", "shifted", "grouped"]
KINDS += ["transposed"]


def truth(found: Contribution) -> Tensor:
    """Return the norms in double precision, which has room for squares of products.

    On the CPU: the kernels that are tried are not what judges them.
    """
    match found:
        case Dense(grads):
            wide: Contribution = Dense(grads.cpu().double())
        case Outer(left, right):
            wide = Outer(left.cpu().double(), right.cpu().double())
        case Lookup(index, rows, height):
            wide = Lookup(index.cpu(), rows.cpu().double(), height)
        case Tied(outer, lookup):
            sides = Outer(outer.left.cpu().double(), outer.right.cpu().double())
            wide = Tied(
                sides, Lookup(lookup.index.cpu(), lookup.rows.cpu().double(), lookup.height)
            )
        case Convolution(x, grad, shape, settings, units):
            wide = Convolution(x.cpu().double(), grad.cpu().double(), shape, settings, units)
    return wide.dense().flatten(1).norm(dim=1)


def bound(found: Contribution, sensitivity: float = 1.0) -> Tensor:
    bounds = NormBounds(1)
    bounds.add(0, found.norms())
    zero = found.norms().squares.new_zeros(UNITS)
    norms = bounds.bounds(zero, sensitivity=sensitivity)
    return norms[:, 0].double()


@pytest.mark.lengthy
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", KINDS)
def test_a_norm_is_never_below_the_true_one(kind, dtype, flushed):
    torch.manual_seed(7)
    for left in SCALES:
        for right in SCALES:
            found = part(kind, left, right, dtype)
            if flushed:
                torch.set_flush_denormal(False)
            exact = truth(found)
            torch.set_flush_denormal(flushed)
            got = bound(found)
            torch.set_flush_denormal(False)
            is_bound = (got >= exact) | ~got.isfinite()
            torch.set_flush_denormal(flushed)
            assert is_bound.all(), (left, right, got, exact)


@pytest.mark.parametrize("kind", KINDS)
def test_a_norm_is_hardly_above_the_true_one_where_nothing_underflows(kind):
    torch.manual_seed(7)
    for left in (1e-6, 1.0, 1e6):
        for right in (1e-6, 1.0, 1e6):
            found = part(kind, left, right, torch.float32)
            assert (bound(found) <= 1.001 * truth(found)).all(), (left, right)


@pytest.mark.parametrize("scale", [1e-160, 1e-100, 1.0, 1e70])
@pytest.mark.parametrize("kind", KINDS)
def test_double_precision_has_limits_as_well(kind, scale):
    torch.manual_seed(7)
    small, large = part(kind, scale, scale, torch.float64), part(kind, 1.0, 1.0, torch.float64)
    bounds = NormBounds(1)
    bounds.add(0, small.norms())
    (got, *_) = bounds.bounds(torch.zeros(UNITS, dtype=torch.float64), sensitivity=1.0)[:, 0]
    if kind in ("dense", "lookup"):
        assert got >= truth(small)[0]
    power = 1 if kind in ("dense", "lookup") else 2
    assert not got < truth(large).min() * 1e-3 * scale**power


@with_triton
@pytest.mark.lengthy
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of overflows, by the interpreter
@pytest.mark.parametrize("precision", ["ieee", "tf32", "tf32x3"])
@pytest.mark.parametrize("kind", ["gram", "formed", "patches", "shifted"])
def test_kernels_are_never_below_the_true_norm(kind, precision, monkeypatch):
    if precision == "ieee" and DEVICE == "cuda":
        pytest.skip("not used for 32-bit numbers there")
    for module in ("linear", "convolution"):
        name = f"discreet.learn.norms.{module}.triton_precision"
        monkeypatch.setattr(name, lambda *_, **__: precision)
    if precision != "ieee":  # and the slack for numbers that are cut off
        monkeypatch.setattr(
            "discreet.learn.rules.convolution.rounding_of", lambda *_, **__: CUT_OFF
        )
        monkeypatch.setattr(
            "discreet.learn.following.contributions.rounding_of", lambda *_, **__: CUT_OFF
        )
    torch.manual_seed(7)
    for left in SCALES if DEVICE == "cuda" else SCALES[1::3]:
        for right in SCALES if DEVICE == "cuda" else SCALES[::3]:
            found = part(kind, left, right, torch.float32, DEVICE)
            got, exact = bound(found).cpu(), truth(found).cpu()
            assert ((got >= exact) | ~got.isfinite()).all(), (left, right, got, exact)


# What reaches the sum ------------------------------------------------------------------------


class Stretched(nn.Module):
    """A layer that sees its input times one number and its gradient times another."""

    def __init__(self, layer: nn.Module, left: float, right: float) -> None:
        super().__init__()
        self.layer, self.left, self.right = layer, left, right

    def forward(self, x: Tensor) -> Tensor:
        if x.is_floating_point():
            x = x * self.right
        out: Tensor = self.layer(x).flatten(1)
        return out * self.left


LAYERS = {
    "linear": (lambda: nn.Linear(30, 40, bias=False), (UNITS, 30)),
    "sequence": (lambda: nn.Linear(50, 60, bias=False), (UNITS, 4, 50)),
    "scale": (lambda: nn.LayerNorm(30), (UNITS, 30)),
    "convolution": (lambda: nn.Conv2d(3, 4, 3, bias=False), (UNITS, 3, 6, 6)),
    "table": (lambda: nn.Embedding(9, 30), (UNITS, 4)),
}


@pytest.mark.lengthy
@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("name", LAYERS)
def test_no_unit_adds_more_than_the_clip(name, clip, flushed, monkeypatch):
    torch.manual_seed(7)
    if name in ("linear", "convolution"):  # the way of layers too large to keep their gradients
        monkeypatch.setattr("discreet.learn.following.contributions._KEPT_ON_CPU", 0)
    make, shape = LAYERS[name]
    rows = torch.randint(0, 9, shape) if name == "table" else torch.randn(shape)
    model = Stretched(make(), 1.0, 1.0)
    engine = GradientEngine(model, clipping=Flat(norm=clip), is_checked=False)
    alone = torch.tensor([1.0, 0.0, 0.0])  # one unit

    def loss(model: nn.Module, batch: Any) -> Tensor:
        out: Tensor = model(batch[0]).sum(1)
        return out * batch[1]

    for model.left, model.right in itertools.product(SCALES, SCALES):
        engine.flat.zero_()
        engine.accumulate(loss, (rows, alone), units=UNITS)
        torch.set_flush_denormal(False)
        found = float(engine.flat.buffer.double().norm())
        torch.set_flush_denormal(flushed)
        assert found <= clip * (1 + 2**-10), (model.left, model.right)
        assert not math.isnan(found)


def test_sixteen_bits_do_not_round_the_sum_over_a_batch():
    """The many pull a weight to where 16 bits are coarse, and a small one must not vanish."""
    torch.manual_seed(7)
    x, grad = torch.ones(300, 2, 4, 4), torch.ones(300, 2, 4, 4)
    found = Convolution(x.bfloat16(), grad.bfloat16(), torch.Size((2, 2, 3, 3)), geometry(), 300)
    out = torch.zeros(2, 2, 3, 3)
    found.add_weighted(torch.full((300,), 0.3456), out)
    assert torch.allclose(out[0, 0, 1, 1], torch.tensor(1658.88), rtol=1e-4)
