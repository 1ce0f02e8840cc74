"""From a private run to a Trainer that makes its steps."""

import copy
from importlib import import_module
from typing import Any, Final

from torch.optim.lr_scheduler import LRScheduler

from discreet.errors import ParameterError
from discreet.learn.gradients.loss_function import LossFunction
from discreet.learn.huggingface.losses import per_example_loss
from discreet.learn.loops import (
    SteppedOptimizer,
    require_device,
    require_private,
    require_processes,
)
from discreet.learn.training import Private

__all__ = ["make_trainer", "privacy_callback"]

_OWN: Final = ("model", "model_init", "train_dataset", "optimizers", "optimizer_cls_and_kwargs")


def make_trainer(
    private: Private,
    *,
    args: Any,
    loss_fn: LossFunction | None = None,
    scheduler: LRScheduler | None = None,
    **options: Any,
) -> Any:
    """Return a ``transformers.Trainer`` whose every step is a step of a private run.

    ``args`` are its TrainingArguments: schedule, logging, saving and evaluation are as they say.
    Model, optimiser, data, batch size and number of steps are those of the run; a smaller
    ``max_steps`` ends it early. ``loss_fn(model, rows)`` returns one loss for each row,
    :func:`per_example_loss` unless given. ``options`` go to the Trainer: ``eval_dataset``,
    ``compute_metrics``, ``callbacks``... ::

        private = discreet.learn.prepare(model, optimizer, dataset, ..., progress=False)
        trainer = make_trainer(private, args=TrainingArguments("out", logging_steps=10))
        trainer.train()
        print(private.spent)

    The training loss is computed from raw data, so it is neither logged nor returned; epsilon and
    delta are. An evaluation set must be public, or a release of its own: what is reported about it
    is exact. Each checkpoint has a file ``private.pt`` for :func:`discreet.learn.resume`.

    Claim: none of its own; ``private.spent`` holds for what this Trainer does.

    Why: batches, gradients and optimiser steps come from ``private`` and from nowhere else, and
    schedules and checkpoints are post-processing.

    >>> make_trainer("a model", args=None)
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: private must be what discreet.learn.prepare returned, got an
    object of type str.
    """
    require_private(private)
    for name in _OWN:
        if name in options:
            raise ParameterError(
                f"{name} comes from the private run: leave it out. What is trained, on which data "
                "and how was fixed by discreet.learn.prepare.",
                parameter=name,
            )
    from discreet.learn.huggingface.trainer import PrivacyCallback, PrivateTrainer

    if not isinstance(args, import_module("transformers").TrainingArguments):
        raise ParameterError(
            f"args must be transformers.TrainingArguments, got an object of type "
            f"{type(args).__name__}.",
            parameter="args",
        )
    own_args = _own_arguments(private, args)
    callbacks = [PrivacyCallback(private), *(options.pop("callbacks", None) or ())]
    return PrivateTrainer(
        private,
        loss_fn or per_example_loss,
        model=private.model,
        args=own_args,
        optimizers=(SteppedOptimizer(private.optimizer), scheduler),
        callbacks=callbacks,
        **options,
    )


def privacy_callback(private: Private, /) -> Any:
    """Return the ``TrainerCallback`` that watches over a private run; make_trainer adds it.

    It refuses a Trainer that draws batches of its own, and a step that did not go through the run;
    it stops the Trainer when the planned steps are over, and saves the run beside each checkpoint.

    >>> privacy_callback(None)
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: private must be what discreet.learn.prepare returned, got an
    object of type NoneType.
    """
    require_private(private)
    from discreet.learn.huggingface.trainer import PrivacyCallback

    return PrivacyCallback(private)


def _own_arguments(private: Private, args: Any) -> Any:
    """Return a copy of the arguments that fits to the run, or say which one cannot."""
    refused = {
        "gradient_accumulation_steps": (
            args.gradient_accumulation_steps != 1,
            "a batch of the run is one step. Bound its memory by prepare(..., micro_batch_size=)",
        ),
        "fp16": (args.fp16, "losses would be scaled by what the data is. Use bf16=True"),
        "label_smoothing_factor": (
            args.label_smoothing_factor != 0,
            "smooth the labels in a loss_fn= of your own",
        ),
        "auto_find_batch_size": (
            args.auto_find_batch_size,
            "a step that is tried again would be another step. Use prepare(..., micro_batch_size=)",
        ),
        "torch_compile": (args.torch_compile, "compile the model before prepare(...)"),
        "deepspeed": (args.deepspeed, "gradients must not be formed outside of the run"),
        "fsdp": (args.fsdp, "gradients must not be formed outside of the run"),
    }
    for name, (is_bad, why) in refused.items():
        if is_bad:
            raise ParameterError(
                f"TrainingArguments with {name} do not go with a private run: {why}.",
                parameter=name,
            )
    if args.n_gpu > 1:
        raise ParameterError(
            "this Trainer uses one device in each process. For several start as many processes: "
            "torchrun --nproc-per-node 2 script.py.",
            parameter="args",
        )
    require_processes(private, args.world_size, connect="make the TrainingArguments")
    require_device(private, args.device, instead=", or set use_cpu=True in the TrainingArguments")
    own = copy.copy(args)
    left = private.steps_planned - private.steps_taken
    own.max_steps = min(left, args.max_steps) if args.max_steps > 0 else left
    own.max_grad_norm = 0.0  # gradients have been clipped, one by one
    own.include_num_input_tokens_seen = "no"  # their number is as private as they are
    return own
