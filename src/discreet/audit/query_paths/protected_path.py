"""The path of our own tables: protected in a temporary ledger, quoted, asked, and paid for."""

import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, final

from discreet.audit.query_paths.observation import Columns, Observation
from discreet.errors import ParameterError, PrivacyWarning
from discreet.privacy import Guarantee, Neighbours, Unit
from discreet.tables import Offer, Protected, Quote, Result, protect

__all__ = ["ProtectedPath"]

_QUESTIONS = 400  # that a budget is large enough for
_KEPT = 0.1  # of a budget; with less left it could show at its end
_CONFIDENCE, _NUDGE = 0.95, 1e-9


@final
@dataclass(slots=True, kw_only=True)
class _Opened:
    table: Columns  # held, so that no other table gets its identity
    folder: tempfile.TemporaryDirectory[str]
    protected: Protected
    first: dict[str, Any]  # what a quote said when nobody had asked anything
    asked: int = 0


@final
class ProtectedPath:
    """Asks :func:`discreet.protect` one question about any number of tables, again and again.

    An answer that was given is recalled for free, so no question is asked twice in the same words:
    each asks for a confidence that is smaller by a billionth, which moves nothing but the last
    digits of error bars. Samples are independent as long as nobody remembers what was told before:
    where a quote begins to differ, or the budget comes to its end, the table is protected anew.
    """

    def __init__(
        self,
        question: str,
        *,
        like: Columns,
        unit: Unit | str,
        neighbours: Neighbours,
        epsilon: float,
        delta: float,
        settings: dict[str, Any],
    ) -> None:
        import pyarrow as pa

        own = sorted({"guarantee", "ledger"} & set(settings))
        if own:
            raise ParameterError(f"an audit has a {own[0]} of its own.", parameter=own[0])
        self._question, self._epsilon, self._delta = question, epsilon, delta
        self._schema = pa.table(like).schema  # the same for all tables, whatever their values
        self._settings = {"name": "data", **settings, "unit": unit, "neighbours": neighbours}
        self._opened: dict[int, _Opened] = {}

    def __call__(self, table: Columns) -> Observation:
        """Ask about a table; every call is a sample of its own."""
        one = self._fresh(table)
        before = one.protected.remaining
        answer: Result | None = None
        failure: Exception | None = None
        try:
            answer = one.protected.sql(self._question, self._offer(one.asked))
        except Exception as error:  # whether it fails is an output
            failure = error
        one.asked += 1
        return Observation(
            answer=answer,
            failure=failure,
            price=one.first,
            notes=None if answer is None else answer.notes,
            facts=None if answer is None else _facts(answer),
            receipt=None if answer is None else _public(answer),
            left=f"{before - one.protected.remaining:.9f}",
        )

    def _offer(self, asked: int) -> Offer:
        return Offer(
            epsilon=self._epsilon, delta=self._delta, confidence=_CONFIDENCE - asked * _NUDGE
        )

    def _fresh(self, table: Columns) -> _Opened:
        """Return the table as somebody sees it who was told nothing yet."""
        one = self._opened.get(id(table))
        if one is not None:
            is_new = self._quoted(one.protected, one.asked) == one.first
            if is_new and one.protected.remaining > _KEPT:
                return one
            self._close(id(table))
        return self._open(table)

    def _open(self, table: Columns) -> _Opened:
        import pyarrow as pa

        folder = tempfile.TemporaryDirectory(prefix="discreet-audit-", ignore_cleanup_errors=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)  # of a budget that is for testing
            protected = protect(
                pa.table(table, schema=self._schema),
                guarantee=Guarantee(
                    epsilon=_QUESTIONS * self._epsilon, delta=min(_QUESTIONS * self._delta, 0.5)
                ),
                ledger=Path(folder.name) / "budget.db",
                **self._settings,
            )
        one = _Opened(table=table, folder=folder, protected=protected, first={})
        one.first = self._quoted(protected, 0)
        self._opened[id(table)] = one
        return one

    def _quoted(self, protected: Protected, asked: int) -> dict[str, Any]:
        """Return what a quote tells, but for what is left; or how it fails."""
        try:
            return _price(protected.quote(self._question, self._offer(asked)))
        except Exception as failure:  # whether it fails is an output
            return {"fails": type(failure).__name__, "error": str(failure)}

    def _close(self, table: int) -> None:
        one = self._opened.pop(table)
        one.protected.close()
        one.folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for table in list(self._opened):
            self._close(table)


def _price(quote: Quote) -> dict[str, Any]:
    told = quote.to_dict()
    expected = [(one["text"], one["words"]) for one in told["expected"]]
    return {
        **{name: told[name] for name in ("epsilon", "delta", "fits", "noise", "notes")},
        "share": f"{quote.share:.9f}",
        "expected": expected,
    }


def _facts(answer: Result) -> dict[str, Any]:
    """Return what is told of how it was done; the version of the data has a secret in it."""
    return {name: fact for name, fact in answer.facts.items() if name != "data_version"}


def _public(answer: Result) -> list[Any]:
    """Return what a receipt shows, without times, places in the log and hashes."""
    shown = ("kind", "loss", "noise", "pricing", "code", "once")
    return [
        [sorted(entry), {name: entry.get(name) for name in shown}]
        for entry in answer.receipt.entries
    ]
