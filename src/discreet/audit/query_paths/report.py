"""What the audit of a query path found, channel by channel."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal, final

from discreet._exact import Number, show
from discreet._words import fit

__all__ = ["ChannelFinding", "TableAudit", "Verdict"]

_MOST = 8  # failures that are printed

Verdict = Literal["passed", "FAILED", "nothing learned", "could not be measured"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelFinding:
    """Hold what one channel told about one kind of unit.

    ``power`` is the smallest true epsilon that would have been flagged in 95 of 100 runs, by a leak
    that always shows; infinity means that nothing could have been.

    >>> print(ChannelFinding(kind="nulls", channel="fails", verdict="FAILED", epsilon_lower=2.1,
    ...                      power=1.3, samples=200, event="output = 'ValueError'"))
    nulls, fails: FAILED, epsilon >= 2.1 (output = 'ValueError')
    """

    kind: str
    channel: str
    verdict: Verdict
    epsilon_lower: float
    power: float
    samples: int
    event: str

    def __str__(self) -> str:
        bound = f", epsilon >= {self.epsilon_lower:.4g}" if self.epsilon_lower else ""
        return f"{self.kind}, {self.channel}: {self.verdict}{bound} ({self.event})"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TableAudit:
    """Hold what an audit of a query path found: a finding for each channel and kind of unit.

    Claim: if asking again gives independent samples, and the path is (``epsilon``, ``delta``)-DP
    for the unit that was added, removed or replaced, then a bound exceeds epsilon in any finding
    with probability at most 1 - ``confidence``. One kind of failure is no matter of chance:
    numbers that stay the same for a table that has nothing in common are not computed from it.

    >>> found = TableAudit(epsilon=1, delta=0, confidence=0.999, findings=[
    ...     ChannelFinding(kind="nulls", channel="fails", verdict="FAILED", epsilon_lower=2.1,
    ...                    power=1.3, samples=200, event="output = 'ValueError'"),
    ...     ChannelFinding(kind="nulls", channel="price", verdict="passed", epsilon_lower=0.0,
    ...                    power=1.3, samples=200, event="always the same")])
    >>> print(found)
    FAILED: claimed epsilon=1, delta=0; 1 of 2 findings refute it
      epsilon >= 2.1   nulls, fails
        output = 'ValueError'
      power            epsilon of 1.3 would be flagged, of a leak that always shows
      confidence       0.999 for all together, 200 samples of each table
    """

    epsilon: Number
    delta: Number
    confidence: Number
    findings: Sequence[ChannelFinding]

    @property
    def failures(self) -> list[ChannelFinding]:
        """The findings that refute the claim, the worst first.

        >>> TableAudit(epsilon=1, delta=0, confidence=0.999, findings=()).failures
        []
        """
        failed = [one for one in self.findings if one.verdict == "FAILED"]
        return sorted(failed, key=lambda one: -one.epsilon_lower)

    @property
    def passed(self) -> bool:
        """Whether no finding refutes the claim. It proves nothing; ``power`` says what was tried.

        >>> TableAudit(epsilon=1, delta=0, confidence=0.999, findings=()).passed
        True
        """
        return not self.failures

    @property
    def epsilon_lower(self) -> float:
        """The largest epsilon that any finding proves.

        >>> TableAudit(epsilon=1, delta=0, confidence=0.999, findings=()).epsilon_lower
        0.0
        """
        return max((one.epsilon_lower for one in self.findings), default=0.0)

    @property
    def power(self) -> float:
        """The power of the weakest finding: infinity if there is one that could not have failed.

        >>> TableAudit(epsilon=1, delta=0, confidence=0.999, findings=()).power
        inf
        """
        return max((one.power for one in self.findings), default=math.inf)

    def to_json(self) -> str:
        """Return the report for programs; a power that is infinite is null.

        >>> found = TableAudit(epsilon=1, delta=0, confidence=0.999, findings=())
        >>> found.to_json().splitlines()[1]
        '  "passed": true,'
        """
        facts = {
            "passed": self.passed,
            "epsilon": float(self.epsilon),
            "delta": float(self.delta),
            "confidence": float(self.confidence),
            "epsilon_lower": self.epsilon_lower,
            "power": _finite(self.power),
            "findings": [{**asdict(one), "power": _finite(one.power)} for one in self.findings],
        }
        return json.dumps(facts, indent=2, allow_nan=False)

    def __str__(self) -> str:
        failures = self.failures
        claim = f"claimed epsilon={show(self.epsilon)}, delta={show(self.delta)}"
        told = f"{len(failures)} of {len(self.findings)} findings refute it"
        verdict = f"FAILED: {claim}; {told}" if failures else f"passed: {claim}; nothing refutes it"
        kinds = list(dict.fromkeys(one.kind for one in self.findings))
        lines = [verdict]
        for one in failures[:_MOST]:
            lines += [f"  {_bound(one):<15}  {one.kind}, {one.channel}", f"    {_short(one.event)}"]
        if len(failures) > _MOST:
            lines.append(f"  and {len(failures) - _MOST} more, in .failures")
        if not failures:
            lines.append(f"  {'proved':<15}  epsilon >= {self.epsilon_lower:.4g}")
            lines.append(f"  {'tried':<15}  {', '.join(kinds)}")
        lines += [f"  {name:<15}  {text}" for name, text in self._facts()]
        return "\n".join(fit(line, indent=" " * 19) for line in lines)

    def _facts(self) -> list[tuple[str, str]]:
        known = [one for one in self.findings if one.verdict in ("passed", "FAILED")]
        power = max((one.power for one in known), default=math.inf)
        learned = "nothing learned: take more samples"
        if math.isfinite(power):
            learned = f"epsilon of {power:.3g} would be flagged, of a leak that always shows"
        facts = [("power", learned)]
        for verdict in ("nothing learned", "could not be measured"):
            silent = {one.channel for one in self.findings if one.verdict == verdict}
            if silent:
                facts.append(
                    (verdict if len(verdict) < 16 else "not measured", ", ".join(sorted(silent)))
                )
        samples = max((one.samples for one in self.findings), default=0)
        sure = f"{float(self.confidence):.6g}"
        if sure == "1":
            sure = f"1 - {float(1 - self.confidence):.2g}"
        return [*facts, ("confidence", f"{sure} for all together, {samples} samples of each table")]


def _bound(one: ChannelFinding) -> str:
    return f"epsilon >= {one.epsilon_lower:.3g}" if one.epsilon_lower else "not computed"


def _short(text: str) -> str:
    return text if len(text) <= 74 else text[:73] + "…"


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
