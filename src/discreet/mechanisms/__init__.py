"""Mechanisms: frozen descriptions of a private release, with its loss and its error.

>>> mechanism = Gaussian.calibrated(epsilon=1, delta=1e-5, sensitivity=1)
>>> round(mechanism.sigma, 4)
3.7306
"""

from discreet.mechanisms.additive.classifier_accuracy import ClassifierAccuracy
from discreet.mechanisms.additive.discrete_gaussian import DiscreteGaussian
from discreet.mechanisms.additive.discrete_laplace import DiscreteLaplace
from discreet.mechanisms.additive.gaussian import Gaussian
from discreet.mechanisms.additive.laplace import Laplace
from discreet.mechanisms.histograms.histogram import Histogram
from discreet.mechanisms.histograms.partition_selection import PartitionSelection
from discreet.mechanisms.histograms.stability_histogram import StabilityHistogram
from discreet.mechanisms.responses.frequency_estimate import FrequencyEstimate
from discreet.mechanisms.responses.randomized_response import RandomizedResponse
from discreet.mechanisms.responses.warner import Warner
from discreet.mechanisms.selection.exponential import Exponential
from discreet.mechanisms.selection.noisy_max import NoisyMax
from discreet.mechanisms.selection.permute_and_flip import PermuteAndFlip
from discreet.mechanisms.selection.quantile import Quantile
from discreet.mechanisms.selection.quantiles import Quantiles
from discreet.mechanisms.selection.top_k import TopK
from discreet.mechanisms.sparse_vector.above_threshold import AboveThreshold
from discreet.mechanisms.sparse_vector.session import Answer, SparseVectorSession
from discreet.mechanisms.values.clipping import clip, clip_norm
from discreet.mechanisms.values.exact_sum import exact_sum, sum_sensitivity

__all__ = [
    "AboveThreshold",
    "Answer",
    "ClassifierAccuracy",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "FrequencyEstimate",
    "Gaussian",
    "Histogram",
    "Laplace",
    "NoisyMax",
    "PartitionSelection",
    "PermuteAndFlip",
    "Quantile",
    "Quantiles",
    "RandomizedResponse",
    "SparseVectorSession",
    "StabilityHistogram",
    "TopK",
    "Warner",
    "clip",
    "clip_norm",
    "exact_sum",
    "sum_sensitivity",
]
