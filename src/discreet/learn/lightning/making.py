"""From a private run to a Lightning Trainer that makes its steps."""

from typing import Any, Final

from torch.optim.lr_scheduler import LRScheduler

from discreet.errors import ParameterError
from discreet.learn.gradients.loss_function import LossFunction
from discreet.learn.loops import require_private
from discreet.learn.training import Private

__all__ = ["make_trainer"]

_OWN: Final = ("accelerator", "devices", "num_nodes", "strategy")
_NO_ACCUMULATION: Final = "bound the memory of a step by prepare(..., micro_batch_size=)"


def make_trainer(
    private: Private,
    *,
    loss_fn: LossFunction | None = None,
    scheduler: LRScheduler | None = None,
    **options: Any,
) -> Any:
    """Return a ``lightning.pytorch.Trainer`` whose every step is a step of a private run.

    The run's model is the ``LightningModule``. Its ``training_step`` must return one loss for each
    row (``reduction="none"``), as a tensor or as ``"loss"`` of a dict, and must not reach for the
    Trainer: what it would log is computed from raw data. Or pass ``loss_fn(module, rows)``.
    Optimiser, data, batches and devices are those of the run; ``scheduler`` is stepped after each
    step. ``options`` go to the Trainer: ``max_epochs``, ``callbacks``, ``logger``... ::

        private = discreet.learn.prepare(module, optimizer, dataset, ..., progress=False)
        trainer = make_trainer(private)
        trainer.fit(module, val_dataloaders=public)
        print(private.spent)

    An epoch draws each unit once on average; smaller ``max_epochs`` or ``max_steps`` end the run
    early. Epsilon is logged. Validation data must be public, or a release of its own. Beside each
    checkpoint is a file ``.private.pt`` for :func:`discreet.learn.resume`.

    Claim: none of its own; ``private.spent`` holds for what this Trainer does.

    Why: batches, gradients and optimiser steps come from ``private`` and from nowhere else, and
    schedules and checkpoints are post-processing.

    >>> make_trainer("a module")
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: private must be what discreet.learn.prepare returned, got an
    object of type str.
    """
    require_private(private)
    for name in _OWN:
        if name in options:
            raise ParameterError(
                f"{name} comes from the private run: leave it out. The model's device is used, and "
                "the processes that were connected before discreet.learn.prepare.",
                parameter=name,
            )
    from discreet.learn.lightning.trainer import LightningTrainer, strategy_of

    given = options.pop("max_steps", -1)
    left = private.steps_planned - private.steps_taken
    trainer = LightningTrainer(
        private=private,
        max_steps=left if given < 0 else min(left, given),
        **strategy_of(private, loss_fn=loss_fn, scheduler=scheduler),
        **{"max_epochs": -1, **options},
    )
    _check(trainer)
    return trainer


def _check(trainer: Any) -> None:
    """Refuse settings that do not go with a private run, from wherever the Trainer has them."""
    refused = {
        "accumulate_grad_batches": (trainer.accumulate_grad_batches != 1, _NO_ACCUMULATION),
        "gradient_clip_val": (
            bool(trainer.gradient_clip_val),
            "each unit's gradient is clipped by prepare(..., clip=)",
        ),
        "overfit_batches": (trainer.overfit_batches != 0, "a run draws its own batches"),
        "precision": (
            trainer.precision not in ("32-true", "bf16-mixed"),
            "use '32-true' or 'bf16-mixed': losses would be scaled by what the data is, or the "
            "weights be converted after the run was prepared",
        ),
    }
    for name, (is_bad, why) in refused.items():
        if is_bad:
            raise ParameterError(
                f"a Trainer with {name} does not go with a private run: {why}. Nothing was spent.",
                parameter=name,
            )
