"""A recorded step is replayed only as long as it would do the same; it gives the same sums."""

import functools
import random

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from discreet.errors import ParameterError
from discreet.learn import Adaptive, Flat, PerLayer, Stages, prepare
from discreet.learn.choices.adaptive import as_clipping
from discreet.learn.following.calls.chance import chance_of_host
from discreet.learn.gradients.cuda_graph import Replaying
from discreet.learn.gradients.engine import GradientEngine
from discreet.learn.gradients.python_state import PythonState

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
FACTOR = 2.0


class Scaled(nn.Module):
    """A model with a number of its own, and numbers further down."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        self.factor = 1.0
        self.settings = {"kinds": [1, 2, 3]}

    def forward(self, rows: Tensor) -> Tensor:
        out: Tensor = self.inner(rows) * self.factor
        return out


class Annealed:
    """A loss beside much else that changes and that it does not use."""

    def __init__(self) -> None:
        self.weight, self.steps, self.begun = 1.0, 0, iter(range(9))

    def weighted(self, losses: Tensor) -> Tensor:
        return self.weight * losses

    def loss(self, model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        return self.weighted(loss_fn(model, batch))


def loss_fn(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    rows, wanted = batch
    return FACTOR * (model(rows).squeeze(1) - wanted).square()


def test_whatever_changes_in_python_is_seen(monkeypatch):
    model, annealed = Scaled(), Annealed()
    numbers = [1.0]
    closed = (lambda held: lambda model, batch: held[0] * loss_fn(model, batch))(numbers)
    partly = functools.partial(lambda model, batch, weight: weight, weight=numbers)
    losses = (loss_fn, annealed.loss, closed, partly)

    first = [PythonState(loss, model) for loss in losses]

    def still():
        fast = [one.is_still(loss, model) for one, loss in zip(first, losses, strict=True)]
        for one, loss, found in zip(first, losses, fast, strict=True):
            one._things = ("another", model)  # so that it is looked at from the beginning
            assert one.is_still(loss, model) == found
            one._things = (loss, model)
        return fast

    assert still() == [True] * 4
    model.factor = 3.0
    assert still() == [False] * 4
    model.factor = 0.5 + 0.5
    assert still() == [True] * 4
    model.settings["kinds"][2] = 9
    assert still() == [False] * 4
    model.settings["kinds"][2] = 3
    annealed.steps += 1
    assert still() == [True] * 4
    annealed.weight = 0.5
    assert still() == [True, False, True, True]
    annealed.weight = 1.0
    numbers[0] = 7.0
    assert still() == [True, True, False, False]
    numbers[0] = 1.0
    monkeypatch.setitem(globals(), "FACTOR", 4.0)
    assert not still()[0]


def test_layers_that_are_exchanged_or_moved_are_seen_and_training_them_is_not():
    model = Scaled()
    first = PythonState(loss_fn, model)
    with torch.no_grad():
        model.inner[0].weight.add_(1)
    assert first.is_still(loss_fn, model)
    model.eval()
    assert not first.is_still(loss_fn, model)
    model.train()
    assert first.is_still(loss_fn, model)
    model.inner[0].weight.data = model.inner[0].weight.data.clone()
    assert not first.is_still(loss_fn, model)
    first = PythonState(loss_fn, model)
    model.inner[1] = nn.Tanh()
    assert not first.is_still(loss_fn, model)


@pytest.mark.parametrize(
    "draw", [random.random, lambda: np.random.rand(1), lambda: torch.rand(1), lambda: None]
)
def test_chance_that_the_host_draws_is_seen(draw):
    before = chance_of_host()
    was_drawn = draw() is not None
    assert (chance_of_host() != before) == was_drawn


def test_graphs_need_a_gpu_only_where_they_are_asked_for():
    model = Scaled()
    data = (torch.randn(50, 4), torch.randn(50))
    how = {"clip": 1.0, "noise_multiplier": 1, "delta": 1e-5, "steps": 2, "batch_size": 10}
    with pytest.raises(ParameterError, match="needs a model on a CUDA device"):
        prepare(model, torch.optim.SGD(model.parameters()), data, graphs=True, **how)
    for graphs in (None, False):
        prepare(model, torch.optim.SGD(model.parameters()), data, graphs=graphs, **how)


class Recorded:
    """Stands for a graph where there is no GPU: it does what it saw when it was recorded."""

    def __init__(self, engine, loss_fn, batch, units):
        self.state, self.batch = PythonState(loss_fn, engine.model), batch
        self.weights = torch.ones(units)
        self._again = engine, loss_fn, batch, units, engine.clipping
        self.graph = self
        self.replay()

    def replay(self):
        engine, loss_fn, batch, units, clipping = self._again
        now, engine.clipping = engine.clipping, clipping
        self.clipped = engine.accumulate(loss_fn, batch, units=units)
        engine.clipping = now


def test_a_graph_of_an_earlier_stage_is_not_replayed(monkeypatch):
    model = Scaled()
    engine = GradientEngine(model, clipping=Flat(norm=1e-3), is_checked=False)
    replaying = Replaying(engine, capacity=9, is_asked=True)
    made = []

    def recorded(self, loss_fn, batch, units, each):
        made.append(engine.clipping)
        return Recorded(engine, loss_fn, batch, units)

    monkeypatch.setattr(Replaying, "_recorded", recorded)
    batch = (torch.randn(9, 4), torch.randn(9))
    layers = PerLayer(norms={"inner.0": 3e-4, "inner.2": 4e-4})
    for clipping in (engine.clipping, layers, Flat(norm=1e-4)):
        engine.clipping = clipping
        for _ in range(4):
            engine.flat.zero_()
            replaying.accumulate(loss_fn, batch, units=9, is_careful=False)
            # Nine units, each clipped, and no longer than its stage's norm.
            assert float(engine.flat.buffer.norm()) <= 9 * clipping.sensitivity * 2
        assert made[-1] is clipping
        assert len(replaying._graphs) == 1
    assert len(made) == 3


# On a GPU --------------------------------------------------------------------------------------


def rows_of(units: int) -> tuple[Tensor, Tensor]:
    return torch.randn(units, 4, device="cuda"), torch.randn(units, device="cuda")


@on_gpu
@pytest.mark.parametrize(
    "clip", [0.1, Adaptive(initial=0.1, count_noise=1)], ids=["flat", "adapts"]
)
def test_replayed_sums_are_those_of_the_engine(clip):
    torch.manual_seed(7)
    model = Scaled().cuda()
    plain, recorded = (
        GradientEngine(model, clipping=as_clipping(clip), is_checked=False) for _ in range(2)
    )
    replaying = Replaying(recorded, capacity=16, is_asked=True)
    for step in range(12):
        batch = rows_of(5 + step % 7)
        model.factor = 2.0 if step > 8 else 1.0
        for engine, adder in ((plain, plain), (recorded, replaying)):
            engine.flat.zero_()
            clipped = adder.accumulate(loss_fn, batch, units=len(batch[1]), is_careful=False)
            if bool(engine.is_spoilt):  # something has changed: as a step does it
                assert step == 9
                engine.is_spoilt.zero_()
                engine.flat.zero_()
                adder.accumulate(loss_fn, batch, units=len(batch[1]), is_careful=True)
            if isinstance(clip, Adaptive):
                engine.clipping.update(0.1 * (step - 6))
            assert clipped.norms.shape == (len(batch[1]), 1)
        assert torch.allclose(plain.flat.buffer, recorded.flat.buffer, rtol=1e-4, atol=1e-6)
        assert float(recorded.flat.buffer.norm()) > 0
    assert len(replaying._graphs) == 1


class Drawing(Scaled):
    def forward(self, rows: Tensor) -> Tensor:
        return super().forward(rows) * random.choice([1.0, 1.0])


class Counting(Scaled):
    def forward(self, rows: Tensor) -> Tensor:
        self.factor += 1
        return super().forward(rows)


class Copying(Scaled):
    def forward(self, rows: Tensor) -> Tensor:
        return super().forward(rows) + torch.ones(1).to(rows.device)


@on_gpu
@pytest.mark.parametrize("kind", [Drawing, Counting, Copying])
def test_what_can_not_be_recorded_is_computed_as_usual(kind):
    model = kind().cuda()
    engine = GradientEngine(model, clipping=Flat(norm=1.0), is_checked=False)
    replaying = Replaying(engine, capacity=16, is_asked=False)
    for _ in range(6):
        engine.flat.zero_()
        replaying.accumulate(loss_fn, rows_of(9), units=9, is_careful=False)
        assert bool(torch.isfinite(engine.flat.buffer).all())
        assert float(engine.flat.buffer.norm()) > 0
    assert not replaying._graphs
    asked = Replaying(engine, capacity=16, is_asked=True)
    for _ in range(2):
        asked.accumulate(loss_fn, rows_of(9), units=9, is_careful=False)
    with pytest.raises(ParameterError, match="can not be recorded as a CUDA graph"):
        asked.accumulate(loss_fn, rows_of(9), units=9, is_careful=False)


@on_gpu
def test_numbers_that_change_in_every_step_end_recording():
    model = Scaled().cuda()
    engine = GradientEngine(model, clipping=Flat(norm=1.0), is_checked=False)
    replaying = Replaying(engine, capacity=16, is_asked=False)
    for step in range(12):
        model.factor = 1.0 + step
        replaying.accumulate(loss_fn, rows_of(9), units=9, is_careful=False)
    assert replaying._is_off


@on_gpu
def test_training_takes_graphs_by_itself():
    torch.manual_seed(7)
    model = Scaled().cuda()
    data = (torch.randn(400, 4).cuda(), torch.randn(400).cuda())
    private = prepare(
        model, torch.optim.SGD(model.parameters(), lr=0.1), data, noise_multiplier=1, delta=1e-5,
        steps=8, batch_size=40, clip=Adaptive(initial=1, count_noise=5), progress=False,
    )  # fmt: skip
    for batch in private.batches():
        private.step(batch, loss_fn)
    assert len(private._stepping.adder._graphs) == 1


@on_gpu
def test_each_stage_has_a_graph_of_its_own():
    torch.manual_seed(7)
    model = Scaled().cuda()
    data = (9 * torch.randn(400, 4).cuda(), torch.randn(400).cuda())
    private = prepare(
        model, torch.optim.SGD(model.parameters(), lr=0.0), data, noise_multiplier=2**-12,
        delta=1e-5, steps=16, batch_size=40, clip=Stages((8, 1.0), then=0.01), progress=False,
    )  # fmt: skip
    sizes = []
    for batch in private.batches():
        private.step(batch, loss_fn)
        sizes.append(float(private._stepping.engine.flat.buffer.norm()))
    assert len(private._stepping.adder._graphs) == 1
    assert min(sizes[:8]) > 10 * max(sizes[8:])
