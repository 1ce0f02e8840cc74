"""The names that PostgreSQL gives to columns of an answer."""

from sqlglot import exp

__all__ = ["column_titles"]


def column_titles(tree: exp.Expr) -> list[str] | None:
    """Return the names of columns, None where a star stands for some of them.

    >>> import sqlglot
    >>> column_titles(sqlglot.parse_one("SELECT 1, a.b, c AS d, pg_catalog.f(x), y::int"))
    ['?column?', 'b', 'd', 'f', 'y']
    """
    if not isinstance(tree, exp.Query) or tree.is_star or not tree.selects:
        return None
    return [_title(one) for one in tree.selects]


def _title(node: exp.Expr) -> str:
    if isinstance(node, exp.Alias):
        return node.alias
    while isinstance(node, exp.Dot | exp.Cast | exp.Paren):
        node = node.expression if isinstance(node, exp.Dot) else node.this
    if isinstance(node, exp.Column):
        return node.name
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    word = node.sql_name().lower() if isinstance(node, exp.Func) else "?column?"
    return "version" if word == "current_version" else word
