"""Simulated times with censoring, whose truth is returned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit, gamma, gammainc

from orthocal.arrays import Booleans, Floats, Integers
from orthocal.errors import require_one_of
from orthocal.folds import generator

SHAPES: dict[str, tuple[float, float]] = {"proportional": (1.2, 1.2), "crossing": (0.8, 1.8)}
"""Weibull shapes of control and arm: hazards whose ratio is constant, or crosses 1."""


@dataclass(frozen=True, eq=False)
class SimulatedSurvival:
    """Simulated times with their truth.

    Parameters
    ----------
    X, y, event, treatment : array
        `y` is the time of the event or of censoring, `event` says which.
    effect : array of shape (rows,)
        On the chance of surviving `time`.
    mean_time_effect : array of shape (rows,)
        On the mean time without the event up to `time`.
    event_time : array of shape (rows,)
        The time of the event, whether it was seen or not.
    nuisances : dict of str to (array or callable)
        The true ones; the curves are functions of (X, time).
    """

    X: Floats
    y: Floats
    event: Booleans
    treatment: Integers
    effect: Floats
    mean_time_effect: Floats
    event_time: Floats
    nuisances: dict[str, Any]


def simulate_survival(
    n: int,
    *,
    time: float = 1.0,
    hazards: str = "proportional",
    censoring_rate: float = 0.35,
    randomised: bool = False,
    random_state: Any = None,
) -> SimulatedSurvival:
    r"""Simulate times to an event, censored depending on covariates and arm, with known effects.

    :math:`X \in R^4` standard normal; :math:`P(A=1 \mid X) = \sigma(x_1/2)`, or 1/2 when `randomised`;
    :math:`P(T(a) > t \mid X) = \exp(-t^{k_a} e^{\eta_a})` with :math:`\eta_0 = -0.2 + 0.4 x_1 + 0.3 x_3` and
    :math:`\eta_1 = \eta_0 - 0.4 + 0.6 x_2`, shapes :math:`k_0 = k_1 = 1.2` for ``hazards="proportional"``, 0.8 and 1.8 for
    ``"crossing"``; censoring exponential with rate `censoring_rate` times :math:`e^{0.3 x_1 - 0.3 a}`, or times 1 when
    `randomised`. A rate of 0.35 censors about 30% of rows, 1.25 about 60%, 0 none.

    **Effects**: :math:`P(T(1) > t \mid X) - P(T(0) > t \mid X)` and
    :math:`E[\min(T(1), t) - \min(T(0), t) \mid X]` at `time`.

    Examples
    --------
    >>> data = simulate_survival(1000, random_state=0)
    >>> data.y.shape, bool(data.event.all())
    ((1000,), False)
    """
    require_one_of(hazards, SHAPES, "hazards")
    rng, shapes = generator(random_state), SHAPES[hazards]
    X = rng.standard_normal((n, 4))
    slope = 0.0 if randomised else 1.0
    propensity = expit(slope * X[:, 0] / 2)
    treatment = (rng.random(n) < propensity).astype(np.int64)
    curves: list[Callable[..., Floats]] = [partial(_event_free, arm=a, shape=shapes[a]) for a in (0, 1)]
    shape = np.where(treatment == 1, shapes[1], shapes[0])
    event_time = (rng.exponential(size=n) / np.exp(_log_scale(X, treatment))) ** (1 / shape)
    with np.errstate(divide="ignore"):
        censored = rng.exponential(size=n) / (censoring_rate * np.exp(slope * _log_censoring(X, treatment)))
    times, mean_times = zip(*((curves[a](X, time), _mean_time(X, a, shapes[a], time)) for a in (0, 1)), strict=True)
    follow_up = [partial(_uncensored, arm=a, rate=censoring_rate, slope=slope) for a in (0, 1)]
    return SimulatedSurvival(
        X=X,
        y=np.minimum(event_time, censored),
        event=event_time <= censored,
        treatment=treatment,
        effect=times[1] - times[0],
        mean_time_effect=mean_times[1] - mean_times[0],
        event_time=event_time,
        nuisances={
            "propensity": propensity,
            **{f"event_survival_{name}": curves[a] for a, name in enumerate(("control", "treated"))},
            **{f"censoring_survival_{name}": follow_up[a] for a, name in enumerate(("control", "treated"))},
        },
    )


def _log_scale(X: Floats, arm: Any) -> Floats:
    return np.asarray(-0.2 + 0.4 * X[:, 0] + 0.3 * X[:, 2] + arm * (0.6 * X[:, 1] - 0.4))


def _log_censoring(X: Floats, arm: Any) -> Floats:
    return np.asarray(0.3 * X[:, 0] - 0.3 * arm)


def _event_free(X: Floats, time: Any, arm: int, shape: float) -> Floats:
    return np.asarray(np.exp(-(time**shape) * np.exp(_log_scale(X, arm))))


def _uncensored(X: Floats, time: Any, arm: int, rate: float, slope: float) -> Floats:
    return np.asarray(np.exp(-rate * time * np.exp(slope * _log_censoring(X, arm))))


def _mean_time(X: Floats, arm: int, shape: float, time: float) -> Floats:
    """Area under exp(-t^k s) up to a time, by the incomplete gamma function."""
    scale = np.exp(_log_scale(X, arm))
    return np.asarray(gamma(1 + 1 / shape) * gammainc(1 / shape, time**shape * scale) / scale ** (1 / shape))
