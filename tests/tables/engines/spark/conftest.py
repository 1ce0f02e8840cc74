"""One Spark for all tests of a process: starting one takes longer than most of them."""

import os
import tempfile

import pytest


@pytest.fixture(scope="session")
def spark():
    from pyspark.sql import SparkSession

    if remote := os.environ.get("SPARK_REMOTE"):  # see test_spark_connect
        yield SparkSession.builder.remote(remote).getOrCreate()
        return
    with tempfile.TemporaryDirectory() as folder:
        session = (
            SparkSession.builder.master("local[2]")
            .config("spark.driver.memory", "1g")
            .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={folder}")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "1")
            .config("spark.default.parallelism", "1")
            .config("spark.sql.adaptive.enabled", "false")
            .config("spark.sql.codegen.wholeStage", "false")
            .config("spark.sql.warehouse.dir", folder)
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


@pytest.fixture(scope="session")
def frame_of(spark):
    """Return what makes a DataFrame of an Arrow table: timestamps without a zone stay such."""
    from pyspark.sql.pandas.types import from_arrow_schema

    def made(table):
        return spark.createDataFrame(
            table, from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
        )

    return made
