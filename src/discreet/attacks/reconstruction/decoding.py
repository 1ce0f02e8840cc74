"""From noisy counts of subsets to everybody's secret: linear programming and least squares."""

from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import DataError, ParameterError

__all__ = ["Floats", "Method", "Subsets", "check_method", "decode"]

Subsets: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
Method: TypeAlias = Literal["least squares", "linear programming"]


def decode(
    subsets: Subsets, answers: ArrayLike, *, largest: int = 1, method: Method = "least squares"
) -> NDArray[np.int64]:
    """Return the secrets, from 0 to ``largest``, that explain the sums over subsets best.

    Each row of ``subsets`` says who was in a question. Least squares is best for Gaussian and
    uniform noise; linear programming, which makes the sum of the absolute gaps smallest, for
    Laplace noise and where a few answers are far off.

    Why: with noise below a share of sqrt(n), few questions settle all but a few of n bits
    [DN03]; linear programming stands some answers that are far off, too [DMT07].

    >>> import numpy as np
    >>> subsets = np.random.default_rng(0).random((40, 8)) < 0.5
    >>> secret = np.array([0, 1, 1, 0, 1, 0, 0, 1])
    >>> decode(subsets, subsets @ secret).tolist()
    [0, 1, 1, 0, 1, 0, 0, 1]
    """
    asked = np.asarray(subsets, dtype=np.float64)
    told = np.asarray(answers, dtype=np.float64)
    if asked.ndim != 2 or told.shape != asked.shape[:1]:
        raise DataError("subsets must be a matrix with one row for each of the answers.")
    if not np.isfinite(told).all():
        raise DataError("answers must be finite. Leave out the questions that were refused.")
    check_method(method)
    if len(told) == 0:
        return np.zeros(asked.shape[1], dtype=np.int64)
    solved = _SOLVERS[method](asked, told, largest)
    return np.asarray(np.rint(np.clip(solved, 0, largest)), dtype=np.int64)


def check_method(method: str) -> None:
    """Refuse a method that is none, before anything is asked.

    >>> check_method("least squares")
    """
    if method not in _SOLVERS:
        names = " or ".join(map(repr, _SOLVERS))
        raise ParameterError(f"method must be {names}, got {method!r}.", parameter="method")


def _least_squares(asked: Floats, told: Floats, largest: int) -> Floats:
    from scipy.optimize import lsq_linear

    found = lsq_linear(asked, told, bounds=(0, largest), method="bvls")
    return np.asarray(found.x)


def _linear_programming(asked: Floats, told: Floats, largest: int) -> Floats:
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, hstack, vstack

    questions, people = asked.shape
    rows, gaps = csr_array(asked), eye_array(questions)
    # What is off by more than everybody is as wrong as it can be, and the solver takes 1e20 for
    # infinite.
    told = np.clip(told, -largest * people, 2 * largest * people)
    found = linprog(
        np.repeat([0.0, 1.0], [people, questions]),
        A_ub=vstack([hstack([rows, -gaps]), hstack([-rows, -gaps])]),
        b_ub=np.concatenate([told, -told]),
        bounds=[(0, largest)] * people + [(0, None)] * questions,
        method="highs",
    )
    return np.asarray(found.x[:people])


_SOLVERS: Final = {"least squares": _least_squares, "linear programming": _linear_programming}
