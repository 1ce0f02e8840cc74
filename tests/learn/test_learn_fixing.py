"""What cannot be trained privately is named and refused; what can be fixed is, in a copy."""

import copy
import logging
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from oracle import clipped_sum, gradients
from torch import nn

from discreet.errors import ParameterError
from discreet.learn import Flat, check, fix, fixes
from discreet.learn.gradients.engine import GradientEngine


def complaint(model: nn.Module) -> str:
    with pytest.raises(ParameterError) as caught:
        check(model)
    assert caught.value.parameter == "model"
    return str(caught.value)


def mixes_examples(model: nn.Module, rows: torch.Tensor) -> bool:
    """Say whether the first row's output changes with the other rows."""
    others = torch.cat([rows[:1], torch.flip(rows[1:], [0]) * 3 + 1])
    with torch.no_grad():
        return not torch.allclose(model(rows)[0], model(others)[0], atol=1e-5)


def spectral_by_hook() -> nn.Module:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated, but still in use
        return torch.nn.utils.spectral_norm(nn.Linear(4, 4))


class OwnNorm(nn.Module):
    """A normalisation of one's own, which remembers the data."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))
        self.register_buffer("running_mean", torch.zeros(4))
        self.register_buffer("running_var", torch.ones(4))


class FrozenNorm(OwnNorm):
    """The same by name only: its statistics never change."""


class ObserverBase(nn.Module):
    """As the quantisers' observers call themselves."""


class ActivatedNorm(nn.BatchNorm2d):
    """A subclass that does more than its parent."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x).relu()


class NormAct(nn.BatchNorm2d):
    """A batch norm that brings dropout and activation along, written out as libraries do."""

    def __init__(self, channels: int, act: nn.Module, drop: nn.Module) -> None:
        super().__init__(channels)
        self.drop, self.act = drop, act

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.ndim == 4
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        x = nn.functional.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias,
            self.training, self.momentum, self.eps,
        )  # fmt: skip
        out: torch.Tensor = self.act(self.drop(x))
        return out


class Renamed(nn.BatchNorm1d):
    """A subclass that does what its parent does."""


NORMS = [
    (Renamed(48), torch.randn(6, 48)),
    (NormAct(8, nn.SiLU(), nn.Identity()), torch.randn(6, 8, 5, 5)),
    (nn.BatchNorm1d(48), torch.randn(6, 48)),
    (nn.BatchNorm1d(6), torch.randn(6, 6, 5)),
    (nn.BatchNorm2d(64), torch.randn(6, 64, 5, 5)),
    (nn.BatchNorm2d(7, affine=False), torch.randn(6, 7, 5, 5)),
    (nn.BatchNorm2d(1), torch.randn(6, 1, 5, 5)),
    (nn.BatchNorm3d(12, track_running_stats=False), torch.randn(6, 12, 3, 3, 3)),
    (nn.SyncBatchNorm(32), None),  # runs on GPUs only
    (nn.InstanceNorm1d(4, track_running_stats=True, affine=True), torch.randn(6, 4, 5)),
    (nn.InstanceNorm2d(4, track_running_stats=True), torch.randn(6, 4, 5, 5)),
    (nn.InstanceNorm3d(4, track_running_stats=True, affine=True), torch.randn(6, 4, 3, 3, 3)),
]


@pytest.mark.parametrize(("norm", "rows"), NORMS)
def test_normalisations_that_see_other_examples_are_named_and_fixed(norm, rows):
    model = nn.Sequential(nn.Identity(), nn.ModuleDict({"norm": norm}))
    learning = nn.ModuleList([model, nn.Linear(2, 2)])  # so that there is something to train
    message = complaint(learning)
    assert f"'0.1.norm' ({type(norm).__name__})" in message
    assert "discreet.learn.fix(model)" in message
    fixed = fix(learning)
    check(fixed)
    assert fixes(fixed) == ()
    assert len(fixes(learning)) == 1
    new = fixed[0][1]["norm"]
    if rows is not None:
        assert new(rows).shape == rows.shape
        assert not mixes_examples(new, rows)
        if isinstance(norm, nn.modules.batchnorm._BatchNorm):
            assert mixes_examples(copy.deepcopy(norm), rows)  # the test would notice
    before = {name: b.clone() for name, b in new.named_buffers()}
    assert before == {}  # nothing in which data could be kept


def test_a_batch_norm_keeps_its_dropout_and_its_activation():
    norm = NormAct(8, nn.SiLU(), nn.Dropout(0.5))
    nn.init.uniform_(norm.weight)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), norm)
    assert fixes(model) == ("'1': NormAct -> GroupNorm(2, 8) with its drop, act",)
    new = fix(model)[1].eval()
    rows = torch.randn(5, 8, 4, 4)
    plain = nn.functional.group_norm(rows, 2, norm.weight, norm.bias, norm.eps)
    assert torch.allclose(new(rows), nn.functional.silu(plain))
    assert isinstance(new.drop, nn.Dropout)
    assert (new.train()(torch.ones(5, 8, 4, 4)) == 0).any()
    assert model[1] is norm  # as it was


def test_what_a_batch_norm_does_beside_its_modules_is_not_guessed():
    assert "replace it by group normalisation" in complaint(ActivatedNorm(4))
    assert fixes(ActivatedNorm(4)) == ()


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (nn.Sequential(nn.Linear(5, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2)), (5,)),
        (nn.Sequential(nn.Linear(5, 32), nn.BatchNorm1d(32, affine=False)), (5,)),
        (
            nn.Sequential(nn.Conv2d(3, 8, 3), NormAct(8, nn.SiLU(inplace=True), nn.Identity())),
            (3, 5, 5),
        ),
    ],
    ids=["table", "table, not affine", "images"],
)  # fmt: skip
def test_a_fixed_network_is_trained_as_a_loop_would(model, shape):
    torch.manual_seed(7)
    fixed = fix(model.double())
    rows = torch.randn(6, *shape, dtype=torch.float64)

    def loss(model: nn.Module, batch: Any) -> torch.Tensor:
        out: torch.Tensor = model(batch[0])
        return out.square().flatten(1).sum(1)

    engine = GradientEngine(fixed, clipping=Flat(norm=0.3))
    engine.accumulate(loss, (rows,), units=6)
    expected = clipped_sum(gradients(fixed, loss, (rows,), 6), 0.3)
    assert torch.allclose(engine.flat.buffer, expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("norm", "groups"),
    [
        (nn.BatchNorm2d(1), 1),
        (nn.BatchNorm2d(3), 1),
        (nn.BatchNorm2d(7), 1),
        (nn.BatchNorm2d(12), 3),
        (nn.BatchNorm2d(16), 4),
        (nn.BatchNorm2d(64), 16),
        (nn.BatchNorm2d(160), 32),
        (nn.BatchNorm2d(1000), 25),
        (nn.BatchNorm2d(2048), 32),
        (nn.BatchNorm1d(8), 1),
        (nn.BatchNorm1d(64), 4),
        (nn.BatchNorm1d(1024), 32),
    ],
)
def test_groups_divide_the_channels_and_are_not_too_small(norm, groups):
    fixed = fix(norm)
    assert isinstance(fixed, nn.GroupNorm)
    assert (fixed.num_groups, fixed.num_channels) == (groups, norm.num_features)


def test_a_fixed_model_keeps_weights_types_and_modes_and_the_original_is_untouched():
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8, eps=0.125), nn.BatchNorm2d(8))
    model.to(torch.bfloat16)
    nn.init.uniform_(model[1].weight)
    model[1].bias.requires_grad_(False)
    model[2].eval()
    kept = copy.deepcopy(model.state_dict())
    fixed = fix(model)
    assert isinstance(model[1], nn.BatchNorm2d)
    assert all(torch.equal(kept[name], value) for name, value in model.state_dict().items())
    new = fixed[1]
    assert torch.equal(new.weight, model[1].weight)
    assert new.weight is not model[1].weight
    assert isinstance(new.weight, nn.Parameter)
    assert (new.weight.dtype, new.eps) == (torch.bfloat16, 0.125)
    assert (new.weight.requires_grad, new.bias.requires_grad) == (True, False)
    assert new.training
    assert not fixed[2].training
    with torch.no_grad():
        new.weight.zero_()
    assert model[1].weight.abs().sum() > 0


def test_batch_norm_is_accepted_while_frozen_and_only_then():
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    model[1].eval()
    assert "'1' (BatchNorm1d)" in complaint(model)  # its weights would still learn
    model[1].requires_grad_(False)
    check(model)
    assert fixes(model) == ()
    assert fix(model)[1].running_mean is not None
    model.train()
    assert "'1' (BatchNorm1d)" in complaint(model)
    lost = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4, track_running_stats=False)).eval()
    lost[1].requires_grad_(False)
    assert "'1' (BatchNorm1d)" in complaint(lost)  # it has nothing to freeze
    assert "eval" not in complaint(lost)


def test_a_module_used_twice_stays_one_module():
    norm = nn.BatchNorm2d(4)
    fixed = fix(nn.Sequential(nn.Conv2d(4, 4, 1), norm, nn.Conv2d(4, 4, 1), norm))
    assert isinstance(fixed[1], nn.GroupNorm)
    assert fixed[1] is fixed[3]


def test_subclasses_are_refused_but_not_guessed():
    model = nn.Sequential(nn.Conv2d(3, 4, 1), ActivatedNorm(4))
    message = complaint(model)
    assert "'1' (ActivatedNorm)" in message
    assert "fix(model)" not in message
    assert isinstance(fix(model)[1], ActivatedNorm)


def test_embeddings_that_a_batch_changes_are_fixed():
    for kind in (nn.Embedding, nn.EmbeddingBag):
        for option in ({"max_norm": 1.0}, {"scale_grad_by_freq": True}):
            model = nn.Sequential(kind(5, 3, **option))
            assert "'0' (Embedding" in complaint(model)
            fixed = fix(model)
            check(fixed)
            assert torch.equal(fixed[0].weight, model[0].weight)
            assert complaint(model)  # the original still has it
    # Why: the rows that are looked up change without noise.
    risky = nn.Embedding(5, 3, max_norm=0.1)
    before = risky.weight.detach().clone()
    risky(torch.tensor([2]))
    assert not torch.equal(before, risky.weight)
    frozen = nn.Embedding(5, 3, scale_grad_by_freq=True).requires_grad_(False)
    check(nn.ModuleList([frozen, nn.Linear(3, 3)]))


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (nn.LazyLinear(3), "has no weights yet"),
        (nn.LazyBatchNorm2d(), "has no weights yet"),
        (torch.nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)), "spectral norm"),
        (spectral_by_hook(), "remove_spectral_norm"),
        (OwnNorm(), "keeps statistics"),
        (ObserverBase(), "keeps statistics"),
        (nn.Linear(2, 2, dtype=torch.complex64), "is complex64"),
        (nn.Linear(2, 2, device="meta"), "meta device"),
    ],
)
def test_what_cannot_be_fixed_is_named(module, words):
    model = nn.ModuleList([nn.Linear(2, 2), module])
    assert words in complaint(model)
    assert fixes(model) == ()


def test_several_devices_are_named():
    class Spread(nn.Linear):  # a small machine has no second device
        def named_parameters(self, *args, **kwargs):
            for name, device in (("weight", "cuda:0"), ("bias", "cuda:1")):
                like = {"requires_grad": True, "dtype": torch.float32}
                yield name, SimpleNamespace(device=torch.device(device), **like)

    assert "on several devices (cuda:0, cuda:1)" in complaint(Spread(2, 2))


def test_a_model_without_trainable_parameters_is_refused():
    assert "no trainable parameters" in complaint(nn.Linear(2, 2).requires_grad_(False))
    assert "no trainable parameters" in complaint(nn.ReLU())


def test_ordinary_models_pass():
    check(
        nn.ModuleList(
            [
                nn.Conv2d(3, 4, 3),
                nn.GroupNorm(2, 4),
                nn.InstanceNorm2d(4, affine=True),
                nn.LayerNorm(4),
                nn.RMSNorm(4),
                nn.Embedding(5, 3, padding_idx=0),
                nn.LSTM(3, 4),
                nn.MultiheadAttention(4, 2),
                nn.Linear(2, 2, dtype=torch.bfloat16),
                nn.Dropout(),
                FrozenNorm(),
                OwnNorm().eval(),
            ]
        )
    )


def test_every_culprit_is_named_at_once():
    model = nn.Sequential(nn.BatchNorm1d(4), OwnNorm(), nn.Embedding(4, 4, max_norm=1))
    message = complaint(model)
    assert all(f"'{i}' (" in message for i in range(3))


def test_fixes_are_logged(caplog):
    model = nn.Sequential(nn.Conv2d(3, 16, 1), nn.BatchNorm2d(16))
    with caplog.at_level(logging.INFO, logger="discreet.learn"):
        fix(model)
    assert [record.getMessage() for record in caplog.records] == list(fixes(model))
    assert "the model itself" in fixes(nn.BatchNorm2d(16))[0]
