"""Who was in the data: membership inference on models and aggregates, and extraction of secrets."""

from discreet.attacks.membership.certifying import CertifiedRate, certified_rate, roc
from discreet.attacks.membership.observations import Observations, logit_confidences, observe
from discreet.attacks.membership.running import run
from discreet.attacks.membership.scores import (
    lira_offline,
    lira_online,
    loss_threshold,
    rmia,
    shadow_models,
)
from discreet.attacks.membership.trainers import labelled_points, networks, private_network

__all__ = [
    "CertifiedRate",
    "certified_rate",
    "labelled_points",
    "lira_offline",
    "lira_online",
    "logit_confidences",
    "loss_threshold",
    "networks",
    "Observations",
    "observe",
    "private_network",
    "rmia",
    "roc",
    "run",
    "shadow_models",
]
