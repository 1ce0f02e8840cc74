"""A LightningModule whose training step behaves, or does not."""

from typing import Any

import torch
from private_runs import loss_fn, make_model


def small_module(kind: str = "rows", seed: int = 0) -> Any:
    """Return one whose training step returns losses in this way, or does what it should not."""
    import lightning.pytorch as pl

    class SmallModule(pl.LightningModule):
        def __init__(self, kind: str, seed: int) -> None:
            super().__init__()
            self.net, self.kind, self.validated = make_model(seed=seed), kind, 0
            self.losses_shown: list[float] = []
            if kind == "alone":
                self.training_step = lambda batch: loss_fn(self.net, batch)

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            return self.net(rows)

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            losses = loss_fn(self.net, batch)
            if self.kind == "logs":
                self.log("train_loss", 1.0)
            if self.kind == "asks":
                return losses * self.trainer.max_epochs
            if self.kind == "steps":
                self.optimizers().step()
            if self.kind == "mean":
                return losses.mean()
            return {"loss": losses} if self.kind == "dict" else losses

        def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
            if outputs["loss"].item():
                self.losses_shown.append(outputs["loss"].item())

        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.validated += not self.trainer.sanity_checking
            self.log("val_loss", loss_fn(self.net, batch).mean(), sync_dist=True)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            raise AssertionError("the run has an optimiser")

    return SmallModule(kind, seed)
