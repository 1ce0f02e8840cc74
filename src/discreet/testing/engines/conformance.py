"""One suite for all engines: whatever runs the statements must give these integers."""

from discreet.testing.engines.additivity import Additivity
from discreet.testing.engines.batches import Batches
from discreet.testing.engines.cells import CellsOfValues
from discreet.testing.engines.counts import Counts
from discreet.testing.engines.crowds import Crowds
from discreet.testing.engines.distinct_values import DistinctValues
from discreet.testing.engines.functions import Functions
from discreet.testing.engines.group_choice import GroupChoice
from discreet.testing.engines.profiles import Profiles
from discreet.testing.engines.relations import Relations
from discreet.testing.engines.which_rows import WhichRows

__all__ = ["EngineConformance"]


class EngineConformance(
    Counts,
    CellsOfValues,
    WhichRows,
    GroupChoice,
    Additivity,
    DistinctValues,
    Profiles,
    Relations,
    Crowds,
    Functions,
    Batches,
):
    """Check that an engine computes what statements say, to the last integer.

    Derive a class for pytest from it and say how to connect to tables. Everything is
    compared with a slow computation unit by unit that knows no SQL.

    >>> from discreet.tables.engines import DuckDBConnection
    >>> class TestDuckDB(EngineConformance):
    ...     def connect(self, tables):
    ...         return DuckDBConnection(tables)
    >>> TestDuckDB().test_counts_of_one_group()
    """
