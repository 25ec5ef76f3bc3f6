"""Simulated trials of several arms, whose truth is returned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from orthocal.arrays import Floats, Labels
from orthocal.folds import generator

MAILING_ARMS = ("none", "mens", "womens")
MAILING_COVARIATES = ("recency", "history", "mens", "womens", "newbie")


@dataclass(frozen=True, eq=False)
class SimulatedArms:
    """A simulated trial of several arms with its truth.

    Parameters
    ----------
    X : array of shape (rows, columns)
    y : array of shape (rows,)
    treatment : array of shape (rows,)
    arms : tuple
        The control first.
    means : array of shape (rows, arms)
        Mean outcome of each row under each arm.
    nuisances : dict of str to array
        True ones, by the names that `Study` and `ArmMeans` give them.
    covariates : tuple of str
    spend : array of shape (rows,), optional
        Another outcome.
    """

    X: Floats
    y: Floats
    treatment: Labels
    arms: tuple[Any, ...]
    means: Floats
    nuisances: dict[str, Floats]
    covariates: tuple[str, ...] = ()
    spend: Floats | None = None

    @property
    def effect(self) -> Floats:
        """The effect of each arm against the control, one column an arm."""
        return np.asarray(self.means[:, 1:] - self.means[:, :1])


def simulate_arms(
    n: int, *, arms: int = 3, noise: float = 1.0, confounding: float = 0.0, random_state: Any = None
) -> SimulatedArms:
    r"""Draw a trial of several arms, 0 the control, with normal covariates and outcome.

    **Truth.** Arm k has the effect :math:`0.3 + 0.5 \sin(k)\, x_k + 0.4 x_0`, k = 1, 2, ..., over a control mean of
    :math:`x_1 + x_0^2/2`; the chance of arm k is proportional to :math:`e^{c\,k\,x_0/2}`, with c the confounding: equal without.

    Parameters
    ----------
    n : int
    arms : int, default 3
        With the control.
    noise, confounding : float
    random_state : int, Generator or None

    Examples
    --------
    >>> data = simulate_arms(1000, random_state=0)
    >>> data.effect.shape, sorted(data.nuisances)[:2]
    ((1000, 2), ['outcome_0', 'outcome_1'])
    """
    rng, labels = generator(random_state), np.arange(arms)
    X = rng.standard_normal((n, arms + 2))
    control = X[:, 1] + X[:, 0] ** 2 / 2
    effects = [0.3 + 0.5 * np.sin(k) * X[:, k] + 0.4 * X[:, 0] for k in labels[1:]]
    means = control[:, None] + np.column_stack([np.zeros(n), *effects])
    pull = np.exp(confounding * X[:, :1] * labels / 2)
    chances = pull / pull.sum(axis=1, keepdims=True)
    treatment = _drawn(chances, rng)
    y = means[np.arange(n), treatment] + noise * rng.standard_normal(n)
    return SimulatedArms(X, y, treatment, tuple(labels.tolist()), means, _nuisances(labels.tolist(), chances, means))


def simulate_mailing(n: int, *, random_state: Any = None) -> SimulatedArms:
    r"""Draw a mailing like Hillstrom's: three equal arms ("none", "mens", "womens"), visits (0 or 1) and a skewed spend.

    **Truth.** The log-odds of a visit without mail are :math:`-2.4 + 0.3\,(\text{history} - 0.8) - 0.08\,\text{recency} +
    0.4\,\text{newbie}`; the men's mail adds :math:`0.55 + 0.35\,\text{mens} - 0.05\,\text{recency}`, the women's
    :math:`0.15 + 0.75\,\text{womens} - 0.05\,\text{recency}`. Of those who visit, about one in ten spends, a lognormal amount
    around 80.

    Examples
    --------
    >>> data = simulate_mailing(1000, random_state=0)
    >>> data.arms, sorted(set(data.y.tolist()))
    (('none', 'mens', 'womens'), [0.0, 1.0])
    """
    rng = generator(random_state)
    recency, history = rng.integers(1, 13, n).astype(float), rng.lognormal(-0.5, 0.8, n)
    kind = rng.random(n)
    mens, womens, newbie = kind < 0.55, kind > 0.45, rng.random(n) < 0.5
    plain = -2.4 + 0.3 * (history - 0.8) - 0.08 * recency + 0.4 * newbie
    added = [np.zeros(n), 0.55 + 0.35 * mens - 0.05 * recency, 0.15 + 0.75 * womens - 0.05 * recency]
    means = np.asarray(expit(np.column_stack([plain + one for one in added])))
    chances = np.full((n, 3), 1 / 3)
    code = _drawn(chances, rng)
    visit = (rng.random(n) < means[np.arange(n), code]).astype(float)
    spend = visit * (rng.random(n) < 0.1) * rng.lognormal(4.2, 0.7, n)
    X = np.column_stack([recency, history, mens, womens, newbie]).astype(float)
    return SimulatedArms(
        X,
        visit,
        np.array(MAILING_ARMS)[code],
        MAILING_ARMS,
        means,
        _nuisances(MAILING_ARMS, chances, means),
        MAILING_COVARIATES,
        spend,
    )


def _drawn(chances: Floats, rng: np.random.Generator) -> Any:
    """Return an arm for each row, by its chances."""
    return (rng.random((len(chances), 1)) > np.cumsum(chances, axis=1)[:, :-1]).sum(axis=1)


def _nuisances(arms: Any, chances: Floats, means: Floats) -> dict[str, Floats]:
    named = {f"propensity_{arm}": chances[:, k] for k, arm in enumerate(arms)}
    return named | {f"outcome_{arm}": means[:, k] for k, arm in enumerate(arms)}
