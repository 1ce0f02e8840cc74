"""Ways in which one row reached others' gradients, or raw data the model, and was not refused."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from discreet.errors import DataError, ParameterError
from discreet.learn import Flat, prepare
from discreet.learn.gradients.engine import GradientEngine

ROWS = 40


def squares(model: nn.Module, batch: Any) -> Tensor:
    out: Tensor = model(batch[0]).flatten(1)
    return out.square().sum(1)


def start(model: nn.Module, data: Any = None, **options: Any) -> Any:
    torch.manual_seed(0)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    settings = {"noise_multiplier": 1.0, "delta": 1e-5, "steps": 9, "batch_size": 10, "clip": 1.0}
    rows = (torch.randn(ROWS, 5),) if data is None else data
    return prepare(model, optimizer, rows, **(settings | options))


def assert_refused(private: Any, loss_fn: Any, word: str) -> None:
    spent = private.spent.steps
    with pytest.raises(ParameterError, match=word):
        private.step(next(private.batches()), loss_fn)
    assert private.spent.steps == spent  # before it was paid


class InTraining(nn.Module):
    """Mix examples in training only, as a home-made batch norm or mixup does."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.inner, self.kind = nn.Linear(5, 2), kind
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.inner(x)
        if self.training and self.kind == "norm":
            return F.batch_norm(out, None, None, None, None, training=True)
        if self.training and self.kind == "mixup":
            return (out + out.flip(0)) / 2
        if self.kind == "buffer":
            self.seen.lerp_(out.detach().mean(0), 0.1)
        return out


@pytest.mark.parametrize(
    ("kind", "word"),
    [("norm", "statistics over the batch"), ("mixup", "flip at .* moves the examples"),
     ("buffer", "mean at .* reduces over the examples")],
)  # fmt: skip
def test_what_happens_in_training_only_is_seen(kind, word):
    assert_refused(start(InTraining(kind)), squares, word)


class Centred:
    """A loss that mixes the examples once it is warm."""

    def __init__(self, *, is_warm: bool) -> None:
        self.is_warm = is_warm

    def __call__(self, model: nn.Module, batch: Any) -> Tensor:
        out: Tensor = model(batch[0])
        if self.is_warm:
            out = out - out.mean(0)
        return out.square().sum(1)


def test_a_loss_with_the_same_code_is_another_loss():
    private = start(nn.Linear(5, 2))

    def among(loss: Any) -> Any:
        return lambda model, batch: loss(model, batch)

    private.step(next(private.batches()), among(Centred(is_warm=False)))
    assert_refused(private, among(Centred(is_warm=True)), "reduces over the examples")


def test_a_loss_that_changes_its_mind_is_tried_again():
    private, loss = start(nn.Linear(5, 2)), Centred(is_warm=False)
    private.step(next(private.batches()), loss)
    loss.is_warm = True
    assert_refused(private, loss, "reduces over the examples")


@pytest.mark.parametrize(
    ("loss", "word"),
    [
        (lambda m, b: squares(m, b) / len(b[0]), "number of examples"),
        (lambda m, b: squares(m, b).cumsum(0), "cumsum at .* works along the examples"),
        (lambda m, b: squares(m, b).flip(0).cumsum(0).flip(0), "flip at .* moves the examples"),
    ],
)
def test_a_loss_of_several_examples_is_refused(loss, word):
    assert_refused(start(nn.Linear(5, 2)), loss, word)


def test_zero_weights_hide_nothing():
    class Gated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.head = nn.Linear(5, 2), nn.Linear(2, 2)
            self.gate = nn.Parameter(torch.zeros(()))
            nn.init.zeros_(self.head.weight)

        def forward(self, x: Tensor) -> Tensor:
            hidden = self.inner(x)
            out: Tensor = self.head(hidden + self.gate * hidden.mean(0))
            return out

    model = Gated()
    private = start(model)
    assert_refused(private, squares, "reduces over the examples")
    assert not model.head.weight.any()  # as it was


def test_whoever_else_would_get_a_gradient_is_refused():
    centres = nn.Parameter(torch.zeros(2))
    private = start(nn.Linear(5, 2))
    assert_refused(
        private, lambda m, b: (m(b[0]) - centres).square().sum(1), r"shape \(2,\) would get"
    )


@pytest.mark.parametrize("change", ["freeze", "unfreeze", "replace"])
def test_a_model_that_was_changed_needs_a_new_run(change):
    model = nn.Sequential(nn.Linear(5, 4), nn.Linear(4, 2).requires_grad_(requires_grad=False))
    private = start(model)
    private.step(next(private.batches()), squares)
    if change == "freeze":
        model[0].bias.requires_grad_(requires_grad=False)
    elif change == "unfreeze":
        model[1].requires_grad_()
    else:
        model[0] = nn.Linear(5, 4)
    assert_refused(private, squares, "Prepare a new run")


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
def test_reentrant_checkpoints_are_refused_in_training_too():
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(5, 4), nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            x = self.first(x)
            if self.training:
                return checkpoint(self.last, x, use_reentrant=True)
            out: Tensor = self.last(x)
            return out

    assert_refused(start(Checkpointed()), squares, "use_reentrant=False")


def test_padding_to_the_longest_row_is_refused():
    rows = [torch.randn(length, 5) for length in range(2, 2 + ROWS)]

    def padded(some: list[Tensor]) -> Any:
        return (nn.utils.rnn.pad_sequence(some, batch_first=True),)

    private = start(nn.Linear(5, 2), rows, collate=padded)
    assert_refused(private, squares, "fixed length")


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_attention_with_dropout_is_accepted(dropout):
    model = nn.TransformerEncoderLayer(8, 2, 16, dropout=dropout, batch_first=True)
    private = start(model, (torch.randn(ROWS, 3, 8),))
    for batch in private.batches():
        private.step(batch, squares)
    assert private.steps_taken == 9


@pytest.mark.parametrize("size", [3e5, 3e7, 3e8])
def test_rows_that_cancel_do_not_exceed_the_norm(size):
    """A token at two places, with gradients that nearly cancel and are rounded apart."""
    torch.manual_seed(1)
    table = nn.Embedding(4, 3000)
    pull = torch.randn(3000) * size

    def loss(model: nn.Module, batch: Any) -> Tensor:
        first, second = model(batch[0]).unbind(1)
        return (first * pull).sum(1) - (second * (pull * (1 + 3e-7))).sum(1)

    engine = GradientEngine(table, clipping=Flat(norm=1.0), is_checked=False)
    engine.accumulate(loss, (torch.ones(1, 2, dtype=torch.long),), units=1)
    assert float(engine.flat.buffer.double().norm()) <= 1.0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_models_of_other_kinds_of_numbers_are_trained(dtype):
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(5, 4))

        def forward(self, x: Tensor) -> Tensor:
            return torch.einsum("bi,io->bo", x, self.weight[:, :2]) + self.weight[:2, 0]

    model = Mixed().to(dtype)
    private = start(model, (torch.randn(ROWS, 5, dtype=dtype),))
    private.step(next(private.batches()), lambda m, b: squares(m, b).float())
    assert torch.isfinite(model.weight).all()


def test_large_ids_of_mixed_sign_are_not_merged():
    ids = [2**63 + 1, 2**63 + 2, -1, -2] * (ROWS // 4)
    with pytest.raises(DataError, match="several types"):
        start(nn.Linear(5, 2), units=ids)
