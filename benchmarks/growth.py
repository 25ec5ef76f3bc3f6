"""How time and memory grow with rows: fit and verdict at 10^4 to 10^7 rows. Writes growth.md and growth.svg."""

from __future__ import annotations

import gc
import time
import tracemalloc
from functools import cache
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from floors import scored_rows
from orthocal import Histogram, Isotonic, Linear, assess

SIZES = (10**4, 10**5, 10**6, 10**7)
WORK = {
    "linear": lambda p, loss: Linear().fit(p, loss),
    "histogram": lambda p, loss: Histogram().fit(p, loss),
    "isotonic": lambda p, loss: Isotonic().fit(p, loss),
    "assess": lambda p, loss: assess(p, loss, random_state=0),
}


@cache
def _order(n: int) -> np.ndarray:
    return np.random.default_rng(0).permutation(n)


FLOORS = {
    "numpy argsort": lambda p, _: np.argsort(p),
    "numpy gather": lambda p, loss: loss.numerator[_order(len(p))],
}
"""What sorting needs anyway: beyond the cache, these grow faster than n log n, too."""
DOUBLE = 8


def seconds(work, prediction, loss, repeats: int) -> float:
    """Return the least time of several runs."""
    best = np.inf
    for _ in range(repeats):
        gc.collect()
        start = time.perf_counter()
        work(prediction, loss)
        best = min(best, time.perf_counter() - start)
    return best


def peak(work, prediction, loss) -> float:
    """Return the most memory above the inputs, in arrays of n doubles."""
    gc.collect()
    tracemalloc.start()
    work(prediction, loss)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / (DOUBLE * len(prediction))


def main() -> None:
    """Measure, and write the table and the picture."""
    times = {name: [] for name in (*WORK, *FLOORS)}
    memory = {name: [] for name in WORK}
    for n in SIZES:
        prediction, loss = scored_rows(n)
        for name, work in WORK.items():
            times[name].append(seconds(work, prediction, loss, 3 if n > 10**6 else 7))
            memory[name].append(peak(work, prediction, loss))
        for name, work in FLOORS.items():
            times[name].append(seconds(work, prediction, loss, 3 if n > 10**6 else 7))
    factor = [n * np.log2(n) for n in SIZES]
    lines = [
        "# Growth",
        "",
        "Written by `benchmarks/growth.py`. Time per n log n, as a share of what it is at 10^6 rows: above 1 at 10^7 would be",
        "growth faster than n log n. Peak memory above the inputs, in arrays of n doubles. The last two rows are what sorting",
        "cannot do without: beyond the cache, they grow faster than n log n themselves.",
        "",
        "|  | "
        + " | ".join(f"time, n = {n:,}" for n in SIZES)
        + " | "
        + " | ".join(f"memory, n = {n:,}" for n in SIZES)
        + " |",
        "| --- " * (1 + 2 * len(SIZES)) + "|",
    ]
    for name, measured in times.items():
        unit = measured[2] / factor[2]
        ratios = [f"{t / f / unit:.2f}" for t, f in zip(measured, factor, strict=True)]
        held = [f"{m:.1f}" for m in memory[name]] if name in memory else [""] * len(SIZES)
        lines.append(f"| {name} | " + " | ".join(ratios + held) + " |")
    Path(__file__).with_name("growth.md").write_text("\n".join(lines) + "\n")
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for name in WORK:
        axes[0].loglog(SIZES, np.array(times[name]) / times[name][2], marker="o", label=name)
        axes[1].semilogx(SIZES, memory[name], marker="o", label=name)
    axes[0].loglog(SIZES, np.array(factor) / factor[2], color="grey", linestyle="--", label="n log n")
    axes[0].set(xlabel="rows", ylabel="time, 10^6 rows = 1")
    axes[1].set(xlabel="rows", ylabel="peak memory, arrays of n doubles")
    axes[0].legend(frameon=False)
    figure.savefig(Path(__file__).with_name("growth.svg"), metadata={"Date": None})
    print("\n".join(lines))


if __name__ == "__main__":
    main()
