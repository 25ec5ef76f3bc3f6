"""What the automatic choice costs against the best single method in hindsight, on populations whose truth is known.

Ratio: mean over 100 draws of the squared distance of calibrated predictions from the true mean effect given the prediction, for
`auto` and for the single method with the least such mean; .004 of the effect's variance is added to both. "m" marks predictions
that are wrong by 1 to 3 standard errors. Designs: tests/auto_designs.py. Writes auto.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.auto_designs import SIZES, Outcome, compared, costs, error, geometric_mean  # noqa: E402

from orthocal import Auto  # noqa: E402

DRAWS = 100


def above(found: list[Outcome]) -> list[Outcome]:
    """Return those whose ratio is larger than it should be."""
    return [one for one in found if one.ratio > one.bound]


def shown(one: Outcome) -> str:
    """Say which it is, its ratio and how well that is known."""
    low, high = one.interval
    return f"{one.design}, {one.n} rows: {one.ratio:.2f} (99% interval {low:.2f} to {high:.2f})"


def main() -> None:
    """Print the table and keep it; what was tried stays as it is written."""
    found = compared(DRAWS)
    by_place = {(one.design, one.n): one for one in found}
    lines = ["| design | " + " | ".join(f"{n} rows" for n in SIZES) + " |", "|---" * (1 + len(SIZES)) + "|"]
    for name in dict.fromkeys(one.design for one in found):
        cells = [by_place[name, n] for n in SIZES]
        lines.append(
            f"| {name} | " + " | ".join(f"{c.ratio:.2f}{'m' if c.is_mild else ''} ({c.method})" for c in cells) + " |"
        )
    means = [geometric_mean([one for one in found if one.n == n]) for n in SIZES]
    lines.append("| geometric mean | " + " | ".join(f"{mean:.3f}" for mean in means) + " |")
    lines += ["", f"Geometric mean of all: {geometric_mean(found):.3f}.", ""]
    lines += [f"Above 1.35 (1.8 where marked): {'; '.join(map(shown, above(found))) or 'none'}.", ""]
    lines += ["A right model, 1,000 draws: cost in variances of the average (s2/n).", ""]
    lines += ["| rows | mean | 99th percentile |", "|---|---|---|"]
    for n in SIZES:
        cost = costs("perfect", n, 1000, {"auto": Auto()})["auto"] / error(n) ** 2
        lines.append(f"| {n} | {cost.mean():.3f} | {np.quantile(cost, 0.99):.2f} |")
    path = Path(__file__).with_name("auto.md")
    tried = path.read_text().partition("\n## What was tried\n")[2]
    text = f"{__doc__}\n" + "\n".join(lines) + "\n\n## What was tried\n" + tried
    path.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
