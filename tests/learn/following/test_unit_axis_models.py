"""Networks that other people built keep examples apart: accepted, and exact against a loop."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
import transformers as T
from oracle import clipped_sum, gradients
from torch import Tensor, nn

from discreet.learn import Flat
from discreet.learn.gradients.engine import GradientEngine

ROWS = 3
TEXT = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "vocab_size": 50,
    "max_position_embeddings": 32,
}
CAUSAL = TEXT | {
    "num_key_value_heads": 1,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
VISION = {name: TEXT[name] for name in list(TEXT)[:4]} | {"image_size": 16, "patch_size": 8}
PAIRS: dict[str, dict[str, Any]] = {
    "BertForMaskedLM Bert": TEXT,
    "RobertaForMaskedLM Roberta": TEXT | {"pad_token_id": 1},
    "AlbertForMaskedLM Albert": TEXT | {"embedding_size": 8},
    "ElectraForMaskedLM Electra": TEXT | {"embedding_size": 8},
    "MPNetForMaskedLM MPNet": TEXT,
    "DebertaForMaskedLM Deberta": TEXT | {"relative_attention": True, "pos_att_type": ["c2p"]},
    "FNetForMaskedLM FNet": {k: v for k, v in TEXT.items() if k != "num_attention_heads"},
    "GPTNeoXForCausalLM GPTNeoX": TEXT,
    "PhiForCausalLM Phi": TEXT,
    "LlamaForCausalLM Llama": CAUSAL,
    "MistralForCausalLM Mistral": CAUSAL | {"sliding_window": 4},
    "Qwen2ForCausalLM Qwen2": CAUSAL,
    "Qwen3ForCausalLM Qwen3": CAUSAL | {"head_dim": 8},
    "OlmoForCausalLM Olmo": CAUSAL,
    "GraniteForCausalLM Granite": CAUSAL,
    "Starcoder2ForCausalLM Starcoder2": CAUSAL,
    "StableLmForCausalLM StableLm": CAUSAL,
    "BioGptForCausalLM BioGpt": TEXT,
    "ViTForImageClassification ViT": VISION,
    "DeiTForImageClassification DeiT": VISION,
    "BeitForImageClassification Beit": VISION,
}


def loss(model: nn.Module, batch: Any) -> Tensor:
    if batch[0].is_floating_point():
        return model(pixel_values=batch[0]).logits.square().sum(1)
    scores = model(input_ids=batch[0]).logits
    return F.cross_entropy(scores.transpose(1, 2), batch[0], reduction="none").mean(1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of scripted functions
@pytest.mark.parametrize("pair", PAIRS)
def test_a_network_is_accepted_and_exact(pair):
    torch.manual_seed(0)
    kind, config = pair.split()
    settings = getattr(T, f"{config}Config")(**PAIRS[pair])
    model = getattr(T, kind)(settings).double().eval()
    images = torch.randn(ROWS, 3, 16, 16, dtype=torch.float64)
    batch = (images if "Image" in kind else torch.randint(3, 50, (ROWS, 6)),)
    grads = gradients(model, loss, batch, ROWS)
    norm = float(grads.norm(dim=1).median())
    engine = GradientEngine(model, clipping=Flat(norm=norm))
    engine.accumulate(loss, batch, units=ROWS)
    expected = clipped_sum(grads, norm)
    assert float((engine.flat.buffer - expected).norm() / expected.norm()) < 1e-6
