"""What a verdict is made of: one small frozen record for each thing that is estimated."""

from __future__ import annotations

from dataclasses import dataclass

from orthocal.arrays import Floats
from orthocal.errors import warn_of_old_name


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
    """Mean loss = miscalibration - discrimination + uncertainty, by isotonic recalibration out of fold.

    Of a quadratic loss whose masses are all positive, mean loss and uncertainty are half mean squared distances; where a mass can
    be 0 or negative (effect on the treated, on compliers), both are up to the same constant, and can be negative. None where half
    of the rows of a ratio effect have no mass to recalibrate by.
    """

    miscalibration: float | None
    discrimination: float | None
    uncertainty: float | None


@dataclass(frozen=True, eq=False, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class Group:
    """The verdict in one subgroup; numbers are None where it has too few rows, sizes where a ratio effect has too little mass."""

    column: str
    value: str
    rows: int
    error: float | None = None
    interval: tuple[float, float] | None = None
    excess: float | None = None
    excess_interval: tuple[float, float] | None = None
    p_value: float | None = None
    p_value_adjusted: float | None = None

    @property
    def level(self) -> str:
        """The old name of `value`."""
        warn_of_old_name("Group.level", "Group.value")
        return self.value


@dataclass(frozen=True)
class Check:
    """One named question about data, model or map.

    Parameters
    ----------
    name : str
    result : {"passed", "warning", "failed"}
    figure : str
        The number it rests on.
    sentence : str
        What was found.
    advice : str
        What to do; nothing where it passed.

    Examples
    --------
    >>> print(Check("few clusters", "warning", "12", "The rows come from 12 clusters.", "Read intervals with care."))
    warning: few clusters (12). The rows come from 12 clusters. Read intervals with care.
    """

    name: str
    result: str
    figure: str = ""
    sentence: str = ""
    advice: str = ""

    def __str__(self) -> str:
        figure = f" ({self.figure})" if self.figure else ""
        return " ".join(filter(None, [f"{self.result}: {self.name}{figure}.", self.sentence, self.advice]))


@dataclass(frozen=True, kw_only=True)
class Robustness:
    """How strong unmeasured confounding (or a failed exclusion) would have to be to overturn the verdict.

    Parameters
    ----------
    text : str
    bias : float or None
        Root mean square, over people, of the bias in estimated effects given the prediction; None where treatment was assigned
        with known probabilities, so that there is none.
    error, average : float or None
        Robustness values: the share, of the outcome's variance that is left and of the variance of the treatment weights alike,
        that an unmeasured confounder must explain for the interval of the error, or of the average effect, to reach 0. None where
        it does already, and for effects other than the CATE.
    """

    text: str
    bias: float | None = None
    error: float | None = None
    average: float | None = None


@dataclass(frozen=True, eq=False)
class Curve:
    """A nondecreasing reliability curve with a simultaneous band, valid where the truth does not decrease."""

    prediction: Floats
    target: Floats
    lower: Floats
    upper: Floats


@dataclass(frozen=True, kw_only=True)
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
