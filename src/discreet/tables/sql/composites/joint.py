"""Questions about the same rows and groups, as one question."""

from collections.abc import Sequence

import sqlglot
from sqlglot import exp

from discreet.tables.sql.aggregate_calls import is_aggregate
from discreet.tables.sql.question.context import DIALECT

__all__ = ["joint_question", "row_signature"]


def row_signature(text: str) -> str:
    """Return what two questions must share: everything but what they show of the answer.

    >>> row_signature("SELECT a, COUNT(*) FROM t GROUP BY a ORDER BY 1")
    'SELECT FROM t GROUP BY a'
    """
    select = _parsed(text)
    if "histogram" in text.lower():  # which adds a key of its own
        return select.sql(dialect=DIALECT)
    for clause in ("expressions", "having", "order", "limit", "offset"):
        select.set(clause, None)
    return select.sql(dialect=DIALECT, comments=False)


def joint_question(texts: Sequence[str]) -> str:
    """Return one question with the keys and all aggregates of questions of one signature.

    >>> joint_question(["SELECT a, COUNT(*) FROM t GROUP BY a", "SELECT SUM(b) FROM t GROUP BY a"])
    'SELECT a, COUNT(*) AS released_0, SUM(b) AS released_1 FROM t GROUP BY a'
    """
    first = _parsed(texts[0])
    keys = [] if first.args.get("group") is None else list(first.args["group"].expressions)
    aggregates: dict[str, exp.Expression] = {}
    for text in texts:
        for one in _aggregates(_parsed(text)):
            aggregates.setdefault(one.sql(dialect=DIALECT), one)
    shown = [key.copy() for key in keys if not key.is_int]
    asked = [exp.alias_(one.copy(), f"released_{i}") for i, one in enumerate(aggregates.values())]
    first.set("expressions", [*shown, *asked])
    for clause in ("having", "order", "limit", "offset"):
        first.set(clause, None)
    return first.sql(dialect=DIALECT)


def _aggregates(select: exp.Select) -> list[exp.Expression]:
    """Return the aggregates of the outer SELECT, with their FILTER, outermost first."""
    found: list[exp.Expression] = []
    todo: list[exp.Expression] = [*select.expressions]
    todo += [select.args[c] for c in ("having", "order") if select.args.get(c) is not None]
    while todo:
        node = todo.pop(0)
        if is_aggregate(node):
            found.append(node)
        else:
            todo += list(node.iter_expressions())
    return found


def _parsed(text: str) -> exp.Select:
    return sqlglot.parse_one(text, read=DIALECT)  # type: ignore[return-value]
