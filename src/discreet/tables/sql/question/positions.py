"""Where in the text of a question something stands."""

from itertools import pairwise
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token

__all__ = ["Positions"]

# The parser notes positions of names, literals and functions only. These nodes begin with a word
# of their own (or stand on it alone), which is then looked for among the tokens.
_WORDS: Final[dict[type[exp.Expression], tuple[str, ...]]] = {
    exp.Not: ("NOT",),
    exp.Neg: ("-",),
    exp.Case: ("CASE",),
    exp.If: ("IF", "WHEN"),
    exp.Cast: ("CAST", "TRY_CAST", "DATE", "TIMESTAMP"),
    exp.Extract: ("EXTRACT",),
    exp.Interval: ("INTERVAL",),
    exp.Exists: ("EXISTS",),
    exp.Subquery: ("(",),
    exp.Paren: ("(",),
    exp.Null: ("NULL",),
    exp.Boolean: ("TRUE", "FALSE"),
    exp.CurrentDate: ("CURRENT_DATE", "TODAY"),
    exp.CurrentTimestamp: ("CURRENT_TIMESTAMP",),
    exp.CurrentTime: ("CURRENT_TIME",),
    exp.CurrentUser: ("CURRENT_USER",),
    exp.Placeholder: ("?", "$", ":"),
    exp.Parameter: ("$", "@"),
    exp.Quantile: ("QUANTILE",),
    exp.ApproxQuantile: ("APPROX_QUANTILE",),
    exp.PercentileCont: ("QUANTILE_CONT", "PERCENTILE_CONT"),
    exp.PercentileDisc: ("QUANTILE_DISC", "PERCENTILE_DISC"),
    exp.Substring: ("SUBSTRING", "SUBSTR"),
    exp.Trim: ("TRIM", "LTRIM", "RTRIM"),
    exp.Ceil: ("CEIL", "CEILING"),
    exp.Floor: ("FLOOR",),
    exp.StrPosition: ("POSITION", "STRPOS", "INSTR"),
    exp.Struct: ("{", "STRUCT_PACK", "ROW"),
    exp.Array: ("[", "ARRAY"),
    exp.Lateral: ("LATERAL",),
    exp.Pivot: ("PIVOT", "UNPIVOT"),
    exp.TableSample: ("TABLESAMPLE", "SAMPLE"),
    exp.Rollup: ("ROLLUP",),
    exp.Cube: ("CUBE",),
    exp.GroupingSets: ("GROUPING",),
    exp.Distinct: ("DISTINCT",),
    exp.Into: ("INTO",),
    exp.Qualify: ("QUALIFY",),
    exp.Where: ("WHERE",),
    exp.Having: ("HAVING",),
    exp.Group: ("GROUP",),
    exp.Order: ("ORDER",),
    exp.Limit: ("LIMIT",),
    exp.Offset: ("OFFSET",),
    exp.Join: ("JOIN", ","),
    exp.With: ("WITH",),
    exp.Select: ("SELECT", "FROM"),
    exp.Union: ("UNION",),
    exp.Except: ("EXCEPT",),
    exp.Intersect: ("INTERSECT",),
    exp.Values: ("VALUES",),
    exp.Columns: ("COLUMNS",),
    exp.Star: ("*",),
}
_ALONE: Final = (exp.Union, exp.Except, exp.Intersect)  # their word stands between their parts


class Positions:
    r"""Finds the line and column of a node.

    >>> import sqlglot
    >>> text = "SELECT 1,\n  NOT foo"
    >>> tokens = sqlglot.tokenize(text, read="duckdb")
    >>> tree = sqlglot.parse_one(text, read="duckdb")
    >>> Positions(text, tokens).of(tree.expressions[1])
    (2, 3)
    """

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self._text, self._tokens = text, tokens

    def offset(self, node: exp.Expression) -> int:
        """Return the character at which a node begins."""
        here: exp.Expr | None = node
        while here is not None:
            start = self._start(here)
            if start is not None:
                return start
            here = here.parent
        return 0

    def of(self, node: exp.Expression) -> tuple[int, int]:
        """Return where a node begins, or the nearest thing around it whose place is known."""
        return self.at(self.offset(node))

    def at(self, offset: int) -> tuple[int, int]:
        """Return the line and column (from 1) of a character."""
        before = self._text[:offset]
        return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1

    def word(self, *words: str, after: int = 0) -> tuple[int, int]:
        """Return where one of these words first stands."""
        for token in self._tokens:
            if token.start >= after and _head(token) in words:
                return self.at(token.start)
        return self.at(after)

    def _start(self, node: exp.Expr) -> int | None:
        if "start" in node.meta:
            return int(node.meta["start"])
        starts = [int(n.meta["start"]) for n in node.walk() if "start" in n.meta]
        words = next((w for kind, w in _WORDS.items() if isinstance(node, kind)), ())
        if isinstance(node, exp.Var):
            words = (node.name.upper(),)
        if not words and isinstance(node, exp.Func) and not isinstance(node, exp.Binary):
            return self._call_before(node, min(starts)) if starts else None
        if not words:
            return min(starts, default=None)
        if isinstance(node, _ALONE):
            starts = [int(n.meta["start"]) for n in node.expression.walk() if "start" in n.meta]
        return self._word_before(words, min(starts)) if starts else self._nth(node, words)

    def _word_before(self, words: tuple[str, ...], start: int) -> int:
        for token in reversed(self._tokens):
            if token.start < start and _head(token) in words:
                return int(token.start)
        return start

    def _call_before(self, node: exp.Func, start: int) -> int:
        """Return where the name of a function stands whose first argument starts here."""
        names = {word.upper() for word in type(node).sql_names()}
        calls = [
            token
            for token, after in pairwise(self._tokens)
            if after.text == "(" and token.start < start and token.text[:1].isalpha()
        ]
        known = [token for token in calls if token.text.upper() in names]
        return int((known or calls)[-1].start) if calls else start

    def _nth(self, node: exp.Expr, words: tuple[str, ...]) -> int | None:
        """Return the place of the n-th such word for the n-th such node in the text's order."""
        kind = type(node)
        alike = [n for n in node.root().find_all(kind, bfs=False) if "start" not in n.meta]
        index = next((i for i, n in enumerate(alike) if n is node), 0)
        found = [int(t.start) for t in self._tokens if _head(t) in words]
        return found[min(index, len(found) - 1)] if found else None


def _head(token: Token) -> str:
    """Return the first word of a token; GROUP BY is one token, for example."""
    return token.text.upper().split(" ")[0]
