"""Rules within a budget against the sort that must be done anyway; `python benchmarks/decisions.py` prints the ratios."""

from __future__ import annotations

from functools import cache

import numpy as np

from orthocal.decisions.allocation import steps_of
from orthocal.decisions.budget import ladder_of, walked
from orthocal.decisions.people import People, people_of
from orthocal.losses.arm_scores import ArmScores
from timing import interleaved

ROWS, ARMS, DRAWS = 10**6, 5, 200


@cache
def people() -> People:
    """Return 10^6 people with five arms whose costs differ from person to person."""
    rng = np.random.default_rng(0)
    prediction, cost = rng.standard_normal((ROWS, ARMS)), rng.exponential(size=(ROWS, ARMS))
    values = np.column_stack([np.zeros(ROWS), prediction]) + rng.standard_normal((ROWS, ARMS + 1))
    scores = ArmScores(arms=tuple(range(ARMS + 1)), values=values, weight=np.ones(ROWS))
    return people_of(scores, {"tau": prediction}, {k + 1: cost[:, k] for k in range(ARMS)})


def curve() -> np.ndarray:
    """Find the hulls, sort their steps and walk the curve over 101 budgets."""
    rows = people()
    ladder = ladder_of(steps_of(rows.predictions["tau"], rows.cost), rows)
    return ladder.at(rows.weight, ROWS, np.linspace(0, 0.5, 101))


def curve_over_argsort() -> float:
    """Curve over budgets against argsort of all ratios of gain to cost."""
    ratios = (people().predictions["tau"] / people().cost).ravel()
    return interleaved(curve, lambda: np.argsort(ratios), repeats=5)


def draws_over_curve() -> float:
    """Standard errors by multiplier draws, hulls and sort included, against the curve itself."""
    rows = people()

    def drawn() -> object:
        return walked(rows, {"tau": steps_of(rows.predictions["tau"], rows.cost)}, 0.2, DRAWS, 0)

    return interleaved(drawn, curve, repeats=1)


BENCHMARKS = {
    "curve over budgets, 10^6 rows x 5 arms / argsort of the 5 x 10^6 ratios": (curve_over_argsort, 3.0),
    "200 multiplier draws of it / the curve": (draws_over_curve, 60.0),
}

if __name__ == "__main__":
    for name, (work, most) in BENCHMARKS.items():
        print(f"{name}: {work():.2f} (at most {most:g})")
