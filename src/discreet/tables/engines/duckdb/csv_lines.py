"""Lines of CSV files as rows, each read on its own."""

from collections.abc import Sequence

from discreet.tables.engines.compile.text import quoted, text

__all__ = ["lines"]

_NEVER = "\x1f"  # a sign that separates nothing: what is behind it in a line is left out


def lines(paths: Sequence[str], names: Sequence[str], delimiter: str) -> str:
    r"""Return a SELECT of the fields of CSV files as texts; an empty field is NULL.

    Every line is a row, whatever it looks like, so that no line changes how another one is read:
    a quote that is not closed ends with its line, and so does a quoted text with a line break in
    it (what follows is read as a row of its own). Fields that are missing are NULL, and those
    beyond the last column are left out. Lines that are no UTF-8 are left out.

    A reader that lets fields run over several lines cannot do that: one quote left open swallows
    the rows of others.

    >>> import duckdb, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "people.csv")
    ...     with open(path, "w") as file:
    ...         count = file.write('name,age\n"Doe, J",1\n"open,2\nAnn\n')
    ...     with duckdb.connect() as connection:
    ...         rows = lines([path], ["name", "age"], ",")
    ...         connection.execute(f"SELECT * FROM {rows}").fetchall()
    [('Doe, J', '1'), ('open,2', None), ('Ann', None)]
    """
    options = {
        "columns": "{'line': 'VARCHAR'}",
        "delim": text(_NEVER),
        "quote": "''",
        "escape": "''",
        "header": "true",
        "auto_detect": "false",
        "strict_mode": "false",
        "ignore_errors": "true",
    }
    given = ", ".join(f"{key} = {value}" for key, value in options.items())
    files = ", ".join(text(path) for path in paths)
    whole = f"SELECT {_fields(delimiter)} AS fields FROM read_csv([{files}], {given})"  # noqa: S608
    columns = ", ".join(
        f"NULLIF(fields[{i}], '') AS {quoted(name)}" for i, name in enumerate(names, start=1)
    )
    return f"(SELECT {columns} FROM ({whole}))"  # noqa: S608


def _fields(delimiter: str) -> str:
    """Return the list of a line's fields, without quotes: three ways, the fastest first."""
    one = {"|": r"\|", "\t": r"\t"}.get(delimiter, delimiter)
    between = text(delimiter)
    # Each field is bare, or in quotes with neither quotes nor separators in it.
    bare = f'(?:[^"{one}]*|"[^"{one}]*")'
    is_plain = f"REGEXP_FULL_MATCH(line, {text(f'{bare}(?:{one}{bare})*')}, 's')"
    # Each field after a separator: up to its closing quote and on to the next separator, or bare.
    field = f'{one}(?:"(?:[^"]|"")*"?[^{one}]*|[^{one}]*)'
    found = f"REGEXP_EXTRACT_ALL({between} || line, {text(field)}, 0, 's')"
    inside = """REPLACE(REGEXP_EXTRACT(x, '^."((?:[^"]|"")*)', 1, 's'), '""', '"')"""
    return (
        f"CASE WHEN NOT CONTAINS(line, '\"') THEN STRING_SPLIT(line, {between}) "
        f"WHEN {is_plain} THEN STRING_SPLIT(REPLACE(line, '\"', ''), {between}) "
        f"ELSE LIST_TRANSFORM({found}, lambda x: "
        f"CASE WHEN x[2] = '\"' THEN {inside} ELSE x[2:] END) END"
    )
