"""The same questions put to Qrlew (rewritten SQL, run by DuckDB) and to OpenDP (Polars).

Both get favourable settings. Qrlew's own noise multipliers are far larger than its epsilon needs
(a classical bound, and a budget split evenly), so its epsilon is raised until the Gaussian noise
that is really in its SQL composes to the guarantee asked for. OpenDP is given the rho (or, for
Laplace noise, the epsilon) whose true guarantee is that. Its sampling of groups fails with the
Polars that it asks for, so contributions are bounded by rows, and by rows in each group.
"""

import json
import math
import re
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tables_data import LARGEST, REGIONS

from discreet.accounting import GaussianLoss, delta

NOISE = re.compile(r'"(_[A-Z]+_)\w*"(?:, 0\)\))?\)? \+ \(\((\d+\.?\d*)\) \* \(\(SQRT')
TABLE = "CREATE TABLE visits (user_id INTEGER, region TEXT, item INTEGER, income FLOAT)"
LINE = "INSERT INTO visits VALUES (1, 'region 00', 1, 5.0)"


@cache
def multiplier(epsilon: float, most: float) -> float:
    """Return the least noise multiplier of a Gaussian release that is (epsilon, most)-DP."""
    low, high = 0.1, 1000.0
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        private = delta(GaussianLoss(noise_multiplier=middle), epsilon=epsilon) <= most
        low, high = (low, middle) if private else (middle, high)
    return high


# --- Qrlew ------------------------------------------------------------------------------------


@cache
def qrlew_dataset(rows: int) -> Any:
    """Describe the table to Qrlew: types from an empty copy, then size, keys and bounds."""
    import pyqrlew
    import sqlalchemy

    engine = sqlalchemy.create_engine("sqlite:///:memory:")
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text(TABLE))
        connection.execute(sqlalchemy.text(LINE))
    copy = pyqrlew.Dataset.from_database("shop", engine, None)
    described = {
        "@type": "sarus_data_spec/sarus_data_spec.Dataset",
        "uuid": json.loads(copy.schema)["dataset"],
        "name": "shop",
        "spec": {"transformed": {"transform": "0", "arguments": [], "named_arguments": {}}},
        "properties": {},
        "doc": "",
    }
    size = copy.size.replace('"size": "1"', f'"size": "{rows}"')
    found = pyqrlew.Dataset.from_str(json.dumps(described), copy.schema, size)
    found = found.visits.income.with_range(0.0, float(LARGEST))
    return found.visits.region.with_possible_values(list(REGIONS))


def qrlew_sql(
    question: str, *, rows: int, epsilon: float, most: float, limit: float, groups: int = 5
) -> str:
    """Rewrite a question. ``limit`` bounds the norm of a person, ``groups`` the keys it adds."""
    dataset = qrlew_dataset(rows)
    private = dataset.relation(question).rewrite_with_differential_privacy(
        dataset,
        [("visits", [], "user_id")],
        {"epsilon": epsilon, "delta": most},
        max_multiplicity=float(limit),
        max_multiplicity_share=1.0,
        max_privacy_unit_groups=groups,
    )
    return str(private.relation().to_query())


def qrlew_epsilon(question: str, **terms: Any) -> float:
    """Return the epsilon to ask for, so that all its noise together is (1, ``most``)-DP.

    Keys take half of delta for their threshold; everything else is Gaussian.
    """
    spent, has_threshold = 0.0, False
    for name, deviation in qrlew_noise(question, epsilon=1.0, **terms):
        reach = {"_SUM_": LARGEST * terms["limit"], "_COUNT_": terms["limit"]}
        if "DISTINCT" in name:
            has_threshold = True
            reach[name] = math.sqrt(terms["groups"])
        spent += (reach[name] / deviation) ** 2
    most = terms["most"] / 2 if has_threshold else terms["most"]
    return 1 / (multiplier(1.0, most) * math.sqrt(spent))


def qrlew_noise(question: str, **terms: Any) -> list[tuple[str, float]]:
    """Return the aggregates that get noise, and the standard deviations, from the SQL itself."""
    text = qrlew_sql(question, **terms)
    found = [(kind, float(deviation)) for kind, deviation in NOISE.findall(text)]
    names = re.findall(r'"(_COUNT_DISTINCT_PID_)"\) \+', text)
    return [
        (names[0] if names and i == 0 else kind, deviation)
        for i, (kind, deviation) in enumerate(found)
    ]


# --- OpenDP -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Truncation:
    """How OpenDP bounds a person: rows in all, and rows in each group, drawn at random."""

    rows: int
    in_group: int | None = None

    def __str__(self) -> str:
        return f"{self.rows} rows" + (f", {self.in_group} in a group" if self.in_group else "")


def opendp_query(path: Path, rows: int, kind: str, bound: Truncation, **loss: float) -> Any:
    """Prepare a query: ``kind`` is regions, region means, items, count, sum or mean."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    by = {"regions": "region", "region means": "region", "items": "item"}.get(kind)
    context = dp.Context.compositor(
        data=pl.scan_parquet(path),
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("user_id")),
        privacy_loss=dp.loss_of(**loss),
        split_evenly_over=1,
        margins=[
            dp.polars.Margin(by=(), max_length=rows),
            dp.polars.Margin(by=["region"], max_length=rows, max_groups=len(REGIONS)),
            dp.polars.Margin(by=["item"], max_length=rows, max_groups=rows),
        ],
    )
    query = context.query()
    if by and bound.in_group:
        query = query.truncate_per_group(bound.in_group, by=[by])
    query = query.truncate_per_group(bound.rows)
    count = dp.len(signed=True)
    total = pl.col("income").fill_nan(0.0).fill_null(0.0)
    total = total.dp.sum((0.0, float(LARGEST)))  # type: ignore[attr-defined]  # OpenDP adds it
    asked = [total] * (kind == "sum") or [count, total]
    asked = [count] if kind in ("regions", "items", "count") else asked
    if by is None:
        return query.select(*asked)
    grouped = query.group_by(by).agg(*asked)
    if by == "item":
        return grouped
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return grouped.with_keys(pl.LazyFrame({"region": list(REGIONS)}))


def opendp_noise(query: Any) -> list[tuple[str, str, float]]:
    """Return for each aggregate its column, the law of its noise and the scale."""
    return [
        (
            line["column"],
            "laplace" if "Laplace" in line["distribution"] else "gaussian",
            line["scale"],
        )
        for line in query.summarize().to_dicts()
    ]


def draws(
    rng: np.random.Generator, law: str, scale: float, shape: tuple[int, ...]
) -> npt.NDArray[np.float64]:
    """Draw a peer's noise, to know its expected error well."""
    return rng.laplace(0, scale, shape) if law == "laplace" else rng.normal(0, scale, shape)
