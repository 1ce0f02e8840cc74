"""Models and losses that keep examples apart: accepted, and exact against a loop."""

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from oracle import clipped_sum, gradients
from torch import Tensor, nn

from discreet.learn import Flat
from discreet.learn.gradients.engine import GradientEngine

ROWS, TIME, WIDTH = 4, 5, 6


class Net(nn.Module):
    """A forward pass as a function of its modules and parameters."""

    def __init__(self, run: Callable[..., Tensor], **parts: Any) -> None:
        super().__init__()
        self.run = run
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *xs: Tensor) -> Tensor:
        return self.run(self, *xs)


def net(run: Callable[..., Tensor], **parts: Any) -> Callable[[], nn.Module]:
    return lambda: Net(run, inner=nn.Linear(WIDTH, WIDTH), **parts)


def loss(model: nn.Module, batch: Any) -> Tensor:
    return model(*batch).flatten(1).square().sum(1)


def series() -> Any:
    return (torch.randn(ROWS, TIME, WIDTH),)


def row() -> Any:
    return (torch.randn(ROWS, WIDTH),)


def labelled() -> Any:
    return torch.randn(ROWS, TIME, WIDTH), torch.randint(TIME, (ROWS,))


def image() -> Any:
    return (torch.randn(ROWS, 3, 8, 8),)


def masked_mean(m: Any, x: Tensor, length: Tensor) -> Tensor:
    mask = (torch.arange(x.shape[1]) <= length[:, None]).to(x.dtype)
    return (m.inner(x) * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)


def filled(m: Any, x: Tensor) -> Tensor:
    out = x.new_zeros(x.shape[0], 2, WIDTH)
    out[:, 0] = m.inner(x)
    out[:, 1] = x
    return out


def masked_write(m: Any, x: Tensor) -> Tensor:
    out = m.inner(x) * 1
    out[x[..., 0] > 0] = 0.5
    return out


def two_views(m: Any, x: Tensor) -> Tensor:
    one, other = m.inner(torch.cat([x, 2 * x])).chunk(2)
    return one * other


def heads(m: Any, x: Tensor) -> Tensor:
    rows, time, _ = x.shape
    q, k, v = m.inner(x).view(rows, time, 3, 2, 1).permute(2, 0, 3, 1, 4)
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(rows, time, 2)


def flat_heads(m: Any, x: Tensor) -> Tensor:
    rows, time, _ = x.shape
    q = m.inner(x).view(rows, time, 2, 3).transpose(1, 2).reshape(rows * 2, time, 3)
    return torch.bmm(torch.bmm(q, q.mT).softmax(-1), q).view(rows, 2, time, 3)


def expanded_token(m: Any, x: Tensor) -> Tensor:
    token = m.token.expand(x.shape[0], -1, -1)
    return m.inner(torch.cat([token, x], 1))


def folded_windows(m: Any, x: Tensor) -> Tensor:
    windows = F.unfold(x, 2, stride=2).mT
    return m.patch(windows)


def squeezed(m: Any, x: Tensor) -> Tensor:
    out = m.conv(x)
    gate = out.mean((2, 3), keepdim=True).sigmoid()
    return out * gate


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Any]]] = {
    "picked by own index": (net(lambda m, x, i: m.inner(x)[torch.arange(x.shape[0]), i]), labelled),
    "gathered": (
        net(lambda m, x, i: m.inner(x).gather(1, i[:, None, None].expand(-1, 1, WIDTH))),
        labelled,
    ),
    "scattered": (
        net(lambda m, x, i: torch.zeros_like(x[:, 0]).scatter(1, i[:, None], m.inner(x)[:, 0, :1])),
        labelled,
    ),
    "one hot": (net(lambda m, x, i: m.inner(x[:, 0]) * F.one_hot(i, WIDTH)), labelled),
    "masked mean": (net(masked_mean), labelled),
    "masked fill": (net(lambda m, x: m.inner(x).masked_fill(x > 0, 0.0)), series),
    "written slices": (net(filled), row),
    "written by a mask": (net(masked_write), series),
    "two views": (net(two_views), row),
    "sorted within a row": (net(lambda m, x: m.inner(x).sort(1)[0]), series),
    "topk within a row": (net(lambda m, x: m.inner(x).topk(2, 1)[0]), series),
    "running sum of time": (net(lambda m, x: m.inner(x).cumsum(1)), series),
    "flipped in time": (net(lambda m, x: m.inner(x.flip(1))), series),
    "rolled in time": (net(lambda m, x: m.inner(x).roll(1, 1) * x), series),
    "softmax in time": (net(lambda m, x: m.inner(x).softmax(1) * x), series),
    "similarities in a row": (net(lambda m, x: m.inner(x) @ x.mT), series),
    "einsum": (net(lambda m, x: torch.einsum("btd,bsd->bts", m.inner(x), x)), series),
    "distances in a row": (net(lambda m, x: torch.cdist(m.inner(x), x)), series),
    "distances to centres": (
        net(
            lambda m, x: torch.cdist(m.inner(x), m.centres),
            centres=nn.Parameter(torch.randn(3, WIDTH)),
        ),
        row,
    ),
    "normalised rows": (net(lambda m, x: F.normalize(m.inner(x), dim=-1)), series),
    "log of sums": (net(lambda m, x: m.inner(x).logsumexp((1, 2))[:, None]), series),
    "variance of a row": (net(lambda m, x: m.inner(x).var(1)), series),
    "max of a row": (net(lambda m, x: m.inner(x).max(1)[0]), series),
    "transposed to the back": (
        net(lambda m, x: m.inner(x).permute(1, 2, 0).contiguous().permute(2, 0, 1)),
        series,
    ),
    "time first": (net(lambda m, x: m.inner(x.transpose(0, 1)).transpose(0, 1)), series),
    "flattened time first": (
        net(
            lambda m, x: (
                m.inner(x.transpose(0, 1).reshape(-1, WIDTH)).view(TIME, -1, WIDTH).transpose(0, 1)
            )
        ),
        series,
    ),
    "rows of time": (net(lambda m, x: m.inner(x.flatten(0, 1)).unflatten(0, (-1, TIME))), series),
    "heads": (lambda: Net(heads, inner=nn.Linear(WIDTH, WIDTH)), series),
    "flat heads": (net(flat_heads), series),
    "class token": (net(expanded_token, token=nn.Parameter(torch.randn(1, 1, WIDTH))), series),
    "repeated query": (
        net(
            lambda m, x: m.query.repeat(x.shape[0], 1, 1) @ m.inner(x).mT,
            query=nn.Parameter(torch.randn(1, 2, WIDTH)),
        ),
        series,
    ),
    "patches": (lambda: Net(folded_windows, patch=nn.Linear(12, 4)), image),
    "squeeze and excite": (lambda: Net(squeezed, conv=nn.Conv2d(3, 4, 3)), image),
    "resized": (
        lambda: Net(
            lambda m, x: F.interpolate(m.conv(x), scale_factor=2, mode="bilinear"),
            conv=nn.Conv2d(3, 2, 3),
        ),
        image,
    ),
    "reflected": (
        lambda: Net(
            lambda m, x: m.conv(F.pad(x, (1, 1, 1, 1), mode="reflect")), conv=nn.Conv2d(3, 2, 3)
        ),
        image,
    ),
    "pooled": (
        lambda: Net(lambda m, x: F.adaptive_avg_pool2d(m.conv(x), 2), conv=nn.Conv2d(3, 2, 3)),
        image,
    ),
    "max pooled": (
        lambda: Net(lambda m, x: F.max_pool2d(m.conv(x), 2), conv=nn.Conv2d(3, 2, 3)),
        image,
    ),
    "pixels shuffled": (
        lambda: Net(lambda m, x: F.pixel_shuffle(m.conv(x), 2), conv=nn.Conv2d(3, 4, 1)),
        image,
    ),
    "fourier of a row": (net(lambda m, x: torch.fft.rfft(m.inner(x), dim=1).abs()), series),
    "instance norm": (
        lambda: nn.Sequential(nn.Conv2d(3, 4, 1), nn.InstanceNorm2d(4, affine=True)),
        image,
    ),
    "fixed batch norm": (
        lambda: nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4, affine=False)).eval(),
        image,
    ),
    "gated": (net(lambda m, x: F.glu(m.inner(x), -1)), series),
    "unpacked": (
        net(lambda m, x: sum(one * k for k, one in enumerate(m.inner(x).unbind(1)))),
        series,
    ),
    "a constant table": (
        net(lambda m, x: m.inner(x) + torch.linspace(0, 1, TIME)[:, None]),
        series,
    ),
    "branch on a public number": (net(lambda m, x: m.inner(x) if x.shape[1] > 3 else x), series),
    "determinant": (
        net(lambda m, x: torch.linalg.det(m.inner(x).mT @ m.inner(x) + torch.eye(WIDTH))[:, None]),
        series,
    ),
    "lower triangle": (net(lambda m, x: torch.tril(m.inner(x) @ x.mT)), series),
    "windows": (net(lambda m, x: m.inner(x).unfold(1, 3, 1)), series),
    "bag of words": (
        lambda: nn.EmbeddingBag(9, 4, mode="sum"),
        lambda: (torch.randint(9, (ROWS, TIME)),),
    ),
    "buckets": (net(lambda m, x: m.inner(x) * torch.bucketize(x, torch.linspace(-1, 1, 5))), row),
}


@pytest.fixture(autouse=True)
def _in_doubles():
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(1)
    yield
    torch.set_default_dtype(torch.float32)


def assert_exact(model: nn.Module, loss_fn: Any, batch: Any) -> None:
    model.double()
    engine = GradientEngine(model, clipping=Flat(norm=0.5))
    engine.accumulate(loss_fn, batch, units=ROWS)
    expected = clipped_sum(gradients(model, loss_fn, batch, ROWS), 0.5)
    assert torch.allclose(engine.flat.buffer, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_an_honest_model_is_accepted_and_exact(name):
    make, batch = MODELS[name]
    assert_exact(make(), loss, batch())


CHANCE: dict[str, Callable[..., Tensor]] = {
    "dropout": lambda m, x: F.dropout(m.inner(x), 0.5),
    "noise of the rows": lambda m, x: m.inner(x + torch.randn_like(x)),
    "noise by shape": lambda m, x: m.inner(x) * torch.rand(x.shape[0], 1, 1),
    "one draw for all": lambda m, x: m.inner(x) * torch.rand(()),
    "crop for all": lambda m, x: m.inner(x)[:, (k := random.randrange(3)) : k + 3],
    "layers dropped": lambda m, x: m.inner(x) if torch.rand(()) < 0.5 else m.inner(x.tanh()),
    "depth": lambda m, x: m.inner(x) * torch.empty(x.shape[0], 1, 1).bernoulli_(0.5),
    "drawn classes": lambda m, x: m.inner(x) * torch.multinomial(x[:, 0].softmax(-1), 1)[:, None],
}


@pytest.mark.parametrize("name", CHANCE)
def test_chance_that_is_no_others_is_accepted(name):
    model = Net(CHANCE[name], inner=nn.Linear(WIDTH, WIDTH))
    engine = GradientEngine(model, clipping=Flat(norm=0.5))
    for _ in range(6):
        engine.accumulate(loss, (torch.randn(ROWS, TIME, WIDTH),), units=ROWS)
    assert torch.isfinite(engine.flat.buffer).all()
