"""Templates that name an argument several times, and evaluate it once."""

from collections.abc import Sequence

from discreet.tables.engines.compile.dialect import Template
from discreet.tables.model.scalar import Cast, ColumnRef, Fold, Literal, Scalar, walk

__all__ = ["bound", "once"]


def bound(pattern: str) -> Template:
    """Return a template with {0}, {1}, ... that may occur often.

    Arguments that are more than a name are put into a subquery of one row, so that nested calls
    grow by a sum and not by a product. Were the offset not there, the planner would undo it.

    >>> from discreet.tables.model.scalar import Call
    >>> x = ColumnRef("x")
    >>> twice = bound("({0} + {0})")
    >>> twice((x,), ("x",)), twice((Call("abs", (x,)),), ("abs(x)",))
    ('(x + x)', '(SELECT (v.a0 + v.a0) FROM (SELECT abs(x) AS a0 OFFSET 0) AS v)')
    """

    def written(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
        return once(pattern, nodes, texts)

    return written


def once(pattern: str, nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    """Fill in a pattern for :func:`bound`."""
    is_named = [_is_name(node) for node in nodes]
    # An aggregate belongs to the query around it, which a subquery would hide from it.
    is_folded = any(isinstance(part, Fold) for node in nodes for part in walk(node))
    if all(is_named) or is_folded:
        return pattern.format(*texts)
    return inside(pattern, texts, is_named)


def inside(pattern: str, texts: Sequence[str], is_named: Sequence[bool]) -> str:
    """Fill in a pattern, with what is no name in a subquery of one row."""
    names = [text if is_named[i] else f"v.a{i}" for i, text in enumerate(texts)]
    given = ", ".join(f"{text} AS a{i}" for i, text in enumerate(texts) if not is_named[i])
    return f"(SELECT {pattern.format(*names)} FROM (SELECT {given} OFFSET 0) AS v)"  # noqa: S608


def _is_name(node: Scalar) -> bool:
    while isinstance(node, Cast) and node.widens:
        node = node.value
    return isinstance(node, ColumnRef | Literal)
