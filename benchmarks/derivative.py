"""The correction of the causal derivative: true calibration error after linear and isotonic calibration, and time.

Designs: a normal treatment (simulate_derivative), and the same with skewed noise in the treatment, for which the Gaussian
correction is wrong. Prediction distorted to 1 + 2 effect, default learners, 3,000 rows. Writes derivative.md.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from orthocal import CausalDerivative, Isotonic, Linear, orthogonal_loss
from orthocal.datasets import SimulatedData, simulate_derivative

SEEDS, ROWS = 6, 3000


def skewed(n: int, random_state: int) -> SimulatedData:
    """Treatment x1 / 2 + gamma noise (shape 4, centred); outcome a (x1 / 2 + sin x2) + x1; effect x1 / 2 + sin x2."""
    rng = np.random.default_rng(random_state)
    X = rng.standard_normal((n, 4))
    treatment = X[:, 0] / 2 + rng.gamma(4.0, 0.4, n) - 1.6
    effect = X[:, 0] / 2 + np.sin(X[:, 1])
    return SimulatedData(X, X[:, 0] + treatment * effect + rng.standard_normal(n), treatment, effect, {})


DESIGNS = {"normal": lambda n, s: simulate_derivative(n, random_state=s), "skewed": skewed}


def main() -> None:
    """Print the table and keep it."""
    lines = ["| design | correction | step / sd | linear | isotonic | time |", "|---" * 6 + "|"]
    for design, simulate in DESIGNS.items():
        large = simulate(50_000, 10**6)
        base = None
        for correction in ("gaussian", "shift", "riesz"):
            for step in (0.25, 0.5):
                errors, start = [], time.process_time()
                for seed in range(SEEDS):
                    data = simulate(ROWS, seed)
                    effect = CausalDerivative(correction, step=step * float(data.treatment.std()))
                    loss = orthogonal_loss(effect, data.X, data.y, treatment=data.treatment, random_state=seed)
                    fitted = [c.fit(1 + 2 * data.effect, loss) for c in (Linear(), Isotonic())]
                    gaps = [f.predict(1 + 2 * large.effect) - large.effect for f in fitted]
                    errors.append([np.sqrt(np.mean(gap**2)) for gap in gaps])
                seconds = time.process_time() - start
                base = base or seconds
                linear, isotonic = np.mean(errors, axis=0)
                lines.append(
                    f"| {design} | {correction} | {step} | {linear:.3f} | {isotonic:.3f} | {seconds / base:.2f} |"
                )
    text = f"{__doc__}\n" + "\n".join(lines) + "\n"
    Path(__file__).with_name("derivative.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
