"""Data larger than memory: orthocal on Dask against the time Dask needs just to read and sum the columns. Writes scale.md.

`python benchmarks/scale.py` generates 10^6, 10^7 and 10^8 rows in Parquet, partition by partition, in a temporary folder, and
fits on two workers of 2 GB each, watching their memory. `--most 10000000` stops earlier.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
from dask import dataframe as dd
from distributed import Client, LocalCluster
from pyarrow import parquet

from orthocal.distributed import CausalCalibrator, assess

PART = 10**6
LIMIT = 2 * 10**9
COLUMNS = {
    "outcome": "y",
    "treatment": "a",
    "prediction": "tau",
    "nuisances": {name: name for name in ("propensity", "outcome_control", "outcome_treated")},
}
METHODS = {
    "linear": ({"method": "linear"}, 3),
    "histogram": ({"method": "histogram"}, 3),
    "isotonic, grid": ({"method": "isotonic"}, 3),
    "isotonic, exact": ({"method": "isotonic", "exact": True}, 12),
}


def rows(count: int, seed: int) -> pa.Table:
    """Predictions 1 + 2 * effect, propensities between 0.2 and 0.8, noise of 1."""
    rng = np.random.default_rng(seed)
    x, z = rng.standard_normal(count), rng.standard_normal(count)
    propensity = 0.2 + 0.6 / (1 + np.exp(-z))
    a = (rng.random(count) < propensity).astype(np.int8)
    y = z + a * x + rng.standard_normal(count)
    columns = {
        "tau": 1 + 2 * x,
        "a": a,
        "y": y,
        "propensity": propensity,
        "outcome_control": z,
        "outcome_treated": z + x,
    }
    return pa.table(columns)


def generate(folder: Path, total: int) -> str:
    """Write the rows, a million to a file."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in range(max(total // PART, 1)):
        file = folder / f"part-{part:05}.parquet"
        if not file.exists():
            parquet.write_table(rows(min(PART, total), part), file, compression="NONE")
    return str(folder / "*.parquet")


class Watch:
    """The most memory that any worker held while something was done."""

    def __init__(self, workers: list[int]) -> None:
        self.processes, self.most, self.done = [psutil.Process(pid) for pid in workers], 0, threading.Event()
        self.thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        while not self.done.wait(0.05):
            self.most = max([self.most, *(process.memory_info().rss for process in self.processes)])

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *ended) -> None:
        self.done.set()
        self.thread.join()


def measure(pattern: str, client: Client, *, judge: bool) -> dict[str, tuple[float, int]]:
    """Return (seconds, most memory of a worker) of reading and summing, of every method, and of the verdict."""
    frame = dd.read_parquet(pattern)
    pids = [info["pid"] for info in client.run(lambda: {"pid": __import__("os").getpid()}).values()]
    needed = ["tau", "a", "y", *COLUMNS["nuisances"]]
    work = {"read and sum": lambda: frame[needed].sum().compute()}
    for name, (settings, _) in METHODS.items():
        work[name] = lambda settings=settings: CausalCalibrator(random_state=0, **settings).fit(frame, **COLUMNS)
    if judge:
        work["assess"] = lambda: assess(frame, **COLUMNS, random_state=0)
    found = {}
    frame[needed].sum().compute()
    CausalCalibrator(method="linear").fit(frame.partitions[:2], **COLUMNS)  # workers import what they need
    for name, do in work.items():
        with Watch(pids) as watch:
            start = time.perf_counter()
            do()
            found[name] = (time.perf_counter() - start, watch.most)
        print(f"  {name}: {found[name][0]:.1f} s, {watch.most / 1e9:.2f} GB", flush=True)
    return found


def main() -> None:
    """Measure at growing sizes and write the table."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--most", type=int, default=10**8)
    asked.add_argument("--folder", type=Path, help="keep the data here")
    asked.add_argument("--no-assess", action="store_true")
    options = asked.parse_args()
    sizes = [n for n in (10**6, 10**7, 10**8) if n <= options.most]
    lines = [
        "# Scale",
        "",
        "Written by `benchmarks/scale.py`: Parquet of a million rows a file, two Dask workers of 2 GB each on one machine of two",
        "cores. Times are ratios to what Dask needs to read and sum the same six columns; memory is the most a worker held.",
        "",
        "| rows | work | ratio | at most | million rows per second | memory, GB |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    missed = []
    with tempfile.TemporaryDirectory() as temporary:
        for n in sizes:
            pattern = generate((options.folder or Path(temporary)) / str(n), n)
            print(f"{n:,} rows", flush=True)
            with (
                LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=LIMIT) as cluster,
                Client(cluster) as client,
            ):
                found = measure(pattern, client, judge=not options.no_assess)
            floor = found["read and sum"][0]
            for name, (seconds, memory) in found.items():
                most = METHODS.get(name, (None, None))[1]
                if n == 10**8 and (memory > LIMIT or (most and seconds / floor > most)):
                    missed.append(name)
                at_most = "" if most is None else str(most)
                rate, held = n / seconds / 1e6, memory / 1e9
                lines.append(f"| {n:,} | {name} | {seconds / floor:.2f} | {at_most} | {rate:.2f} | {held:.2f} |")
    Path(__file__).with_name("scale.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    if missed:
        raise SystemExit(f"missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
