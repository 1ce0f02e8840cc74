"""Fast norms against gradients by autograd, one example at a time in float64.

The Triton kernels meet the same cases wherever they can run: on a GPU, or interpreted on a CPU with
TRITON_INTERPRET=1.
"""

import os
from importlib.util import find_spec

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from discreet.learn.norms import convolution, dispatch, linear, triton_convolutions, triton_norms
from discreet.learn.norms.convolution import KernelGeometry

HAS_GPU = torch.cuda.is_available()
IS_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if IS_INTERPRETED or not HAS_GPU else "cuda"
# On a GPU the exact multiplication of float32 is not used: three rounded ones stand in for it.
PRECISION = "ieee" if DEVICE == "cpu" else "tf32x3"

with_triton = pytest.mark.skipif(
    find_spec("triton") is None or not (HAS_GPU or IS_INTERPRETED),
    reason="needs triton and a GPU, or TRITON_INTERPRET=1",
)

BFLOAT16 = pytest.param(
    torch.bfloat16,
    marks=pytest.mark.skipif(IS_INTERPRETED, reason="the interpreter takes bfloat16 for integers"),
)

OUTER = [
    # batch, T, m, n
    (1, 1, 1, 1),
    (3, 1, 5, 7),
    (2, 2, 3, 1),
    (2, 17, 3, 40),
    (2, 33, 64, 128),
    (2, 130, 72, 3),
    (1, 257, 16, 80),
    (2, 20, 129, 65),
]
CONV = [
    # batch, channels, height, width, outputs, kernel, stride, padding, dilation
    (2, 3, 7, 9, 5, (3, 3), (1, 1), (1, 1), (1, 1)),
    (2, 16, 8, 8, 16, (3, 3), (1, 1), (1, 1), (1, 1)),
    (1, 17, 6, 5, 20, (3, 3), (1, 1), (0, 2), (1, 1)),
    (1, 16, 9, 11, 32, (3, 3), (1, 1), (2, 3), (2, 3)),
    (1, 70, 5, 4, 16, (3, 3), (1, 1), (2, 1), (1, 1)),
    (2, 1, 12, 10, 4, (5, 4), (2, 3), (2, 1), (1, 1)),
    (2, 4, 9, 9, 6, (3, 3), (2, 2), (1, 1), (1, 1)),
    (2, 3, 10, 7, 2, (2, 3), (3, 2), (3, 4), (2, 1)),
    (2, 6, 1, 15, 3, (1, 4), (1, 2), (0, 3), (1, 3)),
    (2, 5, 6, 6, 4, (1, 1), (2, 1), (0, 0), (1, 1)),
    (2, 5, 3, 3, 4, (1, 1), (1, 1), (1, 0), (1, 1)),
    (1, 2, 4, 4, 3, (4, 4), (1, 1), (0, 0), (1, 1)),
]


def outer_case(case: tuple[int, ...], dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    batch, t, m, n = case
    left, right = torch.randn(batch, t, m), torch.randn(batch, t, n)
    return left.to(dtype), right.to(dtype)


def outer_truth(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Return squared norms from the gradient of a linear layer, and the sizes of the terms."""
    squares = []
    for a, g in zip(right.double(), left.double(), strict=True):
        weight = torch.zeros(g.shape[1], a.shape[1], dtype=torch.float64, requires_grad=True)
        (grad,) = torch.autograd.grad((functional.linear(a, weight) * g).sum(), weight)
        squares.append(grad.square().sum())
    sizes = left.double().norm(dim=2) * right.double().norm(dim=2)
    return torch.stack(squares), sizes.sum(1)


def conv_case(
    case: tuple, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor, KernelGeometry]:
    batch, channels, height, width, outputs, *settings_ = case
    geometry = KernelGeometry(*settings_)
    x = torch.randn(batch, channels, height, width)
    shape = functional.conv2d(
        x[:, :1], torch.zeros(1, 1, *geometry.kernel), None, *geometry[1:]
    ).shape
    return x.to(dtype), torch.randn(batch, outputs, *shape[2:]).to(dtype), geometry


def conv_truth(x: Tensor, g: Tensor, geometry: KernelGeometry) -> Tensor:
    """Return weight gradients by autograd, one example at a time."""
    grads = []
    for a, b in zip(x.double().cpu(), g.double().cpu(), strict=True):
        shape = (g.shape[1], x.shape[1], *geometry.kernel)
        weight = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
        out = functional.conv2d(a[None], weight, None, *geometry[1:])
        (grad,) = torch.autograd.grad((out * b[None]).sum(), weight)
        grads.append(grad)
    return torch.stack(grads)


def assert_near(got: Tensor, want: Tensor, tolerance: float) -> None:
    assert got.shape == want.shape
    gap = (got.double().cpu() - want.double().cpu()).abs().max()
    assert gap <= tolerance * want.abs().max(), f"off by {gap / want.abs().max():.2g}"


class TestTorch:
    @pytest.mark.parametrize("case", OUTER)
    def test_outer_and_dense_norms_are_those_of_autograd(self, case):
        left, right = outer_case(case)
        squares, sizes = outer_truth(left, right)
        got, got_sizes, lefts, rights = linear.outer_parts(left, right)
        assert_near(lefts, left.square().sum((1, 2)), 1e-10)
        assert_near(rights, right.square().sum((1, 2)), 1e-10)
        assert got.dtype == got_sizes.dtype == torch.float64
        assert_near(got, squares, 1e-10)
        assert_near(got_sizes, sizes, 1e-10)
        assert_near(linear.dense_norms(left, right), squares, 1e-10)

    @pytest.mark.parametrize("case", CONV)
    def test_convolution_norms_are_those_of_autograd(self, case):
        x, g, geometry = conv_case(case)
        truth = conv_truth(x, g, geometry)
        squares = truth.square().sum((1, 2, 3, 4))
        assert_near(convolution.conv2d_norms(x, g, geometry), squares, 1e-10)
        assert_near(convolution.conv2d_grads(x, g, geometry), truth, 1e-10)
        residues = convolution._residues(x, geometry.stride)
        assert_near(convolution._shifted_gram(residues, g, geometry), squares, 1e-10)

    @pytest.mark.lengthy
    @settings(max_examples=60, deadline=None)
    @given(data=st.data())
    def test_any_geometry(self, data):
        def pair(low: int, high: int) -> tuple[int, int]:
            return data.draw(st.tuples(*[st.integers(low, high)] * 2))

        kernel, stride, dilation, size = pair(1, 4), pair(1, 3), pair(1, 3), pair(1, 9)
        padding = pair(0, 3)
        fits = [
            s + 2 * p > d * (k - 1)
            for s, p, d, k in zip(size, padding, dilation, kernel, strict=True)
        ]
        if not all(fits):
            return
        case = (2, data.draw(st.integers(1, 3)), *size, 2, kernel, stride, padding, dilation)
        x, g, geometry = conv_case(case)
        truth = conv_truth(x, g, geometry)
        assert_near(convolution.conv2d_grads(x, g, geometry), truth, 1e-10)
        squares = truth.square().sum((1, 2, 3, 4))
        assert_near(convolution.conv2d_norms(x, g, geometry), squares, 1e-10)
        residues = convolution._residues(x, geometry.stride)
        assert_near(convolution._shifted_gram(residues, g, geometry), squares, 1e-10)

    def test_both_ways_of_a_convolution_are_taken(self):
        few, many = CONV[0], (2, 256, 8, 8, 256, (3, 3), (1, 1), (1, 1), (1, 1))
        wide = (2, 256, 15, 16, 256, (3, 3), (2, 2), (1, 1), (1, 1))
        ways = [convolution._gram_is_cheaper(*conv_case(c), effort=1) for c in (few, many, wide)]
        assert ways == [False, True, True]
        for case in (many, wide):
            x, g, geometry = conv_case(case)
            squares = conv_truth(x, g, geometry).square().sum((1, 2, 3, 4))
            assert_near(convolution.conv2d_norms(x, g, geometry), squares, 1e-10)

    def test_chunks_change_nothing(self, monkeypatch):
        left, right = outer_case((5, 9, 4, 6))
        x, g, geometry = conv_case((5, *CONV[0][1:]))
        before = (
            *linear.outer_norms(left, right),
            linear.dense_norms(left, right),
            convolution.conv2d_norms(x, g, geometry),
            convolution.conv2d_grads(x, g, geometry),
        )
        monkeypatch.setattr(dispatch, "CPU_CHUNK_BYTES", 1)
        after = (
            *linear.outer_norms(left, right),
            linear.dense_norms(left, right),
            convolution.conv2d_norms(x, g, geometry),
            convolution.conv2d_grads(x, g, geometry),
        )
        for a, b in zip(before, after, strict=True):
            assert_near(a, b, 1e-12)

    @pytest.mark.parametrize("is_centred", [True, False])
    def test_affine_gradients_are_those_of_autograd(self, is_centred):
        got, want = affine_case((3, 11, 6), torch.float64, is_centred, linear.norm_affine_grads)
        for a, b in zip(got, want, strict=True):
            assert_near(a, b, 1e-10)

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
    def test_narrow_input_is_added_up_in_float32(self, dtype):
        left, right = outer_case((2, 300, 5, 6), dtype)
        squares, sizes = outer_truth(left, right)
        got, got_sizes = linear.outer_norms(left, right)
        assert got.dtype == torch.float32
        assert_near(got, squares, 1e-5)
        assert_near(got_sizes, sizes, 1e-5)
        assert_near(linear.dense_norms(left, right), squares, 1e-5)
        x, g, geometry = conv_case(CONV[0], dtype)
        truth = conv_truth(x, g, geometry)
        assert_near(convolution.conv2d_grads(x, g, geometry), truth, 1e-5)
        squares = truth.square().sum((1, 2, 3, 4))
        assert_near(convolution.conv2d_norms(x, g, geometry), squares, 1e-5)

    def test_autocast_rounds_nothing_here(self):
        left, right = outer_case((2, 30, 5, 6), torch.float32)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            inside, _ = linear.outer_norms(left, right)
        assert torch.equal(inside, linear.outer_norms(left, right)[0])

    def test_any_layout_of_memory_will_do(self):
        left, right = outer_case((2, 12, 8, 6))
        squares, _ = outer_truth(left, right)
        for turn in ((0, 2, 1), (1, 0, 2), (2, 1, 0)):
            turned = [t.permute(turn).contiguous().permute(_inverse(turn)) for t in (left, right)]
            assert_near(linear.outer_norms(*turned)[0], squares, 1e-10)
            assert_near(linear.dense_norms(*turned), squares, 1e-10)
        x, g, geometry = conv_case(CONV[6])
        truth = conv_truth(x, g, geometry)
        last = [t.contiguous(memory_format=torch.channels_last) for t in (x, g)]
        assert_near(convolution.conv2d_grads(*last, geometry), truth, 1e-10)
        squares = truth.square().sum((1, 2, 3, 4))
        assert_near(convolution.conv2d_norms(*last, geometry), squares, 1e-10)

    def test_no_examples_have_no_norms(self):
        left, right = outer_case((0, 4, 3, 2))
        x, g, geometry = conv_case((0, *CONV[0][1:]))
        assert linear.outer_norms(left, right)[0].shape == (0,)
        assert linear.dense_norms(left=left, right=right).shape == (0,)
        assert convolution.conv2d_norms(x, g, geometry).shape == (0,)
        assert convolution.conv2d_grads(x, g, geometry).shape == (0, 5, 3, 3, 3)

    def test_what_is_not_finite_is_not_hidden(self):
        left, right = outer_case((2, 12, 8, 6))
        left[1, 3, 2] = torch.nan
        squares, _ = linear.outer_norms(left, right)
        assert squares.isfinite().tolist() == [True, False]
        assert linear.dense_norms(left, right).isfinite().tolist() == [True, False]


@with_triton
class TestTriton:
    @pytest.mark.parametrize("case", OUTER[1:])
    def test_outer_and_dense_norms_are_those_of_autograd(self, case):
        left, right = outer_case(case, torch.float32)
        squares, sizes = outer_truth(left, right)
        left, right = left.to(DEVICE), right.to(DEVICE)
        got, got_sizes = triton_norms.outer_norms(left, right, precision=PRECISION)
        assert_near(got, squares, 1e-5)
        assert_near(got_sizes, sizes, 1e-5)
        *_, lefts, rights = triton_norms.outer_parts(left, right, precision=PRECISION)
        assert_near(lefts, left.double().square().sum((1, 2)), 1e-5)
        assert_near(rights, right.double().square().sum((1, 2)), 1e-5)
        assert_near(triton_norms.dense_norms(left, right, precision=PRECISION), squares, 1e-5)

    @pytest.mark.parametrize("dtype", [torch.float16, BFLOAT16])
    @pytest.mark.parametrize("case", [OUTER[4], OUTER[5]])
    def test_products_of_16_bits_are_exact(self, case, dtype):
        left, right = outer_case(case, dtype)
        squares, _ = outer_truth(left, right)
        left, right = left.to(DEVICE), right.to(DEVICE)
        assert_near(triton_norms.outer_norms(left, right, precision="ieee")[0], squares, 1e-5)
        assert_near(triton_norms.dense_norms(left, right, precision="ieee"), squares, 1e-5)

    def test_any_layout_of_memory_will_do(self):
        left, right = outer_case((2, 40, 24, 16), torch.float32)
        squares, _ = outer_truth(left, right)
        for turn in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (2, 1, 0)):
            turned = [
                t.permute(turn).contiguous().permute(_inverse(turn)).to(DEVICE)
                for t in (left, right)
            ]
            got, _ = triton_norms.outer_norms(*turned, precision=PRECISION)
            assert_near(got, squares, 1e-5)
            assert_near(triton_norms.dense_norms(*turned, precision=PRECISION), squares, 1e-5)

    @pytest.mark.parametrize("scratch", [1, 30_000])
    def test_wide_rows_that_are_not_aligned_go_in_chunks(self, scratch, monkeypatch):
        monkeypatch.setattr(triton_norms, "SCRATCH_BYTES", scratch)
        left, right = outer_case((2, 20, 203, 8), torch.float32)
        squares, sizes = outer_truth(left, right)
        left, right = left.to(DEVICE), right.to(DEVICE)
        for pair in ((left, right), (right, left)):
            got, got_sizes, *sides = triton_norms.outer_parts(*pair, precision=PRECISION)
            assert_near(got, squares, 1e-5)
            assert_near(got_sizes, sizes, 1e-5)
            for side, found in zip(pair, sides, strict=True):
                assert_near(found, side.double().square().sum((1, 2)), 1e-5)

    @pytest.mark.parametrize("is_centred", [True, False])
    @pytest.mark.parametrize("shape", [(1, 1, 1), (3, 11, 6), (2, 150, 200), (1, 700, 128)])
    def test_affine_gradients_are_those_of_autograd(self, shape, is_centred):
        got, want = affine_case(shape, torch.float32, is_centred, triton_norms.affine_grads)
        for a, b in zip(got, want, strict=True):
            assert_near(a, b, 1e-5)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float16, BFLOAT16])
    @pytest.mark.parametrize("case", CONV)
    def test_convolution_norms_are_those_of_autograd(self, case, dtype):
        x, g, geometry = conv_case(case, dtype)
        truth = conv_truth(x, g, geometry)
        squares = truth.square().sum((1, 2, 3, 4))
        x, g = x.to(DEVICE), g.to(DEVICE)
        exactly = {"precision": PRECISION if dtype == torch.float32 else "ieee"}
        assert_near(triton_convolutions.conv_dense(x, g, geometry, **exactly), squares, 1e-5)
        assert_near(triton_convolutions.conv_grads(x, g, geometry, **exactly), truth, 1e-5)
        residues = convolution._residues(x, geometry.stride)
        got = triton_convolutions.conv_gram(residues, g, geometry, **exactly)
        assert_near(got, squares, 1e-5)


def affine_case(shape, dtype, is_centred, function):
    """Return what ``function`` says of a normalisation layer, and what autograd says."""
    batch, tokens, width = shape
    g, x = torch.randn(shape).to(dtype), (3 * torch.randn(shape) + 1).to(dtype)
    mean = x.mean(2) if is_centred else None
    rstd = torch.rand(batch, tokens).to(dtype) + 0.1
    device = "cpu" if function is linear.norm_affine_grads else DEVICE
    there = [None if t is None else t.to(device) for t in (g, x, mean, rstd)]
    got = function(*there)
    weight = torch.ones(batch, width, dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(batch, width, dtype=torch.float64, requires_grad=True)
    centred = x.double() if mean is None else x.double() - mean.double()[:, :, None]
    hat = centred * rstd.double()[:, :, None]
    out = hat * weight[:, None] + bias[:, None]
    return got, torch.autograd.grad((out * g.double()).sum(), (weight, bias))


def _inverse(turn: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(turn.index(i) for i in range(len(turn)))


def test_the_cheaper_way_has_fewer_operations():
    assert linear.cheaper_is_gram(512, 3072, 768)
    assert not linear.cheaper_is_gram(512, 768, 8)
