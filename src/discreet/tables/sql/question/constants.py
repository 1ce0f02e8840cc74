"""Parameters as people keep them: a part of WITH that holds constants alone."""

from sqlglot import exp

from discreet.tables.sql.question.context import fold

__all__ = ["with_constants_in_place"]

_CONSTANTS = (exp.Literal, exp.Boolean, exp.Null, exp.Neg, exp.Cast, exp.DataType, exp.Identifier)


def with_constants_in_place(tree: exp.Expression) -> exp.Expression:
    """Return a question in which such constants stand where they are used.

    A crossing with one row changes nothing but the names that there are, so that the part can be
    left out once its names are gone. Where one might mean something else, all of it stays.

    >>> import sqlglot
    >>> asked = "WITH p AS (SELECT 40 AS low) SELECT COUNT(*) FROM p, people WHERE age > p.low"
    >>> with_constants_in_place(sqlglot.parse_one(asked, read="duckdb")).sql("duckdb")
    'SELECT COUNT(*) FROM people WHERE age > 40'
    """
    for clause in list(tree.find_all(exp.With)):
        for part in list(clause.expressions):
            named, uses = _constants(part), _uses(tree, clause, part)
            if named and uses and all(_can_go(use, named) for use in uses):
                for use in uses:
                    _put_in_place(use, named)
                clause.set("expressions", [one for one in clause.expressions if one is not part])
        if not clause.expressions:
            clause.pop()
    return tree


def _uses(tree: exp.Expression, clause: exp.With, part: exp.CTE) -> list[exp.Table]:
    """Return where a part of WITH is read; nowhere where its name might mean another table."""
    name, query = fold(part.alias), clause.parent
    alike = [one for one in tree.find_all(exp.CTE) if fold(one.alias) == name]
    if len(alike) > 1 or clause.args.get("recursive") or query is None:
        return []
    every = [one for one in tree.find_all(exp.Table) if fold(one.name) == name]
    before = clause.expressions[: clause.expressions.index(part)]
    early = {id(one) for other in before for one in other.find_all(exp.Table)}
    inside = {id(one) for one in query.find_all(exp.Table)} - early
    return every if all(id(one) in inside for one in every) else []


def _constants(part: exp.CTE) -> dict[str, exp.Expression] | None:
    """Return the constants of a part of WITH by name, None where it is anything else."""
    select = part.this
    if part.args["alias"].args.get("columns") or not isinstance(select, exp.Select):
        return None
    if any(value for key, value in select.args.items() if key not in ("expressions", "kind")):
        return None
    named = {}
    for item in select.expressions:
        if not isinstance(item, exp.Alias):
            return None
        if not all(isinstance(node, _CONSTANTS) for node in item.this.walk()):
            return None
        named[fold(item.alias)] = item.this
    return named if len(named) == len(select.expressions) else None


def _can_go(use: exp.Table, named: dict[str, exp.Expression]) -> bool:
    """Whether a use is a plain crossing with something else, and the names mean nothing more."""
    select, joint = use.parent_select, use.parent
    if not isinstance(select, exp.Select) or use.args.get("db") is not None:
        return False
    joins = select.args.get("joins") or []
    is_first = isinstance(joint, exp.From)
    asked = joins[0] if is_first and joins else joint
    if not isinstance(asked, exp.Join) or use.args.get("joins"):
        return False
    if any(asked.args.get(key) for key in ("on", "using", "side", "method")):
        return False
    shown = {fold(item.alias_or_name) for item in select.expressions}
    places = {type(column.parent) for column in _columns(use, named)}
    # A number in the place of a key would be a position.
    return not shown & set(named) and not select.is_star and not places & {exp.Group, exp.Ordered}


def _columns(use: exp.Table, named: dict[str, exp.Expression]) -> list[exp.Column]:
    """Return the columns of a SELECT, not of those within, that are constants of a part."""
    select, titles = use.parent_select, ("", fold(use.alias_or_name))
    assert select is not None
    return [
        column
        for column in select.find_all(exp.Column)
        if column.parent_select is select
        and fold(column.table) in titles
        and fold(column.name) in named
    ]


def _put_in_place(use: exp.Table, named: dict[str, exp.Expression]) -> None:
    select = use.parent_select
    assert select is not None
    for column in _columns(use, named):
        column.replace(named[fold(column.name)].copy())
    joins, joint = list(select.args["joins"]), use.parent
    if isinstance(joint, exp.From):
        use.replace(joins.pop(0).this)
    select.set("joins", [one for one in joins if one is not joint])
