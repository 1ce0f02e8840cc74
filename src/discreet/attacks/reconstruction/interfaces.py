"""What answers questions about subsets: any callable, and one without protection to try it on."""

from collections.abc import Callable
from typing import Final, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from discreet._exact import Number, nonnegative
from discreet.attacks.reconstruction.decoding import Subsets
from discreet.errors import DataError, ParameterError

__all__ = ["CountSubsets", "count_subsets"]

_LAWS: Final = ("gaussian", "uniform", "laplace")
_MOST_NOISE = int(1e100)  # a double, with room for sums


class CountSubsets(Protocol):
    """Answers how much of a secret the people of a subset have together, or raises.

    >>> def ask(subset):
    ...     return (subset & [True, False, True]).sum()  # of three people, two have it
    >>> interface: CountSubsets = ask
    """

    def __call__(self, subset: Subsets, /) -> float:
        """Answer one question; a :class:`discreet.errors.DiscreetError` or a NaN refuses it.

        >>> interface: CountSubsets = lambda subset: float("nan")  # refuses everything
        """
        ...


def count_subsets(
    secret: ArrayLike,
    *,
    noise: Number = 0,
    law: Literal["gaussian", "uniform", "laplace"] = "gaussian",
    seed: int = 0,
) -> CountSubsets:
    """Return an interface without a budget: exact sums, or sums with noise as large as said.

    ``noise`` is the standard deviation, and of uniform noise the bound.

    >>> import numpy as np
    >>> ask = count_subsets([1, 0, 1])
    >>> ask(np.array([True, True, False]))
    1.0
    """
    if nonnegative(noise, name="noise") > _MOST_NOISE:
        raise ParameterError("noise must be at most 1e100.", parameter="noise")
    size = float(noise)
    if law not in _LAWS:
        raise ParameterError(
            f"law must be one of {', '.join(_LAWS)}, got {law!r}.", parameter="law"
        )
    try:
        held = np.asarray(secret, dtype=np.float64)
    except (TypeError, ValueError):  # whose words may show a value
        raise DataError("secret must be a column of numbers.") from None
    chance = np.random.default_rng(seed)
    draws: dict[str, Callable[[], float]] = {
        "gaussian": lambda: chance.normal(0, size),
        "uniform": lambda: chance.uniform(-size, size),
        "laplace": lambda: chance.laplace(0, size / np.sqrt(2)),
    }

    def ask(subset: Subsets, /) -> float:
        exact = float(held[np.asarray(subset, dtype=bool)].sum())
        return exact + (draws[law]() if size else 0.0)

    return ask
