"""Spark's settings, as they are handed to ``protect`` and ``open_tables``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, final

from discreet.errors import ParameterError
from discreet.tables.engines.spark import looking
from discreet.tables.engines.spark.connection import SparkConnection
from discreet.tables.engines.spark.session import check_installed, is_session
from discreet.tables.sources.source import DataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SparkEngine"]


@final
@dataclass(frozen=True, slots=True)
class SparkEngine:
    """Let questions run in Spark, classic or Connect: rows stay in the cluster.

    A table is a DataFrame of this session, the name of a table of its catalogue, or a path of
    Parquet files (a folder, a glob, a list; a URI such as ``s3a://...`` too). Rows are bounded,
    counted and added up by the executors; only sums by group reach this process, where noise is
    added to them. ``spark`` is your session. It stays as it is: statements run in a session of
    their own beside it, with settings that fix what they mean.

    What questions rest on: each row of a DataFrame comes from one person's rows alone, and is the
    same whenever it is read. So give tables as they were read, filtered or mapped row by row, not
    joined, limited, sampled or numbered; what Spark tells of a frame's making is looked at, and
    limits, samples, random numbers and text files are refused. And what computes a DataFrame must
    not fail, whatever a row has in it. A view of the catalogue can be public but not protected.

    Local files are known to the ledger by their paths, as they are to DuckDB, and their version by
    sizes, times and footers. Files elsewhere are known by their names alone, so one that is
    overwritten under the same name is not noticed. Nor is any change of a table that has no files
    Spark tells of; a DataFrame of this process's memory is known by its plan, that is by nothing if
    it is made anew. A DataFrame goes on reading the files that it was made of.

    Bytes that are no UTF-8 are read as the sign for that, so texts that differ in nothing else are
    the same. Texts are told apart by their letters, whatever collation they have; those of more
    than a mebibyte count as missing.

    Which rows of a unit count, where there are too many, is chosen by hashes. With ``portable``
    they are those of all engines, so that the same salt gives the same integers everywhere; they
    take longer than Spark's own. Regular expressions that Java may take very long to match are
    refused before anything is paid.
    """

    name: ClassVar[str] = "spark"
    spark: "SparkSession" = field(repr=False)
    portable: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        check_installed()
        if not is_session(self.spark):
            raise ParameterError(
                f"spark must be a SparkSession, got {type(self.spark).__name__}.",
                parameter="spark",
            )

    def look(
        self,
        name: str,
        given: object,
        /,
        *,
        is_public: bool = False,
        types: Mapping[str, str] | None = None,
    ) -> DataSource:
        """Look at what was given as the table ``name``. Its types are Spark's."""
        return looking.look(self.spark, name, given, is_public=is_public)

    def version(self, source: DataSource, /) -> str:
        """Return the version that the data has now: see the class for what it cannot notice."""
        return looking.version(self.spark, source)

    def open(self, sources: Mapping[str, DataSource], /) -> SparkConnection:
        """Return a connection that can read these tables and nothing else."""
        return SparkConnection(self.spark, sources, portable=self.portable)
