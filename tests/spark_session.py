"""A small Spark of two threads for the tests of one process, and frames with the partitions that a test wants."""

import os
import shutil
import sys
from functools import cache

import pytest

SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def session():
    """Return the session, or skip the test."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java")
    pytest.importorskip("pyspark", reason="Spark needs pyspark")
    return started()


@cache
def started():
    """Start Spark: lost tasks are tried again, as on a cluster."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2,4]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("OFF")
    return found


def frame_of(parts):
    """Return a Spark frame that has these pandas frames as its partitions, in order."""
    import pyarrow as pa

    spark = session()
    schema = spark.createDataFrame(parts[0]).schema
    tables = [pa.Table.from_pandas(part, preserve_index=False) for part in parts]

    def rows(batches):
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from tables[number].to_batches()

    return spark.range(0, len(parts), 1, len(parts)).mapInArrow(rows, schema).persist()
