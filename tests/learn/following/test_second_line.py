"""The second line by itself: what mixes examples shows in numbers, whatever the first rows are."""

from typing import Any

import pytest
import torch
from test_unit_axis_mixing import LOSSES, ROWS, WIDTH, ce, small
from torch import Tensor, nn

from discreet.errors import ParameterError
from discreet.learn.gradients.apart_check import check_apart
from discreet.learn.norms.dispatch import allows_tf32

KINDS = ("sorted", "alike", "blank")
MOST = 45  # of LOSSES; others have a weight of 1e-9, below the rounding of floats, or fail


def first_rows(kind: str) -> Any:
    """Return rows of one label, which may be alike or blank besides."""
    x = torch.randn(ROWS, WIDTH) if kind == "sorted" else torch.full((ROWS, WIDTH), kind == "alike")
    return x.float(), torch.zeros(ROWS, dtype=torch.long)


def is_found(loss: Any, kind: str, model: nn.Module | None = None, *, seed: int = 7) -> bool:
    torch.manual_seed(seed)
    model = model or small()
    parameters = tuple(model.parameters())
    try:
        check_apart(
            model,
            parameters,
            loss,
            first_rows(kind),
            units=ROWS,
            seed=seed,
            rounding=2e-6,
            tolerance=1e-3,
        )
    except ParameterError:
        return True
    except (RuntimeError, ValueError, IndexError):
        return False  # it does not take three rows
    return False


@pytest.mark.lengthy
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_most_attempts_show_without_the_first_line(kind):
    assert sum(is_found(loss, kind) for loss in LOSSES.values()) >= MOST


SMALL: dict[str, Any] = {
    "covariance": lambda z: (z.T @ z).square().mean(),
    "variance": lambda z: z.var(0).sum(),
    "similarities": lambda z: (z @ z.T).logsumexp(1),
    "softmax over the batch": lambda z: z.softmax(0).square().sum(1),
    "pairs": lambda z: (z[:, None] - z[None]).square().sum((1, 2)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SMALL)
def test_a_small_term_of_the_batch_shows(name, kind):
    def loss(model: nn.Module, batch: Any) -> Tensor:
        scores = model(batch[0])
        return ce(scores, batch[1]) + 1e-3 * SMALL[name](scores)

    assert is_found(loss, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_of_rows_that_a_trace_does_not_see_shows(kind):
    def loss(model: nn.Module, batch: Any) -> Tensor:
        count = batch[0].shape[0]
        return ce(model(batch[0]), batch[1]) * (1 / count if isinstance(count, int) else 1.0)

    assert is_found(loss, kind)


class Keeping(nn.Module):
    def __init__(self, keep: Any) -> None:
        super().__init__()
        self.inner, self.keep = small(), keep
        self.kept: Any = [0.0, {}]
        self.count = 0

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        self.keep(self, x)
        out: Tensor = self.inner(x)
        return out


def keep_tensor(model: Any, x: Tensor) -> None:
    model.kept = [x.detach().mean(0)]


def keep_number(model: Any, x: Tensor) -> None:
    model.kept = {"mean": float(x.mean())}


def plain(model: nn.Module, batch: Any) -> Tensor:
    return ce(model(batch[0]), batch[1])


@pytest.mark.parametrize("keep", [keep_tensor, keep_number])
@pytest.mark.parametrize("kind", KINDS)
def test_what_an_attribute_keeps_shows(keep, kind):
    assert is_found(plain, kind, Keeping(keep))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", KINDS)
def test_honest_losses_do_not_show(kind, seed):
    deep = nn.Sequential(
        nn.Linear(WIDTH, 8), nn.LayerNorm(8), nn.Dropout(0.5), nn.GELU(), nn.Linear(8, 3)
    )
    for model in (small(), deep, Keeping(lambda *_: None)):
        assert not is_found(plain, kind, model, seed=seed)


def test_products_are_whole_while_numbers_are_compared():
    # Rounded to TF32, gradients of an honest transformer differ by up to 6e-4 from one run to the
    # next on an H200, by up to 2e-6 whole: benchmarks/learn.py --device cuda --only gpt-fp32.
    before = torch.get_float32_matmul_precision()
    seen = set()

    def loss(model, rows):
        seen.add((allows_tf32(False), allows_tf32(True)))
        return ce(model(rows[0]), rows[1])

    torch.set_float32_matmul_precision("high")
    try:
        assert not is_found(loss, "sorted")
        assert seen == {(False, False)}
        assert allows_tf32(False)
    finally:
        torch.set_float32_matmul_precision(before)
