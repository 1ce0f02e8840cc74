"""What analysts would get of a table before it is protected: prices, error bars and refusals."""

from typing import Any, Final

from discreet.errors import DiscreetError
from discreet.ledger import Account
from discreet.service.desk.shelf import Shelf
from discreet.service.pages.areas.custodian.drafts import RECORD, TableDraft
from discreet.service.web.problems import problem_of
from discreet.tables import Protected, column_kind

__all__ = ["tried"]

_SHARE: Final = "5%"  # of the whole budget, for each example


def tried(shelf: Shelf, draft: TableDraft, account: Account | None, *, who: str) -> dict[str, Any]:
    """Rehearse all of it; say what some questions would cost, and which are refused."""
    declaration = draft.declaration(account)
    with shelf.rehearsed(declaration.to_toml(), who=who) as tables:
        guessed = dict(tables.declaration.types.get(draft.name, {}))
        return {
            "toml": declaration.to_toml(tables.tables),
            "questions": [_quoted(tables, one) for one in _examples(draft)],
            "guessed": guessed,
            "unit": str(tables.catalog.unit),
            "is_shared": account is not None,
        }


def _quoted(tables: Protected, question: str) -> dict[str, Any]:
    try:
        found = tables.quote(question, share=_SHARE)
    except DiscreetError as error:
        return {"question": question, "refused": problem_of(error).document}
    return {
        "question": question,
        "refused": None,
        "epsilon": found.epsilon,
        "more": found.more,
        "expected": [{"text": one.text, "words": one.words} for one in found.expected],
    }


def _examples(draft: TableDraft) -> list[str]:
    """Return questions that an analyst may well ask, of what was declared, and two that fail."""
    table, declared = _named(draft.name), draft.declared()
    numbers = [name for name, facts in declared.items() if facts.bounds]
    numbers += [name for name, type_ in draft.columns.items() if _is_number(name, type_, draft)]
    keyed = [name for name, facts in declared.items() if facts.keys]
    made = [f"SELECT COUNT(*) AS n FROM {table}"]  # noqa: S608
    if numbers:
        made.append(f"SELECT AVG({_named(numbers[0])}) AS mean FROM {table}")  # noqa: S608
    if keyed:
        key = _named(keyed[0])
        made.append(f"SELECT {key}, COUNT(*) AS n FROM {table} GROUP BY {key}")  # noqa: S608
    return [*made, f"SELECT * FROM {table} LIMIT 5", *_of_one(draft, table)]  # noqa: S608


def _is_number(name: str, type_: str, draft: TableDraft) -> bool:
    return column_kind(type_) == "number" and name not in (draft.text("unit"), draft.text("time"))


def _of_one(draft: TableDraft, table: str) -> list[str]:
    unit = draft.text("unit")
    if unit == RECORD:
        return []
    return [f"SELECT {_named(unit)} FROM {table} ORDER BY {_named(unit)}"]  # noqa: S608


def _named(name: str) -> str:
    """Write a name as SQL reads it."""
    is_plain = name.isascii() and name.isidentifier()
    return name if is_plain else '"' + name.replace('"', '""') + '"'
