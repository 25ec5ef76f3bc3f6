"""Formulas of effects on censored times: what a row gained in each cell of time over what its curve said."""

from __future__ import annotations

import numpy as np

from orthocal.arrays import Floats
from orthocal.nuisances.time_grid import Histories, TimeGrid


def hazards_of(survival: Floats) -> Floats:
    """Return the chance of the event in each cell given none before; 0 where nobody is left."""
    before = np.column_stack([np.ones(len(survival)), survival[:, :-1]])
    alive = before > 0
    return np.where(alive, 1 - survival / np.where(alive, before, 1.0), 0.0)


def at_risk_and_event(cells: int, history: Histories) -> tuple[Floats, Floats]:
    r"""Return by cell :math:`1\{U \ge k\}` and :math:`1\{U = k, D = 1\}`."""
    cell = np.arange(cells)
    at_risk = cell < history.entered[:, None]
    event = (cell == history.entered[:, None] - 1) & history.died[:, None]
    return at_risk.astype(np.float64), event.astype(np.float64)


def survival_gains(grid: TimeGrid, survival: Floats, history: Histories, time: Floats) -> tuple[Floats, Floats]:
    r"""Return :math:`S(t)` and, by cell, :math:`-(1\{U = k, D = 1\} - 1\{U \ge k\}\lambda(k)) S(t)/S(k)` (mathematics 3.13)."""
    del time
    hazard = hazards_of(survival)
    at_risk, event = at_risk_and_event(len(grid), history)
    # S(t)/S(k) as the product of what is to come: nothing is divided by a chance that may be 0.
    to_come = np.cumprod(np.column_stack([np.ones(len(hazard)), 1 - hazard[:, :0:-1]]), axis=1)[:, ::-1]
    return survival[:, -1], (at_risk * hazard - event) * to_come


def restricted_mean_gains(grid: TimeGrid, survival: Floats, history: Histories, time: Floats) -> tuple[Floats, Floats]:
    r"""Return the area under the curve and, by cell, the time gained over what was expected (mathematics 3.13).

    With :math:`e_k` the time that somebody who enters cell k is expected to live in it, the hazard being constant inside, and
    :math:`r_k` the mean time that is left at its end, :math:`1\{U \ge k\}(\text{time lived in } k - e_k) -
    (1\{U = k, D = 1\} - 1\{U \ge k\}\lambda(k)) r_k`.
    """
    hazard = hazards_of(survival)
    at_risk, event = at_risk_and_event(len(grid), history)
    expected = grid.widths * mean_share_lived(hazard)
    left = np.zeros((len(hazard), len(grid) + 1))
    for k in range(len(grid) - 1, -1, -1):  # the mean time left at the start of cell k
        left[:, k] = expected[:, k] + (1 - hazard[:, k]) * left[:, k + 1]
    lived = np.where(event > 0, time[:, None] - grid.starts, grid.widths)
    return left[:, 0], at_risk * (lived - expected) + (at_risk * hazard - event) * left[:, 1:]


def mean_share_lived(hazard: Floats) -> Floats:
    r"""Share of a cell that is lived on average where the hazard is constant inside, :math:`\lambda / -\log(1 - \lambda)`."""
    inside = np.clip(hazard, 1e-12, 1 - 1e-12)
    return np.where(hazard < 1e-12, 1.0, inside / -np.log1p(-inside))
