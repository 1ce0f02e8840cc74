"""Linkage: who is alone with their values, and whose name another table gives back."""

from discreet.attacks.linkage.anonymity import KAnonymous, anonymise
from discreet.attacks.linkage.anonymity_attacks import background, composition, homogeneity
from discreet.attacks.linkage.door import run
from discreet.attacks.linkage.joins import match
from discreet.attacks.linkage.scoreboard import scoreboard
from discreet.attacks.linkage.uniqueness import uniqueness, worst_set

__all__ = [
    "KAnonymous",
    "anonymise",
    "background",
    "composition",
    "homogeneity",
    "match",
    "run",
    "scoreboard",
    "uniqueness",
    "worst_set",
]
