"""Attempts that need a model of their own, a state, or a later step: each is refused in time."""

import warnings
from collections import deque
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from discreet.errors import ParameterError
from discreet.learn import Flat
from discreet.learn.gradients.engine import GradientEngine

ROWS, WIDTH = 6, 4


def squares(model: nn.Module, batch: Any) -> Tensor:
    out: Tensor = model(batch[0]).flatten(1)
    return out.square().sum(1)


class Around(nn.Module):
    """A linear layer, and something done with its results."""

    def __init__(self, then: Any, **parts: Any) -> None:
        super().__init__()
        self.inner, self.then, self.count = nn.Linear(WIDTH, WIDTH), then, 0
        self.register_buffer("seen", torch.zeros(WIDTH))
        self.fixed = nn.Parameter(torch.zeros(WIDTH), requires_grad=False)
        self.kept: Any = None
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        out: Tensor = self.then(self, self.inner(x))
        return out


class MixesBackwards(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 1

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # type: ignore[override]
        return grad.mean(0).expand_as(grad)


def buffer_of_means(m: Any, z: Tensor) -> Tensor:
    m.seen.lerp_(z.detach().mean(0), 0.1)
    return z


def buffer_of_rows(m: Any, z: Tensor) -> Tensor:
    m.seen.index_add_(0, torch.zeros(z.shape[0], dtype=torch.long), z.detach()[:, 0])
    return z


def buffer_by_python(m: Any, z: Tensor) -> Tensor:
    m.seen = z.detach().mean(0)
    return z


def frozen_means(m: Any, z: Tensor) -> Tensor:
    with torch.no_grad():
        m.fixed.mul_(0.9).add_(z.mean(0))
    return z - m.fixed


def frozen_data(m: Any, z: Tensor) -> Tensor:
    m.fixed.data = z.detach().mean(0)
    return z - m.fixed


def trained_means(m: Any, z: Tensor) -> Tensor:
    with torch.no_grad():
        m.inner.bias.add_(z.mean(0))
    return z


def attribute(m: Any, z: Tensor) -> Tensor:
    before, m.kept = m.kept, z.detach()
    return z if before is None else z + before


def queue(m: Any, z: Tensor) -> Tensor:
    if m.kept is None:
        m.kept = deque(maxlen=2)
    m.kept.append(z.detach())
    return z + m.kept[0]


def number_kept(m: Any, z: Tensor) -> Tensor:
    before, m.kept = m.kept or 1, z.shape[0]
    return z / before


def later(m: Any, z: Tensor) -> Tensor:
    return z - z.mean(0) if m.count > 5 else z


def later_by_number(m: Any, z: Tensor) -> Tensor:
    return z * (1.0 / len(z)) if m.count > 5 else z * 1.0


def later_bank(m: Any, z: Tensor) -> Tensor:
    if m.count > 4:
        m.kept = z.detach()
    return z + m.fixed if m.kept is None else z + m.kept


def later_custom(m: Any, z: Tensor) -> Tensor:
    return MixesBackwards.apply(z) if m.count > 5 else z * 1


def later_hook(m: Any, z: Tensor) -> Tensor:
    if m.count > 5:
        z.register_hook(lambda grad: grad - grad.mean(0))
    return z


def unseen(m: Any, z: Tensor) -> Tensor:
    with torch._C.DisableTorchFunction():
        return z + z.flip(1)


def checkpointed(m: Any, z: Tensor) -> Tensor:
    return checkpoint(lambda one: one - one.mean(0), z, use_reentrant=False)


def checkpointed_otherwise(m: Any, z: Tensor) -> Tensor:
    calls = []

    def inner(one: Tensor) -> Tensor:
        calls.append(1)
        return one.sin() * (one.flip(0) if len(calls) > 1 else one.flip(1))

    return checkpoint(inner, z, use_reentrant=False)


def reentrant(m: Any, z: Tensor) -> Tensor:
    return checkpoint(torch.sin, z, use_reentrant=True)


def saved_otherwise(m: Any, z: Tensor) -> Tensor:
    def unpack(kept: Tensor) -> Tensor:
        return kept.flip(0)

    with torch.autograd.graph.saved_tensors_hooks(lambda kept: kept, unpack):
        return z.sin()


def attention_across(m: Any, z: Tensor) -> Tensor:
    return m.attend(z[:, None], z[:, None], z[:, None])[0]


def recurrent_across(m: Any, z: Tensor) -> Tensor:
    return m.rnn(z[None])[0][0]


def teacher_of_rows(m: Any, z: Tensor) -> Tensor:
    with torch.no_grad():
        m.teacher.bias.lerp_(m.teacher(z).mean(0), 0.1)  # a centre, as for self-distillation
    return z - m.teacher(z).detach()


def targets_propagated(m: Any, z: Tensor) -> Tensor:
    hidden = m.teacher(z.detach())
    (step,) = torch.autograd.grad(hidden, m.teacher.weight, torch.ones_like(hidden))
    with torch.no_grad():
        m.teacher.weight.sub_(0.1 * step)
    return z - m.teacher(z).detach()


def trained_within(m: Any, z: Tensor) -> Tensor:
    m.teacher(z.detach()).sum(1).backward(torch.ones(z.shape[0]))
    return z


def centred(z: Tensor) -> Tensor:
    return z - z.mean(0)


with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    scripted = torch.jit.script(centred)


STATES = {
    "buffer of means": lambda: Around(buffer_of_means),
    "buffer of rows": lambda: Around(buffer_of_rows),
    "buffer replaced": lambda: Around(buffer_by_python),
    "means in a frozen parameter": lambda: Around(frozen_means),
    "data of a frozen parameter": lambda: Around(frozen_data),
    "means in a trained parameter": lambda: Around(trained_means),
    "rows in an attribute": lambda: Around(attribute),
    "memory bank": lambda: Around(queue),
    "number of rows kept": lambda: Around(number_kept),
    "a term that starts later": lambda: Around(later),
    "a number that starts later": lambda: Around(later_by_number),
    "a bank that starts later": lambda: Around(later_bank),
    "a custom function later": lambda: Around(later_custom),
    "a hook later": lambda: Around(later_hook),
    "custom function": lambda: Around(lambda m, z: MixesBackwards.apply(z)),
    "out of sight": lambda: Around(unseen),
    "checkpointed": lambda: Around(checkpointed),
    "checkpoint that changes its mind": lambda: Around(checkpointed_otherwise),
    "reentrant checkpoint": lambda: Around(reentrant),
    "saved tensors changed": lambda: Around(saved_otherwise),
    "batch norm": lambda: nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH)),
    "attention across": lambda: Around(attention_across, attend=nn.MultiheadAttention(WIDTH, 2)),
    "recurrence across": lambda: Around(
        recurrent_across, rnn=nn.GRU(WIDTH, WIDTH, batch_first=True)
    ),
    "a teacher's centre": lambda: Around(teacher_of_rows, teacher=nn.Linear(WIDTH, WIDTH)),
    "targets propagated": lambda: Around(targets_propagated, teacher=nn.Linear(WIDTH, WIDTH)),
    "trained within": lambda: Around(trained_within, teacher=nn.Linear(WIDTH, WIDTH)),
    "scripted": lambda: Around(lambda m, z: scripted(z)),
    "frozen batch statistics": lambda: Around(
        lambda m, z: m.norm(z), norm=nn.BatchNorm1d(WIDTH, affine=False)
    ),
    "compiled": lambda: Around(lambda m, z: torch.compile(lambda one: one - one.mean(0))(z)),
}


def batch(kind: str) -> Any:
    return (torch.ones(ROWS, WIDTH) if kind == "alike" else torch.zeros(ROWS, WIDTH),)


def _train(engine: GradientEngine, rows: Any) -> None:
    for _ in range(9):
        engine.accumulate(squares, rows, units=ROWS)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the compiler's own
@pytest.mark.parametrize("kind", ["alike", "blank"])
@pytest.mark.parametrize("name", STATES)
def test_a_model_that_mixes_examples_is_refused(name, kind):
    model = STATES[name]()
    engine = GradientEngine(model, clipping=Flat(norm=1.0), is_checked=False)
    with pytest.raises(ParameterError):
        _train(engine, batch(kind))


@pytest.mark.parametrize("place", ["forward", "hook", "torch"])
def test_what_is_patched_in_later_is_refused(place, monkeypatch):
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU())
    engine = GradientEngine(model, clipping=Flat(norm=1.0), is_checked=False)
    engine.accumulate(squares, batch("alike"), units=ROWS)
    if place == "forward":
        monkeypatch.setattr(model[1], "forward", lambda z: (z - z.mean(0)).relu())
    elif place == "hook":
        model[0].register_forward_hook(lambda _, __, out: out - out.mean(0))
    else:
        plain = F.relu
        monkeypatch.setattr(F, "relu", lambda z, **_: plain(z - z.mean(0)))
    with pytest.raises(ParameterError, match="mean"):
        engine.accumulate(squares, batch("alike"), units=ROWS)


@pytest.mark.parametrize("kind", ["module", "loss"])
def test_a_bank_that_is_filled_between_steps_is_refused(kind):
    model, bank = nn.Linear(WIDTH, WIDTH), []
    engine = GradientEngine(model, clipping=Flat(norm=1.0), is_checked=False)

    def loss(model: nn.Module, rows: Any) -> Tensor:
        out = model(rows[0])
        if kind == "module":
            model.__dict__["kept"] = out
        else:
            bank.append(out)
        return out.square().sum(1)

    with pytest.raises(ParameterError, match="outlives"):
        engine.accumulate(loss, batch("alike"), units=ROWS)


def test_rows_that_are_no_tensors_are_refused():
    engine = GradientEngine(nn.Linear(WIDTH, 1), clipping=Flat(norm=1.0), is_checked=False)
    with pytest.raises(ParameterError, match="type str"):
        engine.accumulate(
            lambda m, b: squares(m, b["x"]),
            {"x": batch("alike"), "names": ["a"] * ROWS},
            units=ROWS,
        )
