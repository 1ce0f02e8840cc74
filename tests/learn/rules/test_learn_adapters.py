"""Models that other people built: Hugging Face networks and PEFT adapters, clipped exactly."""

from typing import Any

import peft
import pytest
import torch
import transformers
from oracle import clipped_sum, gradients
from torch import Tensor, nn

from discreet.learn import Flat
from discreet.learn.gradients.engine import GradientEngine

SMALL = {
    "vocab_size": 19,
    "n_positions": 16,
    "n_embd": 16,
    "n_layer": 2,
    "n_head": 2,
    "embd_pdrop": 0.0,
    "attn_pdrop": 0.0,
    "resid_pdrop": 0.0,
}


@pytest.fixture(autouse=True)
def double() -> Any:
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def language_loss(model: nn.Module, batch: Any) -> Tensor:
    """Return the mean loss of the next token, for each row."""
    (tokens,) = batch
    logits = model(input_ids=tokens, use_cache=False).logits[:, :-1]
    losses = nn.functional.cross_entropy(logits.transpose(1, 2), tokens[:, 1:], reduction="none")
    return losses.mean(1)


def gpt2() -> nn.Module:
    model: nn.Module = transformers.GPT2LMHeadModel(transformers.GPT2Config(**SMALL))
    return model


def checkpointed() -> nn.Module:
    model = gpt2()
    model.gradient_checkpointing_enable({"use_reentrant": False})
    return model.train()


def adapted(**options: Any) -> nn.Module:
    config = peft.LoraConfig(
        r=4, target_modules=["c_attn", "c_proj"], fan_in_fan_out=True, **options
    )
    model: nn.Module = peft.get_peft_model(gpt2(), config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:  # which begins at zero, and would hide half of the gradient
                parameter.normal_(std=0.1)
    return model


def bert() -> nn.Module:
    config = transformers.BertConfig(
        vocab_size=19,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=16,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model: nn.Module = transformers.BertForMaskedLM(config)
    return model


@pytest.mark.parametrize(
    "make",
    [gpt2, checkpointed, adapted, lambda: adapted(use_dora=True), bert],
    ids=["GPT-2, tied", "GPT-2, checkpointed", "LoRA", "DoRA", "BERT"],
)
def test_clipped_sums_are_those_of_single_examples(make):
    model = make()
    batch = (torch.randint(0, 19, (5, 7)),)
    grads = gradients(model, language_loss, batch, 5)
    norm = float(grads.norm(dim=1).median())
    engine = GradientEngine(model, clipping=Flat(norm=norm))
    engine.accumulate(language_loss, batch, units=5)
    expected = clipped_sum(grads, norm)
    assert float((engine.flat.buffer - expected).norm() / expected.norm()) < 1e-6
