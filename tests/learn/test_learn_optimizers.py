"""AdamBC is Adam where there is no noise, and sees through the noise where there is."""

import copy
import math

import pytest
import torch
from torch import nn

from discreet.errors import ParameterError
from discreet.learn import AdamBC

FALSE_ALARM = 1e-9
Z = 6.2  # a standard normal exceeds it with a probability below FALSE_ALARM / 2


def train(optimizer, parameters, gradients):
    for step in gradients:
        for parameter, gradient in zip(parameters, step, strict=True):
            parameter.grad = gradient.to(parameter.dtype)
        optimizer.step()
    return [p.detach().clone() for p in parameters]


def random_problem(steps=20, dtype=torch.float32):
    shapes = [(3, 4), (5,), (2, 1, 2)]
    parameters = [nn.Parameter(torch.randn(shape, dtype=dtype)) for shape in shapes]
    gradients = [[torch.randn(shape, dtype=dtype) for shape in shapes] for _ in range(steps)]
    return parameters, gradients


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.5, 0.9), (0.0, 0.5)])
def test_without_noise_it_is_adam(decay, betas):
    parameters, gradients = random_problem()
    others = copy.deepcopy(parameters)
    ours = AdamBC(parameters, lr=0.01, betas=betas, floor=1e-30, weight_decay=decay)
    theirs = torch.optim.AdamW(others, lr=0.01, betas=betas, eps=1e-15, weight_decay=decay)
    for a, b in zip(
        train(ours, parameters, gradients), train(theirs, others, gradients), strict=True
    ):
        assert torch.allclose(a, b, rtol=1e-6, atol=1e-6)


def test_it_does_what_the_formula_says_when_the_noise_changes():
    parameters, gradients = random_problem(dtype=torch.float64)
    noises = [0.1 + 0.05 * i for i in range(len(gradients))]
    lr, (b1, b2), floor = 0.01, (0.8, 0.95), 0.02
    wanted = [p.detach().clone() for p in parameters]
    for place, value in enumerate(wanted):
        m, v, phi = torch.zeros_like(value), torch.zeros_like(value), 0.0
        for t, (step, noise) in enumerate(zip(gradients, noises, strict=True), start=1):
            g = step[place]
            m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
            phi = b2 * phi + (1 - b2) * noise**2
            corrected = (v - phi) / (1 - b2**t)
            value -= lr * m / (1 - b1**t) / corrected.clamp(min=floor).sqrt()
    optimizer = AdamBC(parameters, lr=lr, betas=(b1, b2), floor=floor)
    for step, noise in zip(gradients, noises, strict=True):
        optimizer.tell_noise(noise)
        found = train(optimizer, parameters, [step])
    for a, b in zip(found, wanted, strict=True):
        assert torch.allclose(a, b, rtol=1e-10, atol=1e-12)


def test_the_second_moment_is_unbiased_where_adams_is_not():
    signal, noise, size, steps = 0.5, 1.0, 40_000, 30
    weight = nn.Parameter(torch.zeros(size, dtype=torch.float64))
    optimizer = AdamBC([weight], lr=1e-3)
    optimizer.tell_noise(noise)
    for _ in range(steps):
        weight.grad = signal + noise * torch.randn(size, dtype=torch.float64)
        optimizer.step()
    state, b2 = optimizer.state[weight], 0.999
    debias = 1 - b2**steps
    plain = (state["square"] / debias).mean().item()
    ours = plain - state["variance"] / debias
    # The mean over all coordinates and steps of (signal + noise)**2, whose weights are nearly
    # equal: at most b2**-30 = 1.03 apart. Its variance is that of one square over their number.
    spread = Z * 1.05 * math.sqrt((2 * noise**4 + 4 * signal**2 * noise**2) / (size * steps))
    assert abs(ours - signal**2) <= spread
    # The test has power: the noise of a deviation 20% off would show, and so does Adam.
    assert abs(plain - (0.8 * noise) ** 2 - signal**2) > 2 * spread
    assert abs(plain - (1.2 * noise) ** 2 - signal**2) > 2 * spread
    assert plain - signal**2 > 0.9 * noise**2


@pytest.mark.lengthy
def test_small_and_large_signals_move_alike_where_adam_follows_the_noise():
    # What Adam is for: the same speed for parameters whose gradients differ in size.
    signals = torch.tensor([0.1, 1.0], dtype=torch.float64)
    noise, steps = 0.5, 1500
    ours = nn.Parameter(torch.zeros(2, 400, dtype=torch.float64))
    plain = nn.Parameter(torch.zeros(2, 400, dtype=torch.float64))
    optimizers = AdamBC([ours], lr=1e-3, floor=1e-3), torch.optim.Adam([plain], lr=1e-3)
    optimizers[0].tell_noise(noise)
    for _ in range(steps):
        gradient = signals[:, None] + noise * torch.randn(2, 400, dtype=torch.float64)
        ours.grad, plain.grad = gradient, gradient
        for optimizer in optimizers:
            optimizer.step()
    moved = [-(p.detach().mean(1) / (1e-3 * steps)) for p in (ours, plain)]
    # Speeds of the small and the large signal are 1.46 and 1.00 with ours, 0.20 and 0.89 with
    # Adam. Their standard errors, 0.035 and less, leave ten of them and more to these limits.
    assert 1.0 < moved[0][0] / moved[0][1] < 1.9
    assert moved[1][0] / moved[1][1] < 0.25


def test_noise_alone_is_floored_and_never_not_a_number():
    weight = nn.Parameter(torch.zeros(1000))
    optimizer = AdamBC([weight], lr=1e-3, floor=1e-4)
    optimizer.tell_noise(1.0)
    weight.grad = 1e-3 * torch.randn(1000)
    before = weight.grad.clone()
    optimizer.step()
    assert torch.allclose(weight, -1e-3 * before / 1e-2, rtol=1e-4)


def test_half_precision_keeps_its_moments_in_single_also_when_loaded():
    weight = nn.Parameter(torch.zeros(64, dtype=torch.bfloat16))
    optimizer = AdamBC([weight], lr=0.01)
    for _ in range(5):
        weight.grad = torch.randn(64, dtype=torch.bfloat16)
        optimizer.step()
    assert weight.dtype == torch.bfloat16
    assert optimizer.state[weight]["square"].dtype == torch.float32
    again = AdamBC([nn.Parameter(weight.detach().clone())], lr=0.5)
    again.load_state_dict(optimizer.state_dict())
    loaded = again.state[again.param_groups[0]["params"][0]]
    assert torch.equal(loaded["square"], optimizer.state[weight]["square"])
    assert again.param_groups[0]["lr"] == 0.01


def test_a_loaded_optimizer_goes_on_as_the_one_it_was_saved_from(tmp_path):
    parameters, gradients = random_problem()
    optimizer = AdamBC(parameters, lr=0.01)
    optimizer.tell_noise(0.3)
    train(optimizer, parameters, gradients[:10])
    copies = copy.deepcopy(parameters)
    torch.save(optimizer.state_dict(), tmp_path / "state.pt")
    again = AdamBC(copies, lr=0.7)
    again.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    again.tell_noise(0.3)
    for a, b in zip(
        train(optimizer, parameters, gradients[10:]),
        train(again, copies, gradients[10:]),
        strict=True,
    ):
        assert torch.equal(a, b)


def test_parameters_without_a_gradient_stay_and_catch_up():
    a, b = nn.Parameter(torch.zeros(3)), nn.Parameter(torch.zeros(3))
    optimizer = AdamBC([a, b], lr=0.1, floor=1e-30)
    a.grad = torch.ones(3)
    optimizer.step()
    assert torch.equal(b, torch.zeros(3))
    b.grad = torch.ones(3)
    optimizer.step()
    # The first step of any parameter has the size of the learning rate.
    assert torch.allclose(b, torch.full((3,), -0.1))


def test_groups_schedules_and_closures_work():
    parameters, gradients = random_problem(steps=2)
    optimizer = AdamBC([{"params": parameters[:1]}, {"params": parameters[1:], "lr": 0.0}], lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    still = parameters[1].detach().clone()
    train(optimizer, parameters, gradients)
    scheduler.step()
    assert torch.equal(parameters[1], still)
    assert optimizer.param_groups[0]["lr"] == 0.05
    assert optimizer.step(lambda: 7.0) == 7.0


@pytest.mark.parametrize(
    "options",
    [
        {"lr": -1},
        {"lr": math.nan},
        {"betas": (1.0, 0.9)},
        {"betas": (0.9, -0.1)},
        {"floor": 0},
        {"weight_decay": -1},
    ],
)
def test_wrong_parameters_are_refused(options):
    with pytest.raises(ParameterError):
        AdamBC([nn.Parameter(torch.zeros(1))], **options)


def test_wrong_noise_is_refused():
    optimizer = AdamBC([nn.Parameter(torch.zeros(1))])
    for std in (-1, math.nan, math.inf):
        with pytest.raises(ParameterError):
            optimizer.tell_noise(std)
