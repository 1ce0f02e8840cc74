"""Gradient noise: on the grid, of the right law, exact, and the same on every device."""

import math
import os
import subprocess
import sys
from fractions import Fraction
from importlib.util import find_spec

import mpmath
import numpy as np
import pytest
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from discreet.errors import ParameterError
from discreet.learn.noise import grid_noise as gradient_noise
from discreet.learn.noise import keyed_gaussian as law
from discreet.learn.noise.chacha import block, blocks
from discreet.learn.noise.grid_noise import FLOAT_SLACK, GridNoise, add_noise_, grid_of, noised
from discreet.testing import SeededSource, cdf_gap, dkw_band

FALSE_ALARM = 1e-9  # chance that a correct sampler fails one of these tests
SAMPLES = 100_000
UNIT = {"sensitivity": 1, "noise_multiplier": 1, "divide_by": 1}


def rounded_normal(sigma):
    return lambda k: stats.norm.cdf((k + 0.5) / sigma)


def check_law(draws, sigma):
    band = dkw_band(len(draws), false_alarm=FALSE_ALARM)
    assert cdf_gap(draws, rounded_normal(sigma)) <= band
    # The true gaps at these scales exceed 2 * band, so a miss is as rare as a false alarm.
    assert cdf_gap(draws, rounded_normal(sigma * 0.8)) > band
    assert cdf_gap(draws, rounded_normal(sigma * 1.25)) > band


# ChaCha20 -------------------------------------------------------------------------------------


def test_the_block_function_is_that_of_the_standard():
    """RFC 8439, section 2.3.2."""
    counter, nonce = 1 + (0x09000000 << 32), (0x4A000000, 0)
    expected = bytes.fromhex(
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    )
    key = bytes(range(32))
    assert block(key, counter, nonce) == expected
    assert blocks(key, np.array([counter], np.uint64), nonce).astype("<u4").tobytes() == expected


def test_blocks_are_those_of_another_implementation():
    key, nonce = os.urandom(32), (7, 2**32 - 1)
    start = bytes(8) + b"".join(word.to_bytes(4, "little") for word in nonce)
    stream = Cipher(algorithms.ChaCha20(key, start), mode=None).encryptor().update(bytes(64 * 100))
    assert blocks(key, np.arange(100, dtype=np.uint64), nonce).astype("<u4").tobytes() == stream
    far = np.array([2**32 - 1, 2**32, 2**40 + 5, 2**64 - 1], dtype=np.uint64)
    rows = blocks(key, far, nonce).astype("<u4")
    assert [row.tobytes() for row in rows] == [block(key, int(c), nonce) for c in far]


# The keyed law --------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.7, 50.0, 2.0**24])
def test_keyed_noise_follows_the_law_and_a_wrong_scale_would_show(sigma):
    check_law(law.keyed_noise(os.urandom(32), SAMPLES, sigma=sigma), sigma)


def test_elements_of_a_pair_and_neighbours_are_uncorrelated():
    noise = law.keyed_noise(os.urandom(32), 8 * law.LANES * 200, sigma=1000.0) / 1000.0
    by_place = noise.reshape(200, 8, law.LANES).swapaxes(1, 2).reshape(-1, 8)
    count = len(by_place)
    # A product of two independent normals has E exp(x) = 1 / sqrt(1 - x**2), so by Chernoff's bound
    # the mean of count products exceeds 10 / sqrt(count) with probability below exp(-49).
    for a in range(8):
        for b in range(a):
            assert abs((by_place[:, a] * by_place[:, b]).mean()) <= 10 / math.sqrt(count)
        assert abs((by_place[1:, a] * by_place[:-1, a]).mean()) <= 10 / math.sqrt(count)


@pytest.mark.parametrize("sigma", [0.25, 3.0, 1e4, 2.0**30])
def test_the_exact_way_and_doubles_agree_for_the_same_random_bits(sigma):
    key = os.urandom(32)
    words = blocks(key, np.arange(law.LANES, dtype=np.uint64), (0, 0))
    value, is_sure = law.fast_noise(words, sigma=sigma)
    value, is_sure = value.T.ravel(), is_sure.T.ravel()
    assert is_sure.mean() > 0.99
    exact = [law.exact_noise(key, i, sigma=sigma) for i in range(value.size)]
    np.testing.assert_array_equal(value[is_sure], np.array(exact)[is_sure])


def test_an_open_window_changes_the_way_and_not_the_noise():
    key = os.urandom(32)
    fast = law.keyed_noise(key, 3000, sigma=100.0)
    words = blocks(key, np.arange(3 * law.LANES, dtype=np.uint64), (0, 0))
    assert not law.fast_noise(words, sigma=100.0, widen=1e40)[1].any()
    np.testing.assert_array_equal(fast, law.keyed_noise(key, 3000, sigma=100.0, widen=1e40))
    some = law.fast_noise(words, sigma=100.0, widen=2.0**40)[1].mean()
    assert 0.1 < some < 0.9


def test_few_elements_are_left_open():
    words = np.frombuffer(os.urandom(64 * 20_000), dtype="<u4").reshape(-1, 16)
    is_sure = law.fast_noise(words, sigma=2.0**30, widen=2.0**10)[1]
    # In truth about 2**10 * 30 * 2**-53 * 2**30 = 0.0037 of 160,000; far beyond 20 deviations.
    assert 0.002 < 1 - is_sure.mean() < 0.008


EDGES = sorted(
    {
        max(1, min(2**64 - 1, base + shift))
        for power in range(65)
        for base in (2**power, math.isqrt(2 ** (2 * power + 1)))
        for shift in (-(2 ** max(0, power - 53)), -1, 0, 1, 2 ** max(0, power - 52))
    }
)


@pytest.mark.lengthy
def test_the_window_covers_the_error_of_doubles_and_of_missing_bits():
    """The heart of the proof, tried at the edges of every case and at random."""
    random = np.frombuffer(os.urandom(16 * 3000), dtype="<u8")
    near_one = 2**64 - 1 - (random[:500] >> (random[500:1000] % np.uint64(54) + np.uint64(10)))
    u = np.concatenate([np.array(EDGES, np.uint64), near_one, random[1000:3000]])
    angles = [e * 2**61 + s for e in range(8) for s in (-1, 0, 1, 2**20)]
    angle = np.concatenate([np.array([a % 2**64 for a in angles], np.uint64), random[3000:]])
    angle = np.resize(angle, u.size)
    radius, window = law._radius(u)
    cosine, sine = law._circle(angle)
    worst = 0.0
    with mpmath.workprec(200):
        for i in range(u.size):
            if not np.isfinite(window[i]):
                continue
            for end_u in (0, 1):
                end = mpmath.mpf(int(u[i]) + end_u) / 2**64
                r = mpmath.sqrt(-2 * mpmath.log(end))
                for end_angle in (0, 1):
                    turn = 2 * mpmath.mpf(int(angle[i]) + end_angle) / 2**64
                    for got, true in ((cosine, mpmath.cospi(turn)), (sine, mpmath.sinpi(turn))):
                        # Both products are formed exactly: the window allows for their rounding.
                        error = abs(mpmath.mpf(radius[i]) * mpmath.mpf(got[i]) - r * true)
                        worst = max(worst, float(error / window[i]))
    assert 0.05 < worst < 0.8  # the bound holds, with its margin, and is not absurdly wide


def test_an_element_without_an_upper_end_is_left_open():
    words = np.zeros((1, 16), dtype=np.uint32)
    assert not law.fast_noise(words, sigma=0.125)[1].any()
    assert law._enclosure(0, 5, 64, is_sine=False, sigma=Fraction(1)) == (0, 1)


def test_more_bits_are_drawn_until_the_rounding_is_decided(monkeypatch):
    enclosure, seen = law._enclosure, []

    def reluctant(u, angle, known, *, is_sine, sigma):
        seen.append((u, angle, known))
        return (0, 1) if known < 600 else enclosure(u, angle, known, is_sine=is_sine, sigma=sigma)

    key, sigma = os.urandom(32), 1e6
    plain = [law.exact_noise(key, i, sigma=sigma) for i in (5, 5 + law.LANES)]
    monkeypatch.setattr(law, "_enclosure", reluctant)
    assert [law.exact_noise(key, i, sigma=sigma) for i in (5, 5 + law.LANES)] == plain
    assert [known for _, _, known in seen] == [64, 320, 576, 832] * 2
    assert seen[:4] == seen[4:]  # the two elements of a pair read the same bits
    last = seen[3]
    assert last[0] >> 768 == seen[0][0]
    assert last[1] >> 768 == seen[0][1]
    assert len({(last[0] >> 512) % 2**256, last[0] >> 256 & (2**256 - 1), last[0] % 2**256}) == 3


# The grid -------------------------------------------------------------------------------------


@given(
    sensitivity=st.floats(min_value=1e-30, max_value=1e30),
    size=st.integers(min_value=1, max_value=10**12),
)
def test_the_grid_is_the_largest_allowed(sensitivity, size):
    grid = Fraction(grid_of(sensitivity=sensitivity, size=size))
    allowed = (Fraction(sensitivity) / 1024) ** 2
    assert grid**2 * size <= allowed < (2 * grid) ** 2 * size
    assert math.frexp(float(grid))[0] == 0.5


@given(
    sensitivity=st.floats(min_value=1e-9, max_value=1e9),
    noise_multiplier=st.floats(min_value=0.01, max_value=1000),
    size=st.integers(min_value=1, max_value=10**9),
)
def test_the_noise_pays_for_the_rounding_and_the_floats(sensitivity, noise_multiplier, size):
    plan = GridNoise.of(
        sensitivity=sensitivity, noise_multiplier=noise_multiplier, divide_by=7, size=size
    )
    grid, claimed = Fraction(plan.grid), Fraction(noise_multiplier)
    rounding = Fraction(plan.sigma) * grid / claimed - Fraction(sensitivity) * (
        1 + Fraction(FLOAT_SLACK)
    )
    assert rounding > 0
    assert rounding**2 >= grid**2 * size
    assert Fraction(plan.sigma) * grid <= claimed * Fraction(sensitivity) * Fraction(1003, 1000)


vectors = hnp.arrays(
    np.float64, st.shared(st.integers(1, 20), key="d"), elements=st.floats(-1e3, 1e3)
)


@pytest.mark.lengthy
@given(x=vectors, direction=vectors, ties=st.booleans(), sensitivity=st.floats(0.01, 100))
@settings(max_examples=300)
def test_rounding_moves_neighbours_apart_by_no_more_than_claimed(x, direction, ties, sensitivity):
    size = x.size
    grid = grid_of(sensitivity=sensitivity, size=size)
    if ties:  # halves between grid points, where rounding moves things most
        x = (np.round(x) + 0.5) * grid
        direction = np.sign(direction)
    norm = math.sqrt(math.fsum(direction**2))
    y = x + (direction / norm * sensitivity if norm else 0)
    plan = GridNoise(grid=grid, sigma=1.0, unit_per_step=1.0)
    none = np.zeros(size, dtype=np.int64)
    steps_x, steps_y = noised(x, none, plan), noised(y, none, plan)
    assert (np.abs(steps_x * grid - x) <= grid / 2).all()
    moved = math.sqrt(math.fsum((steps_x - steps_y) ** 2)) * grid
    apart = math.sqrt(math.fsum((x - y) ** 2))
    assert moved <= (apart + grid * math.sqrt(size)) * (1 + 1e-12)


@pytest.mark.parametrize("divide_by", [1, 64, 1000.5])
def test_results_are_whole_multiples_of_the_grid(divide_by):
    buffer = torch.randn(5000, dtype=torch.float64)
    add_noise_(buffer, sensitivity=1.5, noise_multiplier=0.8, divide_by=divide_by)
    steps = buffer.numpy() * divide_by / grid_of(sensitivity=1.5, size=5000)
    assert np.abs(steps - np.rint(steps)).max() <= np.abs(steps).max() * 2.0**-50
    assert len(set(np.rint(steps))) > 100


def test_entries_that_are_not_finite_count_as_zero_and_huge_ones_saturate():
    plan = GridNoise(grid=2.0**-20, sigma=1.0, unit_per_step=2.0**-20)
    for dtype, huge in ((np.float32, 3e38), (np.float64, 1e308)):
        entries = np.array([np.nan, np.inf, -np.inf, huge, -huge, 1.0], dtype=dtype)
        results = noised(entries, np.array([1, 2, 3, 4, 5, 6]), plan)
        assert results.dtype == dtype
        wanted = np.array([1, 2, 3, 2.0**51 + 4, -(2.0**51) + 5, 2.0**20 + 6]) * 2.0**-20
        np.testing.assert_array_equal(results, wanted.astype(dtype))


# add_noise_ -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_noise_on_the_processor_follows_the_law_and_a_wrong_scale_would_show(dtype, monkeypatch):
    monkeypatch.setattr(gradient_noise, "_CHUNK", 30_000)  # several chunks, the last one short
    multiplier, sensitivity, batch = 0.003, 2.0, 16
    buffer = torch.full((SAMPLES,), 0.75, dtype=dtype)
    add_noise_(buffer, sensitivity=sensitivity, noise_multiplier=multiplier, divide_by=batch)
    plan = GridNoise.of(
        sensitivity=sensitivity, noise_multiplier=multiplier, divide_by=batch, size=SAMPLES
    )
    steps = buffer.numpy().astype(float) * batch / plan.grid - 0.75 / plan.grid
    draws = np.rint(steps).astype(np.int64)
    assert np.abs(steps - draws).max() < 0.26  # single precision, at 2**20 steps
    check_law(draws, plan.sigma)
    assert plan.sigma * plan.grid == pytest.approx(multiplier * sensitivity, rel=0.003)


def test_a_seeded_source_repeats_itself_and_the_secure_one_does_not():
    def noise(**source):
        buffer = torch.zeros(50, 3)
        add_noise_(buffer, **UNIT, **source)
        return buffer

    assert torch.equal(noise(source=SeededSource(1)), noise(source=SeededSource(1)))
    assert not torch.equal(noise(source=SeededSource(1)), noise(source=SeededSource(2)))
    assert not torch.equal(noise(), noise())


def test_each_call_on_a_gpu_draws_its_own_key(monkeypatch):
    keys = []
    monkeypatch.setattr(gradient_noise, "_has_kernel", lambda _: True)
    monkeypatch.setattr(gradient_noise, "_add_on_gpu", lambda _buffer, _plan, key: keys.append(key))
    for _ in range(3):
        add_noise_(torch.zeros(4), **UNIT)
    assert len(set(keys)) == 3
    assert {len(key) for key in keys} == {32}


def test_noise_too_wide_for_the_kernel_takes_the_other_way(monkeypatch):
    monkeypatch.setattr(gradient_noise, "_has_kernel", lambda _: True)
    buffer = torch.zeros(4, dtype=torch.float64)
    add_noise_(buffer, sensitivity=1, noise_multiplier=2**20, divide_by=1)
    assert buffer.abs().min() > 0


def test_a_parameter_s_own_gradient_can_be_noised_in_place():
    weight = torch.nn.Parameter(torch.zeros(100))
    add_noise_(weight, **UNIT)
    assert weight.requires_grad
    assert weight.detach().std() > 0.1


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), True, "1", None])
@pytest.mark.parametrize("name", UNIT)
def test_bad_numbers_are_refused_before_anything_is_drawn(name, bad, no_randomness):
    with pytest.raises(ParameterError, match=f"{name} must be") as caught:
        add_noise_(torch.zeros(3), **{**UNIT, name: bad}, source=no_randomness)
    assert caught.value.parameter == name


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("noise_multiplier", 1e-5),
        ("noise_multiplier", 1e300),
        ("sensitivity", 1e-300),
        ("sensitivity", 1e300),
        ("divide_by", 1e-320),
        ("divide_by", 1e305),
    ],
)
def test_absurd_magnitudes_are_refused_before_anything_is_drawn(name, bad, no_randomness):
    with pytest.raises(ParameterError, match=f"{name} must be"):
        add_noise_(torch.zeros(3), **{**UNIT, name: bad}, source=no_randomness)


@pytest.mark.parametrize(
    "buffer",
    [
        torch.zeros(3, dtype=torch.bfloat16),
        torch.zeros(3, dtype=torch.int64),
        torch.zeros(3, 3).T[:2],
        torch.zeros(0),
    ],
    ids=["bfloat16", "int64", "strided", "empty"],
)
def test_buffers_that_cannot_be_noised_are_refused(buffer, no_randomness):
    with pytest.raises(ParameterError):
        add_noise_(buffer, **UNIT, source=no_randomness)


# The kernel -----------------------------------------------------------------------------------


def check_kernel(device, sizes):
    """Compare the kernel with its description, bit by bit, with open and with closed windows."""
    for size in sizes:
        for dtype in (torch.float32, torch.float64):
            for multiplier, share_open in (
                (0.0005, 0),
                (3.0, 0),
                (3.0, 0.01 if size > 5000 else 3.0),
            ):
                plan = GridNoise.of(
                    sensitivity=1.5, noise_multiplier=multiplier, divide_by=100, size=size
                )
                key = os.urandom(32)
                buffer = torch.randn(size, dtype=dtype, device=device)
                if size > 9:
                    odd = [math.nan, math.inf, -math.inf, 3e38, -3e38, 2.5 * plan.grid, 1e-40]
                    buffer[2:9] = torch.tensor(odd, dtype=dtype)
                noise = law.keyed_noise(key, size, sigma=plan.sigma)
                wanted = noised(buffer.cpu().numpy(), noise, plan)
                # An open window fills the list, so that the second pass is taken as well.
                widen = max(1.0, share_open / (30 * 2.0**-53 * plan.sigma))
                gradient_noise._add_on_gpu(buffer, plan, key, widen=widen)
                np.testing.assert_array_equal(buffer.cpu().numpy(), wanted)


def check_on_gpu(size=163_000_000):
    """Run what needs a GPU: equality with the description, the law, and the time it takes."""
    device = torch.device("cuda")
    check_kernel(device, [1, 7, 1024, 3 * 1024 + 5, 500_001])
    buffer = torch.zeros(SAMPLES, device=device, dtype=torch.float64)
    add_noise_(buffer, sensitivity=1, noise_multiplier=0.01, divide_by=1)
    plan = GridNoise.of(sensitivity=1, noise_multiplier=0.01, divide_by=1, size=SAMPLES)
    check_law(np.rint(buffer.cpu().numpy() / plan.unit_per_step).astype(np.int64), plan.sigma)
    buffer = torch.zeros(size, device=device)
    times = []
    for _ in range(10):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        add_noise_(buffer, sensitivity=1, noise_multiplier=1, divide_by=1000)
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return f"{size} elements in {min(times):.2f} to {max(times[1:]):.2f} ms, lists included"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_kernel_does_what_its_description_says_on_a_gpu():
    check_on_gpu(size=1_000_000)


@pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton, whose interpreter runs it")
@pytest.mark.slow
def test_the_kernel_does_what_its_description_says_in_the_interpreter():
    script = (
        f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\n"
        "from test_learn_noise import check_kernel\n"
        "check_kernel('cpu', [1300])\n"
    )
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)


if __name__ == "__main__":
    print(check_on_gpu())  # noqa: T201
