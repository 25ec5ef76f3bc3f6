"""The default of Isotonic(min_samples=): true calibration error and root mean squared error, truth known.

A perfectly calibrated prediction (the effect itself), known nuisances, a fair coin as treatment; errors as shares of the effect's
standard deviation, averaged over draws. Writes min_samples.md.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from orthocal import Isotonic, orthogonal_loss
from orthocal.datasets import simulate_cate

CANDIDATES = (1, 5, 10, 20, 30, 50, 100, 200)
DESIGNS = [(500, 0.83), (500, 2.5), (4000, 0.83), (4000, 2.5), (20000, 0.83)]
DRAWS = 60


def errors(calibrated: np.ndarray, effect: np.ndarray) -> tuple[float, float]:
    """Return (error over level sets, root mean squared error), both as shares of the effect's deviation."""
    level, index = np.unique(calibrated, return_inverse=True)
    mean = np.bincount(index, effect) / np.bincount(index)
    gaps = (mean - level)[index], calibrated - effect
    return tuple(float(np.sqrt(np.mean(gap**2)) / effect.std()) for gap in gaps)  # type: ignore[return-value]


def measure(n: int, noise: float) -> np.ndarray:
    """Return mean errors of every candidate, shape (candidates, 2)."""
    large = simulate_cate(100_000, confounding=0, random_state=10**6)
    total = np.zeros((len(CANDIDATES), 2))
    for seed in range(DRAWS):
        data = simulate_cate(n, noise=noise, confounding=0, random_state=seed)
        loss = orthogonal_loss("cate", data.X, data.y, treatment=data.treatment, nuisances=data.nuisances)
        for row, least in enumerate(CANDIDATES):
            total[row] += errors(Isotonic(least).fit(data.effect, loss).predict(large.effect), large.effect)
    return total / DRAWS


def main() -> None:
    """Print the table and keep it."""
    columns = [measure(n, noise) for n, noise in DESIGNS]
    lines = ["| min_samples | " + " | ".join(f"n={n}, noise={noise}" for n, noise in DESIGNS) + " |"]
    lines.append("|---" * (len(DESIGNS) + 1) + "|")
    for row, least in enumerate(CANDIDATES):
        cells = " | ".join(f"{column[row, 0]:.3f} / {column[row, 1]:.3f}" for column in columns)
        lines.append(f"| {least} | {cells} |")
    text = f"{__doc__}\n\nTrue calibration error / root mean squared error:\n\n" + "\n".join(lines) + "\n"
    Path(__file__).with_name("min_samples.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
