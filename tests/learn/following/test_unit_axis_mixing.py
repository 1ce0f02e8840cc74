"""Attempts to let one example reach another's gradient: each is refused, whatever the rows are."""

import random
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from discreet.errors import ParameterError
from discreet.learn import Flat
from discreet.learn.gradients.engine import GradientEngine

ROWS, WIDTH, CLASSES = 6, 4, 3


def rows(kind: str) -> Any:
    """Return a batch that shows a probe of numbers as little as can be."""
    y = torch.zeros(ROWS, dtype=torch.long)
    if kind == "alike":
        return torch.ones(ROWS, WIDTH), y
    return torch.zeros(ROWS, WIDTH), y


def ce(scores: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(scores, y, reduction="none")


def tried(model: nn.Module, loss: Any, batch: Any, *, steps: int = 3) -> None:
    torch.manual_seed(0)
    random.seed(0)
    engine = GradientEngine(model, clipping=Flat(norm=1.0), is_checked=False)
    for _ in range(steps):
        engine.accumulate(loss, batch, units=ROWS)


def small() -> nn.Module:
    return nn.Linear(WIDTH, CLASSES)


def with_rows(change: Any) -> Any:
    """Return a loss of rows that were changed before the model saw them."""
    return lambda m, b: ce(m(change(b[0])), b[1])


def with_scores(change: Any) -> Any:
    """Return a loss of scores that were changed."""
    return lambda m, b: ce(change(m(b[0])), b[1])


def plus(term: Any) -> Any:
    """Return a loss with a term of the whole batch's scores, which may be tiny."""
    return lambda m, b: ce(m(b[0]), b[1]) + 1e-9 * term(m(b[0]))


def mixup(x: Tensor) -> Tensor:
    return 0.7 * x + 0.3 * x[torch.randperm(x.shape[0])]


def cutmix(x: Tensor) -> Tensor:
    return torch.cat([x[:, :2], x[torch.randperm(x.shape[0]), 2:]], 1)


def lottery(x: Tensor) -> Tensor:
    return mixup(x) if random.random() < 0.3 else x


def draw(x: Tensor) -> Tensor:
    return mixup(x) if bool(torch.rand(()) < 0.3) else x


def looped(x: Tensor) -> Tensor:
    total = torch.zeros(CLASSES)
    for row in x:
        total = total + row
    return x + total


def written(x: Tensor) -> Tensor:
    shared = torch.zeros(CLASSES)
    shared.index_add_(0, torch.zeros(ROWS, dtype=torch.long), x.sum(1))
    return x + shared


def vicreg(z: Tensor) -> Tensor:
    centred = z - z.mean(0)
    spread = F.relu(1 - (z.var(0) + 1e-4).sqrt()).mean()
    covariance = centred.T @ centred / (len(z) - 1)
    return spread + covariance.fill_diagonal_(0).square().sum()


def info_nce(z: Tensor) -> Tensor:
    one, other = F.normalize(z, dim=1), F.normalize(2 * z + 1, dim=1)
    return F.cross_entropy(one @ other.T, torch.arange(len(z)), reduction="none")


def barlow(z: Tensor) -> Tensor:
    one = (z - z.mean(0)) / (z.std(0) + 1)
    return (one.T @ one / len(z) - torch.eye(CLASSES)).square().sum()


LOSSES: dict[str, Any] = {
    "mixup": with_rows(mixup),
    "cutmix": with_rows(cutmix),
    "mixup now and then": with_rows(lottery),
    "mixup by a draw of torch": with_rows(draw),
    "standardised rows": with_rows(lambda x: (x - x.mean(0)) / (x.std(0) + 1)),
    "vicreg": plus(vicreg),
    "info nce": plus(info_nce),
    "barlow twins": plus(barlow),
    "covariance": plus(lambda z: (z.T @ z).sum()),
    "variance": plus(lambda z: z.var(0).sum()),
    "std of all": plus(lambda z: z.std()),
    "cross-correlation": plus(lambda z: torch.einsum("bi,bj->ij", z, z).sum()),
    "similarities": plus(lambda z: torch.einsum("bi,ci->bc", z, z).logsumexp(1)),
    "contrast": plus(lambda z: (z @ z.T).log_softmax(1).diagonal()),
    "triplets": plus(lambda z: torch.cdist(z, z).amax(1)),
    "pairs": plus(lambda z: (z[:, None] - z[None]).square().sum((1, 2))),
    "outer product": plus(lambda z: torch.outer(z[:, 0], z[:, 1]).sum(1)),
    "tensordot": plus(lambda z: torch.tensordot(z, z, ([0], [0])).sum()),
    "matmul of transposed": plus(lambda z: torch.matmul(z.mT, z).sum()),
    "divided by len": lambda m, b: ce(m(b[0]), b[1]) / len(b[0]),
    "divided by shape": lambda m, b: ce(m(b[0]), b[1]) / b[0].shape[0],
    "divided by size": lambda m, b: ce(m(b[0]), b[1]) / b[0].size(0) ** 0.5,
    "times numel": lambda m, b: ce(m(b[0]), b[1]) * b[0].numel(),
    "added shape": lambda m, b: ce(m(b[0]), b[1]) + torch.tensor(b[0].shape[0]),
    "full of shape": lambda m, b: ce(m(b[0]), b[1]) * torch.full((), b[0].shape[0]),
    "branch on shape": lambda m, b: ce(m(b[0]), b[1]) * (2 if b[0].shape[0] > 5 else 1),
    "range of shape": lambda m, b: sum(ce(m(b[0]), b[1]) for _ in range(b[0].shape[0])),
    "arange as a number": plus(lambda z: torch.arange(z.shape[0]) * z[:, 0]),
    "linspace": plus(lambda z: torch.linspace(0, 1, z.shape[0]) * z[:, 0]),
    "eye": plus(lambda z: torch.eye(z.shape[0]) @ z[:, 0]),
    "mask of places": plus(lambda z: torch.tril(z).sum(1)),
    "mean of the losses": lambda m, b: ce(m(b[0]), b[1]).mean().expand(b[0].shape[0]),
    "mean by torch": lambda m, b: F.cross_entropy(m(b[0]), b[1]).expand(b[0].shape[0]),
    "sum by torch": lambda m, b: F.nll_loss(m(b[0]), b[1], reduction="sum").repeat(b[0].shape[0]),
    "mse by torch": plus(lambda z: F.mse_loss(z, z * 2)),
    "hard examples only": lambda m, b: ce(m(b[0]), b[1]).topk(2)[0].sum() + m(b[0])[:, 0],
    "sorted losses": lambda m, b: ce(m(b[0]), b[1]).sort()[0],
    "argsort": with_rows(lambda x: x[x[:, 0].argsort()]),
    "ranks": plus(lambda z: z[:, 0].argsort().argsort()),
    "softmax over the batch": plus(lambda z: z.softmax(0).sum(1)),
    "logsumexp": plus(lambda z: z.logsumexp(0).sum()),
    "median": with_scores(lambda z: z - z.median(0)[0]),
    "quantile": with_scores(lambda z: z - z.quantile(0.5, 0)),
    "max": with_scores(lambda z: z - z.max(0)[0]),
    "global max": with_scores(lambda z: z / (1 + z.abs().max())),
    "norm of all": with_scores(lambda z: z / (1 + z.norm())),
    "linalg norm": with_scores(lambda z: z / (1 + torch.linalg.norm(z))),
    "normalised columns": with_scores(lambda z: F.normalize(z, dim=0)),
    "running sum": with_scores(lambda z: z.cumsum(0)),
    "differences": plus(lambda z: F.pad(z[:, 0].diff(), (1, 0))),
    "neighbours": with_rows(lambda x: torch.cat([x[1:], x[:1]])),
    "first row": with_rows(lambda x: x + x[0]),
    "first slice": with_rows(lambda x: x + x[:1]),
    "last slice": with_rows(lambda x: x + x[-1:]),
    "every second": with_rows(lambda x: x[::2].repeat_interleave(2, 0)),
    "flipped": with_rows(lambda x: x + x.flip(0)),
    "rolled": with_rows(lambda x: x + x.roll(1, 0)),
    "rolled flat": with_rows(lambda x: x + x.roll(1)),
    "rows by label": lambda m, b: ce(m(b[0][b[1]]), b[1]),
    "index_select": lambda m, b: ce(m(b[0].index_select(0, b[1])), b[1]),
    "gather": with_rows(lambda x: x.gather(0, x.long().clamp(0, 1))),
    "scatter": with_rows(lambda x: x.scatter(0, torch.zeros_like(x).long(), x)),
    "take": with_rows(lambda x: x.take(torch.zeros(ROWS, WIDTH, dtype=torch.long))),
    "loop": with_scores(looped),
    "unbind": with_rows(lambda x: x + sum(x.unbind(0))),
    "stacked": with_rows(lambda x: torch.stack([x[i] + x[0] for i in range(ROWS)])),
    "written into": with_scores(written),
    "index put": with_rows(lambda x: x.index_put((torch.tensor([0]),), x[1])),
    "paired by a view": with_scores(lambda z: z.view(-1, 2 * CLASSES).flip(1).view(-1, CLASSES)),
    "torn by a reshape": with_scores(lambda z: z.reshape(CLASSES, -1).mT),
    "transposed norm": with_scores(lambda z: F.layer_norm(z.T, (z.shape[0],)).T),
    "group norm": with_scores(lambda z: F.group_norm(z.T[None], 1)[0].T),
    "batch norm": with_scores(lambda z: F.batch_norm(z, None, None, training=True)),
    "convolved over rows": with_scores(
        lambda z: F.conv1d(z.T[None], torch.ones(3, 3, 3), padding=1)[0].T
    ),
    "pooled over rows": with_scores(lambda z: F.max_pool1d(z.T[None], 3, 1, 1)[0].T),
    "resized": with_scores(lambda z: F.interpolate(z[None, None], scale_factor=(1.0, 1.0))[0, 0]),
    "unfolded": plus(lambda z: F.pad(z[:, 0], (1, 1)).unfold(0, 3, 1).sum(1)),
    "padded": with_rows(lambda x: F.pad(x, (0, 0, 1, 0))[:-1]),
    "fourier": with_scores(lambda z: torch.fft.fft(z, dim=0).real),
    "least squares": plus(lambda z: torch.linalg.lstsq(z, z).solution.sum()),
    "singular values": plus(lambda z: torch.linalg.svdvals(z).sum()),
    "attention across": with_scores(
        lambda z: F.scaled_dot_product_attention(z[None], z[None], z[None])[0]
    ),
    "counted labels": lambda m, b: ce(m(b[0]), b[1]) * torch.bincount(b[1], minlength=3)[b[1]],
    "labels by one hot": lambda m, b: ce(m(b[0]), b[1]) / F.one_hot(b[1], 3).sum(0)[b[1]],
    "histogram": plus(lambda z: torch.histc(z).sum()),
    "unique": plus(lambda z: z.unique().sum()),
    "item": with_scores(lambda z: z * z.sum().item()),
    "tolist": with_scores(lambda z: z * z.tolist()[0][0]),
    "float": with_scores(lambda z: z * float(z[0, 0])),
    "numpy": with_scores(lambda z: z + torch.from_numpy(z.detach().numpy().mean(0))),
    "asarray": with_scores(lambda z: z + float(np.asarray(z.detach()).mean())),
    "printed": with_scores(lambda z: z * len(str(z))),
    "storage": with_scores(lambda z: z * z.untyped_storage()[0]),
    "as_strided": with_scores(lambda z: z.as_strided((ROWS, CLASSES), (0, 1))),
    "data": with_scores(lambda z: z + z.data.mean(0)),
    "branch": with_scores(lambda z: z if z.sum() > 0 else -z),
    "while": with_scores(lambda z: next(z for _ in iter(lambda: bool((z < 0).any()), False))),
    "mask": plus(lambda z: z[z > 0].sum()),
    "masked_select": plus(lambda z: z.masked_select(z > 0).sum()),
    "nonzero": plus(lambda z: z.nonzero().sum()),
    "drawn among rows": with_rows(lambda x: x[torch.multinomial(x.abs().sum(1) + 1, ROWS)]),
    "random rows": with_rows(lambda x: x[torch.randint(x.shape[0], (ROWS,))]),
    "random pairs": with_rows(lambda x: x[torch.randint(ROWS, (ROWS,))]),
    "shuffled by noise": with_rows(lambda x: x[torch.rand(x.shape[0]).argsort()]),
    "vmapped": plus(lambda z: torch.vmap(lambda one: (one * z).sum())(z)),
    "no gradient, yet a sum": with_scores(lambda z: z + z.detach().sum(0)),
    "gradient of the batch": plus(lambda z: torch.autograd.grad(z.sum(), z)[0].sum(1)),
    "hook": with_scores(lambda z: (z.register_hook(lambda g: g - g.mean(0)), z)[1]),
    "bucketed by the batch": plus(lambda z: torch.searchsorted(z[:, 0].contiguous(), z[:, 1])),
    "numbers padded with zeros": with_rows(
        lambda x: x[F.pad(torch.arange(x.shape[0])[:, None], (1, 0))[:, 0]]
    ),
    "few bits of numbers": with_rows(lambda x: x[torch.arange(x.shape[0]).to(torch.int8).long()]),
    "a table by place": with_rows(lambda x: x + torch.ones(ROWS, 1)[torch.arange(x.shape[0])]),
    "solved": plus(lambda z: torch.linalg.solve(z.T @ z + torch.eye(3), z.T).sum(0)),
}


@pytest.mark.parametrize("kind", ["alike", "blank"])
@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_that_mixes_examples_is_refused(name, kind):
    with pytest.raises(ParameterError):
        tried(small(), LOSSES[name], rows(kind), steps=5)
