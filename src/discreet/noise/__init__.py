"""Exact noise from one secure source.

Every sampler draws from precisely the law it names: no double ever decides a case it cannot
decide. ``docs/explanation/noise.md`` tells how, ``docs/proofs/rejection_sampling.md`` proves it.
Side doors for other rooms' samplers: ``discreet.noise.source`` and
``discreet.noise.enclosure``.
"""

from discreet.noise.additive import (
    discrete_gaussian,
    discrete_laplace,
    geometric,
    rounded_gaussian,
    rounded_laplace,
)
from discreet.noise.coins import bernoulli, bernoulli_exp, bernoulli_logistic, bernoulli_odds
from discreet.noise.integers import choice, uniform_below_secret, uniform_integers
from discreet.noise.selection import exponential_race, permute_and_flip
from discreet.noise.source import SYSTEM, SecureSource, Source

__all__ = [
    "SYSTEM",
    "SecureSource",
    "Source",
    "bernoulli",
    "bernoulli_exp",
    "bernoulli_logistic",
    "bernoulli_odds",
    "choice",
    "discrete_gaussian",
    "discrete_laplace",
    "exponential_race",
    "geometric",
    "permute_and_flip",
    "rounded_gaussian",
    "rounded_laplace",
    "uniform_below_secret",
    "uniform_integers",
]
