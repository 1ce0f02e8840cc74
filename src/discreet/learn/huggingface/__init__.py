"""Private training in the loop of a Hugging Face ``Trainer``, where transformers is installed.

A plain Trainer draws its own batches, forms its own gradients and steps its own optimiser: no
callback can make that private, and an epsilon beside it would be a false one. So the Trainer that
:func:`make_trainer` returns takes its batches and its steps from a private run and keeps the rest:
schedules, logs, checkpoints, evaluation, other callbacks. The callback of
:func:`privacy_callback` refuses any other loop.
"""

from discreet.learn.huggingface.losses import per_example_loss
from discreet.learn.huggingface.making import make_trainer, privacy_callback

__all__ = ["make_trainer", "per_example_loss", "privacy_callback"]
