"""A small result, made up, for docstrings and tests."""

from typing import Any

from discreet.accounting import GaussianLoss
from discreet.ledger import Receipt
from discreet.tables.results.result import Result


def region_counts(**changes: Any) -> Result:
    """Return counts and mean pay in two regions, the second of them too small to say much.

    >>> region_counts().to_dicts(errors=False)[0]
    {'region': 'north', 'n': 12340.2, 'pay': 41203.7}
    """
    charge = '{"account":"people","index":7,"kind":"charge","time":"2026-11-15T13:20:00.123456Z"}'
    facts = {
        "unit": "all records of one user_id",
        "neighbours": "add_remove",
        "bounding": {"kind": "norm", "limit": 5, "order": 2, "origin": "inferred"},
        "keys": {"kind": "selected", "threshold": 61.5},
        "aggregates": [
            {"kind": "count", "text": "COUNT(*)", "column": "n", "noise": "gaussian",
             "deviations": [29.1, 29.1]},
            {"kind": "mean", "text": "AVG(income)", "column": "pay", "noise": "gaussian",
             "deviations": [158.2, 90112.0], "bounds": [0, 200000], "origin": "declared"},
        ],
        "data_version": "1",
    }  # fmt: skip
    usual: dict[str, Any] = {
        "columns": ("region", "n", "pay"),
        "keys": ("region",),
        "values": {"region": ["north", "south"], "n": [12340.2, -17.9], "pay": [41203.7, 3021.0]},
        "errors": {"n": [29.1, 29.1], "pay": [158.2, 90112.0]},
        "lows": {"n": [12283.2, -74.9], "pay": [40893.7, 0.0]},
        "highs": {"n": [12397.2, 39.1], "pay": [41513.7, 179637.0]},
        "reliable": {"n": [True, False], "pay": [True, False]},
        "confidence": 0.95,
        "question": "SELECT region, COUNT(*) AS n, AVG(income) AS pay FROM people GROUP BY region",
        "epsilon": 0.5,
        "delta": 1e-8,
        "loss": GaussianLoss(noise_multiplier=12),
        "receipt": Receipt(bodies=(charge,)),
        "left": 0.83,
        "facts": facts,
        "nonce": "00" * 16,
    }
    return Result(**{**usual, **changes})
