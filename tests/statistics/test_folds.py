"""What folds must not do to verdicts, where rows are of few kinds."""

import numpy as np
import pytest

from orthocal.folds import HOLDOUT, split_rows
from orthocal.observations import observe

ROWS, CELLS, EFFECT = 400, 4, 0.2


def held_out(seed):
    """Fit the mean of each cell on 70% of the rows and judge it on the others; return (true, estimated) squared error.

    Four cells, two arms at even odds, a binary outcome whose mean the treatment raises by 0.2 in every cell; so there are
    sixteen kinds of rows. Pseudo-outcomes with both outcome regressions taken to be 0.5, which is wrong and does not matter.
    """
    rng = np.random.default_rng([seed, 1])
    cell, a = rng.integers(0, CELLS, ROWS), rng.integers(0, 2, ROWS)
    y = (rng.random(ROWS) < 0.3 + 0.05 * cell + EFFECT * a).astype(float)
    chi = (2 * a - 1) * (y - 0.5) / 0.5
    judged = split_rows(0.7, a, observe(cell[:, None], y, treatment=a), seed, HOLDOUT) == 1
    true = estimated = 0.0
    for c in range(CELLS):
        value = chi[(cell == c) & ~judged].mean()
        residual = chi[(cell == c) & judged] - value
        share = len(residual) / judged.sum()
        true += share * (EFFECT - value) ** 2
        estimated += share * (residual.mean() ** 2 - residual.var(ddof=1) / len(residual))
    return true, estimated


def gap(draws):
    found = np.array([held_out(seed) for seed in range(draws)])
    off = found[:, 1] - found[:, 0]
    print(
        f"squared error {found[:, 0].mean():.4f}, estimated on held-out rows {found[:, 1].mean():.4f} "
        f"(standard error of the difference {off.std() / np.sqrt(draws):.4f}, {draws} draws)"
    )
    return off.mean() / (off.std() / np.sqrt(draws))


def test_held_out_rows_do_not_mirror_the_fitted_ones():
    """Rows alike in key and outcome, dealt one after the other: estimated -.030 where the squared error is .010."""
    assert abs(gap(200)) < 4


@pytest.mark.slow
def test_held_out_rows_do_not_mirror_the_fitted_ones_in_many_draws():
    assert abs(gap(2000)) < 2.6
