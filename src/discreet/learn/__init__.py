"""Train PyTorch models with differential privacy, near the speed of ordinary training.

>>> import torch
>>> model = torch.nn.Linear(2, 1)
>>> data = (torch.randn(1000, 2), torch.randn(1000, 1))
>>> def loss_fn(model, batch):  # one loss for each example
...     x, y = batch
...     return (model(x) - y).square().squeeze(1)
>>> private = prepare(
...     model, torch.optim.SGD(model.parameters(), lr=0.1), data,
...     epsilon=3, delta=1e-5, epochs=2, batch_size=100, clip=1.0,
... )
>>> for batch in private.batches():
...     private.step(batch, loss_fn)
>>> private.spent.epsilon <= 3
True
"""

from discreet.learn import requirement as _requirement  # noqa: F401 - says what is missing
from discreet.learn.checkpoints import resume
from discreet.learn.choices.adaptive import Adaptive
from discreet.learn.choices.clipping import Automatic, Clipping, Flat, PerLayer
from discreet.learn.choices.sampling import (
    FullBatch,
    Poisson,
    Sampling,
    TruncatedPoisson,
    WithoutReplacement,
)
from discreet.learn.choices.stages import Stages
from discreet.learn.fixing import check, fix, fixes
from discreet.learn.optimizers import AdamBC
from discreet.learn.preparing import prepare
from discreet.learn.reports import Report, Spent
from discreet.learn.run.settings import ExecutionOptions, TrainingOptions
from discreet.learn.training import Private

__all__ = [
    "AdamBC",
    "Adaptive",
    "Automatic",
    "check",
    "Clipping",
    "ExecutionOptions",
    "fix",
    "fixes",
    "Flat",
    "FullBatch",
    "PerLayer",
    "Poisson",
    "prepare",
    "Private",
    "Report",
    "resume",
    "Sampling",
    "Spent",
    "Stages",
    "TrainingOptions",
    "TruncatedPoisson",
    "WithoutReplacement",
]
