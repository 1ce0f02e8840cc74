"""Audits of training in one run, through canaries that are in the data by a coin each."""

from discreet.audit.canaries.found import TrainingAudit
from discreet.audit.canaries.learning import gradient_canaries, loss_canaries
from discreet.audit.canaries.one_run import training

__all__ = ["TrainingAudit", "gradient_canaries", "loss_canaries", "training"]
