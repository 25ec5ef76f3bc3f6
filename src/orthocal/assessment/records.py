"""The frozen records of a verdict."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from orthocal.arrays import Floats
    from orthocal.losses import Origin, Overlap


@dataclass(frozen=True)
class TestResult:
    """One test of perfect calibration.

    Parameters
    ----------
    statistic, p_value : float or None
        None where the test does not apply.
    note : str
        What was tested, or why nothing could be.
    """

    __test__ = False  # pytest collects classes by this name

    statistic: float | None
    p_value: float | None
    note: str


@dataclass(frozen=True)
class Coefficient:
    """An estimate with its standard error and interval."""

    value: float
    standard_error: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class LinearPredictor:
    """Best linear predictor of the effect given the prediction: intercept 0 and slope 1 when calibrated."""

    intercept: Coefficient
    slope: Coefficient


@dataclass(frozen=True)
class Rate:
    """Rank-weighted average effects: 0 when the ranking is no better than chance. A monotone map leaves them as they are."""

    autoc: Coefficient
    qini: Coefficient


@dataclass(frozen=True)
class Decomposition:
    """Mean loss = miscalibration - discrimination + uncertainty, by isotonic recalibration out of fold."""

    miscalibration: float
    discrimination: float
    uncertainty: float | None


@dataclass(frozen=True, eq=False)
class Value:
    """What decisions by the prediction are worth at a cost.

    Parameters
    ----------
    cost : float
    value, standard_error, interval
        Mean gain per row, net of the cost, of treating those predicted above it.
    share_treated : float
    treating_everyone : float
        The same for treating everyone; treating no one is worth 0.
    curve : dict of str to array
        cost, by_prediction, everyone: the same over a grid of costs.
    """

    cost: float
    value: float
    standard_error: float
    interval: tuple[float, float]
    share_treated: float
    treating_everyone: float
    curve: dict[str, Floats]


@dataclass(frozen=True)
class Decision:
    """What a change of predictions changes at a cost: the share of rows decided otherwise, and the mean gain of that."""

    cost: float
    share_flipped: float
    gain: float
    standard_error: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class Group:
    """The verdict in one subgroup; numbers are None where it has too few rows."""

    column: str
    level: str
    rows: int
    error: float | None
    interval: tuple[float, float] | None
    excess: float | None
    excess_interval: tuple[float, float] | None
    p_value: float | None
    p_value_adjusted: float | None


@dataclass(frozen=True)
class Sensitivity:
    """Hidden bias (unobserved confounding, a failed exclusion) that would overturn the verdict.

    Parameters
    ----------
    bias : float
        Root mean square, over people, of the bias in estimated effects given the prediction.
    text : str
    """

    bias: float
    text: str


@dataclass(frozen=True, eq=False)
class Curve:
    """A nondecreasing reliability curve with a simultaneous band, valid where the truth does not decrease."""

    prediction: Floats
    target: Floats
    lower: Floats
    upper: Floats


@dataclass(frozen=True)
class Average:
    """Calibration in the large: the mean prediction beside the estimated average effect.

    Parameters
    ----------
    prediction, effect : float
        Means, weighted by mass.
    standard_error : float
        Of the average effect; of the mean score where the effect is searched for (quantiles, expectiles).
    interval : (float, float)
        Of the average effect, or of the quantile or expectile of all rows together.
    excess, excess_interval
        By how much the predictions are too high on average, in units of the residual. Narrower than the other interval
        suggests: what the prediction explains of the effect cancels.
    """

    prediction: float
    effect: float
    standard_error: float
    interval: tuple[float, float]
    excess: float
    excess_interval: tuple[float, float]


@dataclass(frozen=True)
class Distance:
    """A distance of the binned reliability curve from the diagonal, other than the root mean square.

    Parameters
    ----------
    value : float
    null : float or None
        What a perfectly calibrated prediction would show on average (L1).
    band : float or None
        Critical value of the simultaneous band, in standard errors (Linf).
    """

    value: float
    null: float | None = None
    band: float | None = None

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True, eq=False)
class Assessment:
    """Whether a prediction can be believed under a loss.

    The estimand is the **binned** calibration error: the root mean square, over bins of the prediction, of the difference
    between mean effect and mean prediction. It is a lower bound of the error over all level sets.

    Parameters
    ----------
    error : float
        ``sqrt(max(error_squared, 0))``.
    error_squared, standard_error : float
        Debiased squared error, which may be negative, and its standard error.
    interval : (float, float)
        Confidence interval of the error (not of its square).
    l1, linf : Distance
    bins : dict of str to array
        Columns n, mass, lower, upper, prediction, target, residual, standard_error, one entry per bin.
    tests : dict of str to TestResult
    minimum_detectable_error : float
        An error of this size in every bin would have been seen with probability 0.8.
    average : Average
    risk : float
        Mean loss, up to a constant that does not depend on the prediction.
    decomposition : Decomposition
    linear_predictor : LinearPredictor or None
        None where the linear test does not apply.
    rate : Rate or None
        None for effects that cannot be averaged (quantiles, expectiles).
    value : Value or None
        When a cost was given.
    groups : tuple of Group
        When subgroups were named.
    sensitivity : Sensitivity
    curve : Curve or None
        Of quadratic losses.
    overlap : Overlap or None
    unit : str
    level : float
        Confidence level of the intervals.
    rows : int
    predictions : array
        At most a thousand quantiles of the predictions, for pictures.
    verdict : str
    origin : Origin or None
        How the loss was made.
    """

    error: float
    error_squared: float
    standard_error: float
    interval: tuple[float, float]
    l1: Distance
    linf: Distance
    bins: dict[str, Floats]
    tests: dict[str, TestResult]
    minimum_detectable_error: float
    average: Average
    risk: float
    decomposition: Decomposition
    linear_predictor: LinearPredictor | None
    rate: Rate | None
    value: Value | None
    groups: tuple[Group, ...]
    sensitivity: Sensitivity
    curve: Curve | None
    overlap: Overlap | None
    unit: str
    level: float
    rows: int
    predictions: Floats
    verdict: str
    origin: Origin | None = None

    def summary(self) -> str:
        """Return the verdict and the numbers behind it as text."""
        from orthocal.assessment.wording import summary

        return summary(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers, strings, lists and dicts, ready for JSON."""
        plain = _plain(self)
        del plain["predictions"]
        return dict(plain)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the reliability curve: mean effect against mean prediction, bin by bin."""
        from orthocal.plots import reliability

        return reliability(self, ax=ax)

    def _repr_html_(self) -> str:
        from orthocal.notebook import assessment_html

        return assessment_html(self)


@dataclass(frozen=True)
class Comparison:
    """Whether a change of predictions did good or harm.

    Parameters
    ----------
    risk_difference : float
        Mean loss after minus before: negative is better.
    standard_error : float
    interval : (float, float)
    p_value_harm : float
        One-sided, of the hypothesis that no harm was done; small means evidence of harm.
    verdict : {"improved", "no detectable change", "harmed"}
        From the two-sided interval.
    level : float
    decision : Decision or None
        When a cost was given.
    """

    risk_difference: float
    standard_error: float
    interval: tuple[float, float]
    p_value_harm: float
    verdict: str
    level: float
    decision: Decision | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers and strings, ready for JSON."""
        return dict(_plain(self))

    def _repr_html_(self) -> str:
        from orthocal.notebook import comparison_html

        return comparison_html(self)


def _plain(value: Any) -> Any:
    if hasattr(value, "to_dict") and not isinstance(value, Assessment | Comparison):
        return _plain(value.to_dict())
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list | np.ndarray):
        return [_plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value
