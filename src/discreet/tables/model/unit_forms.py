"""The column that says whose row it is, in a form in which equal means the same unit."""

from collections.abc import Sequence
from typing import Final

from discreet.tables.model.scalar import Call, Cast, Scalar
from discreet.tables.model.types import INTEGERS, SQL_NAMES, Type, kind_of, plain_type

__all__ = ["common_form", "exact_form", "exact_unit"]

_WHOLE: Final = {SQL_NAMES[type_] for type_ in INTEGERS} | {"HUGEINT"}  # all of which fit the last
_CASTS: Final[dict[str, Type]] = {"VARCHAR": "text", "BIGINT": "int64", "HUGEINT": "int128"}


def exact_form(declared: str) -> str | None:
    """Return the type in which units of a type are compared, None where they cannot be.

    >>> exact_form("FLOAT"), exact_form("ENUM"), exact_form("DECIMAL(38,0)"), exact_form("BLOB")
    ('DOUBLE', 'VARCHAR', 'DECIMAL(38,0)', None)
    """
    kind, plain = kind_of(declared), plain_type(declared)
    if kind is None or plain == "TIMESTAMPTZ_NS":  # of which engines keep microseconds
        return None
    if kind == "text" or plain == "BIGNUM":
        return "VARCHAR"
    return {"FLOAT": "DOUBLE", "TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE"}.get(plain, plain)


def common_form(declared: Sequence[str]) -> str | None:
    """Return the form in which units of several tables are compared, None where there is none.

    Types that differ would be converted by the engine, which can make two units one: the numbers
    2**53 and 2**53 + 1 are the same DOUBLE. Only integers of different size are safe.

    >>> common_form(["INTEGER", "UBIGINT"]), common_form(["BIGINT", "DOUBLE"])
    ('HUGEINT', None)
    """
    forms = {exact_form(one) for one in declared}
    if len(forms) == 1:
        return forms.pop()
    if not forms <= _WHOLE:
        return None
    return "HUGEINT" if forms & {"UBIGINT", "HUGEINT"} else "BIGINT"


def exact_unit(column: Scalar, declared: str, form: str) -> Scalar:
    """Return a unit's column in its common form; whatever is nobody is NULL.

    Unlike in questions, nothing is rounded and no date is cut off: two units never become one.

    >>> from discreet.tables.model.scalar import ColumnRef
    >>> exact_unit(ColumnRef("u"), "DECIMAL(38,0)", "DECIMAL(38,0)")
    ColumnRef(name='u', source='')
    """
    plain = plain_type(declared)
    if form == "DOUBLE":
        # NaN is nobody. Both zeros are equal, and shall look so to a hash as well.
        number = column if plain == "DOUBLE" else Cast(column, "double", widens=True)
        return Call("plus_zero", (Call("not_nan", (number,)),))
    if form == "TIMESTAMP WITH TIME ZONE":
        return Call("epoch_microseconds", (column,))  # which no time zone changes
    return column if plain == form else Cast(column, _CASTS[form], widens=True)
