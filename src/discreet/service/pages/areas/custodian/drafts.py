"""A declaration on its way: read from the fields of an address, one step after the other."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final, final

from discreet.errors import ParameterError
from discreet.ledger import Account, Policy
from discreet.privacy import Guarantee, Neighbours, Period, Unit
from discreet.tables import Declaration, DeclaredColumn, DeclaredTable, column_kind, read_keys

__all__ = ["FIELDS", "STEPS", "TableDraft", "step_of"]

STEPS: Final = {
    "source": "The table",
    "people": "Whose rows",
    "columns": "What is public",
    "budget": "The budget",
    "check": "Look and protect",
}
FIELDS: Final = {
    "source": ("source", "name"),
    "people": ("unit", "period", "time", "rows", "groups", "size"),
    "columns": ("low.", "high.", "keys."),
    "budget": ("account", "epsilon", "delta", "policy"),
}
RECORD: Final = "(each row)"
_KINDS: Final = {"number": "low.", "text": "keys.", "boolean": "keys.", "time": "keys."}


def step_of(name: str) -> str | None:
    """Return the step that asks for a field, None for a field of none.

    >>> step_of("unit"), step_of("low.age"), step_of("step")
    ('people', 'columns', None)
    """
    for step, names in FIELDS.items():
        if name in names or any(one.endswith(".") and name.startswith(one) for one in names):
            return step
    return None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TableDraft:
    """What was said so far, and the columns of the file once there is one.

    Each method reads what one step asks for, and says what is wrong with it.

    >>> draft = TableDraft(said={"source": "data/people.csv", "unit": "id", "rows": "2"},
    ...                    columns={"id": "BIGINT", "age": "BIGINT"})
    >>> draft.name, draft.unit(), draft.count("rows")
    ('people', Unit.column('id'), 2)
    """

    said: Mapping[str, str]
    columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What the dataset is called: as the file, unless it is said."""
        stem = PurePosixPath(self.text("source")).name.partition(".")[0]
        return self.text("name") or stem

    def text(self, name: str) -> str:
        """Return a field as it was typed."""
        return self.said.get(name, "").strip()

    def check_source(self, files: list[str], served: list[str]) -> None:
        """Refuse a file that is not there, and a name that is taken or none."""
        if self.text("source") not in files:
            raise ParameterError("choose one of the files below.", parameter="source")
        if not self.name or len(self.name) > 100 or "/" in self.name or not self.name.isprintable():
            raise ParameterError(
                "name must be a text of at most 100 characters on one line, without a slash.",
                parameter="name",
            )
        if self.name in served:
            raise ParameterError(
                f"a dataset {self.name!r} is served already. Choose another name.",
                parameter="name",
            )

    def unit(self) -> Unit:
        """Return who is protected."""
        column, period = self.text("unit"), self.text("period")
        if column == RECORD:
            if period:
                raise ParameterError(
                    "a period is for people with many rows: choose the column that says whose "
                    "they are, or leave the period out.",
                    parameter="period",
                )
            return Unit.record()
        self._check_column(column, "unit", "choose the column that says whose rows they are.")
        unit = Unit.column(column)
        if not period:
            return unit
        when = self.text("time")
        self._check_column(when, "time", "choose the column that says when a row belongs to.")
        if period not in list(Period):
            raise ParameterError(f"period must be one of {', '.join(Period)}.", parameter="period")
        return unit.per(period, time=when)

    def count(self, name: str) -> int | None:
        """Return a whole number, None where none was said."""
        told = self.text(name).replace(",", "")
        if not told:
            return None
        if not (told.isascii() and told.isdigit() and 0 < int(told) < 10**15):
            raise ParameterError(
                f"{name} must be a whole number of at least 1, such as 10, or empty.",
                parameter=name,
            )
        return int(told)

    def declared(self) -> dict[str, DeclaredColumn]:
        """Return what is public about each column, of those where something is."""
        found = {
            column: self._column(column, type_)
            for column, type_ in self.columns.items()
            if column not in (self.text("unit"), self.text("time"))
        }
        return {column: facts for column, facts in found.items() if facts != DeclaredColumn()}

    def _column(self, column: str, type_: str) -> DeclaredColumn:
        low, high, keys = (self.text(f"{what}{column}") for what in FIELDS["columns"])
        where = f"low.{column}" if low or high else f"keys.{column}"
        try:
            if keys:
                return read_keys(keys, column_type=type_)
            if not low and not high:
                return DeclaredColumn()
            if not (low and high):
                raise ParameterError("say both ends, or none of them.", parameter="bounds")
            return DeclaredColumn(bounds=(_number(low), _number(high)))
        except ParameterError as error:
            raise ParameterError(f"{column}: {error}", parameter=where) from None

    def guarantee(self) -> Guarantee:
        """Return what is promised for everything together."""
        return Guarantee(epsilon=self.amount("epsilon"), delta=self.amount("delta", 0.0))

    def amount(self, name: str, default: float | None = None) -> int | float:
        """Return epsilon or delta."""
        told = self.text(name)
        if not told and default is not None:
            return default
        try:
            return _number(told)
        except ParameterError:
            raise ParameterError(
                f"{name} must be a number, such as {'1e-6' if name == 'delta' else '3'}.",
                parameter=name,
            ) from None

    def declaration(self, account: Account | None) -> Declaration:
        """Return all of it; a table that shares an account has the terms of that one."""
        policy: Any = self.text("policy") or "deny"
        terms: dict[str, Any] = {"guarantee": None, "neighbours": Neighbours.add_remove}
        if account is not None:
            shared = {"guarantee": account.guarantee, "neighbours": account.neighbours}
            terms = {**shared, "account": account.name}
        else:
            chosen: Policy = policy
            terms |= {"guarantee": self.guarantee(), "policy": chosen}
        return Declaration(
            name=self.name,
            unit=self.unit(),
            rows=self.count("rows"),
            groups=self.count("groups"),
            size=self.count("size"),
            tables={self.name: DeclaredTable(source=self.text("source"), columns=self.declared())},
            **terms,
        )

    def asked(self) -> list[dict[str, str]]:
        """List the columns that bounds or keys can be said of, with what was said of them."""
        return [
            {
                "name": column,
                "type": type_.partition("(")[0] if type_.startswith("ENUM") else type_,
                "kind": "bounds" if _KINDS[kind] == "low." else "keys",
                "low": self.text(f"low.{column}"),
                "high": self.text(f"high.{column}"),
                "keys": self.text(f"keys.{column}"),
                "example": _EXAMPLES[kind],
            }
            for column, type_ in self.columns.items()
            for kind in [column_kind(type_)]
            if kind in _KINDS and column not in (self.text("unit"), self.text("time"))
        ]

    def _check_column(self, name: str, parameter: str, otherwise: str) -> None:
        if name not in self.columns:
            raise ParameterError(otherwise, parameter=parameter)


_EXAMPLES: Final = {
    "number": "",
    "text": 'north, south, "east, or near it"',
    "boolean": "false, true",
    "time": "2026-01-01, 2026-01-02",
}


def _number(told: str) -> int | float:
    try:
        return int(told) if told.lstrip("+-").isdigit() else float(told)
    except ValueError:
        raise ParameterError(
            "bounds must be two numbers, such as 0 and 120.", parameter="bounds"
        ) from None
