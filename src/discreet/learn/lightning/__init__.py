"""Private training of a ``LightningModule`` by ``trainer.fit``, where lightning is installed.

Lightning draws batches, forms gradients and steps the optimiser; no callback can make that private.
So the Trainer that :func:`make_trainer` returns has a strategy whose training step is a step of a
private run, and whose backward pass and optimiser step do nothing. It keeps the rest: validation,
schedules, loggers, checkpoints, callbacks.
"""

from discreet.learn.lightning.making import make_trainer

__all__ = ["make_trainer"]
