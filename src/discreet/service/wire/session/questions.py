"""From a statement and values of its parameters to what the desk, or the catalogue, is asked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, final

from sqlglot import exp

from discreet.service.wire.catalogue.rewriting import reads_catalogue_alone
from discreet.service.wire.protocol.failures import WireFailure
from discreet.service.wire.session.statements import ClientStatement, parsed, without_public
from discreet.service.wire.values.parameters import sample
from discreet.service.wire.values.types import type_named

__all__ = ["AskedQuestion", "asked_question", "parameter_types", "shape_question"]

_TYPES: Final = {
    "int": "int4", "bigint": "int8", "smallint": "int2", "double precision": "float8",
    "real": "float8", "boolean": "bool", "date": "date", "timestamp": "timestamp",
    "decimal": "numeric", "numeric": "numeric",
}  # fmt: skip


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """A question: to the catalogue where it has a ``tree``, to the desk where it has a ``text``.

    ``offset`` is where the text stood in what the client sent; None, where it is written anew.
    """

    tree: exp.Expr | None = None
    text: str = ""
    offset: int | None = None


def asked_question(
    statement: ClientStatement, values: Sequence[exp.Expr], dataset: str
) -> AskedQuestion:
    """Put values into a question, as nodes into its tree.

    >>> from discreet.service.wire.session.statements import cut
    >>> (asked,) = cut("SELECT COUNT(*) FROM public.people WHERE sex = $1")
    >>> asked_question(asked, [exp.Literal.string("it's")], "d").text
    "SELECT COUNT(*) FROM people WHERE sex = 'it''s'"
    """
    if statement.parameters > len(values):
        raise WireFailure("08P01", f"the statement has {statement.parameters} parameters")
    tree = parsed(statement.text, "postgres")
    if tree is not None and reads_catalogue_alone(tree):
        return AskedQuestion(tree=_filled(tree, values))
    text = without_public(statement, dataset)
    if not statement.parameters:
        return AskedQuestion(text=text, offset=statement.offset)
    return AskedQuestion(text=_filled(_for_desk(text), values).sql("duckdb", comments=False))


def shape_question(statement: ClientStatement, types: Sequence[int], dataset: str) -> AskedQuestion:
    """Return a question with the same columns, of which the values are not known yet.

    Conditions that have parameters are left out: they change nothing about the columns.
    """
    values = [sample(oid, place) for place, oid in enumerate(types)]
    if not statement.parameters:
        return asked_question(statement, (), dataset)
    tree = parsed(statement.text, "postgres")
    if tree is not None and reads_catalogue_alone(tree):
        return AskedQuestion(tree=_filled(tree, values))
    tree = _for_desk(without_public(statement, dataset))
    for part in list(tree.find_all(exp.Where, exp.Having, exp.Limit, exp.Offset)):
        if next(_parameters(part), None) is not None:
            part.pop()
    return AskedQuestion(text=_filled(tree, values).sql("duckdb", comments=False))


def parameter_types(statement: ClientStatement, said: Sequence[int]) -> list[int]:
    """Return the types of parameters: those said, then those of casts, and text for others.

    >>> from discreet.service.wire.session.statements import cut
    >>> parameter_types(cut("SELECT $1::int + 1, $2, $3")[0], [0, 20])
    [23, 20, 25]
    """
    types = [*said, *[0] * (statement.parameters - len(said))]
    if 0 in types and statement.parameters:
        tree = parsed(statement.text, "postgres")
        for node in () if tree is None else _parameters(tree):
            place = _index(node)
            if types[place] == 0 and isinstance(node.parent, exp.Cast):
                name = node.parent.to.sql("postgres").lower()
                types[place] = type_named(_TYPES[name]).oid if name in _TYPES else 0
            elif types[place] == 0 and isinstance(node.parent, exp.Limit | exp.Offset):
                types[place] = type_named("int8").oid
    return [oid or type_named("text").oid for oid in types]


def _for_desk(text: str) -> exp.Expr:
    tree = parsed(text, "duckdb")
    if tree is None:
        raise WireFailure(
            "42601", "this is not SQL that can be read",
            hint="Ask one SELECT, such as SELECT COUNT(*) FROM a_table. Nothing was spent.",
        )  # fmt: skip
    return tree


def _parameters(tree: exp.Expr) -> Iterator[exp.Expr]:
    for node in tree.find_all(exp.Parameter, exp.Placeholder):
        if str(_number(node)).isdecimal():
            yield node


def _number(node: exp.Expr) -> str:
    return node.name if isinstance(node.this, exp.Expr) else str(node.this or "")


def _index(node: exp.Expr) -> int:
    return int(_number(node)) - 1


def _filled(tree: exp.Expr, values: Sequence[exp.Expr]) -> exp.Expr:
    for node in list(_parameters(tree)):
        if not 0 <= _index(node) < len(values):
            raise WireFailure("42P02", "there is no parameter of this number")
        value = values[_index(node)].copy()
        # Drivers write $1::VARCHAR; the desk takes literals only, where a list of keys stands.
        cast = node.parent
        is_plain = isinstance(cast, exp.Cast) and _is_of(value, cast.to)
        (cast if is_plain and cast is not None else node).replace(value)
    return tree


def _is_of(value: exp.Expr, type_: exp.DataType) -> bool:
    """Say whether a value has a type already."""
    number = value.this if isinstance(value, exp.Neg) else value
    if isinstance(number, exp.Literal):
        if number.is_string:
            return bool(type_.is_type(*exp.DataType.TEXT_TYPES)) and not type_.expressions
        wanted = exp.DataType.REAL_TYPES
        return bool(
            type_.is_type(*(wanted | exp.DataType.INTEGER_TYPES if number.is_int else wanted))
        )
    if isinstance(value, exp.Boolean):
        return bool(type_.is_type("boolean"))
    return isinstance(value, exp.Cast) and value.to == type_
