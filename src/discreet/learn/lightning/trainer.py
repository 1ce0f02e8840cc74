"""The Trainer and its strategy; importing this needs lightning, so only making them does."""

import os
from importlib import import_module
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler

from discreet.errors import MissingExtra, ParameterError
from discreet.learn.gradients.loss_function import LossFunction
from discreet.learn.loops import SteppedOptimizer, Tickets, require_device
from discreet.learn.training import Private

try:
    _lightning: Any = import_module("lightning.pytorch")
    _strategies: Any = import_module("lightning.pytorch.strategies")
    _Elastic: Any = import_module("lightning.pytorch.plugins.environments").TorchElasticEnvironment
    _Schedule: Any = import_module("lightning.pytorch.utilities.types").LRSchedulerConfig
except ImportError as missing:
    raise MissingExtra(
        room="discreet.learn.lightning", needs="lightning", extra="lightning"
    ) from missing

__all__ = ["LightningTrainer", "strategy_of"]


@final
class _OutOfReach:
    """What a module has for its Trainer while rows are computed."""

    def __getattr__(self, name: str) -> Any:
        raise ParameterError(
            "training_step reaches for the Trainer (self.log, self.logger, self.trainer, "
            "self.current_epoch...): what it shows there is computed from raw data. Leave it out; "
            "epsilon is logged anyway. Log what is public in validation_step.",
            parameter="training_step",
        )


class _Steps:
    """A strategy whose steps are those of a run: nothing else forms or uses a gradient."""

    def of(
        self, private: Private, loss_fn: LossFunction | None, scheduler: LRScheduler | None
    ) -> "_Steps":
        self.private, self._loss_fn, self._scheduler = private, loss_fn, scheduler
        return self

    def model_to_device(self: Any) -> None:
        require_device(self.private, self.root_device)

    def setup_optimizers(self: Any, trainer: Any) -> None:
        self.optimizers = [SteppedOptimizer(self.private.optimizer)]
        found = [] if self._scheduler is None else [_Schedule(self._scheduler, interval="step")]
        self.lr_scheduler_configs = found

    def training_step(self: Any, batch: Any, *index: int) -> Tensor:
        module, private = self.lightning_module, self.private
        trainer, module.trainer = module.trainer, _OutOfReach()
        try:
            private.step(batch, self._indexed_loss if index else self._loss)
        finally:
            module.trainer = trainer
        taken = private.steps_taken
        if taken % max(1, trainer.log_every_n_steps) == 0 or taken == private.steps_planned:
            module.log("epsilon", private.spent.epsilon, prog_bar=True)
        return torch.zeros((), device=self.root_device)  # the loss itself is not private

    def _indexed_loss(self, module: nn.Module, rows: Any) -> Any:
        return self._loss(module, rows, 0)  # a micro-batch has no number of its own

    def _loss(self: Any, module: Any, rows: Any, *index: int) -> Any:
        with self.precision_plugin.train_step_context():
            if self._loss_fn is not None:
                losses = self._loss_fn(module, rows)
            else:
                losses = module.training_step(rows, *index)
        return losses["loss"] if isinstance(losses, dict) else losses

    def backward(self, closure_loss: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return closure_loss

    def optimizer_step(self, optimizer: Any, closure: Any, *args: Any, **kwargs: Any) -> Any:
        return closure()  # which makes a training step

    def configure_ddp(self) -> None:
        """Leave the model as it is: the run adds up, and raw gradients are nobody else's."""

    def save_checkpoint(self: Any, checkpoint: Any, filepath: Any, **kwargs: Any) -> None:
        super().save_checkpoint(checkpoint, filepath, **kwargs)  # type: ignore[misc]
        self.private.save(_beside(filepath))

    def remove_checkpoint(self: Any, filepath: Any) -> None:
        super().remove_checkpoint(filepath)  # type: ignore[misc]
        if self.is_global_zero:
            _beside(filepath).unlink(missing_ok=True)

    def teardown(self: Any) -> None:
        # Lightning moves model and optimiser to the CPU, away from a run that may go on.
        module, self._lightning_module, self.optimizers = self._lightning_module, None, []
        super().teardown()  # type: ignore[misc]
        self._lightning_module = module


def _beside(filepath: Any) -> Path:
    return Path(filepath).with_suffix(".private.pt")


@final
class _Alone(_Steps, _strategies.SingleDeviceStrategy):  # type: ignore[misc]
    pass


@final
class _Together(_Steps, _strategies.DDPStrategy):  # type: ignore[misc]
    pass


def strategy_of(
    private: Private, *, loss_fn: LossFunction | None, scheduler: LRScheduler | None
) -> dict[str, Any]:
    """Return the options of a Trainer that decide where and how it runs."""
    if not isinstance(private.model, _lightning.LightningModule):
        raise ParameterError(
            "the run must have been prepared with a lightning.pytorch.LightningModule, not with "
            f"a {type(private.model).__name__} (of another package, perhaps).",
            parameter="private",
        )
    device, team = next(private.model.parameters()).device, private._team
    options = {"accelerator": "gpu" if device.type == "cuda" else device.type}
    if team.is_alone:
        strategy = _Alone(device=device).of(private, loss_fn, scheduler)
        return options | {"strategy": strategy, "devices": 1}
    if not _Elastic.detect():
        raise ParameterError(
            "several processes must be started by torchrun for Lightning to know its place among "
            "them. Nothing was spent. Write: torchrun --nproc-per-node 2 script.py.",
            parameter="private",
        )
    each = int(os.environ["LOCAL_WORLD_SIZE"])
    strategy = _Together(cluster_environment=_Elastic()).of(private, loss_fn, scheduler)
    return options | {"strategy": strategy, "devices": each, "num_nodes": team.size // each}


@final
class LightningTrainer(_lightning.Trainer):  # type: ignore[misc]
    """A Trainer on a private run: see :func:`make_trainer`."""

    def __init__(self, *, private: Private, **options: Any) -> None:
        self.private = private
        super().__init__(**options)

    def fit(self, model: Any, *args: Any, val_dataloaders: Any = None, **kwargs: Any) -> None:
        private = self.private
        if args or any(value is not None for value in kwargs.values()):
            raise ParameterError(
                "fit takes the module and val_dataloaders= only: training data is the run's. "
                "Nothing was spent. Go on from a checkpoint with discreet.learn.resume(path of its "
                ".private.pt, module, optimizer, dataset) and make_trainer.",
                parameter="fit",
            )
        if model is not private.model or not model.automatic_optimization:
            raise ParameterError(
                "fit takes the LightningModule that the run was prepared with, and its steps are "
                "the run's: automatic_optimization must be True. Nothing was spent.",
                parameter="model",
            )
        tickets = Tickets(private, at_once=private._promise.steps_per_epoch)
        super().fit(model, train_dataloaders=tickets, val_dataloaders=val_dataloaders)
