"""What came of one statement: columns and rows, or only a tag, and what else to tell."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, final

from discreet.service.wire.protocol import replies
from discreet.service.wire.values.encoding import encoded
from discreet.service.wire.values.types import TEXT, WireType

__all__ = ["Outcome", "OutputField", "described", "rows_of_text", "wire_notice"]

_BINARY: Final = frozenset({
    "bool", "int2", "int4", "int8", "oid", "float4", "float8", "text", "date", "time", "timestamp",
})  # fmt: skip
_CELL: Final = 60  # bytes of one value, besides the letters of a text


@final
@dataclass(frozen=True, slots=True)
class OutputField:
    """One column: its name and type."""

    name: str
    type: WireType


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The end of a statement.

    ``fields`` of None say that it has no rows, as SET has none. ``changed`` are settings that the
    client keeps track of.
    """

    tag: str
    fields: tuple[OutputField, ...] | None = None
    rows: Sequence[Sequence[Any]] = ()
    notices: tuple[dict[str, str], ...] = ()
    changed: tuple[tuple[str, str], ...] = field(default=())

    @property
    def weight(self) -> int:
        """About how many bytes the rows take in memory."""
        texts = sum(len(v) for row in self.rows for v in row if isinstance(v, str))
        return texts + _CELL * len(self.rows) * len(self.fields or ())

    def row(self, index: int, formats: Sequence[int]) -> bytes:
        """Return one row as a message; see :func:`described` for the formats."""
        assert self.fields is not None
        places = enumerate(zip(self.rows[index], self.fields, strict=True))
        return replies.data_row(
            [encoded(v, f.type, is_binary=_format(f, formats, i) == 1) for i, (v, f) in places]
        )


def described(fields: Iterable[OutputField], formats: Sequence[int]) -> bytes:
    """Return the description of columns.

    ``formats`` are what the client asked for: none (all text), one for all, or one for each.
    """
    return replies.row_description(
        (f.name, f.type.oid, f.type.size, _format(f, formats, i)) for i, f in enumerate(fields)
    )


def _format(one: OutputField, formats: Sequence[int], index: int) -> int:
    wanted = 0 if not formats else formats[0] if len(formats) == 1 else formats[index]
    return 1 if wanted == 1 and one.type.name in _BINARY else 0


def rows_of_text(title: str, lines: Iterable[str], *, tag: str) -> Outcome:
    """Return an outcome of one column of text.

    >>> rows_of_text("a", ["x"], tag="SHOW").rows
    [('x',)]
    """
    return Outcome(tag=tag, fields=(OutputField(title, TEXT),), rows=[(line,) for line in lines])


def wire_notice(message: str, *, code: str = "00000", severity: str = "NOTICE") -> dict[str, str]:
    """Return the fields of a notice.

    >>> wire_notice("Done.")["M"]
    'Done.'
    """
    return {"S": severity, "V": severity, "C": code, "M": message}
