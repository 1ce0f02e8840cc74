"""Mechanisms: frozen descriptions of a private release, with its loss and its error.

>>> mechanism = Gaussian.calibrated(epsilon=1, delta=1e-5, sensitivity=1)
>>> round(mechanism.sigma, 4)
3.7306
"""

from discreet.mechanisms.classifier_accuracy import ClassifierAccuracy
from discreet.mechanisms.clipping import clip, clip_norm
from discreet.mechanisms.discrete_gaussian import DiscreteGaussian
from discreet.mechanisms.discrete_laplace import DiscreteLaplace
from discreet.mechanisms.exact_sum import exact_sum, sum_sensitivity
from discreet.mechanisms.exponential import Exponential
from discreet.mechanisms.frequency_estimate import FrequencyEstimate
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.histogram import Histogram
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.noisy_max import NoisyMax
from discreet.mechanisms.partition_selection import PartitionSelection
from discreet.mechanisms.permute_and_flip import PermuteAndFlip
from discreet.mechanisms.quantile import Quantile
from discreet.mechanisms.quantiles import Quantiles
from discreet.mechanisms.randomized_response import RandomizedResponse
from discreet.mechanisms.sparse_session import Answer, SparseVectorSession
from discreet.mechanisms.sparse_vector import AboveThreshold
from discreet.mechanisms.stability_histogram import StabilityHistogram
from discreet.mechanisms.top_k import TopK
from discreet.mechanisms.warner import Warner

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
