"""Private training in the loop of a Hugging Face ``Trainer``, where transformers is installed.

A plain Trainer draws its own batches, forms its own gradients and steps its own optimiser: no
callback can make that private, and an epsilon beside it would be a false one. So the Trainer that
:func:`make_trainer` returns takes its batches and its steps from a private run and keeps the rest:
schedules, logs, checkpoints, evaluation, other callbacks. The callback of
:func:`privacy_callback` refuses any other loop.
"""

import copy
import functools
import importlib
import math
import os
from collections.abc import Callable, Iterator
from typing import Any, Final, final

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from discreet.errors import MissingExtra, ParameterError
from discreet.learn.training import Private

__all__ = ["make_trainer", "per_example_loss", "privacy_callback"]

LossFunction = Callable[[nn.Module, Any], Tensor]

_IGNORED: Final = -100  # the label of a position that does not count
_RAW: Final = ("loss", "train_loss", "grad_norm", "train_samples_per_second")
_OWN: Final = ("model", "model_init", "train_dataset", "optimizers", "optimizer_cls_and_kwargs")
_CHECKPOINT: Final = "private.pt"


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
    _require_private(private)
    for name in _OWN:
        if name in options:
            raise ParameterError(
                f"{name} comes from the private run: leave it out. What is trained, on which data "
                "and how was fixed by discreet.learn.prepare.",
                parameter=name,
            )
    trainer_class, callback_class = _classes()
    if not isinstance(args, importlib.import_module("transformers").TrainingArguments):
        raise ParameterError(
            f"args must be transformers.TrainingArguments, got an object of type "
            f"{type(args).__name__}.",
            parameter="args",
        )
    own_args = _own_arguments(private, args)
    callbacks = [callback_class(private), *(options.pop("callbacks", None) or ())]
    return trainer_class(
        private,
        loss_fn or per_example_loss,
        model=private.model,
        args=own_args,
        optimizers=(_Stepped(private.optimizer), scheduler),
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
    _require_private(private)
    _, callback_class = _classes()
    return callback_class(private)


def per_example_loss(model: nn.Module, rows: Any) -> Tensor:
    """Return the loss of each row, as the model's own loss would be for this row alone.

    A model of transformers returns the mean over a batch, which cannot be taken apart. This one
    knows causal and masked language models, and classification of sequences, images and tokens,
    and question answering. Positions with the label -100 do not count.

    >>> class ForTokenClassification(nn.Module):
    ...     def forward(self, x):
    ...         return {"logits": x}
    >>> rows = {"x": torch.zeros(2, 3, 4), "labels": torch.tensor([[1, 2, -100], [0, -100, -100]])}
    >>> per_example_loss(ForTokenClassification(), rows)
    tensor([1.3863, 1.3863])
    """
    labels, compute = _loss_of(model)
    missing = [label for label in labels if label not in rows]
    if missing:
        raise ParameterError(
            f"the rows have no {' or '.join(map(repr, missing))}, of which the loss is computed. "
            "Add it to the dataset, or pass a loss_fn= of your own.",
            parameter="loss_fn",
        )
    inputs = {key: value for key, value in rows.items() if key not in labels}
    return compute(model, model(**inputs), *(rows[label] for label in labels))


def _loss_of(model: nn.Module) -> tuple[tuple[str, ...], Callable[..., Tensor]]:
    """Return the names of a model's labels, and how they and its output become losses."""
    name = getattr(model, "loss_type", None) or type(model).__name__
    for ending, found in _LOSSES.items():
        if name.endswith(ending):
            return found
    raise ParameterError(
        f"it is not known how {type(model).__name__} turns its output into one loss for each row. "
        "Pass loss_fn=, a function of (model, rows) that returns a tensor with these losses.",
        parameter="loss_fn",
    )


def _tokens(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean over each row's positions that count."""
    each = functional.cross_entropy(
        logits.float().transpose(1, -1), labels, ignore_index=_IGNORED, reduction="none"
    )
    counts = (labels != _IGNORED).sum(1).clamp(min=1)
    return each.sum(1) / counts


def _next_tokens(model: nn.Module, outputs: Any, labels: Tensor) -> Tensor:
    return _tokens(outputs["logits"][:, :-1], labels[:, 1:])


def _same_tokens(model: nn.Module, outputs: Any, labels: Tensor) -> Tensor:
    return _tokens(outputs["logits"], labels)


def _classes_of_rows(model: nn.Module, outputs: Any, labels: Tensor) -> Tensor:
    logits: Tensor = outputs["logits"].float()
    kind = getattr(model.config, "problem_type", None)
    if kind is None:  # by the same rule as the models of transformers
        is_whole = not (labels.is_floating_point() or labels.is_complex())
        kind = "single_label_classification" if is_whole else "multi_label_classification"
        kind = "regression" if logits.shape[-1] == 1 else kind
    if kind == "regression":
        return (logits - labels.reshape(logits.shape).float()).square().mean(1)
    if kind == "multi_label_classification":
        each = functional.binary_cross_entropy_with_logits(logits, labels.float(), reduction="none")
        return each.mean(1)
    return functional.cross_entropy(
        logits, labels.reshape(-1), ignore_index=_IGNORED, reduction="none"
    )


def _spans(model: nn.Module, outputs: Any, start: Tensor, end: Tensor) -> Tensor:
    losses = []
    for name, places in (("start_logits", start), ("end_logits", end)):
        logits = outputs[name].float()
        length = logits.shape[1]  # a place outside of the row does not count
        places = places.reshape(-1).clamp(0, length)
        losses.append(
            functional.cross_entropy(logits, places, ignore_index=length, reduction="none")
        )
    return (losses[0] + losses[1]) / 2


_LOSSES: Final[dict[str, tuple[tuple[str, ...], Callable[..., Tensor]]]] = {
    "ForCausalLM": (("labels",), _next_tokens),
    "GPT2LMHeadModel": (("labels",), _next_tokens),
    "ForMaskedLM": (("labels",), _same_tokens),
    "ForTokenClassification": (("labels",), _same_tokens),
    "ForSequenceClassification": (("labels",), _classes_of_rows),
    "ForImageClassification": (("labels",), _classes_of_rows),
    "ForQuestionAnswering": (("start_positions", "end_positions"), _spans),
}


@final
class _Tickets:
    """The batches of a run, in the place where a Trainer expects its DataLoader."""

    def __init__(self, private: Private) -> None:
        self.private = private

    def __len__(self) -> int:
        return self.private.steps_planned - self.private.steps_taken

    def __iter__(self) -> Iterator[Any]:
        return self.private.batches()


@final
class _Stepped(Optimizer):
    """The run's optimiser as a Trainer sees it: its state and schedule, without its step.

    The step has been made when the Trainer comes to it, inside ``private.step``.
    """

    def __init__(self, inner: Optimizer) -> None:  # not that of Optimizer: the groups are shared
        self._inner = inner

    @property
    def param_groups(self) -> list[dict[str, Any]]:  # type: ignore[override]
        return self._inner.param_groups

    @property
    def state(self) -> Any:  # type: ignore[override]
        return self._inner.state

    @property
    def defaults(self) -> dict[str, Any]:  # type: ignore[override]
        return self._inner.defaults

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Do nothing."""

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, which are used."""
        self._inner.zero_grad(set_to_none=set_to_none)

    def state_dict(self) -> dict[str, Any]:
        """Return the state, to be saved."""
        return self._inner.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Do nothing: accelerate moves the state to the device on which it already is."""


def _require_private(private: object) -> None:
    if not isinstance(private, Private):
        raise ParameterError(
            "private must be what discreet.learn.prepare returned, got an object of type "
            f"{type(private).__name__}.",
            parameter="private",
        )


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
    if args.n_gpu > 1 or args.world_size > 1:
        raise ParameterError(
            "this Trainer runs in one process on one device. For several, write the loop yourself: "
            "for batch in private.batches(): private.step(batch, loss_fn).",
            parameter="args",
        )
    device = next(private.model.parameters()).device
    wanted = args.device
    if device.type != wanted.type or (device.index or 0) != (wanted.index or 0):
        raise ParameterError(
            f"the model is on {device}, but the arguments say {wanted}. Move the model there "
            "before discreet.learn.prepare, or set use_cpu=True in the TrainingArguments.",
            parameter="args",
        )
    own = copy.copy(args)
    left = private.steps_planned - private.steps_taken
    own.max_steps = min(left, args.max_steps) if args.max_steps > 0 else left
    own.max_grad_norm = 0.0  # gradients have been clipped, one by one
    own.include_num_input_tokens_seen = "no"  # their number is as private as they are
    return own


@functools.cache
def _classes() -> tuple[Any, Any]:
    """Return the Trainer and the callback, which exist where transformers does."""
    try:
        transformers = importlib.import_module("transformers")
        trainer_base: Any = transformers.Trainer
        callback_base: Any = transformers.TrainerCallback
        importlib.import_module("accelerate")  # without it a Trainer fails late
    except ImportError as missing:
        raise MissingExtra(
            room="discreet.learn.huggingface", needs="transformers[torch]", extra=None
        ) from missing

    @final
    class PrivateTrainer(trainer_base):  # type: ignore[misc]
        """A Trainer on a private run: see :func:`make_trainer`."""

        def __init__(self, private: Private, loss_fn: LossFunction, **options: Any) -> None:
            self.private, self._loss_fn = private, loss_fn
            if not private.model.training:  # as it comes from from_pretrained
                private.model.train()
            self._modes = [(module, module.training) for module in private.model.modules()]
            super().__init__(**options)

        def get_train_dataloader(self) -> Any:
            return _Tickets(self.private)

        def get_batch_samples(
            self, epoch_iterator: Iterator[Any], num_batches: int, device: Any
        ) -> tuple[list[Any], None]:
            # The Trainer's own would look into the batch to count its tokens.
            batch = next(epoch_iterator, None)
            return ([] if batch is None else [batch]), None

        def training_step(
            self, model: nn.Module, inputs: Any, num_items_in_batch: Any = None
        ) -> Tensor:
            # Back from an evaluation; not train(), which would wake up what is frozen.
            for module, mode in self._modes:
                module.training = mode
            self.private.step(inputs, self._loss_fn)
            return torch.zeros((), device=self.args.device)  # the loss itself is not private

        def floating_point_ops(self, inputs: Any) -> int:
            return 0  # it depends on the length of the rows

        def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
            shown = {key: value for key, value in logs.items() if key not in _RAW}
            if self.is_in_train:
                spent = self.private.spent
                shown |= {"epsilon": spent.epsilon, "delta": float(spent.delta)}
            super().log(shown, *args, **kwargs)

        def train(self, resume_from_checkpoint: Any = None, **kwargs: Any) -> Any:
            if resume_from_checkpoint or kwargs.get("trial") is not None:
                raise ParameterError(
                    "a Trainer's checkpoint does not know what was spent. Go on from the file "
                    f"{_CHECKPOINT} in it: private = discreet.learn.resume(path, model, optimizer, "
                    "dataset), then make_trainer(private, args=...).train().",
                    parameter="resume_from_checkpoint",
                )
            result = super().train(**kwargs)
            metrics = {key: value for key, value in result.metrics.items() if key not in _RAW}
            return result._replace(training_loss=math.nan, metrics=metrics)

    @final
    class PrivacyCallback(callback_base):  # type: ignore[misc]
        """Watch over a private run in a Trainer: see :func:`privacy_callback`."""

        def __init__(self, private: Private) -> None:
            self.private = private
            self._taken = 0

        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            tickets = kwargs.get("train_dataloader")
            if not isinstance(tickets, _Tickets) or tickets.private is not self.private:
                raise ParameterError(
                    "this Trainer draws batches and forms gradients of its own, which no callback "
                    "can make private. Nothing was spent. Let the run make the Trainer: "
                    "discreet.learn.huggingface.make_trainer(private, args=...).",
                    parameter="trainer",
                )

        def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            self._taken = self.private.steps_taken

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
            if self.private.steps_taken != self._taken + 1:
                raise ParameterError(
                    "a step of this Trainer was not a step of the private run, so the model is not "
                    "what private.spent describes.",
                    parameter="trainer",
                )
            if self.private.steps_taken >= self.private.steps_planned:
                control.should_training_stop = True
            return control

        def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            folder = os.path.join(args.output_dir, f"checkpoint-{state.global_step}")
            self.private.save(os.path.join(folder, _CHECKPOINT))

    return PrivateTrainer, PrivacyCallback
