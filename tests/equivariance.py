"""Rows of every effect in any unit of the outcome, for the laws of scale and shift."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from orthocal import orthogonal_loss
from orthocal.calibration.schemes import fit_calibrator
from orthocal.calibrators import CALIBRATORS
from orthocal.datasets import simulate_cate, simulate_derivative, simulate_late, simulate_quantile, simulate_survival
from orthocal.effects import EFFECTS
from tests.effects_by_name import effect_by_name

NEAR = 1e-6
"""Share of the spread that a change of units may move an answer by."""
SIMULATIONS = {
    "cate": simulate_cate,
    "late": simulate_late,
    "derivative": simulate_derivative,
    "quantile": simulate_quantile,
    "overlap": simulate_cate,
    "catt": simulate_cate,
    "relative": simulate_cate,
    "cvar": simulate_quantile,
    "expectile": simulate_quantile,
    "survival": simulate_survival,
    "rmst": simulate_survival,
    "bound": simulate_cate,
}
ABOVE_ZERO = 6.0
"""Added to every outcome, for the relative effect is one of outcomes with a positive mean."""


class Rows(NamedTuple):
    """Rows in some unit: the outcome is `scale` times what it was, plus `shift`."""

    X: np.ndarray
    y: np.ndarray
    roles: dict
    prediction: np.ndarray
    equivariance: object
    scale: float
    shift: float

    def back(self, values):
        """Return predictions, or calibrated ones, in the first unit."""
        moved = (self.equivariance.moves or 0) * self.shift
        return (values - moved) / self.scale**self.equivariance.power


def rows_of(name, scale=1.0, deviations=0.0, n=300):
    """Return the rows of an effect with its outcome scaled and moved by so many standard deviations; curved predictions."""
    data = SIMULATIONS[name](n, random_state=0)
    rule, y = EFFECTS[name].equivariance, data.y + ABOVE_ZERO
    curved = 0.3 + 1.2 * data.effect + 0.1 * data.effect**2
    curved = curved if rule.moves == 0 else ABOVE_ZERO + curved if rule.moves else 1 + 0.1 * curved
    shift = 0.0 if rule.moves is None else deviations * scale * float(y.std())
    prediction = rule.of(curved, scale=scale, shift=shift)
    roles = {name: getattr(data, name, None) for name in ("treatment", "instrument", "event")}
    return Rows(data.X, scale * y + shift, roles, prediction, rule, scale, shift)


@lru_cache(maxsize=128)
def learnt(name, scale=1.0, deviations=0.0, weighted=False):
    """Return (rows, loss), the nuisances learnt by the default learners."""
    rows = rows_of(name, scale, deviations)
    weight = np.random.default_rng(1).uniform(0.5, 2, len(rows.y)) if weighted else None
    loss = orthogonal_loss(
        effect_by_name(name, scale * (ABOVE_ZERO + 1)),
        rows.X,
        rows.y,
        **rows.roles,
        prediction=rows.prediction,
        sample_weight=weight,
        folds=2,
        random_state=0,
    )
    return rows, loss


@lru_cache(maxsize=128)
def calibrated(name, scale=1.0, deviations=0.0):
    """Return the calibrated predictions of every method, in the first unit."""
    rows, loss = learnt(name, scale, deviations)
    fitted = {method: fit_calibrator(method, rows.prediction, loss) for method in CALIBRATORS}
    return {method: rows.back(one.predict(rows.prediction)) for method, one in fitted.items()}


def distance(one, other):
    """Return the largest difference between two columns, in standard deviations of the first, or its size if it is constant."""
    spread = np.std(one) if np.ptp(one) > 1e-9 * np.abs(one).max() else np.abs(one).max()
    return float(np.abs(np.asarray(one) - other).max() / spread)


def figures(record, path=""):
    """Yield every number of a record made of dicts, lists and arrays, with the way to it."""
    if isinstance(record, dict):
        for name, value in record.items():
            yield from figures(value, f"{path}.{name}")
    elif isinstance(record, list | tuple | np.ndarray):
        for place, value in enumerate(record):
            yield from figures(value, f"{path}[{place}]")
    elif isinstance(record, int | float) and not isinstance(record, bool):
        yield path, float(record)
