"""Counts of subsets from a protected table: asked in SQL, and paid from its account."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction
from math import exp
from typing import TYPE_CHECKING, Final, final

import numpy as np

from discreet._exact import Number, probability
from discreet.attacks.frames import quoted
from discreet.attacks.reconstruction.decoding import Floats, Subsets
from discreet.errors import BudgetExceeded, DataError, ParameterError
from discreet.privacy import Unit

if TYPE_CHECKING:
    from discreet.tables import Protected, Result

__all__ = ["ProtectedCounts", "through"]

_AT_ONCE: Final = 128  # counts in one question
_LONGEST: Final = 40_000  # characters of a question, below what a table reads


def through(
    protected: "Protected", *, condition: str, by: str, ids: Sequence[int | str], share: Number
) -> "ProtectedCounts":
    """Return an interface that asks a protected table and pays for it.

    ``condition`` says in SQL who has the secret, ``by`` is a column that tells people apart, and
    ``ids`` are its values for the people under attack, known beforehand. Each question pays
    ``share`` of the budget, until nothing is left.

    >>> from discreet.testing import temporary_tables
    >>> with temporary_tables(epsilon=1) as T:
    ...     ask = through(T, condition="income > 30000", by="person_id", ids=range(100), share=0.01)
    ...     answer = ask(np.arange(100) < 50)
    ...     f"{T.remaining:.0%} left"
    '99% left'
    """
    return ProtectedCounts(protected, condition=condition, by=by, ids=ids, share=share)


@final
class ProtectedCounts:
    """Questions to a protected table, one by one or many at once; :func:`through` makes it.

    >>> from discreet.testing import temporary_tables
    >>> with temporary_tables(epsilon=1) as T:
    ...     ask = through(T, condition="income > 30000", by="person_id", ids=range(100), share=0.5)
    ...     len(ask.many(np.eye(100, dtype=bool)[:2]))
    2
    """

    def __init__(
        self,
        protected: "Protected",
        *,
        condition: str,
        by: str,
        ids: Sequence[int | str],
        share: Number,
    ) -> None:
        self.protected = protected
        self._condition, self._by = condition, by
        self._ids = [str(one) for one in ids]
        given = probability(share, name="share", one=True)
        # Ten times 0.1 is the whole budget, and not a little more.
        self._share = given.limit_denominator(10**12) or given
        if any("|" in one or "'" in one for one in self._ids):
            raise ParameterError("ids must have neither | nor '. Number them.", parameter="ids")

    def __call__(self, subset: Subsets, /) -> float:
        """Ask one question, or raise what the table raises.

        >>> from discreet.testing import temporary_tables
        >>> with temporary_tables(epsilon=1) as T:
        ...     ask = through(T, condition="age > 40", by="person_id", ids=range(9), share=1)
        ...     type(ask(np.arange(9) < 5))
        <class 'float'>
        """
        return float(self._columns(self._of_all(np.asarray(subset)[None]), self._share)[0])

    def many(self, subsets: Subsets) -> Floats:
        """Ask many questions with few charges, which is the better bargain; NaN where refused.

        Subsets that have nobody in common are the groups of one question: each person moves one
        count, and all of them cost what one does. Others are columns of a question, whose losses
        compose.

        >>> from discreet.testing import temporary_tables
        >>> with temporary_tables(epsilon=1) as T:
        ...     ask = through(T, condition="age > 40", by="person_id", ids=range(9), share=0.6)
        ...     ask.many(np.ones((2, 9), dtype=bool)).tolist()  # 120%
        [nan, nan]
        """
        asked = self._of_all(subsets)
        if not len(asked):
            return np.zeros(0)
        lengths = [len(self._is_in(subset)) + 40 for subset in asked]
        is_disjoint = bool((asked.sum(axis=0) <= 1).all())
        if is_disjoint and sum(lengths) <= _LONGEST:
            return self._paid(asked, self._groups)
        most = max(1, min(_AT_ONCE, _LONGEST // max(lengths)))
        parts = [asked[i : i + most] for i in range(0, len(asked), most)]
        ask = self._groups if is_disjoint else self._columns
        return np.concatenate([self._paid(part, ask) for part in parts])

    def allowed(self, *, baseline: float) -> float | None:
        """Return the share of secrets that the whole budget lets anybody guess right, on average.

        Claim: for 0/1 secrets drawn independently, ``baseline`` of them with the more frequent
        value, delta + (1 - delta) max(baseline, e^epsilon / (1 + e^epsilon)).

        Why: the counts are of rows that have the secret, so a person without it is to them as
        one who was removed, and answers to both are (epsilon, delta)-close. Such answers can be
        made from one that tells the bit with probability delta and is randomized response
        otherwise [KOV17]. None where ``by`` is not the unit of the account.

        >>> from discreet.testing import temporary_tables
        >>> with temporary_tables(epsilon=1) as T:
        ...     ask = through(T, condition="age > 40", by="person_id", ids=range(9), share=1)
        ...     round(ask.allowed(baseline=0.5), 3)
        0.731
        """
        if self.protected.catalog.unit != Unit.column(self._by):
            return None
        promised = self.protected.account.guarantee
        told = float(promised.delta)
        return told + (1 - told) * max(baseline, 1 / (1 + exp(-float(promised.epsilon))))

    @property
    def _table(self) -> str:
        return quoted(next(iter(self.protected.declaration.tables)))

    def _of_all(self, subsets: Subsets) -> Subsets:
        asked = np.asarray(subsets, dtype=bool)
        if asked.ndim != 2 or asked.shape[1] != len(self._ids):
            raise DataError(
                f"subsets must have one column for each of the {len(self._ids)} people of ids=."
            )
        return asked

    def _is_in(self, subset: Subsets) -> str:
        # One text is read far faster than a list of as many numbers.
        members = "|".join(one for one, is_in in zip(self._ids, subset, strict=True) if is_in)
        return f"CONTAINS('|{members}|', '|' || {quoted(self._by)} || '|')"

    def _paid(self, asked: Subsets, ask: Callable[[Subsets, Fraction], Floats]) -> Floats:
        share = self._share * len(asked)
        if share <= 1:
            with suppress(BudgetExceeded):
                return ask(asked, share)
        return np.full(len(asked), np.nan)

    def _answer(self, shown: str, share: Fraction, grouped: str = "") -> "Result":
        # Nothing is injected: whoever attacks may write any question, and the table decides.
        question = f"SELECT {shown} FROM {self._table} WHERE {self._condition} {grouped}"  # noqa: S608
        return self.protected.sql(question, share=share)

    def _columns(self, asked: Subsets, share: Fraction) -> Floats:
        counts = ", ".join(
            f"COUNT(*) FILTER (WHERE {self._is_in(subset)}) AS q{i}"
            for i, subset in enumerate(asked)
        )
        answer = self._answer(counts, share)
        return np.array([float(answer[f"q{i}"][0]) for i in range(len(asked))])

    def _groups(self, asked: Subsets, share: Fraction) -> Floats:
        cases = " ".join(f"WHEN {self._is_in(subset)} THEN {i}" for i, subset in enumerate(asked))
        answer = self._answer(f"CASE {cases} ELSE -1 END AS q, COUNT(*) AS n", share, "GROUP BY 1")
        told = dict(zip(answer["q"].tolist(), answer["n"].tolist(), strict=True))
        return np.array([float(told[i]) for i in range(len(asked))])
