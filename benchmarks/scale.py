"""Data larger than memory: each engine against the time it needs just to read and sum the columns. Writes scale.md.

`python benchmarks/scale.py` generates 10^6, 10^7, 3 * 10^7 and 10^8 rows in Parquet, partition by partition, in a temporary
folder, then fits and judges on two Dask workers of 2 GB each and on local files in one process, watching their memory. `--most
10000000` stops earlier.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
from dask import dataframe as dd
from distributed import Client, LocalCluster
from pyarrow import parquet

from orthocal.assessment.records import Settings
from orthocal.effects import CATE
from orthocal.engines.dask.table import DaskTable
from orthocal.engines.local.table import LocalTable
from orthocal.engines.partitioned.fit import fitted
from orthocal.engines.partitioned.passes import reduced
from orthocal.engines.partitioned.preparation import prepared
from orthocal.engines.partitioned.source import Source
from orthocal.engines.partitioned.verdict import judged
from orthocal.engines.protocol import PartitionedTable
from orthocal.nuisances.learners import Recipe
from orthocal.roles import Roles

PART = 10**6
LIMIT = 2 * 10**9
ROLES = Roles(
    outcome="y",
    treatment="a",
    prediction="tau",
    nuisances={name: name for name in ("propensity", "outcome_control", "outcome_treated")},
)
WORK: dict[str, tuple[str, bool, float]] = {
    "linear": ("linear", False, 3),
    "histogram": ("histogram", False, 3),
    "isotonic, grid": ("isotonic", False, 3),
    "isotonic, exact": ("isotonic", True, 12),
    "verdict": ("", False, 3),
    "verdict, exact": ("", True, 12),
}
"""What is done: a map is fitted by a method, or predictions are judged, exactly or not; and the ratio it may take at most."""
TIMES, MOST_TIMES = 3, 9
"""How often everything is done with 10^8 rows, and at most with fewer: short times vary more. Seconds are the medians."""
LOCAL_SHARE = 0.6
"""Of the seconds on Dask, that local files may take."""
SIZES = (10**6, 10**7, 3 * 10**7, 10**8)
LINEAR = 0.15
"""Within which 3 * 10^7 rows take the time that lies on the line through those of 10^7 and 10^8, beside reading them."""


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


def held(process: psutil.Process) -> int:
    """Return the bytes a process holds; none where it was ended, for holding too many."""
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


class Watch:
    """The most memory that any worker held while something was done."""

    def __init__(self, workers: list[psutil.Process]) -> None:
        self.processes, self.most, self.done = workers, 0, threading.Event()
        self.thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        while not self.done.wait(0.05):
            self.most = max([self.most, *map(held, self.processes)])

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *ended) -> None:
        self.done.set()
        self.thread.join()


def summed(part: Any) -> np.ndarray:
    """Sums of the columns."""
    return np.array([part[name].to_numpy().sum() for name in part.columns], dtype=float)


def source_of(table: PartitionedTable) -> Source:
    """The rows with their loss; nothing is learnt."""
    return prepared(table, ROLES, CATE(), 5, Recipe(random_state=0))


def done(table: PartitionedTable, method: str, exact: bool) -> None:
    """Fit a map, or judge."""
    if method:
        fitted(method, source_of(table), exact=exact)
    else:
        judged(source_of(table), Settings(random_state=0), exact=exact)


def turns(n: int) -> int:
    """Return how often everything is done with so many rows."""
    return int(np.clip(TIMES * 10**8 // n, TIMES, MOST_TIMES))


def measure(
    table: PartitionedTable, processes: list[psutil.Process], only: list[str], times: int
) -> dict[str, tuple[float, int]]:
    """Return (seconds, most memory of a process) of reading and summing, of every method, and of the verdicts.

    All is done in turn, so many times, and reading comes before and after each of the others: between two of them the machine may
    differ, and memory that it hands out for the first time takes it longer. Medians count.
    """
    needed = table.select(ROLES.needed)

    def timed(name: str, do: Any) -> tuple[float, int]:
        with Watch(processes) as watch:
            start = time.perf_counter()
            do()
            seconds = time.perf_counter() - start
        print(f"  {name}: {seconds:.2f} s, {watch.most / 1e9:.2f} GB", flush=True)
        return seconds, watch.most

    def read() -> tuple[float, int]:
        return timed(READ, lambda: reduced(needed, summed, np.add))

    read()
    done(table, "linear", False)  # processes import what they need
    found: dict[str, list[tuple[float, int]]] = {READ: [read()]}
    for name, (method, exact, _) in times * list(WORK.items()):
        if not only or name in only:
            found.setdefault(name, []).append(
                timed(name, lambda method=method, exact=exact: done(table, method, exact))
            )
            found[READ].append(read())
    return {
        name: (float(np.median([seconds for seconds, _ in times])), max(memory for _, memory in times))
        for name, times in found.items()
    }


def on_dask(pattern: str, only: list[str], times: int) -> dict[str, tuple[float, int]]:
    """Two workers of 2 GB each."""
    with LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=LIMIT) as cluster, Client(cluster) as client:
        processes = [psutil.Process(pid) for pid in client.run(os.getpid).values()]
        return measure(DaskTable(dd.read_parquet(pattern)), processes, only, times)


def in_files(pattern: str, only: list[str], times: int) -> dict[str, tuple[float, int]]:
    """This process."""
    return measure(LocalTable.of_files(pattern), [psutil.Process()], only, times)


ENGINES = {"dask": (on_dask, LIMIT), "local": (in_files, 2 * LIMIT)}
"""How to measure, and the bytes that a process may hold."""
READ = "read and sum"
HEADER = [
    "# Scale",
    "",
    "Written by `benchmarks/scale.py` on one machine of two cores: Parquet of a million rows a file, six columns. On Dask two",
    "workers of 2 GB each, on local files one process. Ratios are to what the same engine needs to read and sum the same",
    "columns, whose files lie in the page cache: on local files nothing is copied, so that the floor is 40 to 120 million rows",
    "a second, by machine, and a ratio is more of a demand there than on Dask, though seconds are fewer. Memory is the most that",
    "a process held.",
    "Where a grid is drawn or quantiles are bracketed, eight partitions are looked at first: at 10^7 rows, in ten of them, that",
    f"is nearly another pass. Seconds are medians of {TIMES} turns, and of up to {MOST_TIMES} where rows are fewer.",
    "",
    "| engine | rows | work | seconds | ratio | at most | million rows per second | memory, GB |",
    "| --- | --- | --- | --- | --- | --- | --- | --- |",
]


def extrapolated(found: dict[tuple[str, int], dict[str, tuple[float, int]]]) -> list[str]:
    """Say how long 10^9 local rows would take, on the line through 10^7 and 10^8, and how near to it those of 3 * 10^7 were."""
    lines = [
        "",
        "Time grows on a line: what does not depend on the rows, mostly a look at eight partitions, is paid once. On local",
        "files, the line through 10^7 and 10^8 rows. Between sizes the machine may differ, and reading with it; so 3 * 10^7 rows",
        "over the line are shown beside reading's, too:",
        "",
        "| local | seconds once | seconds for 10^8 more | 3 * 10^7 rows over the line | beside reading | 10^9 rows, minutes |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    reading = line_of(found, READ)[2]
    for name in found["local", 10**8]:
        once, more, over = line_of(found, name)
        minutes = (once + 10 * more) / 60
        lines.append(f"| {name} | {once:.2f} | {more:.1f} | {over:.2f} | {over / reading:.2f} | {minutes:.1f} |")
    return lines


def line_of(found: dict[tuple[str, int], dict[str, tuple[float, int]]], name: str) -> tuple[float, float, float]:
    """Return what local work takes once, what it takes for 10^8 rows, and how much longer 3 * 10^7 rows took than that gives."""
    small, middle, large = (found["local", n][name][0] for n in SIZES[1:])
    more = (large - small) / 0.9
    once = small - 0.1 * more
    return once, more, middle / (once + 0.3 * more)


def missed_by(found: dict[tuple[str, int], dict[str, tuple[float, int]]]) -> list[str]:
    """What took longer, or held more, than it may at 10^8 rows."""
    missed = []
    for (engine, n), times in found.items():
        for name, (seconds, memory) in times.items():
            most = WORK[name][2] if name in WORK else np.inf
            if n == 10**8 and (memory > ENGINES[engine][1] or seconds / times[READ][0] > most):
                missed.append(f"{name} on {engine}")
    if ("local", 10**8) in found and ("dask", 10**8) in found:
        for name, (seconds, _) in found["local", 10**8].items():
            if seconds > LOCAL_SHARE * found["dask", 10**8].get(name, (np.inf, 0))[0]:
                missed.append(f"{name}, local against dask")
    if {("local", n) for n in SIZES[1:]} <= set(found):
        reading = line_of(found, READ)[2]
        lines = {name: line_of(found, name)[2] / reading for name in found["local", 10**8]}
        missed += [f"{name}, not on a line" for name, over in lines.items() if abs(over - 1) > LINEAR]
    return missed


def main() -> None:
    """Measure at growing sizes and write the table."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--most", type=int, default=10**8)
    asked.add_argument("--least", type=int, default=10**6)
    asked.add_argument("--folder", type=Path, help="keep the data here")
    asked.add_argument("--engine", choices=ENGINES, action="append")
    asked.add_argument("--only", action="append", default=[], choices=WORK)
    asked.add_argument("--print", action="store_true", help="print the table, and leave scale.md as it is")
    options = asked.parse_args()
    sizes = [n for n in SIZES if options.least <= n <= options.most]
    found = {}
    with tempfile.TemporaryDirectory() as temporary:
        for n in sizes:
            pattern = generate((options.folder or Path(temporary)) / str(n), n)
            for engine in options.engine or ENGINES:
                print(f"{n:,} rows, {engine}", flush=True)
                found[engine, n] = ENGINES[engine][0](pattern, options.only, turns(n))
    lines = list(HEADER)
    for (engine, n), times in found.items():
        for name, (seconds, memory) in times.items():
            most, ratio = str(WORK[name][2]) if name in WORK else "", seconds / times[READ][0]
            rate, held = n / seconds / 1e6, memory / 1e9
            lines.append(
                f"| {engine} | {n:,} | {name} | {seconds:.1f} | {ratio:.2f} | {most} | {rate:.2f} | {held:.2f} |"
            )
    if {("local", n) for n in SIZES[1:]} <= set(found):
        lines += extrapolated(found)
    print("\n".join(lines))
    if not options.print:
        Path(__file__).with_name("scale.md").write_text("\n".join(lines) + "\n")
    missed = missed_by(found)
    if missed:
        raise SystemExit(f"missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
