"""Scalar expressions of a plan: typed nodes over a closed vocabulary, which engines render.

Every expression is *total*: whatever the data, evaluating it never raises, so that no failure can
tell what is in a table. Functions return NULL where an argument is NULL, unless said otherwise;
numbers are doubles, whose arithmetic may overflow to an infinity and, from infinities, make NaN.
Only arithmetic, rounding, ``exp``, ``power`` and ``not_nan`` are ever given a NaN, and all but the
last return it; whatever compares, sorts, converts or stores a number has been rid of it before.

| function | result |
|---|---|
| ``negate abs add subtract multiply`` | as IEEE 754 has it |
| ``divide remainder`` | NULL where the second argument is 0; the remainder has the sign of \
the first |
| ``floor ceil trunc`` | a whole number, as a double |
| ``round`` | to as many digits (maybe negative) as the second argument says, halves away from 0 |
| ``sign`` | -1, 0 or 1, as a double |
| ``sqrt`` | NULL where the argument is negative |
| ``exp`` | an infinity where it overflows |
| ``ln log2 log10`` | NULL where the argument is not positive |
| ``power`` | NaN where it is not real |
| ``sin cos tan`` | NULL where the argument is infinite |
| ``asin acos atan atan2`` | NULL where an argument of the first two is not from -1 to 1 |
| ``clamp`` | the first argument, at least the second and at most the third |
| ``least greatest`` | of all arguments that are not NULL |
| ``coalesce`` | the first argument that is not NULL |
| ``not_nan`` | NULL where the argument is NaN |
| ``plus_zero`` | 0 where the argument is minus zero |
| ``parse_double`` | the number that a text spells; NULL where it spells none, or NaN |
| ``equal not_equal less less_equal greater greater_equal`` | of two numbers, texts (by their \
bytes), truth values, dates or timestamps |
| ``same different`` | likewise, never NULL: NULL is the same as NULL |
| ``in`` | whether the first argument equals one of the others |
| ``is_null`` | never NULL |
| ``not and or`` | with three truth values, as SQL has it |
| ``initcap`` | a text with the first letter of each word (of letters and digits) made a capital, \
and all others small |
| ``lower upper trim ltrim rtrim`` | of a text; trimmed of blanks or of the second argument's \
characters |
| ``length`` | the number of characters, an int64 |
| ``substring left right`` | a part of a text, counted from 1, from the end where negative |
| ``concat`` | all arguments; NULL where that is longer than :data:`LONGEST_TEXT` characters |
| ``concat_present`` | likewise, NULLs left out |
| ``replace`` | the second argument exchanged for the third; NULL where that could become longer \
than :data:`LONGEST_TEXT` characters |
| ``split_part`` | of the parts of a text between the second argument, the one with this number \
(from the end where negative); '' where there is none |
| ``pad_left pad_right`` | a text cut or filled up to so many characters with the third argument |
| ``reverse`` | the characters of a text, last first |
| ``position`` | where the second argument begins in a text, from 1; 0 where it does not: int64 |
| ``byte_length`` | the number of bytes of a text, an int64 |
| ``starts_with ends_with contains`` | whether a text has the second argument there |
| ``like ilike`` | whether a text has the second argument's pattern; ``ilike`` in any case; a \
third argument is the sign before a percent sign or underscore that means itself |
| ``matches matches_whole`` | whether a text, or the whole of it, matches a regular expression \
of RE2, in any case if the third argument is ``i``; in a time in proportion to the text |
| ``match`` | what of a text matches it first, or the group of this number; '' where nothing does |
| ``replace_matches`` | the first match (all with ``g`` among the last argument's signs) exchanged \
for the third argument; NULL where that could become longer than :data:`LONGEST_TEXT` |
| ``date_in_range timestamp_in_range`` | NULL outside the years 1 to 9999 |
| ``from_utc`` | a moment with a time zone as the timestamp that clocks in UTC show |
| ``epoch_microseconds`` | a moment as microseconds since 1970 in UTC, an int64 |
| ``from_epoch`` | the timestamp so many microseconds (a double) after 1970; NULL outside the \
years 1 to 9999 |
| ``format_time parse_time`` | a moment as a text, a text as a timestamp, in the format (of C's \
``strftime``) that the second argument is; NULL where the text does not fit |
| ``date_part`` | the part that the first argument names, of the second, an int64 |
| ``date_trunc`` | the second argument cut off to what the first names, a timestamp |
| ``date_diff`` | how many ends of what the first argument names lie between the others: int64 |
| ``shift`` | the first argument moved by the second times the unit that the third names: a \
timestamp |
| ``to_zone`` | the timestamp that clocks of the zone (the second argument) show when those in UTC \
show the first; no matter what if that is outside the years 1 to 9999 |
| ``from_zone`` | the timestamp that clocks in UTC show when those of the zone show the first |
| ``period_label`` | the label of the day, week, month or year (the second argument) of the first |
| ``tagged`` | a label (never NULL), a bar, and a text |

:class:`Cast` and :class:`Case` are total as well; :class:`Fold` adds up the rows of one group
within one unit.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, final
from typing import Literal as OneOf

from discreet.tables.model.types import Type

__all__ = [
    "LARGEST_TEXT",
    "LONGEST_TEXT",
    "NULL",
    "Call",
    "Case",
    "Cast",
    "ColumnRef",
    "Fold",
    "Function",
    "Literal",
    "ReleasedAggregate",
    "ReleasedKey",
    "ReleasedValue",
    "Scalar",
    "double",
    "form",
    "rewritten",
    "walk",
]

# Characters of a text that a question makes. Without a limit a few nested calls could make the
# text of one row larger than memory, and the failure would tell that there is such a row.
LONGEST_TEXT: Final = 10_000

# Bytes of a text that a server or cluster reads from a table; of longer ones none is read. Their
# functions give up at sizes of their own, or run out of memory, and that would tell as much.
LARGEST_TEXT: Final = 1 << 20

Function = OneOf[
    "negate", "abs", "add", "subtract", "multiply", "divide", "remainder", "floor", "ceil",
    "trunc", "round", "sign", "sqrt", "exp", "ln", "log2", "log10", "power", "sin", "cos", "tan",
    "asin", "acos", "atan", "atan2", "clamp", "least",
    "greatest", "coalesce", "not_nan", "plus_zero", "parse_double",
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "same", "different",
    "in", "is_null", "not", "and", "or",
    "lower", "upper", "trim", "ltrim", "rtrim", "length", "substring", "left", "right", "concat",
    "concat_present", "initcap", "replace", "starts_with", "ends_with", "contains", "like", "ilike",
    "split_part", "pad_left", "pad_right", "reverse", "position", "byte_length", "from_epoch",
    "format_time", "parse_time", "matches", "matches_whole", "match", "replace_matches",
    "date_in_range", "timestamp_in_range", "from_utc",
    "epoch_microseconds", "date_part", "date_trunc", "date_diff", "shift", "to_zone",
    "from_zone", "period_label", "tagged",
]  # fmt: skip

# How often an engine may have to write an argument down to guard a function: nested guards grow
# fast, and whoever reads a question refuses what would grow too large.
_REPEATED: Final[dict[str, int]] = {
    **dict.fromkeys(("sqrt", "ln", "log2", "log10", "clamp", "not_nan", "plus_zero"), 2),
    **dict.fromkeys(("concat", "concat_present", "replace", "replace_matches"), 2),
    **dict.fromkeys(("date_in_range", "timestamp_in_range", "from_epoch"), 2),
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos"), 2),
}


@final
@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A column of the table or subquery ``source``; '' where there is only one.

    >>> ColumnRef("age", source="s0").size
    11
    """

    name: str
    source: str = ""

    @property
    def size(self) -> int:
        """About how many characters an engine writes for it."""
        return len(self.name) + 8


@final
@dataclass(frozen=True, slots=True)
class Literal:
    """A value that is written out; dates and timestamps are ISO texts.

    >>> Literal("2026-01-31", "date") == Literal("2026-01-31", "text")
    False
    """

    value: str | int | float | bool | None
    type: Type

    @property
    def size(self) -> int:
        """About how many characters an engine writes for it."""
        return len(str(self.value)) + 2


@final
@dataclass(frozen=True, slots=True)
class Call:
    """A function of the vocabulary with its arguments.

    >>> Call("sqrt", (ColumnRef("x"),)) == Call("sqrt", (ColumnRef("x"),))
    True
    """

    function: Function
    arguments: "tuple[Scalar, ...]"
    size: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        inside = sum([argument.size for argument in self.arguments])
        object.__setattr__(self, "size", 12 + _REPEATED.get(self.function, 1) * inside)


@final
@dataclass(frozen=True, slots=True)
class Case:
    """The result of the first condition that is true, else ``otherwise``.

    >>> Case(((Literal(True, "boolean"), Literal(1, "int32")),)).otherwise.value is None
    True
    """

    branches: "tuple[tuple[Scalar, Scalar], ...]"
    otherwise: "Scalar" = Literal(None, "null")
    size: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        inside = sum([one.size + 12 for branch in self.branches for one in branch])
        object.__setattr__(self, "size", inside + self.otherwise.size)


@final
@dataclass(frozen=True, slots=True)
class Cast:
    """A value in another type, NULL where it does not fit.

    ``widens`` says that all values of the old type fit the new one, so that nothing can fail.
    A double becomes the nearest whole number; a number that is a text is read as a literal is.

    >>> Cast(ColumnRef("age"), "double", widens=True).type
    'double'
    """

    value: "Scalar"
    type: Type
    widens: bool = False

    @property
    def size(self) -> int:
        """About how many characters an engine writes for it."""
        return self.value.size + 20


@final
@dataclass(frozen=True, slots=True)
class Fold:
    """One number for all rows of a group within a unit: ``value`` of None counts the rows.

    NULLs are left out; ``minimum``, ``maximum`` and ``sum`` of nothing are NULL. A ``sum`` is one
    of whole numbers (int128).

    >>> Fold("count").value is None
    True
    """

    function: OneOf["count", "count_distinct", "minimum", "maximum", "sum"]
    value: "Scalar | None" = None

    @property
    def size(self) -> int:
        """About how many characters an engine writes for it."""
        return 20 if self.value is None else self.value.size + 10


@final
@dataclass(frozen=True, slots=True)
class ReleasedKey:
    """A key of a released group, by its position.

    >>> ReleasedKey(0).size
    8
    """

    index: int

    @property
    def size(self) -> int:
        """About how many characters an engine writes for it."""
        return 8


@final
@dataclass(frozen=True, slots=True)
class ReleasedAggregate:
    """A released aggregate, by its position.

    >>> ReleasedAggregate(0) == ReleasedKey(0)
    False
    """

    index: int

    @property
    def size(self) -> int:
        """About how many characters an engine writes for it."""
        return 12


@final
@dataclass(frozen=True, slots=True)
class ReleasedValue:
    """A value that another part of the question releases first, by its position.

    It becomes a literal before the plan is run: see :func:`discreet.tables.model.filling.filled`.

    >>> ReleasedValue(0).size
    30
    """

    index: int

    @property
    def size(self) -> int:
        """About how many characters an engine writes for it."""
        return 30


Scalar = (
    ColumnRef | Literal | Call | Case | Cast | Fold | ReleasedKey | ReleasedAggregate
    | ReleasedValue
)  # fmt: skip

NULL: Final = Literal(None, "null")


def double(value: float) -> Literal:
    """Return a number that is written out as a double.

    >>> double(1)
    Literal(value=1.0, type='double')
    """
    return Literal(float(value), "double")


def _parts(node: Scalar) -> tuple[Scalar, ...]:
    match node:
        case Call():
            return node.arguments
        case Case():
            return (*(one for branch in node.branches for one in branch), node.otherwise)
        case Cast() | Fold():
            return () if node.value is None else (node.value,)
        case _:
            return ()


def walk(node: Scalar) -> Iterator[Scalar]:
    """Yield a node and all nodes inside it.

    >>> len(list(walk(Call("add", (ColumnRef("x"), ColumnRef("y"))))))
    3
    """
    yield node
    for part in _parts(node):
        yield from walk(part)


def rewritten(node: Scalar, change: Callable[[Scalar], Scalar]) -> Scalar:
    """Return a node with ``change`` made to all its innermost nodes.

    >>> rewritten(Call("abs", (ReleasedAggregate(0),)), lambda _: ReleasedAggregate(2))
    Call(function='abs', arguments=(ReleasedAggregate(index=2),))
    """
    match node:
        case Call():
            return Call(node.function, tuple(rewritten(one, change) for one in node.arguments))
        case Case():
            branches = tuple(
                (rewritten(when, change), rewritten(then, change)) for when, then in node.branches
            )
            return Case(branches, rewritten(node.otherwise, change))
        case Cast():
            return replace(node, value=rewritten(node.value, change))
        case Fold():
            return (
                node if node.value is None else Fold(node.function, rewritten(node.value, change))
            )
        case _:
            return change(node)


def form(node: Scalar) -> list[object]:
    """Return a node as plain lists, which tell all nodes apart.

    >>> form(Call("abs", (ColumnRef("x", source="s0"),)))
    ['abs', ['column', 's0', 'x']]
    """
    match node:
        case ColumnRef():
            return ["column", node.source, node.name]
        case Literal():
            return ["literal", node.type, node.value]
        case Call():
            return [node.function, *(form(one) for one in node.arguments)]
        case Case():
            return ["case", *(form(part) for part in _parts(node))]
        case Cast():
            return ["cast", node.type, node.widens, form(node.value)]
        case Fold():
            return ["fold", node.function, *(form(part) for part in _parts(node))]
        case ReleasedKey():
            return ["key", node.index]
        case ReleasedAggregate():
            return ["aggregate", node.index]
        case ReleasedValue():
            return ["released", node.index]
