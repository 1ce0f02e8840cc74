"""Randomized response: many surveys of people who do not exist, each with its interval."""

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np

from discreet.mechanisms import RandomizedResponse
from discreet.service.pages.areas.gallery.drawing import AddressSource, computed
from discreet.service.pages.page import PageCall

__all__ = ["survey"]

_SURVEYS: Final = 40
_CONFIDENCE: Final = 0.95


async def survey(call: PageCall) -> Mapping[str, Any]:
    """Show what the first survey says, and how often intervals hold the truth."""
    rate = round(call.number("rate", 30, least=0, most=100))
    people = round(call.number("people", 1000, least=10, most=5000))
    epsilon = round(call.number("epsilon", 1.0, least=0.1, most=5), 2)
    draw = round(call.number("draw", 1, least=1, most=10**6))
    shown = {"rate": rate, "people": people, "epsilon": epsilon, "draw": draw}
    return {**shown, **await computed(partial(_surveys, rate, people, epsilon, draw))}


@lru_cache(maxsize=256)
def _surveys(rate: int, people: int, epsilon: float, draw: int) -> dict[str, Any]:
    mechanism = RandomizedResponse(epsilon=epsilon, categories=2)
    source = AddressSource(f"survey {rate} {people} {epsilon} {draw}")
    answers = np.arange(people) < round(people * rate / 100)
    truth = float(answers.mean())
    found = []
    for _ in range(_SURVEYS):
        estimate = mechanism.estimate(mechanism.release(answers, source=source))
        low, high = estimate.interval(confidence=_CONFIDENCE)
        found.append({
            "said_yes": int(estimate.observed[1]),
            "estimate": float(estimate.frequencies[1]),
            "low": float(low[1]),
            "high": float(high[1]),
        })  # fmt: skip
    return {
        "truth": truth,
        "honest": mechanism.truth_probability,
        "error": min(1.0, mechanism.error(confidence=_CONFIDENCE, reports=people)),
        "surveys": found,
        "span": [
            max(-0.02, min(one["low"] for one in found) - 0.02),
            min(1.02, max(one["high"] for one in found) + 0.02),
        ],
        "right": sum(one["low"] <= truth <= one["high"] for one in found),
    }
