"""The table that benchmarks ask about: who, where, what, how much; the same for the same size."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

REGIONS = tuple(f"region {i:02}" for i in range(50))
ITEMS = 1_000_000
ROWS_PER_USER = 20
LARGEST = 200_000  # income
CHUNK = 1_000_000


def visits(folder: Path, rows: int) -> Path:
    """Write a Parquet file of so many rows, unless it is there.

    People differ in how many rows they have (20 on average, a gamma law), regions in size (the
    largest has 20 times the rows of the smallest) and items most of all (popularity 1 / rank).
    Which region or item is popular does not show in its name, so that no order of keys is a hint.
    """
    path = folder / f"visits-{rows}.parquet"
    if path.exists():
        return path
    rng = np.random.default_rng(7)
    users = rows // ROWS_PER_USER
    active = np.cumsum(rng.gamma(4.0, 1.0, users))
    sizes = np.cumsum(rng.permutation(1 / np.arange(1, len(REGIONS) + 1) ** 0.75))
    names = rng.permutation(ITEMS).astype(np.int64)
    unfinished = path.with_suffix(".part")
    writer = None
    for start in range(0, rows, CHUNK):
        table = _chunk(min(CHUNK, rows - start), rng, active, sizes, names)
        writer = writer or pq.ParquetWriter(unfinished, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()
    unfinished.rename(path)
    return path


def _chunk(
    rows: int,
    rng: np.random.Generator,
    active: npt.NDArray[np.float64],
    sizes: npt.NDArray[np.float64],
    names: npt.NDArray[np.int64],
) -> pa.Table:
    user = np.searchsorted(active, rng.random(rows) * active[-1])
    region = np.searchsorted(sizes, rng.random(rows) * sizes[-1]).astype(np.int32)
    rank = np.floor(float(ITEMS) ** rng.random(rows)).astype(np.int64) - 1
    income = np.minimum(rng.lognormal(10.3, 0.7, rows), LARGEST).round(2)
    in_words = pa.DictionaryArray.from_arrays(pa.array(region), pa.array(REGIONS))
    return pa.table(
        {
            "user_id": user.astype(np.int64),
            "region": in_words.cast(pa.string()),
            "item": names[rank],
            "income": income,
        }
    )
