"""Names put back: a table without names, joined with one that has them, exactly or nearly."""

# ruff: noqa: S608  (statements are made of quoted names, in a database of their own)

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from discreet._exact import positive, probability, whole
from discreet._rates import interval
from discreet.attacks.frames import chosen, connected, quoted, read
from discreet.attacks.linkage.uniqueness import listed
from discreet.attacks.report import AttackReport
from discreet.errors import DataError, ParameterError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["match"]

_FARTHEST = 2  # edits: what a text becomes by more deletions is too much to list


def match(
    data: object,
    auxiliary: object,
    *,
    on: Sequence[str] = (),
    within: Mapping[str, float] | None = None,
    edits: Mapping[str, int] | None = None,
    truth: str | None = None,
    confidence: float = 0.95,
) -> AttackReport:
    """Link the rows of a table to people of an auxiliary one, and count those found.

    ``on`` are columns that must be equal, ``within`` numbers or dates that may differ by so much
    (dates by days), ``edits`` texts that may differ by so many letters (0 to 2) once case, accents
    and all but letters and digits are left aside. A row is linked where exactly one person fits.
    ``truth`` is a column of both that tells who is who: it is used to score alone. Without it,
    linked rows count, right or wrong.

    Why blocks lose no pair: numbers within t of each other lie in the same or neighbouring steps
    of width t, and texts d edits apart share what is left of both after at most d deletions.

    >>> patients = {"zip": [1, 1, 2], "born": [1950, 1971, 1960], "person": [7, 8, 9]}
    >>> voters = {"zip": [1, 1, 2, 2], "born": [1951, 1971, 1960, 1961], "person": [7, 8, 9, 5]}
    >>> match(patients, voters, on=["zip", "born"], truth="person").success.__round__(2)
    0.67
    >>> match(patients, voters, on=["zip"], within={"born": 1}, truth="person").details["linked"]
    2
    """
    confidence = float(probability(confidence, name="confidence"))
    on = [on] if isinstance(on, str) else list(on)
    texts = dict(edits or {})
    _check(texts)
    hint = "Name a column in on= where it must be equal."
    near = {
        column: float(positive(limit, name="within", hint=hint))
        for column, limit in (within or {}).items()
    }
    released, known = read(data), read(auxiliary, name="auxiliary")
    columns = [*on, *near, *texts, *([truth] if truth else [])]
    for table, name in ((released, "data"), (known, "auxiliary")):
        chosen(table, columns, name=name)
    if not (on or near or texts):
        raise ParameterError("on must name a column that both tables have.", parameter="on")
    linked, right = _linked(released, known, on, near, texts, truth)
    rows = released.num_rows
    hits = linked if truth is None else right
    words = listed([*on, *near, *texts])
    return AttackReport(
        attack="linkage",
        measure="records linked" if truth is None else "people re-identified",
        success=hits / rows,
        baseline=1 / known.num_rows,
        interval=interval(hits, trials=rows, confidence=confidence),
        confidence=confidence,
        trials=rows,
        summary=f"{linked:,} of {rows:,} records have exactly one person with their {words}"
        + ("." if truth is None else f", the right one in {right:,} cases."),
        details={
            "linked": linked,
            "right": None if truth is None else right,
            "precision": right / linked if truth and linked else None,
            "people": known.num_rows,
        },
    )


def _check(texts: Mapping[str, int]) -> None:
    for column, most in texts.items():
        if whole(most, name="edits", minimum=0) > _FARTHEST:
            raise ParameterError(
                f"edits may be at most {_FARTHEST} for {column[:60]!r}.", parameter="edits"
            )


def _linked(
    released: "pa.Table",
    known: "pa.Table",
    on: list[str],
    near: Mapping[str, float],
    texts: Mapping[str, int],
    truth: str | None,
) -> tuple[int, int]:
    """Return how many rows have one candidate, and how many of those the right one."""
    import duckdb

    with connected({"released": released, "known": known}) as run:
        try:
            for name in ("released", "known"):
                _prepare(run, name, on, near, texts, truth)
            tests = [f"a.n{i} - b.n{i} BETWEEN -{t!r} AND {t!r}" for i, t in _numbered(near)]
            tests += [f"levenshtein(a.t{i}, b.t{i}) <= {d}" for i, d in _numbered(texts)]
            keys = [f"k{i}" for i in range(len(on))]
            keys += [f"s{i}" for i in range(len(near))] + [f"v{i}" for i in range(len(texts))]
            where = f"WHERE {' AND '.join(tests)}" if tests else ""
            linked, right = run.execute(
                "SELECT count(*), coalesce(sum(hit), 0) FROM (SELECT any_value(a.truth = b.truth)"
                f"::INTEGER AS hit FROM released_keys a JOIN known_keys b USING ({', '.join(keys)})"
                f" {where} GROUP BY a.place HAVING count(DISTINCT b.place) = 1)"
            ).fetchone()
        except duckdb.Error:  # whose words may show a value
            raise DataError(
                "the two tables cannot be compared: a column of on= must have one type in both, "
                "one of within= hold numbers or dates, one of edits= texts."
            ) from None
    return int(linked), int(right)


def _numbered(limits: Mapping[str, float]) -> list[tuple[int, float]]:
    return list(enumerate(limits.values()))


def _prepare(
    run: Any,
    name: str,
    on: list[str],
    near: Mapping[str, float],
    texts: Mapping[str, int],
    truth: str | None,
) -> None:
    """Write a table's keys, those of the released one in all the steps and variants they may have.

    A number's step is listed with its neighbours on one side only; a text's variants on both.
    """
    columns = ["row_number() OVER () AS place", f"{quoted(truth) if truth else 'NULL'} AS truth"]
    columns += [f"{quoted(one)} AS k{i}" for i, one in enumerate(on)]
    lists: dict[str, str] = {}
    for i, (one, step) in enumerate(near.items()):
        number = _number(run, name, one)
        columns.append(f"{number} AS n{i}")
        shifts = "[-1, 0, 1]" if name == "released" else "[0]"
        lists[f"s{i}"] = f"[floor(n{i} / {step!r}) + z FOR z IN {shifts}]"
    for i, (one, most) in enumerate(texts.items()):
        columns.append(
            f"regexp_replace(lower(strip_accents({quoted(one)})), '[^\\p{{L}}\\p{{N}}]', '', 'g') "
            f"AS t{i}"
        )
        lists[f"v{i}"] = _variants(f"t{i}", most)
    asked = f"SELECT {', '.join(columns)} FROM {name}"
    for key, values in lists.items():  # one after the other: side by side they would go in step
        asked = f"SELECT *, unnest({values}) AS {key} FROM ({asked})"
    run.execute(f"CREATE TEMP TABLE {name}_keys AS {asked}")


def _number(run: Any, table: str, column: str) -> str:
    """Return a column as a number, in SQL: dates in days."""
    (kind,) = run.execute(f"SELECT typeof({quoted(column)}) FROM {table} LIMIT 1").fetchone()
    is_moment = kind.startswith(("DATE", "TIMESTAMP"))
    return f"epoch({quoted(column)}) / 86400" if is_moment else f"{quoted(column)}::DOUBLE"


def _variants(text: str, most: int) -> str:
    """Return the list of what a text becomes by at most so many deletions, as SQL."""
    found = f"[{text}]"
    for _ in range(most):
        found = (
            f"list_distinct(flatten([list_concat([w], [w[:j] || w[j + 2:] FOR j IN "
            f"range(length(w))]) FOR w IN {found}]))"
        )
    return found
