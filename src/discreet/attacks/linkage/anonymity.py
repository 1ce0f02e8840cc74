"""Make a table k-anonymous, as is often taken for protection: groups of k who look alike."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from discreet._exact import whole
from discreet.attacks.frames import chosen, read
from discreet.attacks.linkage.uniqueness import Codes, coded, encoded
from discreet.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["KAnonymous", "anonymise"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KAnonymous:
    """Hold a k-anonymous table, and which group each row was put into.

    ``table`` is what would be published; ``groups`` numbers the groups, row by row.

    >>> made = anonymise({"age": [30, 31, 60, 64], "ill": [1, 0, 1, 1]}, ["age"], k=2)
    >>> made.table["age"].to_pylist(), made.groups.tolist()
    (['30 to 31', '30 to 31', '60 to 64', '60 to 64'], [0, 0, 1, 1])
    """

    k: int
    quasi: tuple[str, ...]
    table: "pa.Table"
    groups: Codes


def anonymise(
    data: object,
    quasi: Sequence[str],
    *,
    k: int,
    secret: str | None = None,
    diversity: int = 1,
) -> KAnonymous:
    """Coarsen columns until at least ``k`` rows share each combination of their values.

    The table is cut at the median of the column that is widest in it, and each part again, as long
    as both parts keep k rows [LDR06]; with ``diversity`` l, also l different values of ``secret``
    [MKGV07]. It is here to be attacked: see :func:`homogeneity`, :func:`background` and
    :func:`composition`.

    >>> anonymise({"age": [30, 31, 60], "ill": [1, 0, 1]}, ["age"], k=2).table["age"].to_pylist()
    ['30 to 60', '30 to 60', '30 to 60']
    """
    table = read(data)
    columns = chosen(table, quasi, name="quasi")
    k, diversity = whole(k, name="k"), whole(diversity, name="diversity")
    if k > table.num_rows:
        raise DataError(f"data has fewer rows than k = {k}.")
    secrets = np.zeros(table.num_rows, dtype=np.int64)
    if secret is not None:
        (secrets,), _ = coded(table, chosen(table, [secret], name="secret"))
    if len(np.unique(secrets)) < diversity:
        raise DataError(f"secret= must name a column of at least {diversity} values.")
    codes, labels = _ordered(table, columns)
    groups = np.zeros(table.num_rows, dtype=np.int64)
    parts = list(_parts(codes, secrets, k, diversity))
    for number, rows in enumerate(parts):
        groups[rows] = number
    for place, name in enumerate(columns):
        texts = [_span(labels[place], codes[place][rows]) for rows in parts]
        at = table.column_names.index(name)
        table = table.set_column(at, name, [np.array(texts)[groups]])
    return KAnonymous(k=k, quasi=tuple(columns), table=table, groups=groups)


def _ordered(table: "pa.Table", columns: list[str]) -> tuple[list[Codes], list[list[object]]]:
    """Return columns as numbers in the order of their values, and the values themselves."""
    import pyarrow.compute as pc

    codes, labels = [], []
    for name in columns:
        column = encoded(table, name)
        order = pc.sort_indices(column.dictionary).to_numpy()
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        codes.append(rank[column.indices.to_numpy(zero_copy_only=False)])
        labels.append(column.dictionary.take(order).to_pylist())
    return codes, labels


def _parts(codes: list[Codes], secrets: Codes, k: int, diversity: int) -> Iterator[Codes]:
    """Cut until no part can be cut, and yield the rows of each; the lower half first."""
    waiting = [np.arange(len(secrets))]
    total = [max(1, int(one.max())) for one in codes]
    while waiting:
        rows = waiting.pop()
        halves = None
        if len(rows) >= 2 * k:
            spans = [
                float(np.ptp(one[rows])) / wide for one, wide in zip(codes, total, strict=True)
            ]
            for place in sorted(range(len(codes)), key=lambda at: -spans[at]):
                halves = _halves(codes[place], rows, secrets, k, diversity)
                if halves is not None:
                    break
        if halves is None:
            yield rows
        else:
            waiting += halves[::-1]


def _halves(code: Codes, rows: Codes, secrets: Codes, k: int, diversity: int) -> list[Codes] | None:
    """Cut rows below or above the median's value, where both parts stay large and mixed enough."""
    values = code[rows]
    middle = np.partition(values, len(values) // 2)[len(values) // 2]
    for lower in (values < middle, values <= middle):
        halves = [rows[lower], rows[~lower]]
        if all(
            len(half) >= k and (diversity == 1 or len(np.unique(secrets[half])) >= diversity)
            for half in halves
        ):
            return halves
    return None


def _span(labels: list[object], codes: Codes) -> str:
    low, high = labels[int(codes.min())], labels[int(codes.max())]
    return str(low) if low == high else f"{low} to {high}"
