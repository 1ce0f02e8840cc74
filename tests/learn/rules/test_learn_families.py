"""Families of models that were refused, some for the wrong reason: now exact, or told why not."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from oracle import clipped_sum, gradients
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from discreet.errors import ParameterError
from discreet.learn import Flat
from discreet.learn.gradients.engine import GradientEngine

UNITS, CLIP = 5, 0.1


def assert_exact(model: nn.Module, loss: Any, rows: Tensor, near: float = 1e-6) -> None:
    """Accept a model in training, and compare it with a loop, without dropout, in both modes."""
    GradientEngine(model.train(), clipping=Flat(norm=CLIP)).accumulate(loss, (rows,), units=UNITS)
    model.eval()
    engine = GradientEngine(model, clipping=Flat(norm=CLIP))
    engine.accumulate(loss, (rows,), units=UNITS)
    expected = clipped_sum(gradients(model, loss, (rows,), UNITS), CLIP)
    found = engine.flat.buffer.double()
    assert float((found - expected).norm()) <= near * float(expected.norm())


def squares(model: nn.Module, batch: Any) -> Tensor:
    out: Tensor = model(batch[0])
    return out.square().flatten(1).sum(1)


class Biased(nn.Module):
    """Attention with a bias for each distance, in one call of torch."""

    def __init__(self, dropout: float, *, grouped: bool = False) -> None:
        super().__init__()
        self.inner, self.dropout, self.grouped = nn.Linear(8, 16), dropout, grouped
        self.bias = nn.Embedding(13, 2)

    def forward(self, x: Tensor) -> Tensor:
        query = self.inner(x).unflatten(-1, (2, 8)).transpose(1, 2)
        key = query[:, :1] if self.grouped else query.tanh()
        places = torch.arange(x.shape[1])
        bias = self.bias(places[:, None] - places[None, :] + 6).permute(2, 0, 1)[None]
        rate = self.dropout if self.training else 0.0
        return F.scaled_dot_product_attention(
            query, key, key, attn_mask=bias, dropout_p=rate, enable_gqa=self.grouped
        )


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_attention_with_a_learnt_bias(dropout, grouped):
    torch.manual_seed(7)
    model = Biased(dropout, grouped=grouped).double()
    assert_exact(model, squares, torch.randn(UNITS, 7, 8, dtype=torch.float64), 1e-9)


class Repeated(nn.Module):
    """A parameter that is repeated along an axis of its own length, for heads of all examples."""

    def __init__(self, copies: int) -> None:
        super().__init__()
        self.inner, self.copies = nn.Linear(4, 6), copies
        self.table = nn.Parameter(torch.randn(3, 6, 2))

    def forward(self, x: Tensor) -> Tensor:
        heads = self.inner(x).repeat_interleave(3 * self.copies, 0)[:, None]
        out: Tensor = heads @ self.table.repeat(x.shape[0] * self.copies, 1, 1)
        return out.reshape(x.shape[0], -1)


@pytest.mark.parametrize("copies", [1, 2])
def test_a_parameter_that_is_repeated_as_a_whole(copies):
    torch.manual_seed(7)
    model = Repeated(copies).double()
    assert_exact(model, squares, torch.randn(UNITS, 4, dtype=torch.float64), 1e-9)


class Masked(nn.Module):
    """A parameter in the place of what is masked, right behind a layer or not."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner, self.last = inner, nn.Linear(6, 2)
        self.mask = nn.Parameter(torch.randn(6))

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.inner(x)
        hidden[x[..., 0] > 0] = self.mask
        out: Tensor = self.last(hidden)
        return out


@pytest.mark.parametrize(
    "inner",
    [nn.Linear(4, 6), nn.Sequential(nn.Linear(4, 6), nn.GELU()), nn.Conv1d(7, 7, 3, padding=2)],
    ids=["linear", "gelu", "convolution"],
)
def test_a_parameter_in_the_place_of_what_is_masked(inner):
    torch.manual_seed(7)
    assert_exact(Masked(inner).double(), squares, torch.randn(UNITS, 7, 4).double(), 1e-9)


def test_other_assignments_are_told_how_to_be_written():
    class Placed(Masked):
        def forward(self, x: Tensor) -> Tensor:
            hidden = self.inner(x) * 1
            hidden[:, 0] = self.mask
            out: Tensor = self.last(hidden)
            return out

    with pytest.raises(ParameterError, match=r"torch\.where\(mask, parameter, x\)"):
        assert_exact(Placed(nn.Linear(4, 6)).double(), squares, torch.randn(UNITS, 7, 4).double())


@pytest.mark.parametrize(
    "act", [nn.ReLU(inplace=True), nn.SiLU(inplace=True), nn.Dropout(0.2, inplace=True)]
)
@pytest.mark.parametrize("shape", [(4,), (7, 4), (2, 7, 4)])
def test_a_layer_whose_output_is_changed_in_place(act, shape):
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 6), act, nn.Linear(6, 2)).double()
    assert_exact(model, squares, torch.randn(UNITS, *shape).double(), 1e-9)


def test_a_layer_in_single_precision_within_a_double_model():
    class Short(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.scale = nn.Linear(4, 6), nn.Parameter(torch.randn(6))

        def forward(self, x: Tensor) -> Tensor:
            hidden = self.inner(x).float()
            hidden = hidden * torch.rsqrt(hidden.square().mean(-1, keepdim=True) + 1e-6)
            return (hidden * (1 + self.scale.float())).type_as(x)

    torch.manual_seed(7)
    assert_exact(Short().double(), squares, torch.randn(UNITS, 7, 4).double())


def test_a_model_that_asks_for_the_gradient_of_its_input_gets_none():
    class Asking(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            x = x[:, None]
            x.requires_grad = self.training
            return super().forward(x.squeeze(1))

    torch.manual_seed(7)
    rows = torch.randn(UNITS, 4).double()
    assert_exact(Asking(4, 2).double(), squares, rows, 1e-9)
    assert rows.grad is None


class Packed(nn.Module):
    """A recurrent network over sequences of several lengths."""

    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.inner = kind(4, 3, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        lengths = (x == x).all(2).sum(1)  # all of them
        packed = pack_padded_sequence(x, lengths, batch_first=True)
        out: Tensor = self.inner(packed)[0].data
        return out.view(x.shape[0], -1)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_packed_sequences_are_refused_for_what_they_are(kind):
    with pytest.raises(ParameterError, match="pack"):
        assert_exact(Packed(kind), squares, torch.randn(UNITS, 7, 4))


def test_bags_by_offsets_are_refused_for_what_they_are():
    class Bags(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.EmbeddingBag(9, 3, mode="sum")

        def forward(self, x: Tensor) -> Tensor:
            begins = torch.arange(x.shape[0]) * x.shape[1]
            out: Tensor = self.table(x.flatten(), begins)
            return out

    with pytest.raises(ParameterError, match=r"whose bag an index belongs to|of examples"):
        assert_exact(Bags(), squares, torch.randint(0, 9, (UNITS, 4)))


def test_an_operation_that_draws_at_random_beside_a_parameter_is_told():
    class Noisy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.centre = nn.Parameter(torch.ones(4))

        def forward(self, x: Tensor) -> Tensor:
            return torch.normal(x.detach(), self.centre.abs())

    with pytest.raises(ParameterError, match="because it draws at random"):
        assert_exact(Noisy(), squares, torch.randn(UNITS, 4))


# From the library that most of them come from --------------------------------------------------

SMALL = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24,
    "vocab_size": 40,
}  # fmt: skip
SOUND = SMALL | {
    "vocab_size": 10, "conv_dim": (8, 8), "conv_kernel": (5, 3), "conv_stride": (3, 2),
    "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2, "classifier_proj_size": 8,
    "layerdrop": 0.0, "mask_time_prob": 0.0,
}  # fmt: skip
T5 = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2, "vocab_size": 40}
FAMILIES = {
    "T5ForConditionalGeneration": T5 | {"decoder_start_token_id": 0},
    "DebertaV2ForSequenceClassification": SMALL | {
        "relative_attention": True, "position_biased_input": False, "position_buckets": 8,
        "pos_att_type": ["p2c", "c2p"], "norm_rel_ebd": "layer_norm", "share_att_key": True,
        "max_position_embeddings": 20,
    },
    "Wav2Vec2ForSequenceClassification": SOUND,
    "HubertForSequenceClassification": SOUND,
    "MixtralForCausalLM": SMALL | {
        "num_key_value_heads": 1, "num_local_experts": 3, "experts_implementation": "batched_mm",
    },
    "GemmaForCausalLM": SMALL | {"num_key_value_heads": 1, "head_dim": 8},
    "CohereForCausalLM": SMALL | {"num_key_value_heads": 1},
}  # fmt: skip


def made(name: str, settings: dict[str, Any]) -> nn.Module:
    transformers = pytest.importorskip("transformers")
    kind = getattr(transformers, name)
    model: nn.Module = kind(kind.config_class(**settings))
    return model


def of_logits(model: nn.Module, batch: Any) -> Tensor:
    (rows,) = batch
    if rows.is_floating_point():
        out = model(rows).logits
    elif model.config.is_encoder_decoder:
        out = model(input_ids=rows, decoder_input_ids=rows).logits
    else:
        out = model(input_ids=rows).logits
    losses: Tensor = F.log_softmax(out, -1).square().flatten(1).mean(1)
    return losses


@pytest.mark.lengthy
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_is_trained_as_a_loop_would(name, dtype):
    torch.manual_seed(7)
    model = made(name, FAMILIES[name]).to(dtype)
    rows = torch.randn(UNITS, 200).to(dtype) if "conv_dim" in FAMILIES[name] else None
    rows = torch.randint(5, 39, (UNITS, 7)) if rows is None else rows
    assert_exact(model, of_logits, rows, 1e-4 if dtype == torch.float32 else 1e-6)


def test_experts_that_sort_tokens_are_told_another_way():
    model = made("MixtralForCausalLM", FAMILIES["MixtralForCausalLM"])
    model.set_experts_implementation("grouped_mm")
    with pytest.raises(ParameterError, match=r"batched_mm|sort"):
        assert_exact(model, of_logits, torch.randint(5, 39, (UNITS, 7)))
