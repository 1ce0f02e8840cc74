"""The attacks that differential privacy answers, to run against data and releases of your own.

Each family is a folder with one door, ``run(...)``, which returns an :class:`AttackReport`: how far
the attack came, how far somebody comes who saw nothing, and what that means in plain words. Attacks
need data or an interface that you already have; on a protected table they pay from its account
like any other question.
"""

from discreet.attacks import differencing, linkage, membership, reconstruction
from discreet.attacks.report import AttackReport

__all__ = ["AttackReport", "differencing", "linkage", "membership", "reconstruction"]
