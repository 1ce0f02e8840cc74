"""Scores of outputs: features that people can name, and scores learned from samples."""

from discreet.audit.scores.bins import Binning, fit_bins
from discreet.audit.scores.bits import bit_features, lowest_set_bit
from discreet.audit.scores.discriminants import linear_score
from discreet.audit.scores.events import Event
from discreet.audit.scores.features import Feature
from discreet.audit.scores.learned import Sides
from discreet.audit.scores.propose import propose

__all__ = [
    "Binning",
    "Event",
    "Feature",
    "Sides",
    "bit_features",
    "fit_bins",
    "linear_score",
    "lowest_set_bit",
    "propose",
]
