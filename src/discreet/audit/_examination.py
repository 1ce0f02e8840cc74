"""The course of an audit: study some samples, settle on an event, count it in the rest."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np

from discreet._exact import Number, nonnegative, probability, whole
from discreet._rates import rate_lower, rate_upper
from discreet.audit._result import Audit
from discreet.audit.evidence import (
    ChosenEvent,
    certified_epsilon,
    choose,
    detectable_epsilon,
    gaussian_epsilon,
)
from discreet.audit.outputs import Raised, Reader, fit_reader
from discreet.audit.scores import Feature, Sides, linear_score
from discreet.errors import DataError, ParameterError

__all__ = ["Claim", "Proposal", "Study", "claim", "learning", "require_pair", "settle", "study"]

Outputs: TypeAlias = tuple[Any, Any]
Proposal: TypeAlias = Callable[[Reader, Sides, tuple[object, object]], list[Feature]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What is claimed, and how sure and how thorough its audit is to be."""

    epsilon: Number
    delta: Number
    confidence: Number
    samples: int

    @property
    def alpha(self) -> float:
        return float(1 - probability(self.confidence, name="confidence"))


def claim(*, epsilon: Number, delta: Number, confidence: Number, samples: object) -> Claim:
    """Check the parameters of an audit."""
    nonnegative(epsilon, name="epsilon")
    probability(delta, name="delta", zero=True)
    probability(confidence, name="confidence")
    count = whole(samples, name="samples", minimum=100)
    return Claim(epsilon=epsilon, delta=delta, confidence=confidence, samples=count)


def require_pair(pair: object) -> None:
    """Refuse what is not two inputs."""
    if not isinstance(pair, tuple) or len(pair) != 2:
        message = "pair must be a tuple of two neighbouring inputs, such as pair=(0, 1)."
        raise ParameterError(message, parameter="pair")


def learning(samples: int) -> int:
    """Return how many samples are studied; the others certify."""
    return samples // 4


@final
@dataclass(frozen=True, slots=True)
class Study:
    """What the studied samples taught: how to read outputs, and which event to count."""

    reader: Reader
    choice: ChosenEvent
    linear: Feature | None
    studied: Outputs
    pair: tuple[object, object]


def study(
    outputs: Outputs, pair: tuple[object, object], claim: Claim, *, propose: Proposal
) -> Study:
    """Learn from samples which event promises most."""
    if all(isinstance(output, Raised) for side in outputs for output in side):
        kinds = sorted({output.kind for side in outputs for output in side})
        raise DataError(
            f"fn failed on every call ({', '.join(kinds)}), so there is nothing to audit. Call it "
            "once by hand to see why."
        )
    with np.errstate(all="ignore"):  # outputs may be infinite, or too great to be squared
        return _studied(outputs, pair, claim, propose)


def _studied(
    outputs: Outputs, pair: tuple[object, object], claim: Claim, propose: Proposal
) -> Study:
    half = len(outputs[0]) // 2
    known, judged = _halves(outputs, slice(None, half)), _halves(outputs, slice(half, None))
    reader = fit_reader(*known)
    sides = reader.read(known[0]), reader.read(known[1])
    choice = choose(
        propose(reader, sides, pair),
        known=sides,
        judged=(reader.read(judged[0]), reader.read(judged[1])),
        trials=claim.samples - len(outputs[0]),
        delta=float(claim.delta),
        alpha=claim.alpha,
    )
    return Study(reader, choice, linear_score(reader, sides), outputs, pair)


def settle(found: Study, outputs: Outputs, claim: Claim) -> Audit:
    """Count the chosen event in fresh samples, and say what that proves."""
    with np.errstate(all="ignore"):
        return _settled(found, outputs, claim)


def _settled(found: Study, outputs: Outputs, claim: Claim) -> Audit:
    first, second = (found.reader.read(side) for side in outputs)
    event, likelier = found.choice.event, found.choice.likelier
    sides = (first, second) if likelier == "first" else (second, first)
    likely, unlikely = (event.count(side) for side in sides)
    trials, delta, alpha = len(first), float(claim.delta), claim.alpha
    proved = certified_epsilon(likely, unlikely, trials=trials, delta=delta, alpha=alpha)
    power = detectable_epsilon(
        likely,
        unlikely,
        trials=trials,
        epsilon=float(claim.epsilon),
        delta=delta,
        alpha=alpha,
        proved=proved,
    )
    low, high = np.array([likely]), np.array([unlikely])
    return Audit(
        epsilon_lower=proved,
        epsilon=claim.epsilon,
        delta=claim.delta,
        confidence=claim.confidence,
        samples=claim.samples,
        event=event.describe(),
        likelier=likelier,
        rate_lower=float(rate_lower(low, trials=trials, alpha=alpha / 2)[0]),
        rate_upper=float(rate_upper(high, trials=trials, alpha=alpha / 2)[0]),
        power=power,
        gaussian=_second_opinion(found, (first, second), claim),
        pair=found.pair,
    )


def _second_opinion(found: Study, fresh: Sides, claim: Claim) -> float | None:
    if found.linear is None:
        return None
    values = [found.linear.values(side) for side in fresh]
    if len(found.reader.items) == 1:
        # With one number there was nothing to choose, so the studied samples count as well.
        studied = (found.linear.values(found.reader.read(side)) for side in found.studied)
        values = [np.concatenate(both) for both in zip(values, studied, strict=True)]
    return gaussian_epsilon(values[0], values[1], delta=float(claim.delta), alpha=claim.alpha)


def _halves(outputs: Outputs, part: slice) -> Outputs:
    return outputs[0][part], outputs[1][part]
