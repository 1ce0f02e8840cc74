"""What counts prove: the choice of one event, its certificate, the power behind it."""

from discreet.audit.evidence.certificate import certified_epsilon, refutes
from discreet.audit.evidence.choice import ChosenEvent, Side, choose
from discreet.audit.evidence.power import detectable_epsilon
from discreet.audit.evidence.shape import gaussian_epsilon

__all__ = [
    "ChosenEvent",
    "Side",
    "certified_epsilon",
    "choose",
    "detectable_epsilon",
    "gaussian_epsilon",
    "refutes",
]
