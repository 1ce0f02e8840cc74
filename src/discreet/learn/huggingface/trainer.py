"""The Trainer and the callback; importing this needs transformers, so only making them does."""

import math
import os
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import Any, Final, final

import torch
from torch import Tensor, nn

from discreet.errors import MissingExtra, ParameterError
from discreet.learn.gradients.loss_function import LossFunction
from discreet.learn.loops import Tickets
from discreet.learn.training import Private

try:
    _Trainer: Any = import_module("transformers").Trainer
    _Callback: Any = import_module("transformers").TrainerCallback
    import_module("accelerate")  # without it a Trainer fails late
except ImportError as missing:
    raise MissingExtra(
        room="discreet.learn.huggingface", needs="transformers[torch]", extra=None
    ) from missing

__all__ = ["PrivacyCallback", "PrivateTrainer"]

_RAW: Final = ("loss", "train_loss", "grad_norm", "train_samples_per_second")
_CHECKPOINT: Final = "private.pt"


@final
class PrivateTrainer(_Trainer):  # type: ignore[misc]
    """A Trainer on a private run: see :func:`make_trainer`."""

    def __init__(self, private: Private, loss_fn: LossFunction, **options: Any) -> None:
        self.private, self._loss_fn = private, loss_fn
        if not private.model.training:  # as it comes from from_pretrained
            private.model.train()
        self._modes = [(module, module.training) for module in private.model.modules()]
        super().__init__(**options)

    def create_accelerator_and_postprocess(self) -> None:
        super().create_accelerator_and_postprocess()
        # Not into DistributedDataParallel, whose hooks add up raw gradients: the run adds up.
        prepare_model = self.accelerator.prepare_model
        self.accelerator.prepare_model = partial(prepare_model, evaluation_mode=True)

    def get_train_dataloader(self) -> Any:
        return Tickets(self.private)

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
class PrivacyCallback(_Callback):  # type: ignore[misc]
    """Watch over a private run in a Trainer: see :func:`privacy_callback`."""

    def __init__(self, private: Private) -> None:
        self.private = private
        self._taken = 0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        tickets = kwargs.get("train_dataloader")
        if not isinstance(tickets, Tickets) or tickets.private is not self.private:
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
