"""Exact noise from one secure source.

Every sampler draws from precisely the law it names: no double ever decides a case it cannot
decide. ``docs/explanation/noise.md`` tells how, ``docs/proofs/staircase.md`` proves it.
"""

from discreet.noise._additive import (
    discrete_gaussian,
    discrete_laplace,
    geometric,
    rounded_gaussian,
    rounded_laplace,
)
from discreet.noise._coins import bernoulli, bernoulli_exp, bernoulli_logistic, bernoulli_odds
from discreet.noise._integers import choice, uniform_integers
from discreet.noise._selection import exponential_race, permute_and_flip
from discreet.noise._source import SYSTEM, SecureSource, Source

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
    "uniform_integers",
]
