"""The frozen records of a sensitivity analysis."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.arrays import Floats
from orthocal.assessment.loss_pair import Bounds
from orthocal.assessment.omitted_variable import ErrorPath, MeanPath, product_of
from orthocal.assessment.parts import Robustness
from orthocal.assessment.records import as_plain
from orthocal.errors import OrthocalError, require_one_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
"""Strengths of the table, the same for outcome and treatment."""


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """How strong a confounder a measured covariate would be, had it not been measured: all nuisances learnt again without it.

    Parameters
    ----------
    covariate : str
    outcome : float
        Share of the outcome's variance that is left without it and that it explains, :math:`C_Y^2`.
    treatment : float
        Share of the variance of the treatment weights that is lost without it, :math:`1 - R^2`.
    change : float
        Of the estimated average effect when it is left out.
    """

    covariate: str
    outcome: float
    treatment: float
    change: float


@dataclass(frozen=True, eq=False, kw_only=True)
class MarginalBounds:
    """Bounds if whatever was not measured changes nobody's odds of treatment by more than a factor.

    Parameters
    ----------
    strength : float
        The factor, Lambda.
    average, error : Bounds
        Of the average effect and of the calibration error.
    value : Bounds or None
        Of treating those predicted above the cost.
    bins : dict of str to array
        Mean prediction of each bin, and the smallest and largest mean effect it can have: prediction, lower, upper.
    """

    strength: float
    average: Bounds
    error: Bounds
    value: Bounds | None
    bins: dict[str, Floats]


@dataclass(frozen=True, eq=False, kw_only=True)
class Sensitivity:
    """What could be true of effects, calibration error and decisions if a confounder was not measured.

    Strength has two parts, both shares between 0 and 1. `outcome` is the share of the outcome's variance, as covariates and
    treatment leave it, that the confounder explains. `treatment` is the share of the variance of the treatment weights, which are
    1/propensity for the treated and minus 1/(1 - propensity) for others, that knowing it would add. For the error, strength is
    that within every bin of the prediction; for the value of a rule, among those it treats.

    Parameters
    ----------
    name : str
        Of the prediction.
    robustness : Robustness
        The strength, the same for both parts, at which conclusions change, and a sentence about it.
    benchmarks : tuple of Benchmark
        The strength of each measured covariate, the strongest first.
    marginal : tuple of MarginalBounds
        Bounds under the marginal sensitivity model, by strength.
    cost : float or None
        At which decisions are valued.
    level : float
        Of confidence.
    rows : int
    reason : str
        Why there is no analysis; empty where there is one.
    average, error, value
        Functions of the strength, behind `at`; not in `to_dict`.

    Examples
    --------
    >>> import pandas as pd
    >>> from orthocal import Study
    >>> from orthocal.datasets import simulate_cate
    >>> data = simulate_cate(n=1000, random_state=0)
    >>> table = pd.DataFrame(data.X, columns=list("abcde")).assign(y=data.y, got=data.treatment, tau=2 * data.effect)
    >>> study = Study(table, outcome="y", treatment="got", covariates=list("abcde"), learners="linear")
    >>> found = study.sensitivity("tau", benchmarks=["a"], strengths=[1.5])
    >>> bounds = found.at(outcome=0.1, treatment=0.1)["average"]
    >>> bool(bounds.lower < data.effect.mean() < bounds.upper)
    True
    """

    name: str
    robustness: Robustness
    level: float
    rows: int
    cost: float | None = None
    benchmarks: tuple[Benchmark, ...] = ()
    marginal: tuple[MarginalBounds, ...] = ()
    reason: str = ""
    average: MeanPath | None = field(default=None, repr=False)
    error: ErrorPath | None = field(default=None, repr=False)
    value: MeanPath | None = field(default=None, repr=False)

    def at(self, outcome: float, treatment: float) -> dict[str, Bounds]:
        """Return bounds of the average effect, the error and, at a cost, the value of deciding, at a strength.

        Parameters
        ----------
        outcome, treatment : float
            Shares from 0 to 1, that of treatment below 1; see the class.
        """
        if not 0 <= outcome <= 1:
            raise OrthocalError(f"`outcome` must be a share of variance, from 0 to 1; it is {outcome}.")
        if not 0 <= treatment < 1:
            raise OrthocalError(f"`treatment` must be a share of variance, from 0 to less than 1; it is {treatment}.")
        return self.at_product(float(product_of(outcome, treatment)))

    def at_product(self, product: float) -> dict[str, Bounds]:
        """Return the bounds at a product of both parts, on which alone they depend."""
        average, error = self._paths()
        found = {
            "average": Bounds(*average.bounds(product), average.interval(product)),
            "error": Bounds(*error.bounds(product), error.interval(product, self.level)),
        }
        if self.value is not None:
            found["value"] = Bounds(*self.value.bounds(product), self.value.interval(product))
        return found

    def product_to_zero(self, of: str) -> float:
        """Return the product at which the interval of the average, error or value reaches 0; 0 where it does already."""
        if of == "error":
            return self._paths()[1].product_to_zero(self.level)
        path = self._paths()[0] if of == "average" else self.value
        return 0.0 if path is None else path.product_to_zero

    def _paths(self) -> tuple[MeanPath, ErrorPath]:
        if self.average is None or self.error is None:
            raise OrthocalError(f"There must be a sensitivity analysis to look at; there is none. {self.reason}")
        return self.average, self.error

    def __str__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """Return the robustness values, benchmarks and bounds as text."""
        from orthocal.reporting.sensitivities import sensitivity_summary

        return sensitivity_summary(self)

    def table(self) -> dict[str, Floats]:
        """Return intervals at several strengths, the same for outcome and treatment: columns, ready for any data frame."""
        rows = [self.at(share, share) for share in SHARES]
        columns = {"strength": np.array(SHARES)}
        for name in rows[0]:
            for place, end in enumerate(("lower", "upper")):
                columns[f"{name}_{end}"] = np.array([row[name].interval[place] for row in rows])
        return columns

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the functions as plain numbers, strings, lists and dicts, ready for JSON."""
        from orthocal.reporting.sensitivities import sensitivity_figures

        plain = as_plain({one.name: getattr(self, one.name) for one in fields(self) if one.repr})
        table = {} if self.reason else {"table": as_plain(self.table())}
        return {**plain, **table, "figures": [line._asdict() for line in sensitivity_figures(self)]}

    def plot(self, ax: Axes | None = None, *, of: str = "average") -> Axes:
        """Draw lines of equal conclusions over both parts of the strength, with the benchmarks as points.

        Parameters
        ----------
        ax : matplotlib axes, optional
        of : "average", "error" or "value"
        """
        from orthocal.sensitivity.pictures import strength_contours

        known = {"average": self._paths()[0], "error": self.error, "value": self.value}
        require_one_of(of, [name for name, path in known.items() if path is not None], "of")
        return strength_contours(self, of, ax=ax)

    def _repr_html_(self) -> str:
        from orthocal.reporting.notebook import sensitivity_html

        return sensitivity_html(self)
