"""Mechanisms: frozen descriptions of a private release, with its loss and its error.

>>> mechanism = Gaussian.calibrated(epsilon=1, delta=1e-5, sensitivity=1)
>>> round(mechanism.sigma, 4)
3.7306
"""

from discreet.mechanisms.discrete_gaussian import DiscreteGaussian
from discreet.mechanisms.discrete_laplace import DiscreteLaplace
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace

__all__ = ["DiscreteGaussian", "DiscreteLaplace", "Gaussian", "Laplace"]
