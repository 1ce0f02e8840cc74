"""Every rule on real rows: with one unit changed, the others' parts stay equal bit by bit."""

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch._dispatch.python import enable_python_dispatcher

from discreet.errors import ParameterError
from discreet.learn.following.axis import table
from discreet.learn.following.axis.dispatching import Following
from discreet.learn.following.axis.labels import Axis, axis_of, put_axis
from discreet.learn.following.axis.symbolic import UnitCount
from discreet.learn.following.batch_tree import tensors

COUNTS = (2, 5)
DRAWS, ENOUGH = 80, 8

# Of a tensor x with the axis somewhere, and y like it.
OPERATIONS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "add": lambda x, y: x + 2 * y,
    "add constant": lambda x, y: x + torch.arange(x.shape[-1] if type(x.shape[-1]) is int else 1),
    "pairs": lambda x, y: x[:, None] * y[None],
    "where": lambda x, y: torch.where(x > 0, x, y.tanh()),
    "clamp": lambda x, y: x.clamp(-1, 1).pow(2).masked_fill(y > 0, 0.5),
    "add in place": lambda x, y: x.clone().add_(y).mul_(2),
    "copy into": lambda x, y: torch.empty_like(x).copy_(y),
    "reshape front": lambda x, y: x.flatten(0, 1),
    "reshape back": lambda x, y: x.flatten(-2),
    "reshape all": lambda x, y: x.reshape(-1, 2),
    "unflatten": lambda x, y: x.unflatten(-1, (-1, 2)),
    "unflatten first": lambda x, y: x.unflatten(0, (2, -1)),
    "permute": lambda x, y: x.movedim(0, -1),
    "transpose": lambda x, y: x.transpose(-1, 0),
    "t": lambda x, y: x.flatten(1).t(),
    "unsqueeze": lambda x, y: x.unsqueeze(1).squeeze(1).unsqueeze(-1),
    "expand": lambda x, y: x.unsqueeze(0).expand(3, *x.shape),
    "expand constant": lambda x, y: (
        torch.arange(3.0).expand(*x.shape[:1], 3) + 0 * x.flatten(1)[:, :1]
    ),
    "repeat": lambda x, y: x.repeat(2, *[1] * (x.dim() - 1)),
    "repeat last": lambda x, y: x.repeat(*[1] * (x.dim() - 1), 2),
    "repeat interleave": lambda x, y: x.repeat_interleave(2, 0),
    "select": lambda x, y: x.select(0, 1),
    "select last": lambda x, y: x[..., 0],
    "slice": lambda x, y: x[:, 1:],
    "slice first": lambda x, y: x[:1],
    "split": lambda x, y: x.split(1, 1),
    "chunk": lambda x, y: torch.split(torch.cat([x, y]), x.shape[0]),
    "unbind": lambda x, y: x.unbind(1),
    "cat": lambda x, y: torch.cat([x, y], 0),
    "cat last": lambda x, y: torch.cat([x, y], -1),
    "stack": lambda x, y: torch.stack([x, y], 1),
    "flip": lambda x, y: x.flip(0),
    "flip last": lambda x, y: x.flip(-1),
    "roll": lambda x, y: x.roll(1, 0),
    "roll last": lambda x, y: x.roll(1, -1),
    "pad": lambda x, y: F.pad(x, (1, 0, 0, 0)),
    "pad first": lambda x, y: F.pad(x, (0, 0) * (x.dim() - 1) + (1, 0)),
    "diagonal": lambda x, y: x.diagonal(0, -2, -1),
    "diag_embed": lambda x, y: x.diag_embed(),
    "unfold": lambda x, y: x.unfold(-1, 2, 1),
    "complex": lambda x, y: torch.view_as_real(torch.complex(x, y)),
    "sum": lambda x, y: x.sum(0),
    "sum last": lambda x, y: x.sum(-1, keepdim=True),
    "mean of two": lambda x, y: x.mean((0, -1)),
    "max": lambda x, y: x.max(1),
    "argmax": lambda x, y: x.argmax(-1),
    "var": lambda x, y: torch.var_mean(x, -1),
    "norm": lambda x, y: torch.linalg.vector_norm(x, dim=0),
    "any": lambda x, y: (x > 0).any(1),
    "all of it": lambda x, y: x.sum(),
    "softmax": lambda x, y: x.softmax(0),
    "softmax last": lambda x, y: x.log_softmax(-1),
    "sort": lambda x, y: x.sort(0),
    "sort last": lambda x, y: x.sort(-1),
    "topk": lambda x, y: x.topk(1, -1),
    "cumsum": lambda x, y: x.cumsum(0),
    "cumsum last": lambda x, y: x.cumsum(-1),
    "matmul": lambda x, y: x @ y.mT,
    "mm": lambda x, y: x.flatten(1) @ torch.ones(x.flatten(1).shape[1], 2),
    "mm left": lambda x, y: torch.ones(2, x.flatten(0, -2).shape[0]) @ x.flatten(0, -2),
    "mv": lambda x, y: torch.mv(x.flatten(1), torch.ones(x.flatten(1).shape[1])),
    "bmm": lambda x, y: torch.bmm(x.flatten(0, -3), y.flatten(0, -3).mT),
    "addmm": lambda x, y: torch.addmm(torch.ones(2), x.flatten(0, -2), torch.ones(x.shape[-1], 2)),
    "baddbmm": lambda x, y: torch.baddbmm(torch.ones(1), x.flatten(0, -3), y.flatten(0, -3).mT),
    "einsum": lambda x, y: torch.einsum("...ij,...kj->...ik", x, y),
    "einsum over": lambda x, y: torch.einsum("i...,i...->...", x, y),
    "conv": lambda x, y: F.conv1d(x.flatten(0, -3), torch.ones(2, x.shape[-2], 2)),
    "tril": lambda x, y: torch.tril(x),
    "inverse": lambda x, y: torch.linalg.inv_ex(x @ x.mT + 9 * torch.eye(x.shape[-2])),
    "distances": lambda x, y: torch.cdist(x, y),
    "distances to some": lambda x, y: torch.cdist(x, torch.ones(3, x.shape[-1])),
    "gather": lambda x, y: x.gather(0, (y > 0).long()),
    "gather last": lambda x, y: x.gather(-1, (y > 0).long()),
    "scatter": lambda x, y: x.scatter(1, (y > 0).long(), y),
    "index_select": lambda x, y: x.index_select(0, torch.tensor([1, 0])),
    "index_select last": lambda x, y: x.index_select(-1, torch.tensor([1, 0])),
    "index_add": lambda x, y: x.index_add(-1, torch.tensor([1]), y[..., :1]),
    "embedding": lambda x, y: F.embedding((x > 0).long(), torch.randn(2, 3)),
    "index": lambda x, y: x[:, torch.tensor([1, 0, 1])],
    "index apart": lambda x, y: x[torch.tensor([1, 0]), ..., torch.tensor([0, 1])],
    "index a table": lambda x, y: torch.randn(2, 3)[(x > 0).long()],
    "own index": lambda x, y: x[torch.arange(x.shape[0]), (y > 0).long().flatten(1)[:, 0]],
    "places as index": lambda x, y: torch.randn(99, 3)[torch.arange(x.shape[0])] + 0 * x.sum(),
    "index put": lambda x, y: x.index_put((torch.tensor([0]), torch.tensor([1])), torch.ones(1)),
    "put by mask": lambda x, y: x.clone().masked_fill_(y > 0, 1.0),
    "mask put": lambda x, y: x.clone().index_put_((y > 0,), torch.tensor(1.0)),
    "buckets": lambda x, y: torch.bucketize(x, torch.linspace(-1, 1, 5)),
    "layer norm": lambda x, y: F.layer_norm(x, x.shape[-1:]),
    "group norm": lambda x, y: F.group_norm(x, 1),
    "instance norm": lambda x, y: F.instance_norm(x.flatten(0, -3)),
    "fixed batch norm": lambda x, y: F.batch_norm(
        x, torch.ones(x.shape[1]), torch.ones(x.shape[1])
    ),
    "batch norm": lambda x, y: F.batch_norm(x, None, None, training=True),
    "pool": lambda x, y: F.max_pool2d(x, 2, 1),
    "pool one": lambda x, y: F.avg_pool1d(x, 2, 1),
    "resize": lambda x, y: F.interpolate(x, scale_factor=2),
    "reflect": lambda x, y: F.pad(x, (1, 1), mode="reflect"),
    "shuffle": lambda x, y: F.pixel_unshuffle(x, 2),
    "windows": lambda x, y: F.unfold(x, 2),
    "grid": lambda x, y: F.grid_sample(x, torch.tanh(y)[:, :2, :, :2], align_corners=False),
    "mse": lambda x, y: F.mse_loss(x, y, reduction="none"),
    "bce": lambda x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid(), reduction="none"),
    "mean loss": lambda x, y: F.mse_loss(x, y),
    "cross entropy": lambda x, y: F.cross_entropy(x, (y > 0).long().select(1, 0), reduction="none"),
    "margin": lambda x, y: F.multi_margin_loss(
        x.flatten(1), (y > 0).long().flatten(1)[:, 0], reduction="none"
    ),
    "glu": lambda x, y: F.glu(x, -1),
    "glu first": lambda x, y: F.glu(x, 0),
    "prelu": lambda x, y: F.prelu(x, torch.ones(1)),
    "fft": lambda x, y: torch.fft.rfft(x, dim=-1).abs(),
    "zeros": lambda x, y: torch.zeros(x.shape).add(y),
    "zeros filled": lambda x, y: torch.zeros_like(x).fill_(2).add(y),
    "zeros regrouped": lambda x, y: torch.zeros(x.shape).flatten(0, 1) + y.flatten(0, 1),
    "written view": lambda x, y: _written(x, y),
    "numbers": lambda x, y: torch.arange(x.shape[0]) * 1.0 + x.flatten(1)[:, 0],
    "padded numbers": lambda x, y: x[F.pad(torch.arange(x.shape[0])[:, None], (0, 1))[:, 1]],
    "few bits of numbers": lambda x, y: x[torch.arange(x.shape[0]).to(torch.int8).long()],
    "as strided": lambda x, y: x.as_strided(x.shape, (0,) * x.dim()),
    "affine grid": lambda x, y: F.affine_grid(
        x[:, :2, :3], [x.shape[0], 1, 2, 2], align_corners=False
    ),
}


def _written(x: Tensor, y: Tensor) -> Tensor:
    made = torch.zeros(x.shape)
    made.select(-1, 0).copy_(y.select(-1, 0))
    return made.flatten(0, 1) + x.flatten(0, 1)


def place(chance: random.Random) -> tuple[list[int], Axis]:
    """Draw a shape, with 0 where the axis is, and the axis."""
    shape = [chance.choice([2, 3, 4]) for _ in range(chance.choice([2, 3, 4]))]
    dim = chance.choice([0, 0, 0, 1, len(shape) - 1])
    shape[dim] = 0
    return shape, Axis(dim, chance.choice([1, 1, 1, 2]), chance.choice([1, 1, 1, 2, 3]))


def sized(shape: list[int], axis: Axis, count: Any) -> list[Any]:
    return [axis.each * count if size == 0 else size for size in shape]


def traced(run: Any, shape: list[int], axis: Axis) -> Any:
    """Return the axes of what an operation gives, or None if it is refused."""
    count = UnitCount()
    following = Following(count)
    with following.mode:
        pair = [torch.empty(sized(shape, axis, count.units)) for _ in range(2)]
    for one in pair:
        put_axis(one, axis)
    try:
        with enable_python_dispatcher(), count.inside(), following:
            out = run(*pair)
    except (ParameterError, RuntimeError, IndexError, ValueError, TypeError):
        return None
    return [axis_of(one) for one in tensors(out)]


def parts(tensor: Tensor, axis: Axis, count: int) -> Tensor:
    front = tensor.movedim(axis.dim, 0)
    return front.unflatten(0, (axis.outer, count, axis.inner)).movedim(1, 0)


def agrees(run: Any, shape: list[int], axis: Axis, found: Any) -> bool:
    """Say whether units keep apart as the axes say."""
    for count in COUNTS:
        pair = [torch.randn(sized(shape, axis, count)) for _ in range(2)]
        changed = [one.clone() for one in pair]
        for one in changed:
            parts(one, axis, count)[1].add_(torch.randn(()) * 3)
        results = []
        for given in (pair, changed):
            torch.manual_seed(5)
            results.append(list(tensors(run(*given))))
        for one, other, own in zip(*results, found, strict=True):
            if own is None:
                is_kept = _equal(one, other)
            else:
                mine, theirs = parts(one, own, count), parts(other, own, count)
                rest = [unit for unit in range(count) if unit != 1]
                is_kept = _equal(mine[rest], theirs[rest])
            if not is_kept:
                return False
    return True


def _equal(one: Tensor, other: Tensor) -> bool:
    return torch.equal(one.nan_to_num(), other.nan_to_num())


REFUSED = {"all of it", "mean loss", "as strided", "numbers", "places as index"}


def verdicts(run: Any, name: str) -> list[bool]:
    chance = random.Random(name)
    found = []
    for _ in range(DRAWS):
        shape, axis = place(chance)
        axes = traced(run, shape, axis)
        if axes is not None:
            found.append(agrees(run, shape, axis, axes))
        if len(found) == ENOUGH:
            break
    return found


@pytest.mark.lengthy
@pytest.mark.parametrize("name", OPERATIONS)
def test_units_keep_apart_wherever_a_rule_says_so(name):
    found = verdicts(OPERATIONS[name], name)
    assert all(found)
    assert bool(found) != (name in REFUSED)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("rule", "name"),
    [("flip", "flip"), ("cumsum", "cumsum"), ("_softmax", "softmax"), ("roll", "roll"),
     ("sort", "sort"), ("gather", "gather")],
)  # fmt: skip
def test_a_wrong_rule_would_show(rule, name, monkeypatch):
    monkeypatch.setitem(table.RULES, rule, table.RULES["relu"])
    assert not all(verdicts(OPERATIONS[name], name))
