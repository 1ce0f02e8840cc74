"""Answers that people randomize themselves."""

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.audit.catalogue.entry import CatalogueEntry
from discreet.mechanisms import RandomizedResponse, Warner

__all__ = ["RESPONSES"]


def _reports(mechanism: Any, answer: int, n: int) -> npt.NDArray[np.int64]:
    reports: npt.NDArray[Any] = mechanism.release(np.full(n, answer))
    return reports.astype(np.int64)


RESPONSES = (
    CatalogueEntry(
        name="RandomizedResponse of 2",
        mechanism=RandomizedResponse(epsilon=1, categories=2),
        release=_reports,
        pair=(0, 1),
    ),
    CatalogueEntry(
        name="RandomizedResponse of 5",
        mechanism=RandomizedResponse(epsilon=1, categories=5),
        release=_reports,
        pair=(4, 0),
    ),
    CatalogueEntry(
        name="Warner",
        mechanism=Warner.calibrated(epsilon=1),
        release=_reports,
        pair=(0, 1),
    ),
    CatalogueEntry(
        name="Warner, forced yes",
        mechanism=Warner.coins(truth=0.5, forced_yes=0.75),
        release=_reports,
        pair=(0, 1),
        epsilon=1.6095,  # log 5, rounded up: no is five times as likely where it is the truth
    ),
)
