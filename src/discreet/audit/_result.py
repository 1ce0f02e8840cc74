"""What an audit found."""

import math
from dataclasses import dataclass, field
from typing import Literal, final

from discreet._exact import Number, show

__all__ = ["Audit"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """Hold the outcome of one audit: what was claimed, what the samples prove, and by which event.

    Claim: if the samples are independent and the mechanism is (``epsilon``, ``delta``)-DP for the
    audited pair, then ``passed`` is False with probability at most 1 - ``confidence``.

    ``power`` is the smallest true epsilon, at the claimed delta, that such an audit would have
    flagged in 95 of 100 runs, given what it saw: infinity means that nothing was learned.
    ``gaussian`` is a second opinion, a lower bound on epsilon if the outputs are Gaussian, and
    None where they are seen not to be; it never decides. ``pair``
    is the pair of inputs that was audited.

    >>> found = Audit(
    ...     epsilon_lower=1.07, epsilon=1, delta=0, confidence=0.999, samples=200_000,
    ...     event="output <= 0", likelier="first", rate_lower=0.496, rate_upper=0.170, power=1.04,
    ... )
    >>> found.passed
    False
    >>> print(found)
    FAILED: claimed epsilon=1, delta=0, but the samples prove epsilon >= 1.07
      event       output <= 0
      probability at least 0.496 on the first input, at most 0.17 on the second
      power       a true epsilon of 1.04 would be flagged in 95 of 100 runs
      confidence  0.999, from 200000 samples of each input
    """

    epsilon_lower: float
    epsilon: Number
    delta: Number
    confidence: Number
    samples: int
    event: str
    likelier: Literal["first", "second"]
    rate_lower: float
    rate_upper: float
    power: float
    gaussian: float | None = None
    pair: tuple[object, object] | None = field(default=None, repr=False)

    @property
    def passed(self) -> bool:
        """Whether the claim survived: the proved lower bound does not exceed it.

        >>> Audit(
        ...     epsilon_lower=0.97, epsilon=1, delta=0, confidence=0.999, samples=200_000,
        ...     event="output <= 0", likelier="first", rate_lower=0.496, rate_upper=0.188,
        ...     power=1.04,
        ... ).passed
        True
        """
        return self.epsilon_lower <= self.epsilon

    def __str__(self) -> str:
        verdict, link = ("passed", "and") if self.passed else ("FAILED", "but")
        other = "second" if self.likelier == "first" else "first"
        lines = [
            f"{verdict}: claimed epsilon={show(self.epsilon)}, delta={show(self.delta)}, {link} "
            f"the samples prove epsilon >= {self.epsilon_lower:.4g}",
            f"  event       {self.event}",
            f"  probability at least {self.rate_lower:.4g} on the {self.likelier} input, "
            f"at most {self.rate_upper:.4g} on the {other}",
            f"  power       {self._power()}",
            f"  confidence  {show_confidence(self.confidence)}, "
            f"from {self.samples} samples of each input",
        ]
        if self.gaussian is not None:
            opinion = (
                f"  if Gaussian epsilon >= {self.gaussian:.4g}, an opinion under that assumption"
            )
            lines.insert(3, opinion)
        return "\n".join(lines)

    def _power(self) -> str:
        if math.isinf(self.power):
            return "none: nothing learned, whatever the true epsilon is"
        return f"a true epsilon of {self.power:.4g} would be flagged in 95 of 100 runs"


def show_confidence(confidence: Number) -> str:
    """Write a confidence so that 1 - 1e-9 does not print as 1.

    >>> show_confidence(0.999), show_confidence(1 - 1e-9)
    ('0.999', '1 - 1e-09')
    """
    short = f"{float(confidence):.6g}"
    return short if short != "1" else f"1 - {float(1 - confidence):.6g}"
