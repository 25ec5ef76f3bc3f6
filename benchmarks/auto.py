"""What the automatic choice of a method costs when the model was right all along, and what it chooses.

A perfectly calibrated prediction, known nuisances, a fair coin as treatment. Excess: root mean square distance of the calibrated
from the true effect, as a share of the effect's deviation; leaving the model alone has excess 0. Writes auto.md.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from orthocal import Auto, Isotonic, Linear, orthogonal_loss
from orthocal.datasets import simulate_cate

DESIGNS = [(500, 0.83), (2000, 0.83), (2000, 2.5), (8000, 0.83)]
DRAWS = 100


def measure(n: int, noise: float) -> tuple[Counter[str], dict[str, float]]:
    """Return how often each method was chosen, and the mean excess of the choice, of isotonic and of linear."""
    large = simulate_cate(20_000, confounding=0, random_state=10**6)
    choices: Counter[str] = Counter()
    excess: dict[str, list[float]] = {"auto": [], "linear": [], "isotonic": []}
    for seed in range(DRAWS):
        data = simulate_cate(n, noise=noise, confounding=0, random_state=seed)
        loss = orthogonal_loss("cate", data.X, data.y, treatment=data.treatment, nuisances=data.nuisances)
        for name, calibrator in {"auto": Auto(), "linear": Linear(), "isotonic": Isotonic()}.items():
            fitted = calibrator.fit(data.effect, loss)
            gap = fitted.predict(large.effect) - large.effect
            excess[name].append(float(np.sqrt(np.mean(gap**2)) / large.effect.std()))
            choices.update([fitted.choice_] if name == "auto" else [])
    return choices, {name: float(np.mean(values)) for name, values in excess.items()}


def main() -> None:
    """Print the table and keep it."""
    lines = ["| rows | noise | chosen | excess of auto | of linear | of isotonic |", "|---" * 6 + "|"]
    for n, noise in DESIGNS:
        choices, excess = measure(n, noise)
        chosen = ", ".join(f"{name} {count / DRAWS:.1%}" for name, count in choices.most_common())
        numbers = " | ".join(f"{excess[name]:.3f}" for name in ("auto", "linear", "isotonic"))
        lines.append(f"| {n} | {noise} | {chosen} | {numbers} |")
    text = f"{__doc__}\n" + "\n".join(lines) + "\n"
    Path(__file__).with_name("auto.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
