"""The finished text of a statement in Spark's spelling: names, texts, and a few words."""

import re
from collections.abc import Mapping
from typing import Final

from discreet.tables.engines.compile.dialect import SALT

__all__ = ["spelled"]

_TOKEN: Final = re.compile(r"\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*'|\$\w+|\b[A-Z]+\b")
_WORDS: Final = {
    "VARCHAR": "STRING",
    "TRUNC": "BIGINT",  # which cuts off as well; nothing that is as large is ever cut off
}


def spelled(text: str, *, salt: str = "''", names: Mapping[str, str] | None = None) -> str:
    r"""Spell a statement for Spark, with ``salt`` where the salt is read, and other ``names``.

    What a compiled statement says stays the same: names are quoted by backticks, texts
    with a backslash or a quote, about which settings differ, are written as bytes, and words have
    Spark's names.

    >>> spelled('SELECT "a`b", \'it\'\'s\', TRUNC(x) AS n FROM "t" WHERE HASH($salt)', salt="s.x")
    "SELECT `a``b`, decode(X'69742773', 'UTF-8'), BIGINT(x) AS n FROM `t` WHERE HASH(s.x)"
    """

    def written(found: re.Match[str]) -> str:
        token = found[0]
        if token[0] == '"':
            name = token[1:-1].replace('""', '"')
            return "`" + (names or {}).get(name, name).replace("`", "``") + "`"
        if token[0] == "'":
            inner = token[1:-1].replace("''", "'")
            if "\\" not in inner and "'" not in inner:
                return token
            return f"decode(X'{inner.encode().hex()}', 'UTF-8')"
        if token == SALT:
            return salt
        return _WORDS.get(token, token)

    return _TOKEN.sub(written, text).replace(" AS MATERIALIZED (", " AS (")
