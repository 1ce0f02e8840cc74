"""Who was in the data: membership inference on models and aggregates, and extraction of secrets."""

from discreet.attacks.membership.certifying import CertifiedRate, certified_rate, roc
from discreet.attacks.membership.extraction import (
    PlantedText,
    TextModel,
    exposure,
    planted_text,
    run_on_text,
)
from discreet.attacks.membership.frequencies import (
    frequencies,
    generated_genomes,
    homer,
    inner_product,
    likelihood_ratio,
    private_frequencies,
    run_on_frequencies,
)
from discreet.attacks.membership.observations import Observations, logit_confidences, observe
from discreet.attacks.membership.running import run
from discreet.attacks.membership.scores import (
    lira_offline,
    lira_online,
    loss_threshold,
    rmia,
    shadow_models,
)
from discreet.attacks.membership.text_model import CharacterModel, train_text_model
from discreet.attacks.membership.trainers import labelled_points, networks, private_network

__all__ = [
    "certified_rate",
    "CertifiedRate",
    "CharacterModel",
    "exposure",
    "frequencies",
    "generated_genomes",
    "homer",
    "inner_product",
    "labelled_points",
    "likelihood_ratio",
    "lira_offline",
    "lira_online",
    "logit_confidences",
    "loss_threshold",
    "networks",
    "Observations",
    "observe",
    "planted_text",
    "PlantedText",
    "private_frequencies",
    "private_network",
    "rmia",
    "roc",
    "run",
    "run_on_frequencies",
    "run_on_text",
    "shadow_models",
    "TextModel",
    "train_text_model",
]
