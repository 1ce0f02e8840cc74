"""Declarations that custodians registered over HTTP, for all workers to serve."""

import time

from discreet.errors import ParameterError
from discreet.service.records.records import Records

__all__ = ["add_declaration", "find_declarations"]


def add_declaration(records: Records, name: str, text: str, *, who: str) -> None:
    """Keep a declaration; refuse another one of its name.

    >>> import tempfile
    >>> with Records.open(f"{tempfile.mkdtemp()}/gateway.db") as records:
    ...     add_declaration(records, "people", "name = 'people'", who="chris")
    ...     find_declarations(records)
    {'people': "name = 'people'"}
    """
    made = records.run(
        "INSERT INTO declarations (name, text, who, created) VALUES (:name, :text, :who, :now)"
        " ON CONFLICT (name) DO NOTHING RETURNING name",
        name=name,
        text=text,
        who=who,
        now=time.time(),
    )
    if not made:
        raise ParameterError(f"a dataset {name!r} is served already.", parameter="name")


def find_declarations(records: Records) -> dict[str, str]:
    """Return all declarations by name, the oldest first."""
    rows = records.run("SELECT name, text FROM declarations ORDER BY created, name")
    return {str(name): str(text) for name, text in rows}
