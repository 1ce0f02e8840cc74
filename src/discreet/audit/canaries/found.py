"""What an audit of training found."""

from dataclasses import dataclass
from math import isinf
from typing import final

from discreet._exact import Number, show
from discreet.audit._result import show_confidence

__all__ = ["TrainingAudit"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingAudit:
    """Hold what one run with canaries proves about the claim of a trainer.

    Claim: if the trainer keeps the claim for each canary, ``passed`` is False with probability at
    most 1 - ``confidence``, and so is ``epsilon_lower`` above what the trainer truly has at
    ``delta``. ``gaussian`` is a second opinion: what is proved if the trainer is as private as
    some Gaussian noise, in shape. ``power`` is the smallest true epsilon of such a trainer that
    fails in 95 of 100 runs, if the scores show as much of it as they showed this time; infinite
    if none does.

    >>> print(TrainingAudit(
    ...     epsilon_lower=3.1, gaussian=4.2, epsilon=1, delta=1e-5, confidence=0.95, power=2.3,
    ...     canaries=10_000, guesses=800, right=770, is_refuted=True,
    ... ))
    FAILED: claimed epsilon=1, delta=1e-05, but one run proves epsilon >= 3.1
      guesses     770 of 800 right, of 10,000 canaries
      if Gaussian epsilon >= 4.2
      power       fails 95 runs in 100 from a true epsilon of about 2.3
      confidence  0.95
    """

    epsilon_lower: float
    gaussian: float | None
    epsilon: Number
    delta: Number
    confidence: Number
    power: float
    canaries: int
    guesses: int
    right: int
    is_refuted: bool

    @property
    def passed(self) -> bool:
        """Whether the claim survived."""
        return not self.is_refuted

    def __str__(self) -> str:
        verdict, link = ("passed", "and") if self.passed else ("FAILED", "but")
        proof = f"one run proves epsilon >= {self.epsilon_lower:.3g}"
        if self.is_refuted and self.epsilon_lower <= self.epsilon:
            proof = "one run refutes the whole curve of that loss"
        lines = [
            f"{verdict}: claimed epsilon={_short(self.epsilon)}, delta={show(self.delta)}, "
            f"{link} {proof}",
            f"  guesses     {self.right:,} of {self.guesses:,} right, "
            f"of {self.canaries:,} canaries",
        ]
        if self.gaussian is not None:
            lines.append(f"  if Gaussian epsilon >= {self.gaussian:.3g}")
        if isinf(self.power):
            lines.append("  power       none: nothing is learned from a pass")
        else:
            lines.append(
                f"  power       fails 95 runs in 100 from a true epsilon of about {self.power:.2g}"
            )
        return "\n".join([*lines, f"  confidence  {show_confidence(self.confidence)}"])


def _short(number: Number) -> str:
    return show(float(f"{number:.4g}")) if isinstance(number, float) else show(number)
