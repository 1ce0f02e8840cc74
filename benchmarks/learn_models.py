"""The models that learn.py trains, written so that every method it compares accepts them.

No layer changes its input in place, mixes examples or holds a buffer; each has its parameters in
modules that the peers have rules for, and positions are looked up per example, (batch, length).
"""

import math
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

Batch = tuple[Tensor, Tensor]


@dataclass(frozen=True, kw_only=True)
class Task:
    """What is trained, on what: everything is made on torch's default device of the moment."""

    name: str
    batch_size: int
    model: Callable[[], nn.Module]
    batch: Callable[[], Batch]
    losses: Callable[[Tensor, Tensor], Tensor]  # of output and target: one loss per example
    optimizer: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]
    tf32: bool = False
    autocast: torch.dtype | None = None

    def precision(self, device: str) -> AbstractContextManager[object]:
        """Return the context that forward passes and losses run in."""
        if self.autocast is None:
            return nullcontext()
        return torch.autocast(device, dtype=self.autocast)


def sgd(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9)


def adamw(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=1e-4)


# --- images -----------------------------------------------------------------------------------


class SmallCNN(nn.Module):
    """The network of the usual MNIST example of private training: 26,010 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 16, 8, stride=2, padding=3)
        self.second = nn.Conv2d(16, 32, 4, stride=2)
        self.hidden = nn.Linear(32 * 4 * 4, 32)
        self.head = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.first(x)), 2, 1)
        x = F.max_pool2d(F.relu(self.second(x)), 2, 1)
        return self.head(F.relu(self.hidden(x.flatten(1))))


class _Residual(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.norm1 = nn.GroupNorm(16, inside)
        self.conv1 = nn.Conv2d(inside, outside, 3, stride=stride, padding=1)
        self.norm2 = nn.GroupNorm(16, outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, padding=1)
        self.shortcut = None
        if stride != 1 or inside != outside:
            self.shortcut = nn.Conv2d(inside, outside, 1, stride=stride)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(x))
        kept = x if self.shortcut is None else self.shortcut(y)
        return kept + self.conv2(F.relu(self.norm2(self.conv1(y))))


class WideResNet(nn.Module):
    """A wide residual network for 32 x 32 images, with group instead of batch normalisation."""

    def __init__(self, *, depth: int = 16, width: int = 4) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        blocks, inside = [], 16
        for stage, outside in enumerate((16 * width, 32 * width, 64 * width)):
            for index in range((depth - 4) // 6):
                stride = 2 if stage > 0 and index == 0 else 1
                blocks.append(_Residual(inside, outside, stride))
                inside = outside
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.GroupNorm(16, inside)
        self.head = nn.Linear(inside, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm(self.blocks(self.stem(x))))
        return self.head(x.mean((2, 3)))


def _of_classes(output: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(output, target, reduction="none")


def cnn_task(*, batch_size: int) -> Task:
    return Task(
        name="small CNN",
        batch_size=batch_size,
        model=SmallCNN,
        batch=lambda: (torch.randn(batch_size, 1, 28, 28), torch.randint(10, (batch_size,))),
        losses=_of_classes,
        optimizer=sgd,
    )


def wrn_task(*, depth: int, width: int, batch_size: int) -> Task:
    return Task(
        name=f"WRN-{depth}-{width}",
        batch_size=batch_size,
        model=lambda: WideResNet(depth=depth, width=width),
        batch=lambda: (torch.randn(batch_size, 3, 32, 32), torch.randint(10, (batch_size,))),
        losses=_of_classes,
        optimizer=sgd,
        tf32=True,
    )


# --- language ---------------------------------------------------------------------------------


class LoRA(nn.Module):
    """A frozen linear layer and a trainable correction of low rank."""

    def __init__(self, base: nn.Linear, rank: int) -> None:
        super().__init__()
        self.base = base.requires_grad_(requires_grad=False)
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)
        # A first correction of zero, as usual, would leave `down` without a gradient.
        nn.init.normal_(self.up.weight, std=0.01)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + 2 * self.up(self.down(x))


class _Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv: nn.Module = nn.Linear(width, 3 * width)
        self.mix: nn.Module = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.widen = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def attention(self, x: Tensor) -> Tensor:
        n, length, width = x.shape
        parts = self.qkv(x).view(n, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.mix(y.transpose(1, 2).reshape(n, length, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.narrow(F.gelu(self.widen(self.norm2(x)), approximate="tanh"))


class GPT(nn.Module):
    """A decoder in the manner of GPT-2, without dropout, its head not tied to its embedding."""

    def __init__(self, *, layers: int, width: int, heads: int, words: int, context: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(_Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                deep = name.endswith(("mix.weight", "narrow.weight"))
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * layers) if deep else 0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        n, length = tokens.shape
        places = torch.arange(length, device=tokens.device).repeat(n, 1)
        x = self.words(tokens) + self.places(places)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def with_lora(model: GPT, *, rank: int) -> GPT:
    """Freeze the model but for corrections of its attention's projections."""
    model.requires_grad_(requires_grad=False)
    for block in model.blocks:
        for name in ("qkv", "mix"):
            projection = getattr(block, name)
            setattr(block, name, LoRA(projection, rank))
    return model


def _of_words(output: Tensor, target: Tensor) -> Tensor:
    each = F.cross_entropy(output.flatten(0, 1), target.flatten(), reduction="none")
    return each.view(target.shape).mean(1)


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Sizes of a decoder. The defaults are GPT-2's smallest: 124 M parameters, 163 M with head."""

    layers: int = 12
    width: int = 768
    heads: int = 12
    words: int = 50_257
    context: int = 1_024


def gpt_task(
    *,
    shape: Shape,
    length: int,
    batch_size: int,
    rank: int | None = None,
    autocast: torch.dtype | None = None,
) -> Task:
    def model() -> nn.Module:
        whole = GPT(**vars(shape))
        return whole if rank is None else with_lora(whole, rank=rank)

    def batch() -> Batch:
        tokens = torch.randint(shape.words, (batch_size, length + 1))
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    adapters = "" if rank is None else f" LoRA r={rank}"
    return Task(
        name=f"GPT{adapters} {'fp32' if autocast is None else 'bf16'}",
        batch_size=batch_size,
        model=model,
        batch=batch,
        losses=_of_words,
        optimizer=adamw,
        tf32=True,
        autocast=autocast,
    )


# --- what is compared ---------------------------------------------------------------------------


def gpu_tasks(*, reduce: int = 1) -> dict[str, Task]:
    """Return the tasks for a large GPU, or with batches smaller by a factor."""
    shape, gpt_batch = Shape(), max(1, 32 // reduce)
    gpt = partial(gpt_task, shape=shape, length=512, batch_size=gpt_batch)
    low = torch.bfloat16
    return {
        "cnn": cnn_task(batch_size=max(1, 512 // reduce)),
        "wrn": wrn_task(depth=16, width=4, batch_size=max(1, 4096 // reduce)),
        "gpt-bf16": gpt(autocast=low),
        "gpt-fp32": gpt(),
        "lora-bf16": gpt(autocast=low, rank=8),
        "lora-fp32": gpt(rank=8),
    }


def cpu_tasks(*, reduce: int = 1) -> dict[str, Task]:
    """Return tasks that a laptop does in seconds."""
    shape = Shape(layers=4, width=128, heads=4, words=2_048, context=64)
    gpt = partial(gpt_task, shape=shape, length=64, batch_size=max(1, 32 // reduce))
    return {
        "cnn": cnn_task(batch_size=max(1, 512 // reduce)),
        "wrn": wrn_task(depth=16, width=1, batch_size=max(1, 64 // reduce)),
        "gpt": gpt(),
        "lora": gpt(rank=8),
    }
