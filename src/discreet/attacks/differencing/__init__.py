"""Differencing: questions about crowds, taken apart until one person is left."""

from discreet.attacks.differencing.door import run
from discreet.attacks.differencing.game import distinguish
from discreet.attacks.differencing.interfaces import Guarded, Interface, grouped, paid
from discreet.attacks.differencing.rounded import averaged, over_the_edge
from discreet.attacks.differencing.trackers import (
    difference,
    direct,
    double_tracker,
    general_tracker,
    individual_tracker,
)

__all__ = [
    "Guarded",
    "Interface",
    "averaged",
    "difference",
    "direct",
    "distinguish",
    "double_tracker",
    "general_tracker",
    "grouped",
    "individual_tracker",
    "over_the_edge",
    "paid",
    "run",
]
