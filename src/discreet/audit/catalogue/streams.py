"""The sparse vector technique: sessions that answer a stream of queries."""

from typing import Any

import numpy as np

from discreet.audit.catalogue.entry import CatalogueEntry
from discreet.mechanisms import AboveThreshold

__all__ = ["STREAMS"]

_SESSIONS = 50_000


def _answers(mechanism: AboveThreshold, queries: list[float], n: int) -> list[tuple[bool, ...]]:
    asked = np.array(queries)
    return [tuple(mechanism.start().ask_many(asked).tolist()) for _ in range(n)]


def _one_by_one(mechanism: AboveThreshold, queries: list[float], n: int) -> list[str]:
    """Ask one query at a time until the session is over."""
    texts = []
    for _ in range(n):
        session, answers = mechanism.start(), ""
        for query in queries:
            if not session.is_over:
                answers += "+" if session.ask(query) else "-"
        texts.append(answers)
    return texts


def _gaps(mechanism: AboveThreshold, queries: list[float], n: int) -> list[tuple[int, float]]:
    """Return how long the session was, and its last gap, NaN if nothing was above."""
    asked = np.array(queries)
    found = (mechanism.start().ask_many_with_gaps(asked) for _ in range(n))
    return [(gaps.size, float(gaps[-1])) for gaps in found]


def _last_gap(mechanism: AboveThreshold, queries: list[float], n: int) -> list[float]:
    return [gap for _, gap in _gaps(mechanism, queries, n)]


def _session(**parameters: Any) -> AboveThreshold:
    return AboveThreshold(epsilon=1, threshold=0, sensitivity=1, **parameters)


# A long run of negatives, each a little less likely, and positives that are more likely.
_LONG_RUN = ([1.0] * 10 + [0.0], [0.0] * 10 + [1.0])
_TWO_RUNS = ([1.0] * 6 + [0.0] * 2, [0.0] * 6 + [1.0] * 2)
_TOGETHER = ([0.0] * 10, [1.0] * 10)

STREAMS = (
    CatalogueEntry(
        name="AboveThreshold, long run",
        mechanism=_session(positives=1),
        release=_answers,
        pair=_LONG_RUN,
        samples=_SESSIONS,
    ),
    CatalogueEntry(
        name="AboveThreshold, Laplace",
        mechanism=_session(positives=1, noise="laplace"),
        release=_answers,
        pair=_LONG_RUN,
        samples=_SESSIONS,
    ),
    CatalogueEntry(
        name="AboveThreshold, 2 positives",
        mechanism=_session(positives=2),
        release=_answers,
        pair=_TWO_RUNS,
        samples=_SESSIONS,
    ),
    CatalogueEntry(
        name="AboveThreshold, monotone",
        mechanism=_session(positives=2, monotone=True),
        release=_answers,
        pair=_TOGETHER,
        samples=_SESSIONS,
    ),
    CatalogueEntry(
        name="AboveThreshold, one by one",
        mechanism=_session(positives=1),
        release=_one_by_one,
        pair=_LONG_RUN,
        samples=_SESSIONS,
    ),
    CatalogueEntry(
        name="AboveThreshold with gaps",
        mechanism=_session(positives=1),
        release=_gaps,
        pair=_LONG_RUN,
        samples=_SESSIONS,
    ),
    CatalogueEntry(
        name="AboveThreshold, gap's bits",
        mechanism=_session(positives=1),
        release=_last_gap,
        pair=([0.0], [1.0]),
        samples=_SESSIONS,
        is_low_bits=True,
    ),
)
