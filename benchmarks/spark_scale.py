"""orthocal on Spark in local mode against the time of one `mapInArrow` pass that sums the same columns. Writes spark_scale.md.

`python benchmarks/spark_scale.py` generates 10^7 rows in Parquet in a temporary folder; `--rows` asks for fewer or more.
Work that has a limit is done twice, the pass before and after each; the better time of each counts. Needs Java.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession

from orthocal.assessment.records import Settings
from orthocal.effects import CATE
from orthocal.engines.partitioned.fit import fitted
from orthocal.engines.partitioned.preparation import prepared
from orthocal.engines.partitioned.verdict import judged
from orthocal.engines.spark.table import SparkTable
from orthocal.nuisances.learners import Recipe
from scale import ROLES, generate

NEEDED = ROLES.needed
SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "3g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
MOST = 4
"""That maps from sums and the default verdict may take, in passes; what moves rows is measured only."""


def sums(batches):
    """Sum the columns of a partition."""
    import pyarrow as pa
    from pyarrow import compute

    found = [[compute.sum(column).as_py() for column in batch.columns] for batch in batches]
    yield pa.RecordBatch.from_arrays([pa.array([float(sum(column))]) for column in zip(*found, strict=True)], NEEDED)


def read_and_sum(frame) -> None:
    """The pass everything is measured by."""
    frame.select(*NEEDED).mapInArrow(sums, ", ".join(f"{name} double" for name in NEEDED)).collect()


def source_of(frame):
    """Rows with known nuisances."""
    return prepared(SparkTable.of_frame(frame), ROLES, CATE(), 5, Recipe(random_state=0))


WORK = {
    "linear": (lambda frame: fitted("linear", source_of(frame), exact=False), MOST),
    "histogram": (lambda frame: fitted("histogram", source_of(frame), exact=False), MOST),
    "isotonic, grid": (lambda frame: fitted("isotonic", source_of(frame), exact=False), MOST),
    "verdict": (lambda frame: judged(source_of(frame), Settings(random_state=0), exact=False), MOST),
    "isotonic, exact": (lambda frame: fitted("isotonic", source_of(frame), exact=True), None),
    "verdict, exact": (lambda frame: judged(source_of(frame), Settings(random_state=0), exact=True), None),
}


def seconds(work, frame) -> float:
    """Of one run."""
    start = time.perf_counter()
    work(frame)
    return time.perf_counter() - start


def measured(frame) -> dict[str, tuple[float, float]]:
    """Return the seconds of every work and of the pass, in turn: machines are busy at times."""
    found = {}
    for work in (read_and_sum, WORK["linear"][0]):  # workers import what they need
        work(frame)
    for name, (work, most) in WORK.items():
        pairs = [(seconds(read_and_sum, frame), seconds(work, frame)) for _ in range(2 if most else 1)]
        floor = min(seconds(read_and_sum, frame), *(one for one, _ in pairs))
        found[name] = (floor, min(other for _, other in pairs))
        print(f"  {name}: {found[name][1]:.1f} s, {found[name][1] / floor:.2f} passes of {floor:.1f} s", flush=True)
    return found


def main() -> None:
    """Measure and write the table."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rows", type=int, default=10**7)
    asked.add_argument("--folder", type=Path, help="keep the data here")
    options = asked.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    with tempfile.TemporaryDirectory() as temporary:
        pattern = generate((options.folder or Path(temporary)) / str(options.rows), options.rows)
        found = measured(spark.read.parquet(pattern))
    spark.stop()
    lines = [
        "# Scale on Spark",
        "",
        f"Written by `benchmarks/spark_scale.py`: {options.rows:,} rows of Parquet, six columns, `local[2]` on a machine of two",
        "cores. Times are ratios to one `mapInArrow` pass that sums the same columns.",
        "",
        "| work | ratio | at most | million rows per second |",
        "| --- | --- | --- | --- |",
    ]
    for name, (floor, took) in found.items():
        most = WORK[name][1] or ""
        lines.append(f"| {name} | {took / floor:.2f} | {most} | {options.rows / took / 1e6:.2f} |")
    Path(__file__).with_name("spark_scale.md").write_text("\n".join(lines) + "\n")
    missed = [name for name, (floor, took) in found.items() if took / floor > (WORK[name][1] or float("inf"))]
    if missed:
        raise SystemExit(f"missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
