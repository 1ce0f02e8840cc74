"""Clocks of other time zones. Moments that have a zone are kept as the clocks in UTC show them."""

from dataclasses import replace
from typing import Final

from sqlglot import exp

from discreet.tables.engines.duckdb.zones import known_zones
from discreet.tables.model.scalar import Call, Function, Literal
from discreet.tables.sql.expressions.arguments import Rule, need
from discreet.tables.sql.expressions.term import Scope, Term, in_range
from discreet.tables.sql.question.context import short_sql

__all__ = ["ANONYMOUS", "RULES"]

_UTC: Final = frozenset({"utc", "gmt", "z"})


def _shown(node: exp.Expression, scope: Scope, term: Term, zone: object, *, local: bool) -> Term:
    """Return a moment as clocks of a zone show it, or what clocks in UTC show when those do.

    Total: whatever lies outside the years 1 to 9999 then is NULL. Clocks that are put forward skip
    an hour: what they would show in it is taken as if they had not been.
    """
    written = str(zone.this) if isinstance(zone, exp.Literal) and zone.is_string else ""
    name = "UTC" if written.lower() in _UTC else known_zones().get(written.lower())
    if name is None:
        word = short_sql(zone) if isinstance(zone, exp.Expression) else "this"
        raise scope.question.refuse("time_zone", node, word=word)
    if name == "UTC":
        return replace(term, is_zoned=not local, column=None)
    function: Function = "to_zone" if local else "from_zone"
    made = in_range(Call(function, (term.node, Literal(name, "text"))), "timestamp")
    return replace(made, is_zoned=not local)


def _at_zone(node: exp.Expression, scope: Scope) -> Term:
    """Translate t AT TIME ZONE 'Europe/Berlin', as SQL has it.

    Of a moment with a zone it is what clocks there show; of one without, it is the moment at which
    clocks there show it.
    """
    scope.question.arguments(node, "this", "zone")
    return _in_zone(node, scope, node.this, node.args["zone"])


def _in_zone(
    node: exp.Expression, scope: Scope, moment: exp.Expression, zone: exp.Expression
) -> Term:
    term = need(scope, moment, "timestamp", word="AT TIME ZONE")
    return _shown(node, scope, term, zone, local=term.is_zoned)


def _timezone(node: exp.Expression, scope: Scope) -> Term:
    if len(node.expressions) != 2:
        example = "TIMEZONE('Europe/Berlin', t)"
        raise scope.question.refuse("arguments", node, word="TIMEZONE", example=example)
    zone, moment = node.expressions
    return _in_zone(node, scope, moment, zone)


def _convert(node: exp.Expression, scope: Scope) -> Term:
    """Translate CONVERT_TIMEZONE('UTC', 'Europe/Berlin', t), and likewise without the first."""
    scope.question.arguments(node, "source_tz", "target_tz", "timestamp", "options")
    moment, source = node.args.get("timestamp"), node.args.get("source_tz")
    scope.question.check(moment)
    assert isinstance(moment, exp.Expression)
    term = need(scope, moment, "timestamp", word="CONVERT_TIMEZONE")
    if source is not None:
        term = _shown(node, scope, term, source, local=False)
    return _shown(node, scope, term, node.args.get("target_tz"), local=True)


RULES: Final[dict[type[exp.Expression], Rule]] = {
    exp.AtTimeZone: _at_zone,
    exp.ConvertTimezone: _convert,
}
ANONYMOUS: Final[dict[str, Rule]] = {"timezone": _timezone}
