"""Several processes that train one model: the first draws, pays and adds noise for all.

Each process takes its part of the logical batch; the clipped sums are added up at the first one,
which adds the noise, once, and hands the result to everybody. So the others never hold a sum of
everybody's gradients that has no noise yet, and there is one ledger client and one source.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, final

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import Tensor, nn

from discreet.errors import ParameterError, SessionOver
from discreet.learn.choices.draws import Indices
from discreet.learn.run.units import Weights

__all__ = ["Team"]

T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True)
class Team:
    """The processes of torch.distributed, or this one alone."""

    rank: int
    size: int
    device: torch.device  # where the backend wants what is sent

    @classmethod
    def of(cls, device: torch.device) -> "Team":
        """Return the processes that are initialised; ``device`` is the model's."""
        if not (dist.is_available() and dist.is_initialized()):
            _require_single()
            return cls(0, 1, torch.device("cpu"))
        sends_from = device if "nccl" in dist.get_backend() else torch.device("cpu")
        return cls(dist.get_rank(), dist.get_world_size(), sends_from)

    @property
    def is_first(self) -> bool:
        """Whether this process pays, draws and adds noise."""
        return self.rank == 0

    @property
    def is_alone(self) -> bool:
        """Whether nothing needs to be sent."""
        return self.size == 1

    def lead(self, action: Callable[[], T]) -> T | None:
        """Let the first process do something; where it fails, fail everywhere instead of waiting.

        The others get None.
        """
        if self.is_alone:
            return action()
        outcome = torch.zeros(1, dtype=torch.int64, device=self.device)
        if not self.is_first:
            dist.broadcast(outcome, src=0)
            if outcome.item():
                raise SessionOver("the first process could not go on; its own error says why.")
            return None
        try:
            result = action()
        except BaseException:
            outcome.fill_(1)
            raise
        finally:
            dist.broadcast(outcome, src=0)
        return result

    def share(self, drawn: tuple[Indices, Weights | None] | None) -> tuple[Indices, Weights | None]:
        """Return what the first process drew."""
        if self.is_alone:
            assert drawn is not None
            return drawn
        rows, weights = drawn if drawn is not None else (np.empty(0, dtype=np.int64), None)
        head = torch.tensor([rows.size, weights is not None], device=self.device)
        self.spread_(head)
        count, is_weighted = head.tolist()
        wanted = self._sent(rows, count, torch.int64)
        shares = self._sent(weights, count, torch.float32) if is_weighted else None
        return wanted, shares

    def part(self, units: int) -> range:
        """Return which of the units of a batch are this process's."""
        ends = [units * r // self.size for r in (self.rank, self.rank + 1)]
        return range(*ends)

    def sum_(self, tensor: Tensor) -> None:
        """Add up a tensor at the first process; elsewhere it is of no use afterwards."""
        if self.is_alone:
            return
        sent = tensor.to(self.device)
        dist.reduce(sent, dst=0, op=dist.ReduceOp.SUM)
        if sent is not tensor:
            tensor.copy_(sent)

    def spread_(self, tensor: Tensor) -> None:
        """Overwrite a tensor with the first process's."""
        if self.is_alone:
            return
        sent = tensor.to(self.device)
        dist.broadcast(sent, src=0)
        if sent is not tensor:
            tensor.copy_(sent)

    def agree(self, numbers: list[float]) -> list[float]:
        """Return the first process's numbers."""
        if self.is_alone:
            return numbers
        sent = torch.tensor(numbers, dtype=torch.float64)
        self.spread_(sent)
        return [float(number) for number in sent.tolist()]

    def any(self, flag: bool) -> bool:
        """Say whether some process says so."""
        if self.is_alone:
            return flag
        sent = torch.tensor([int(flag)], device=self.device)
        dist.all_reduce(sent, op=dist.ReduceOp.MAX)
        return bool(sent.item())

    def align(self, model: nn.Module) -> None:
        """Give every process the first one's weights: they must begin as one model."""
        if not self.is_alone:
            with torch.no_grad():
                for tensor in (*model.parameters(), *model.buffers()):
                    self.spread_(tensor.data)

    def wait(self) -> None:
        """Wait until everybody has come here."""
        if not self.is_alone:
            dist.barrier()

    def _sent(
        self, values: npt.NDArray[Any] | None, count: int, dtype: torch.dtype
    ) -> npt.NDArray[Any]:
        sent = torch.empty(count, dtype=dtype, device=self.device)
        if self.is_first and values is not None:
            sent.copy_(torch.from_numpy(values))
        dist.broadcast(sent, src=0)
        array: npt.NDArray[Any] = sent.cpu().numpy()
        return array


def _require_single() -> None:
    """Refuse one of several processes that know nothing of each other: each would be a run."""
    size = os.environ.get("WORLD_SIZE", "1")
    if dist.is_available() and dist.is_torchelastic_launched() and size != "1":
        raise ParameterError(
            f"torchrun started {size} processes that are not connected, so each would train, and "
            "pay for, a model of its own. Nothing was spent. Call "
            "torch.distributed.init_process_group() before discreet.learn.prepare.",
            parameter="model",
        )
