"""How often answers about a dataset missed their public deadline since somebody last looked."""

import time

from discreet.service.records.records import Records

__all__ = ["add_miss", "count_misses", "reopen"]


def add_miss(records: Records, dataset: str) -> int:
    """Note that an answer was late; return how many were since the dataset was last reopened.

    One statement adds and counts, so of several workers no two get the same number.

    >>> import tempfile
    >>> with Records.open(f"{tempfile.mkdtemp()}/gateway.db") as records:
    ...     add_miss(records, "visits"), add_miss(records, "visits"), add_miss(records, "people")
    (1, 2, 1)
    """
    ((times,),) = records.run(
        "INSERT INTO misses (dataset, times, latest) VALUES (:dataset, 1, :now)"
        " ON CONFLICT (dataset) DO UPDATE SET times = misses.times + 1, latest = :now"
        " RETURNING times",
        dataset=dataset,
        now=time.time(),
    )
    return int(times)


def count_misses(records: Records, dataset: str) -> int:
    """Return how many answers were late since the dataset was last reopened."""
    found = records.run("SELECT times FROM misses WHERE dataset = :dataset", dataset=dataset)
    return int(found[0][0]) if found else 0


def reopen(records: Records, dataset: str) -> None:
    """Begin to count anew: a custodian has looked."""
    records.run("DELETE FROM misses WHERE dataset = :dataset", dataset=dataset)
