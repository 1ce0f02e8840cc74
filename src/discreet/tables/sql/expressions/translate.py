"""Scalar expressions: one table of rules, and a reason for everything that has none."""

from typing import Final

from sqlglot import exp

from discreet.errors import Refused
from discreet.tables.sql.expressions import (
    arithmetic,
    casts,
    logic,
    numeric,
    patterns,
    released,
    rewrites,
    strings,
)
from discreet.tables.sql.expressions.arguments import Rule
from discreet.tables.sql.expressions.moments import formats, shifts, temporal, zones
from discreet.tables.sql.expressions.term import Scope, Term
from discreet.tables.sql.question.context import ReadingContext, nearest, short_sql

__all__ = ["check_known", "translate"]

_RULES: Final[dict[type[exp.Expression], Rule]] = {
    **casts.RULES,
    **arithmetic.RULES,
    **logic.RULES,
    **numeric.RULES,
    **strings.RULES,
    **temporal.RULES,
    **shifts.RULES,
    **formats.RULES,
    **zones.RULES,
    **rewrites.RULES,
    **patterns.RULES,
}
_ANONYMOUS: Final[dict[str, Rule]] = {
    **numeric.ANONYMOUS,
    **strings.ANONYMOUS,
    **temporal.ANONYMOUS,
    **shifts.ANONYMOUS,
    **formats.ANONYMOUS,
    **zones.ANONYMOUS,
    **released.ANONYMOUS,
    **rewrites.ANONYMOUS,
    **patterns.ANONYMOUS,
}

_LONGEST: Final = 100_000  # characters, about
_WINDOWS: Final = (exp.Window, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Lag, exp.Lead, exp.Ntile)
_SUBQUERIES: Final = (exp.Subquery, exp.Exists, exp.Select, exp.SetOperation, exp.Any, exp.All)
_NESTED: Final = (exp.Array, exp.Struct, exp.Bracket, exp.Map, exp.Explode, exp.Unnest, exp.Dot,
                  exp.Tuple, exp.JSONExtract, exp.JSONExtractScalar, exp.ToMap)  # fmt: skip
_RANDOM: Final = (exp.Rand, exp.Uuid, exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentTime,
                  exp.CurrentDatetime, exp.Localtime, exp.Localtimestamp)  # fmt: skip
_RANDOM_NAMES: Final = frozenset({
    "random", "now", "nextval", "currval", "today", "uuid", "uuidv4", "uuidv7", "gen_random_uuid",
    "get_current_timestamp", "get_current_time", "transaction_timestamp", "setseed", "age",
    "txid_current",
})  # fmt: skip
_SYSTEM: Final = (exp.CurrentVersion, exp.CurrentUser, exp.CurrentSchema, exp.CurrentDatabase,
                  exp.SessionUser)  # fmt: skip
_SYSTEM_NAMES: Final = frozenset({
    "current_setting", "getenv", "version", "pg_typeof", "current_database", "current_schema",
    "current_schemas", "current_query", "current_role", "pragma_version", "getvariable",
    "in_search_path", "stats", "vector_type", "read_text", "read_blob", "write_log", "error",
    "sleep",
})  # fmt: skip
_REGEXPS: Final = (exp.RegexpLike, exp.RegexpILike, exp.RegexpExtract, exp.RegexpReplace,
                   exp.RegexpSplit, exp.RegexpFullMatch, exp.SimilarTo, exp.Glob)  # fmt: skip
_LIST_NAMES: Final = ("list_", "array_", "map_", "struct_", "json_", "unnest", "generate_", "range")
_AGGREGATE_NAMES: Final = frozenset({
    "string_agg", "group_concat", "listagg", "array_agg", "list", "first", "last", "any_value",
    "arbitrary", "mode", "arg_min", "arg_max", "min_by", "max_by", "bool_and", "bool_or",
    "bit_and", "bit_or", "bit_xor", "product", "skewness", "kurtosis", "entropy", "mad", "favg",
    "fsum", "kahan_sum", "sumkahan", "bitstring_agg", "geomean", "geometric_mean", "sem",
    "reservoir_quantile", "regr_slope", "regr_intercept", "regr_r2", "regr_count", "regr_avgx",
    "regr_avgy", "approx_top_k", "approx_top_count", "approx_top_sum", "histogram_exact",
    "histogram_values", "count_star", "every",
})  # fmt: skip
_NAMES: Final = sorted(
    {word.lower() for kind in _RULES if issubclass(kind, exp.Func) for word in kind.sql_names()}
    | set(_ANONYMOUS)
)


def translate(node: exp.Expression, scope: Scope) -> Term:
    """Translate an expression by the rule for its kind; what has no rule is refused."""
    rule = _RULES.get(type(node))
    if rule is None and isinstance(node, exp.Anonymous):
        rule = _ANONYMOUS.get(str(node.this).lower())
    if rule is None:
        raise _no_rule(node, scope.question)
    term = rule(node, scope)
    if term.node.size > _LONGEST:  # guards repeat their argument, so nesting can grow fast
        raise scope.question.refuse("too_complex", node)
    return term


def check_known(tree: exp.Expression, question: ReadingContext) -> None:
    """Refuse functions over released values that are neither known here nor aggregates."""
    kinds = (*_RULES, *_WINDOWS, exp.AggFunc, exp.Exists, exp.If, exp.Case, exp.Cast)
    for node in tree.find_all(exp.Expression):
        is_named = isinstance(node, exp.Anonymous) and str(node.this).lower() in _ANONYMOUS
        if isinstance(node, exp.Func) and not isinstance(node, kinds) and not is_named:
            raise _no_rule(node, question)


def _no_rule(node: exp.Expression, question: ReadingContext) -> Refused:
    """Say why there is no rule for a node."""
    refuse = question.refuse
    word = _word(node)
    named = word.lower()
    if isinstance(node, _WINDOWS):
        return refuse("window", node)
    if isinstance(node, _SUBQUERIES):
        return refuse("subquery", node)
    if isinstance(node, exp.Star | exp.Columns):
        return refuse("star", node, word="COLUMNS" if isinstance(node, exp.Columns) else "*")
    if isinstance(node, exp.Placeholder | exp.Parameter | exp.SessionParameter):
        return refuse("parameter", node, word=short_sql(node))
    written = node.find(exp.Lambda)
    if written is not None:
        return refuse("lambda", written)
    if isinstance(node, _RANDOM) or named in _RANDOM_NAMES:
        return refuse("random", node, word=word)
    if isinstance(node, _SYSTEM) or named in _SYSTEM_NAMES:
        return refuse("system", node, word=word)
    if isinstance(node, _REGEXPS) or named.startswith("regexp_"):
        return refuse("regexp", node)
    if isinstance(node, exp.AggFunc | exp.IgnoreNulls) or named in _AGGREGATE_NAMES:
        inner = node.expressions[0] if isinstance(node, exp.Anonymous) else node.this
        subject = short_sql(inner) if isinstance(inner, exp.Expression) else "x"
        if isinstance(node, exp.LogicalAnd | exp.LogicalOr) or named == "every":
            return refuse("aggregate_any", node, word=word, condition=subject)
        if isinstance(node, exp.Mode) or named.startswith("approx_top"):
            return refuse("aggregate_top", node, word=word, subject=subject, **_top(node))
        return refuse("aggregate", node, word=word)
    if isinstance(node, _NESTED) or named.startswith(_LIST_NAMES):
        return refuse("nested_type", node)
    if isinstance(node, exp.Func):
        near = nearest(word, _NAMES, what="functions")
        if near.startswith("The"):
            near = "Use arithmetic, CASE, and functions such as ROUND, COALESCE, LOWER or EXTRACT."
        return refuse("function", node, word=word, near=near)
    return refuse("expression", node, word=short_sql(node))


def _top(node: exp.Expression) -> dict[str, str]:
    """Return by what, and how many, groups an aggregate of the most frequent values shows."""
    given = list(node.expressions) or list(node.iter_expressions())
    numbers = [one for one in given[1:] if isinstance(one, exp.Literal) and not one.is_string]
    summed = "SUM" in _word(node) and len(given) == 3
    return {
        "measure": f"SUM({short_sql(given[1])})" if summed else "COUNT(*)",
        "most": str(numbers[-1].this) if numbers else "1",
    }


def _word(node: exp.Expression) -> str:
    if isinstance(node, exp.IgnoreNulls):
        return _word(node.this)
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        return str(node.this).upper()
    if isinstance(node, exp.Func) and not isinstance(node, exp.Binary | exp.Connector):
        return short_sql(node).split("(")[0]
    return short_sql(node)
