"""The ways of training that learn.py compares: one step each, from batch to changed parameters.

All clip to the same norm and add noise of the same multiplier. Peers are used as their own
examples do, except that gradients of single examples are dropped at the end of a step and not at
the beginning of the next, which can only lower what they are found to hold.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol

import torch
from learn_models import Batch, Task
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

CLIP = 1.0
NOISE_MULTIPLIER = 1.0
Gradients = dict[str, Tensor]


class Method(Protocol):
    def step(self, batch: Batch) -> None: ...

    def clipped(self, batch: Batch) -> Gradients:
        """Return the sum of clipped gradients, without noise, to compare with others'."""


def _model(task: Task, device: str) -> nn.Module:
    with torch.device(device):
        return task.model()


def _trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


class Plain:
    """Training without privacy."""

    def __init__(self, task: Task, device: str, data: Batch) -> None:
        self.task, self.device = task, device
        self.model = _model(task, device)
        self.optimizer = task.optimizer(_trainable(self.model).values())

    def step(self, batch: Batch) -> None:
        with self.task.precision(self.device):
            loss = self.task.losses(self.model(batch[0]), batch[1]).mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def clipped(self, batch: Batch) -> Gradients:
        raise NotImplementedError("nothing is clipped")


class Graphed(Plain):
    """The same with forward and backward pass recorded as a CUDA graph."""

    graph: torch.cuda.CUDAGraph | None = None

    def step(self, batch: Batch) -> None:
        if self.graph is None:
            super().step(batch)  # to warm up
            self.rows = tuple(part.clone() for part in batch)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                with self.task.precision(self.device):
                    loss = self.task.losses(self.model(self.rows[0]), self.rows[1]).mean()
                loss.backward()
        for there, here in zip(self.rows, batch, strict=True):
            there.copy_(here)
        self.graph.replay()
        self.optimizer.step()


class Bare:
    """This library without its data path: engine, noise, optimiser."""

    def __init__(self, task: Task, device: str, data: Batch) -> None:
        from discreet.learn.choices.clipping import Flat
        from discreet.learn.gradients.engine import GradientEngine
        from discreet.learn.noise.grid_noise import add_noise_

        self.task, self.device, self.add_noise_ = task, device, add_noise_
        model = _model(task, device)
        self.optimizer = task.optimizer(_trainable(model).values())
        self.clipping = Flat(norm=CLIP)
        self.engine = GradientEngine(model, clipping=self.clipping)

    def losses(self, model: nn.Module, batch: Batch) -> Tensor:
        with self.task.precision(self.device):
            return self.task.losses(model(batch[0]), batch[1])

    def noise(self) -> None:
        """Add the noise of a step; measured alone too."""
        self.add_noise_(
            self.engine.flat.buffer,
            sensitivity=self.clipping.sensitivity,
            noise_multiplier=NOISE_MULTIPLIER,
            divide_by=self.task.batch_size,
        )

    def step(self, batch: Batch) -> None:
        self.engine.accumulate(self.losses, batch, units=self.task.batch_size)
        self.noise()
        self.engine.flat.to_grads()
        self.optimizer.step()
        self.engine.flat.zero_()

    def clipped(self, batch: Batch) -> Gradients:
        flat = self.engine.flat
        flat.zero_()
        self.engine.accumulate(self.losses, batch, units=self.task.batch_size)
        found = {name: flat.view(i).clone() for i, name in enumerate(flat.names)}
        flat.zero_()
        return found


class Discreet:
    """This library as people use it, with a data set of one batch, sampled whole each time."""

    def __init__(self, task: Task, device: str, data: Batch, *, graphs: bool | None = None) -> None:
        from discreet.learn import prepare

        self.task, self.device = task, device
        model = _model(task, device)
        self.private = prepare(
            model,
            task.optimizer(_trainable(model).values()),
            data,
            noise_multiplier=NOISE_MULTIPLIER,
            delta=1e-5,
            steps=10**6,
            batch_size=task.batch_size,
            population=task.batch_size,
            micro_batch_size=task.batch_size,
            sampling="full",
            clip=CLIP,
            graphs=graphs,
            progress=False,
        )
        self.batches: Iterator[Any] = iter(self.private.batches())

    def losses(self, model: nn.Module, batch: Batch) -> Tensor:
        with self.task.precision(self.device):
            return self.task.losses(model(batch[0]), batch[1])

    def step(self, batch: Batch) -> None:
        del batch  # it draws its own, as large
        self.private.step(next(self.batches), self.losses)

    def clipped(self, batch: Batch) -> Gradients:
        raise NotImplementedError("shows no gradient without noise; the engine's is checked")


class Vmap:
    """Gradients of single examples by torch.func."""

    def __init__(self, task: Task, device: str, data: Batch) -> None:
        model = _model(task, device)
        self.task, self.parameters = task, _trainable(model)
        self.optimizer = task.optimizer(self.parameters.values())

        def loss(parameters: Gradients, x: Tensor, target: Tensor) -> Tensor:
            with task.precision(device):
                output = functional_call(model, parameters, (x.unsqueeze(0),))
                return task.losses(output, target.unsqueeze(0)).squeeze(0)

        self.per_example = vmap(grad(loss), in_dims=(None, 0, 0))

    def clipped(self, batch: Batch) -> Gradients:
        values = {name: p.detach() for name, p in self.parameters.items()}
        each = self.per_example(values, *batch)
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in each.values()]).norm(dim=0)
        factors = (CLIP / (norms + 1e-6)).clamp(max=1)
        return {name: torch.tensordot(factors.to(g.dtype), g, dims=1) for name, g in each.items()}

    def step(self, batch: Batch) -> None:
        summed = self.clipped(batch)
        for name, parameter in self.parameters.items():
            noise = torch.randn_like(parameter) * (NOISE_MULTIPLIER * CLIP)
            parameter.grad = (summed.pop(name) + noise) / self.task.batch_size
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


class _Criterion:
    """A loss in the shape that Opacus's ghost clipping asks for."""

    reduction = "mean"

    def __init__(self, task: Task) -> None:
        self.task = task

    def __call__(self, output: Tensor, target: Tensor) -> Tensor:
        losses = self.task.losses(output, target)
        return losses if self.reduction == "none" else losses.mean()


class Opacus:
    """Opacus's grad_sample_mode of a name, its noise not the secure one (which costs far more)."""

    def __init__(self, task: Task, device: str, data: Batch, *, mode: str) -> None:
        from opacus.grad_sample.utils import prepare_module
        from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
        from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

        self.task, self.device, self.mode = task, device, mode
        model = _model(task, device)
        self.parameters = _trainable(model)
        is_ghost = mode == "ghost"
        more = {"max_grad_norm": CLIP} if is_ghost else {}
        self.module = prepare_module(model, mode, loss_reduction="mean", **more)
        self.optimizer = (DPOptimizerFastGradientClipping if is_ghost else DPOptimizer)(
            task.optimizer(self.parameters.values()),
            noise_multiplier=NOISE_MULTIPLIER,
            max_grad_norm=CLIP,
            expected_batch_size=task.batch_size,
        )
        self.criterion: Callable[..., Any] = _Criterion(task)
        if is_ghost:
            self.criterion = DPLossFastGradientClipping(
                self.module, self.optimizer, self.criterion, loss_reduction="mean"
            )

    def _backward(self, batch: Batch) -> None:
        with self.task.precision(self.device):
            loss = self.criterion(self.module(batch[0]), batch[1])
            if self.mode == "ew":  # refuses mixed types outside autocast
                loss.backward()
        if self.mode != "ew":
            loss.backward()

    def step(self, batch: Batch) -> None:
        self._backward(batch)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def clipped(self, batch: Batch) -> Gradients:
        self._backward(batch)
        self.optimizer.noise_multiplier = 0.0
        self.optimizer.pre_step()
        self.optimizer.noise_multiplier = NOISE_MULTIPLIER
        found = {
            name: p.grad.detach() * self.task.batch_size
            for name, p in self.parameters.items()
            if p.grad is not None
        }
        self.optimizer.zero_grad(set_to_none=True)
        return found


PLAIN, GRAPHED, OURS, EAGER, ENGINE = "plain", "graphed", "ours", "eager", "engine"
PEERS = ("hooks", "ghost", "functorch", "ew", "vmap")
ON_GPU = (GRAPHED, EAGER)  # elsewhere there are no graphs
METHODS: dict[str, Callable[[Task, str, Batch], Method]] = {
    PLAIN: Plain,
    GRAPHED: Graphed,
    OURS: Discreet,
    EAGER: partial(Discreet, graphs=False),
    ENGINE: Bare,
    **{mode: partial(Opacus, mode=mode) for mode in PEERS if mode != "vmap"},
    "vmap": Vmap,
}
LABELS = {
    PLAIN: "not private",
    GRAPHED: "not private, a graph",
    OURS: "discreet",
    EAGER: "discreet, graphs=False",
    ENGINE: "discreet, engine alone",
    **{mode: f"Opacus, {mode}" for mode in PEERS},
    "vmap": "torch.func, vmap",
}
