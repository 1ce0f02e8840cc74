"""Interfaces that answer questions about groups: home-made protections, and tables that charge."""

# ruff: noqa: S608  (statements are made of quoted names, in a database of their own)

import math
from collections.abc import Callable
from numbers import Real
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np

from discreet._exact import Number, nonnegative, whole
from discreet.attacks.frames import quoted, read
from discreet.errors import BudgetExceeded, DataError, ParameterError

if TYPE_CHECKING:
    from discreet.tables import Protected

__all__ = ["Group", "Guarded", "Interface", "checked", "grouped", "paid"]

Interface: TypeAlias = Callable[[str], float | None]
"""What answers a question in SQL with a number, or with None where it refuses."""
Group: TypeAlias = Callable[[str], float | None]
"""What answers a condition with an aggregate over the group that it describes."""


def grouped(ask: Interface, aggregate: str, *, table: str) -> Group:
    """Return what asks for one aggregate over any group.

    >>> grouped(print, "COUNT(*)", table="people")("age > 3")
    SELECT COUNT(*) AS answer FROM "people" WHERE age > 3
    """
    return lambda where: ask(f"SELECT {aggregate} AS answer FROM {quoted(table)} WHERE {where}")


def checked(ask: Interface) -> Interface:
    """Return an interface whose answers are numbers: NaN and infinities are refusals as None is.

    >>> checked(lambda question: float("nan"))("SELECT 1") is None
    True
    """

    def answer(question: str) -> float | None:
        said: object = ask(question)
        if said is None:
            return None
        if not isinstance(said, Real):
            raise DataError(
                "ask must answer each question with a number, or with None where it refuses, got "
                f"{type(said).__name__}."
            )
        return float(said) if math.isfinite(said) else None

    return answer


@final
class Guarded:
    """Answer exact questions about a table, with the protections that people build at home.

    Groups of fewer than ``minimum`` rows are refused, with ``is_two_sided`` also those that all
    but fewer than ``minimum`` belong to; answers are rounded to multiples of ``rounding`` and
    blurred by normal noise of deviation ``blur``, the same one for the same question if it is
    ``sticky``.

    >>> desk = Guarded({"pay": [1, 2, 3, 4]}, name="payroll", minimum=2)
    >>> desk('SELECT SUM(pay) FROM "payroll" WHERE pay > 2')
    7.0
    >>> desk('SELECT SUM(pay) FROM "payroll" WHERE pay > 3') is None
    True
    """

    def __init__(
        self,
        data: object,
        *,
        name: str,
        minimum: int = 1,
        is_two_sided: bool = False,
        rounding: float = 0,
        blur: float = 0,
        sticky: bool = False,
        seed: int = 0,
    ) -> None:
        import duckdb

        for parameter, value in (("rounding", rounding), ("blur", blur)):
            if not (nonnegative(value, name=parameter) == 0 or 1e-9 <= value < 1e300):
                raise ParameterError(
                    f"{parameter} must be 0 or from 1e-9 to 1e300, got {value!r}.",
                    parameter=parameter,
                )
        table = read(data)
        self._run = duckdb.connect()
        self._run.register("arrived", table)
        self._run.execute(f"CREATE TABLE {quoted(name)} AS FROM arrived")
        self._rows, self._minimum = table.num_rows, whole(minimum, name="minimum")
        self._is_two_sided, self._rounding, self._blur = is_two_sided, rounding, blur
        self._told: dict[str, float] | None = {} if sticky else None
        self._dice = np.random.default_rng(seed)
        self.questions = 0

    def __call__(self, question: str) -> float | None:
        import duckdb

        self.questions += 1
        _, found, rest = question.partition(" FROM ")
        try:
            (size,) = self._run.execute(f"SELECT count(*) FROM {rest}").fetchone() or (0,)
            answer = self._run.execute(question).fetchone() if found else None
        except duckdb.Error:  # whose words may show a value
            raise DataError("the interface cannot read this question.") from None
        is_large = self._is_two_sided and size > self._rows - self._minimum
        if size < self._minimum or is_large or answer is None or answer[0] is None:
            return None
        return self._shown(question, float(answer[0]))

    def _shown(self, question: str, value: float) -> float:
        if self._blur:
            told = {} if self._told is None else self._told
            value += told.setdefault(question, float(self._dice.normal(scale=self._blur)))
        return round(value / self._rounding) * self._rounding if self._rounding else value


def paid(table: "Protected", *, epsilon: Number) -> Interface:
    """Return what asks a protected table, at a price, until its budget has ended.

    >>> from discreet.testing import temporary_tables
    >>> with temporary_tables(epsilon=1) as T:
    ...     ask = paid(T, epsilon=0.6)
    ...     [ask(f"SELECT COUNT(*) FROM people WHERE age > {a}") is None for a in (1, 2)]
    [False, True]
    """

    def ask(question: str) -> float | None:
        try:
            return float(table.sql(question, epsilon=epsilon).value)
        except BudgetExceeded:
            return None

    return ask
