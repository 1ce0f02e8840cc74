"""The exact answers, for visitors who ask for them: possible only since nobody is real here.

A plain database answers, in which there is nothing but the made-up table, and which can reach
nothing else. It is asked only what the engine has answered before.
"""

from threading import Timer
from typing import Any, Final

from discreet.service.pages.areas.explorer.company import people

__all__ = ["exact_rows"]

_SECONDS: Final = 1.0
_LIMITS: Final[dict[str, str | bool | int | float | list[str]]] = {
    "threads": 1,
    "memory_limit": "64MB",
    "max_temp_directory_size": "0B",
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}


def exact_rows(seed: int, questions: list[str]) -> list[list[tuple[Any, ...]] | None]:
    """Return the rows of each question, or None where plain SQL has no answer to it.

    >>> exact_rows(7, ["SELECT COUNT(*) FROM salaries", "SELECT * FROM 'secret.csv'"])
    [[(100,)], None]
    """
    import duckdb
    import pyarrow as pa

    with duckdb.connect(":memory:", config=_LIMITS) as connection:
        connection.register("salaries", pa.table(people(seed)))
        connection.execute("SET lock_configuration = true")
        found: list[list[tuple[Any, ...]] | None] = []
        for question in questions:
            clock = Timer(_SECONDS, connection.interrupt)
            clock.start()
            try:
                found.append(connection.execute(question).fetchall())
            except duckdb.Error:
                found.append(None)
            finally:
                clock.cancel()
        return found
