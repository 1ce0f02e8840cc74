"""Clipped sums of every kind of layer against a float64 loop over single units."""

import gc
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from oracle import clipped_sum, gradients
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from discreet.errors import ParameterError
from discreet.learn import Flat, PerLayer
from discreet.learn.following import contributions
from discreet.learn.gradients.engine import GradientEngine
from discreet.learn.rules import convolution

ROWS = 6
CLOSE = 1e-6  # relative; what is left is the slack of the clipping factors


class Net(nn.Module):
    """A forward pass as a function of its modules and parameters."""

    def __init__(self, run: Callable[..., Tensor], **parts: Any) -> None:
        super().__init__()
        self.run = run
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x: Tensor) -> Tensor:
        return self.run(self, x)


def loss(model: nn.Module, batch: Any) -> Tensor:
    x, target = batch
    return (model(x).flatten(1) - target[:, :1]).square().sum(1)


def parameter(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(*shape))


def block() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 8), nn.LayerNorm(8), nn.Tanh(), nn.Linear(8, 5))


def lora(inside: int, outside: int) -> nn.Module:
    base = nn.Linear(inside, outside).requires_grad_(requires_grad=False)
    down, up = nn.Linear(inside, 2, bias=False), nn.Linear(2, outside, bias=False)
    return Net(lambda m, x: m.base(x) + 2 * m.up(m.down(x)), base=base, down=down, up=up)


def attention(**options: Any) -> nn.Module:
    def run(m: Any, x: Tensor) -> Tensor:
        key, value = (
            x[..., : options.get("kdim") or 8],
            x[..., : options.get("vdim") or 8],
        )
        return m.inner(x, key, value, need_weights=False)[0]

    return Net(run, inner=nn.MultiheadAttention(8, 2, batch_first=True, **options))


def time_first(layer: nn.Module) -> nn.Module:
    """Run a layer that wants (time, batch, features)."""

    def run(m: Any, x: Tensor) -> Tensor:
        x = x.transpose(0, 1)
        found = m.inner(x, x, x) if isinstance(m.inner, nn.MultiheadAttention) else m.inner(x)
        return found[0].transpose(0, 1)

    return Net(run, inner=layer)


def first_of(layer: nn.Module) -> nn.Module:
    return Net(lambda m, x: m.inner(x)[0], inner=layer)


def tied() -> nn.Module:
    return Net(
        lambda m, x: F.linear(torch.tanh(m.mix(m.table(x))), m.table.weight),
        table=nn.Embedding(9, 4),
        mix=nn.Linear(4, 4),
    )


def positions() -> nn.Module:
    return Net(
        lambda m, x: m.head(m.tokens(x) + m.places(torch.arange(x.shape[1]))),
        tokens=nn.Embedding(9, 4),
        places=nn.Embedding(12, 4),
        head=nn.Linear(4, 2),
    )


IMAGE, SERIES, ROW, TOKENS = (3, 9, 8), (4, 5), (5,), "tokens"
LAYERS: dict[str, tuple[Callable[[], nn.Module], Any]] = {
    "linear": (
        lambda: nn.Sequential(nn.Linear(5, 7), nn.ReLU(inplace=True), nn.Linear(7, 3)),
        ROW,
    ),
    "linear over time": (
        lambda: nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3)),
        SERIES,
    ),
    "conv1d, groups, stride": (
        lambda: nn.Sequential(
            nn.Conv1d(4, 8, 3, stride=2, padding=1, groups=2),
            nn.Tanh(),
            nn.Conv1d(8, 4, 2, dilation=2, padding="same"),
        ),
        (4, 11),
    ),
    "conv2d, stride": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 6, 3, stride=2, padding=1), nn.ReLU(inplace=True), nn.Conv2d(6, 4, 1)
        ),
        IMAGE,
    ),
    "conv2d, groups, dilation": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 6, 2, groups=3), nn.Tanh(), nn.Conv2d(6, 4, 2, dilation=2)
        ),
        IMAGE,
    ),
    "conv2d, circular padding": (
        lambda: nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular"),
        IMAGE,
    ),
    "conv3d": (
        lambda: nn.Sequential(nn.Conv3d(2, 4, 2, padding=1), nn.Tanh(), nn.Conv3d(4, 2, 2)),
        (2, 4, 4, 4),
    ),
    "transposed conv1d": (lambda: nn.ConvTranspose1d(4, 6, 3), (4, 5)),
    "transposed conv2d": (
        lambda: nn.Sequential(
            nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2),
            nn.Tanh(),
            nn.ConvTranspose2d(6, 4, 2, dilation=2),
        ),
        (4, 5, 5),
    ),
    "transposed conv3d": (lambda: nn.ConvTranspose3d(2, 3, 2), (2, 3, 3, 3)),
    "embedding": (
        lambda: nn.Sequential(nn.Embedding(9, 4, padding_idx=2), nn.Flatten(), nn.Linear(28, 2)),
        TOKENS,
    ),
    "embedding bag, mean": (
        lambda: nn.Sequential(nn.EmbeddingBag(9, 4, padding_idx=2), nn.Linear(4, 2)),
        TOKENS,
    ),
    "embedding bag, sum": (lambda: nn.EmbeddingBag(9, 4, mode="sum"), TOKENS),
    "layer norm": (
        lambda: nn.Sequential(nn.Linear(5, 8), nn.LayerNorm(8), nn.Tanh(), nn.LayerNorm((4, 8))),
        SERIES,
    ),
    "group and instance norm": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 8, 3),
            nn.GroupNorm(4, 8),
            nn.Tanh(),
            nn.InstanceNorm2d(8, affine=True),
        ),
        IMAGE,
    ),
    "rms norm": (lambda: nn.Sequential(nn.Linear(5, 8), nn.RMSNorm(8)), SERIES),
    "prelu": (lambda: nn.Sequential(nn.Linear(5, 8), nn.PReLU(8)), ROW),
    "attention": (attention, (3, 8)),
    "attention, other sizes": (lambda: attention(kdim=5, vdim=3, add_bias_kv=True), (3, 8)),
    "attention, time first": (lambda: time_first(nn.MultiheadAttention(8, 2)), (3, 8)),
    "encoder layer": (
        lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
        (3, 8),
    ),
    "rnn": (lambda: first_of(nn.RNN(5, 4, num_layers=2, batch_first=True)), SERIES),
    "lstm, both ways": (lambda: time_first(nn.LSTM(5, 4, bidirectional=True)), SERIES),
    "lstm, projected": (lambda: first_of(nn.LSTM(5, 4, proj_size=3, batch_first=True)), SERIES),
    "gru": (lambda: first_of(nn.GRU(5, 4, batch_first=True, bias=False)), SERIES),
    "gru cell": (lambda: nn.GRUCell(5, 4), ROW),
    "lstm cell": (lambda: first_of(nn.LSTMCell(5, 4)), ROW),
    "bare parameters": (
        lambda: Net(
            lambda m, x: (x + m.p[:, : x.shape[1]]) * m.q @ m.w / m.d - m.b,
            p=parameter(1, 9, 5),
            q=parameter(5),
            w=parameter(5, 3),
            d=parameter(3),
            b=nn.Parameter(torch.tensor(0.5)),
        ),
        SERIES,
    ),
    "class token": (
        lambda: Net(
            lambda m, x: torch.cat([m.token.expand(x.shape[0], -1, -1), x], 1) * m.scale,
            token=parameter(1, 1, 5),
            scale=parameter(5),
        ),
        SERIES,
    ),
    "einsum": (
        lambda: Net(lambda m, x: torch.einsum("bti,io->bto", x, m.w), w=parameter(5, 3)),
        SERIES,
    ),
    "addmm on flattened rows": (
        lambda: Net(
            lambda m, x: torch.addmm(m.b, x.view(-1, 5), m.w).view(*x.shape[:2], 3),
            w=parameter(5, 3),
            b=parameter(3),
        ),
        SERIES,
    ),
    "reused linear": (
        lambda: Net(lambda m, x: m.inner(torch.tanh(m.inner(x))), inner=nn.Linear(5, 5)),
        SERIES,
    ),
    "reused convolution": (
        lambda: Net(
            lambda m, x: m.inner(torch.tanh(m.inner(x))), inner=nn.Conv2d(3, 3, 3, padding=1)
        ),
        IMAGE,
    ),
    "tied embedding": (tied, TOKENS),
    "positions": (positions, TOKENS),
    "weight norm": (
        lambda: nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(5, 4)), nn.Tanh()),
        ROW,
    ),
    "low-rank adapter": (lambda: nn.Sequential(lora(5, 6), nn.Tanh(), lora(6, 2)), SERIES),
    "frozen part": (
        lambda: nn.Sequential(
            nn.Linear(5, 6), nn.Linear(6, 6).requires_grad_(requires_grad=False), nn.Linear(6, 2)
        ),
        SERIES,
    ),
    "checkpointed block": (
        lambda: Net(
            lambda m, x: m.last(checkpoint(m.middle, m.first(x), use_reentrant=False)),
            first=nn.Linear(5, 5),
            middle=block(),
            last=nn.Linear(5, 2),
        ),
        SERIES,
    ),
    "checkpointed addmm, einsum and prelu": (
        lambda: Net(
            lambda m, x: m.last(
                checkpoint(
                    lambda y: m.act(
                        torch.einsum(
                            "bti,io->bto",
                            torch.addmm(m.b, y.view(-1, 5), m.w).view(*y.shape[:2], 3),
                            m.v,
                        )
                    ),
                    m.first(x),
                    use_reentrant=False,
                )
            ),
            first=nn.Linear(5, 5),
            last=nn.Linear(3, 2),
            w=parameter(5, 3),
            b=parameter(3),
            v=parameter(3, 3),
            act=nn.PReLU(),
        ),
        SERIES,
    ),
    "compiled model": (
        lambda: torch.compile(nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 2))),
        ROW,
    ),
    "units as the minor index": (
        lambda: Net(
            lambda m, x: (
                m.inner(x.transpose(0, 1).reshape(-1, 5))
                .view(x.shape[1], x.shape[0], 3)
                .transpose(0, 1)
            ),
            inner=nn.Linear(5, 3),
        ),
        SERIES,
    ),
}


@pytest.fixture(autouse=True)
def double() -> Any:
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def batch_of(shape: Any, rows: int = ROWS) -> tuple[Tensor, Tensor]:
    x = torch.randint(0, 9, (rows, 7)) if shape == TOKENS else torch.randn(rows, *shape)
    return x, torch.randn(rows, 1)


def assert_exact(model: nn.Module, batch: Any, *, units: int, loss_fn: Any = loss) -> None:
    grads = gradients(model, loss_fn, batch, units)
    norm = float(grads.norm(dim=1).median())  # so that some are clipped, and some are not
    engine = GradientEngine(model, clipping=Flat(norm=norm))
    found = engine.accumulate(loss_fn, batch, units=units)
    expected = clipped_sum(grads, norm)
    gap = float((engine.flat.buffer - expected).norm() / expected.norm())
    assert gap < CLOSE
    assert torch.allclose(found.norms[:, 0], grads.norm(dim=1), rtol=CLOSE)
    # What a wrong variant would give is far away: clipping the sum, or clipping nothing.
    total = grads.sum(0)
    for wrong in (total, total * min(1.0, norm / float(total.norm()))):
        assert float((wrong - expected).norm() / expected.norm()) > 100 * CLOSE


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
@pytest.mark.parametrize("are_kept", [True, False], ids=["formed", "from norms"])
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.lengthy) if kind == "compiled model" else kind
        for kind in LAYERS
    ],
)
def test_clipped_sums_are_those_of_single_examples(kind, are_kept, monkeypatch):
    if not are_kept:  # as if they were too large to be formed
        for module in (contributions, convolution):
            monkeypatch.setattr(module, "is_kept", lambda *_: False)
    make, shape = LAYERS[kind]
    assert_exact(make(), batch_of(shape), units=ROWS)


@pytest.mark.parametrize("kind", ["linear over time", "conv2d, stride", "tied embedding", "gru"])
def test_a_unit_may_have_several_rows(kind):
    make, shape = LAYERS[kind]
    assert_exact(make(), batch_of(shape), units=3)


@pytest.mark.parametrize("rows", [1, 2, 5, 7])
def test_no_size_of_the_batch_is_confused_with_another_axis(rows):
    # Tokens have 7 positions, so 7 rows look like 7 positions.
    assert_exact(positions(), batch_of(TOKENS, rows), units=rows) if rows > 1 else None
    model = positions()
    x, target = batch_of(TOKENS, rows)
    engine = GradientEngine(model, clipping=Flat(norm=0.5))
    engine.accumulate(loss, (x, target), units=rows)
    expected = clipped_sum(gradients(model, loss, (x, target), rows), 0.5)
    assert torch.allclose(engine.flat.buffer, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_micro_batches_never_change_the_result(size):
    make, shape = LAYERS["conv2d, stride"]
    model, (x, target) = make(), batch_of(shape, 8)
    whole, parts = (GradientEngine(model, clipping=Flat(norm=0.5)) for _ in range(2))
    whole.accumulate(loss, (x, target), units=8)
    for start in range(0, 8, size):
        rows = slice(start, start + size)
        parts.accumulate(loss, (x[rows], target[rows]), units=size)
    assert torch.allclose(whole.flat.buffer, parts.flat.buffer, rtol=1e-9)


def test_per_layer_clipping_bounds_each_layer():
    make, shape = LAYERS["linear over time"]
    model, batch = make(), batch_of(shape)
    clipping = PerLayer(norm=0.2)
    engine = GradientEngine(model, clipping=clipping)
    for row in range(ROWS):
        engine.flat.zero_()
        engine.accumulate(loss, tuple(t[row : row + 1] for t in batch), units=1)
        assert float(engine.flat.buffer.norm()) <= clipping.sensitivity
        assert float(engine.flat.buffer.norm()) > 0.99 * clipping.sensitivity


@pytest.mark.parametrize("poison", [float("nan"), float("inf"), 1e300])
def test_what_is_not_finite_adds_nothing(poison):
    model, (x, target) = LAYERS["linear"][0](), batch_of(ROW)
    engine = GradientEngine(model, clipping=Flat(norm=0.5))
    engine.accumulate(loss, (x, target), units=ROWS)
    clean = engine.flat.buffer.clone()
    worse = torch.cat([x, torch.full((1, 5), poison)])
    engine.flat.zero_()
    engine.accumulate(loss, (worse, torch.cat([target, target[:1]])), units=ROWS + 1)
    # One more unit may move the sum by the clipping norm, and no further.
    assert float((engine.flat.buffer - clean).norm()) <= 0.5


@pytest.mark.parametrize(
    "kind", ["linear over time", "tied embedding", "low-rank adapter", "linear"]
)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_is_exact_where_its_numbers_are(kind, dtype):
    """Autocast computes with few bits: with numbers that fit, it must agree with float64."""
    torch.set_default_dtype(torch.float32)
    make, shape = LAYERS[kind]
    model = make()
    for module in model.modules():
        if isinstance(module, nn.Tanh):
            module.forward = torch.relu
    if isinstance(model, Net):
        model.run = lambda m, x: F.linear(torch.relu(m.mix(m.table(x))), m.table.weight)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randint(-1, 2, p.shape))
    x = torch.randint(0, 9, (ROWS, 3)) if shape == TOKENS else torch.randint(0, 2, (ROWS, *shape))
    x = x if shape == TOKENS else x.float()
    target = torch.randint(-1, 2, (ROWS, 1)).float()

    def sums(model: nn.Module, batch: Any) -> Tensor:
        with torch.autocast("cpu", dtype=dtype, enabled=model.training):
            out = model(batch[0])
        return (out.flatten(1).to(batch[1].dtype) * batch[1]).sum(1)

    engine = GradientEngine(model, clipping=Flat(norm=2.0))
    engine.accumulate(sums, (x, target), units=ROWS)
    double = model.double().eval()
    expected = clipped_sum(
        gradients(double, sums, (x if shape == TOKENS else x.double(), target.double()), ROWS), 2.0
    )
    gap = float((engine.flat.buffer.double() - expected).norm() / expected.norm())
    assert gap < 20 * CLOSE  # in single precision norms are rounded up
    torch.set_default_dtype(torch.float64)


@pytest.mark.parametrize("kind", ["linear over time", "attention", "tied embedding"])
def test_one_unit_never_exceeds_the_norm_in_low_precision(kind):
    torch.set_default_dtype(torch.float32)
    make, shape = LAYERS[kind]
    model = make()

    def low(model: nn.Module, batch: Any) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return loss(model, batch).float()

    engine = GradientEngine(model, clipping=Flat(norm=0.1))
    for _ in range(20):
        engine.flat.zero_()
        engine.accumulate(low, batch_of(shape, 1), units=1)
        assert 0.05 < float(engine.flat.buffer.norm()) <= 0.1
    torch.set_default_dtype(torch.float64)


class MeanFree(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.inner(x)
        return out - out.mean(0)


class Hidden(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        x, w = ctx.saved_tensors
        return grad * w, (grad * x).sum(0)


@pytest.mark.parametrize(
    ("model", "word"),
    [
        (MeanFree(), "mean at .* reduces over"),
        (nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4)), "fix"),
        (
            Net(lambda m, x: Hidden.apply(x, m.w), w=nn.Parameter(torch.ones(5))),
            "custom autograd.Function Hidden",
        ),
        (nn.Embedding(9, 2, max_norm=1.0), "max_norm"),
        (
            Net(
                lambda m, x: m.inner(x2 := x * 1) + x2.mul_(0).sum(1, keepdim=True),
                inner=nn.Linear(5, 2),
            ),
            "changed in place",
        ),
        (nn.Linear(5, 2).requires_grad_(requires_grad=False), "no trainable"),
    ],
)
def test_what_can_not_be_handled_is_named(model, word):
    x, target = batch_of(TOKENS if isinstance(model, nn.Embedding) else ROW)
    with pytest.raises(ParameterError, match=word):
        GradientEngine(model.double(), clipping=Flat(norm=1.0)).accumulate(
            loss, (x, target), units=ROWS
        )


@pytest.mark.lengthy
def test_nothing_of_a_step_outlives_it():
    model, batch = positions(), batch_of(TOKENS)
    engine = GradientEngine(model, clipping=Flat(norm=1.0))
    engine.accumulate(loss, batch, units=ROWS)
    gc.collect()
    gc.disable()
    try:
        before = sum(type(one) is Tensor for one in gc.get_objects())
        for _ in range(3):
            engine.accumulate(loss, batch, units=ROWS)
        after = sum(type(one) is Tensor for one in gc.get_objects())
    finally:
        gc.enable()
    assert after <= before


def test_a_mean_over_the_batch_is_refused():
    with pytest.raises(ParameterError, match="reduction='none'"):
        GradientEngine(nn.Linear(5, 1), clipping=Flat(norm=1.0)).accumulate(
            lambda m, b: loss(m, b).mean(), batch_of(ROW), units=ROWS
        )
