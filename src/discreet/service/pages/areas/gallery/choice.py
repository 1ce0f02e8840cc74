"""Choosing among candidates by score: three mechanisms beside each other, exactly."""

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any, Final, TypeAlias

import numpy as np

from discreet.errors import DataError, DiscreetError, ParameterError
from discreet.mechanisms import Exponential, NoisyMax, PermuteAndFlip
from discreet.service.pages.areas.gallery.drawing import computed
from discreet.service.pages.page import PageCall
from discreet.service.web.problems import problem_of

__all__ = ["choice"]

Chooser: TypeAlias = Exponential | PermuteAndFlip | NoisyMax

_MOST: Final = 12
_LARGEST: Final = 1e9
_USUAL: Final = "30, 27, 24, 15, 5"


async def choice(call: PageCall) -> Mapping[str, Any]:
    """Show each candidate's chance; scores that cannot be read are told beside the form."""
    text = call.query.get("scores", _USUAL)
    epsilon = round(call.number("epsilon", 0.5, least=0.05, most=5), 2)
    is_monotone = "monotone" in call.query
    shown = {"scores_text": text, "epsilon": epsilon, "is_monotone": is_monotone}
    try:
        scores = _read(text)
    except DiscreetError as error:
        return {**shown, "problem": problem_of(error).document, "kinds": [], "scores": []}
    work = partial(_chances, scores, epsilon, is_monotone)
    return {**shown, "problem": None, "scores": scores, **await computed(work)}


def _read(text: str) -> tuple[float, ...]:
    """Return the scores of a list with commas.

    >>> _read("3, 2.5")
    (3.0, 2.5)
    """
    try:
        scores = tuple(float(one) for one in text.replace(";", ",").split(",") if one.strip())
    except ValueError:
        raise DataError("scores must be numbers with commas between, such as 30, 27, 5.") from None
    if not 2 <= len(scores) <= _MOST or not all(abs(one) <= _LARGEST for one in scores):
        raise ParameterError(
            f"scores must be 2 to {_MOST} numbers, none beyond {_LARGEST:g}.", parameter="scores"
        )
    return scores


def _choosers(epsilon: float, is_monotone: bool) -> dict[str, Chooser]:
    facts: dict[str, Any] = {"epsilon": epsilon, "sensitivity": 1, "monotone": is_monotone}
    return {
        "Exponential mechanism": Exponential(**facts),
        "Permute-and-flip": PermuteAndFlip(**facts),
        "Noisy max (Laplace)": NoisyMax(**facts, noise="laplace"),
    }


@lru_cache(maxsize=256)
def _chances(scores: tuple[float, ...], epsilon: float, is_monotone: bool) -> dict[str, Any]:
    values, kinds = np.array(scores), []
    for title, mechanism in _choosers(epsilon, is_monotone).items():
        chances = mechanism.probabilities(values)
        kinds.append({
            "title": title,
            "chances": chances.tolist(),
            "best": float(chances[values == values.max()].sum()),
            "loss": float(values.max() - chances @ values),
            "error": mechanism.error(confidence=0.95, candidates=len(scores)),
        })  # fmt: skip
    return {"names": [chr(ord("A") + i) for i in range(len(scores))], "kinds": kinds}
