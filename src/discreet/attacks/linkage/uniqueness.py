"""Who is alone with their values: how many are, and for which few columns the most."""

# ruff: noqa: S608  (statements are made of quoted names, in a database of their own)

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet._exact import probability, whole
from discreet._rates import interval
from discreet.attacks.frames import chosen, connected, quoted, read
from discreet.attacks.report import AttackReport
from discreet.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["coded", "encoded", "group_sizes", "listed", "uniqueness", "worst_set"]

Codes: TypeAlias = NDArray[np.int64]
MEASURE: Final = "people singled out"


def uniqueness(
    data: object,
    quasi: Sequence[str],
    *,
    person: str | None = None,
    sample: int | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> AttackReport:
    """Measure how many people are alone with their values of some columns.

    Each row is a person, unless ``person`` names the column that says whose it is: then those
    count who have a row that nobody else shares. The share is exact. With ``sample``, so many rows
    are drawn with replacement and looked up in the whole table, and the interval is that of
    Clopper and Pearson [CP34], which holds at least as often as it says. Where the data is itself
    a sample of a population, those who are alone in it need not be alone in the population.

    >>> people = {"zip": [1, 1, 2, 2], "sex": ["f", "m", "f", "f"]}
    >>> print(uniqueness(people, ["zip", "sex"]))
    linkage: 2 of 4 people are alone with their zip and sex.
      people singled out  50% (50% to 50% at 95% confidence, 4 trials)
      without the attack  0%
    """
    confidence = float(probability(confidence, name="confidence"))
    table = read(data)
    columns = chosen(table, quasi, name="quasi")
    keys = ", ".join(map(quoted, columns))
    with connected({"people": table}) as run:
        if sample is not None:
            drawn = np.random.default_rng(seed).integers(
                table.num_rows, size=whole(sample, name="sample")
            )
            alone, trials = _looked_up(run, keys, drawn)
        elif person is None:
            inner = f"SELECT count(*) AS n FROM people GROUP BY {keys}"
            alone, trials = _row(run, f"SELECT count(*) FILTER (n = 1), sum(n) FROM ({inner})")
        else:
            (column,) = chosen(table, [person], name="person")
            alone, trials = _people(run, keys, quoted(column))
    is_sample = sample is not None
    share = alone / trials
    return AttackReport(
        attack="linkage",
        measure=MEASURE,
        success=share,
        baseline=0.0,
        interval=interval(alone, trials=trials, confidence=confidence)
        if is_sample
        else (share, share),
        confidence=confidence,
        trials=trials,
        summary=f"{alone:,} of {trials:,} people{' drawn' if is_sample else ''} are alone with "
        f"their {listed(columns)}.",
        details={"columns": list(columns), "alone": alone},
    )


def _row(run: Any, asked: str) -> tuple[int, int]:
    first, second = run.execute(asked).fetchone()
    return int(first), int(second)


def _people(run: Any, keys: str, who: str) -> tuple[int, int]:
    inner = (
        f"SELECT any_value({who}) AS who FROM people GROUP BY {keys} "
        f"HAVING count(DISTINCT {who}) = 1"
    )
    everybody = f"SELECT greatest(1, count(DISTINCT {who})) FROM people"
    return _row(run, f"SELECT count(DISTINCT who), ({everybody}) FROM ({inner})")


def _looked_up(run: Any, keys: str, drawn: Codes) -> tuple[int, int]:
    """Count the rows drawn that are alone in all of the data."""
    place = '"place of row"'  # rowid may be a column of the data
    run.execute(
        f"CREATE TEMP TABLE numbered AS SELECT {keys}, row_number() OVER () - 1 AS {place} "
        "FROM people"
    )
    run.register("drawn", read({"place": drawn}))
    single = f"SELECT any_value({place}) AS place FROM numbered GROUP BY {keys} HAVING count(*) = 1"
    return _row(run, f"SELECT count(*), {len(drawn)} FROM drawn JOIN ({single}) USING (place)")


def worst_set(
    data: object,
    *,
    size: int,
    columns: Sequence[str] | None = None,
    confidence: float = 0.95,
) -> AttackReport:
    """Find the ``size`` columns with which the most people are alone, exactly.

    ``columns`` are those to choose from, all if not said.

    Why it need not try all sets: (1) more columns never make fewer people alone, so a set that
    cannot beat the best one even with everything still to come is left with all its subsets; (2) a
    group of g people that a column of v values splits has at most g of them alone if g <= v, and
    at most v - 1 otherwise, so the sizes of a set's groups bound every larger set.

    >>> people = {"zip": [1, 1, 2, 2], "sex": ["f", "m", "f", "m"], "left": [0, 0, 0, 0]}
    >>> worst_set(people, size=2).details["columns"]
    ['zip', 'sex']
    """
    confidence = float(probability(confidence, name="confidence"))
    table = read(data)
    names = chosen(table, columns or table.column_names, name="columns")
    many = min(whole(size, name="size"), len(names))
    codes, values = coded(table, names)
    # Columns of many values first: they find a good set early, and leave little to the others.
    order = sorted(range(len(names)), key=lambda at: -values[at])
    best, alone, tried = _searched([codes[at] for at in order], [values[at] for at in order], many)
    found = sorted(order[at] for at in best)
    rows = table.num_rows
    return AttackReport(
        attack="linkage",
        measure=MEASURE,
        success=alone / rows,
        baseline=0.0,
        interval=(alone / rows, alone / rows),
        confidence=confidence,
        trials=rows,
        summary=f"{alone:,} of {rows:,} people are alone with their "
        f"{listed([names[at] for at in found])}, the worst {many} of {len(names)} columns.",
        details={"columns": [names[at] for at in found], "alone": alone, "sets_tried": tried},
    )


def _searched(codes: list[Codes], values: list[int], size: int) -> tuple[tuple[int, ...], int, int]:
    """Return the best set, how many are alone with it, and how many sets were grouped."""
    tried = 0
    best: tuple[tuple[int, ...], int] = (tuple(range(size)), -1)

    def sizes(columns: tuple[int, ...]) -> Codes:
        nonlocal tried
        tried += 1
        return group_sizes([codes[at] for at in columns], [values[at] for at in columns])

    def descend(columns: tuple[int, ...]) -> None:
        nonlocal best
        lacking = size - len(columns)
        rest = range(columns[-1] + 1 if columns else 0, len(codes))
        if len(rest) < lacking:
            return
        if columns:
            found = sizes(columns)
            if not lacking:
                alone = int((found == 1).sum())
                best = max(best, (columns, alone), key=lambda one: one[1])
                return
            # (2) of the docstring; the widest columns to come are the first.
            wide = int(np.prod([float(values[at]) for at in rest[:lacking]]).clip(max=2**62))
            if int(np.where(found <= wide, found, wide - 1).sum()) <= best[1]:
                return
            if len(rest) > lacking and int((sizes((*columns, *rest)) == 1).sum()) <= best[1]:
                return  # (1)
        for at in rest:
            descend((*columns, at))

    descend(())
    return *best, tried


def coded(table: "pa.Table", columns: Sequence[str]) -> tuple[list[Codes], list[int]]:
    """Return columns as numbers from 0, equal where values are, and how many values each has."""
    found = [
        encoded(table, name).indices.to_numpy(zero_copy_only=False).astype(np.int64)
        for name in columns
    ]
    return found, [int(one.max()) + 1 for one in found]


def encoded(table: "pa.Table", name: str) -> "pa.DictionaryArray":
    """Return a column as indices into its different values, of which a null is one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = table[name].combine_chunks()
    if pa.types.is_dictionary(values.type):  # categories, which may be unused or nulls
        values = values.dictionary_decode()
    if pa.types.is_floating(values.type):
        values = pc.add(values, pa.scalar(0, values.type))  # -0 is 0
    try:
        return values.dictionary_encode(null_encoding="encode")
    except pa.ArrowNotImplementedError:
        raise DataError(
            f"the column {name[:60]!r} holds lists or records. Take it apart, or leave it out."
        ) from None


def group_sizes(codes: Sequence[Codes], values: Sequence[int]) -> Codes:
    """Return how many rows share each combination of codes that occurs.

    >>> group_sizes([np.array([0, 0, 1]), np.array([1, 1, 0])], [2, 2]).tolist()
    [2, 1]
    """
    key, span = np.zeros(len(codes[0]), dtype=np.int64), 1
    for code, many in zip(codes, values, strict=True):
        if span * many >= 2**62:  # too many to number: number those that occur
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
            span = len(key)
        key, span = key * many + code, span * many
    if span <= 4 * len(key):
        counts = np.bincount(key)
        return counts[counts > 0].astype(np.int64)
    key.sort()
    edges = np.flatnonzero(key[1:] != key[:-1]) + 1
    return np.diff(np.concatenate(([0], edges, [len(key)]))).astype(np.int64)


def listed(names: Sequence[str]) -> str:
    """Write names as a sentence has them.

    >>> listed(["zip", "birth date", "sex"])
    'zip, birth date and sex'
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
