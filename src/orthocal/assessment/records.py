"""The frozen records of a verdict, and of a comparison of two predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.arrays import Floats
from orthocal.assessment.limits import MOST_DRAWS, require_cost, require_tolerance
from orthocal.assessment.parts import (
    Average,
    Check,
    Curve,
    Decision,
    Decomposition,
    Distance,
    Group,
    LinearPredictor,
    Rate,
    Robustness,
    TestResult,
    Value,
)
from orthocal.errors import (
    require_inside,
    require_mapping,
    require_whole,
    warn_of_old_name,
)
from orthocal.folds import require_seed
from orthocal.losses import Origin, Overlap
from orthocal.losses.counting import MOST_BINS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a verdict; those of `assess`."""

    bins: int = 10
    level: float = 0.95
    tolerance: float | None = None
    cost: float | None = None
    by: Mapping[str, Any] = field(default_factory=dict)
    draws: int = 1000
    random_state: Any = None

    def __post_init__(self) -> None:
        require_whole(self.bins, 1, "bins", MOST_BINS)
        require_inside(self.level, 0, 1, "level")
        require_whole(self.draws, 1, "draws", MOST_DRAWS)
        require_mapping(self.by, "by", "labels of subgroups")
        require_seed(self.random_state)
        require_cost(self.cost)
        require_tolerance(self.tolerance)


@dataclass(frozen=True, eq=False, kw_only=True)
class Assessment:
    """Whether a prediction is calibrated, with all figures behind it.

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
        Columns n, mass, lower, upper, prediction, target, residual, standard_error, one entry per bin, and the intervals of the
        residual: residual_lower and residual_upper bin by bin, band_lower and band_upper for all bins at once. NaN (None in
        `to_dict`) where a ratio effect has a bin whose mass is not away from 0.
    tests : dict of str to TestResult
    minimum_detectable_error : float
        An error of this size in every bin would have been seen with probability 0.8.
    tolerance : float
        The error that would matter, as given or by `tolerance_note`; in the unit of the error.
    tolerance_note : str
    status : {"calibrated", "miscalibrated", "inconclusive"}
        Calibrated: nothing rejects and the error is at most the tolerance, or it is at most a tenth of it whatever rejects.
        Miscalibrated: otherwise, if the interval of the error excludes 0, or a test or a subgroup rejects.
    rows_needed : int or None
        Of an inconclusive verdict: the rows at which, were there no error, it would be calibrated with probability 0.8.
    ranking : {"ranks", "no evidence that it ranks", "ranks backwards"} or None
        By the interval of AUTOC; None for a constant prediction, and for effects that cannot be averaged.
    is_constant : bool
        Every prediction is the same number, but for rounding: there is no ranking and no slope, and only one bin.
    skewness : float
        Of the residuals, over the root of the rows of a bin; above 0.25 the bins test does not apply.
    mass : float
        Mean mass of a row, 1 for effects that are not ratios: a mean loss is this times half a mean squared error.
    average : Average
    risk : float
        Mean loss: the sum of the parts in `decomposition`, up to a constant that does not depend on the prediction.
    decomposition : Decomposition
    linear_predictor : LinearPredictor or None
        None where no line can be had: a constant prediction, or too few rows.
    rate : Rate or None
        None for effects that cannot be averaged (quantiles, expectiles), and for a constant prediction.
    value : Value or None
        When a cost was given.
    subgroups : tuple of Group
        When they were named.
    sensitivity : Robustness
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
    checks : tuple of Check
        Of data and prediction, where a `Study` made the verdict.
    redraws : tuple of float
        The error under this and further draws of the folds, where these were asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from orthocal import QuadraticLoss, assess
    >>> rng = np.random.default_rng(0)
    >>> prediction = rng.standard_normal(2000)
    >>> effects = QuadraticLoss(0.5 * prediction + rng.standard_normal(2000), np.ones(2000))
    >>> verdict = assess(prediction, effects, random_state=0)
    >>> verdict.status, round(verdict.error, 1), round(verdict.linear_predictor.slope.value, 1)
    ('miscalibrated', 0.5, 0.5)
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
    tolerance: float
    tolerance_note: str
    status: str
    rows_needed: int | None
    ranking: str | None
    is_constant: bool
    skewness: float
    mass: float
    average: Average
    risk: float
    decomposition: Decomposition
    linear_predictor: LinearPredictor | None
    rate: Rate | None
    value: Value | None
    subgroups: tuple[Group, ...]
    sensitivity: Robustness
    curve: Curve | None
    overlap: Overlap | None
    unit: str
    level: float
    rows: int
    predictions: Floats
    verdict: str
    origin: Origin | None = None
    checks: tuple[Check, ...] = ()
    redraws: tuple[float, ...] = ()

    def __str__(self) -> str:
        return self.summary()

    @property
    def groups(self) -> tuple[Group, ...]:
        """The old name of `subgroups`."""
        warn_of_old_name("Assessment.groups", "Assessment.subgroups")
        return self.subgroups

    def summary(self) -> str:
        """Return the verdict and the numbers behind it as text."""
        from orthocal.reporting.figures import summary

        return summary(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers, strings, lists and dicts, ready for JSON."""
        from orthocal.reporting.figures import figures_of

        plain = as_plain(self)
        del plain["predictions"]
        return {**plain, "figures": [line._asdict() for line in figures_of(self)]}

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the reliability curve: mean effect against mean prediction, bin by bin."""
        from orthocal.plots import reliability

        return reliability(self, ax=ax)

    def _repr_html_(self) -> str:
        from orthocal.reporting.notebook import assessment_html

        return assessment_html(self)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Whether a change of predictions did good or harm, or which of two rivals is better.

    Parameters
    ----------
    risk_difference : float
        Mean loss after minus before, or of the second minus that of the first: negative is better.
    standard_error : float
    interval : (float, float)
    p_value_harm : float
        One-sided, of the hypothesis that no harm was done; small means evidence of harm.
    verdict : str
        From the two-sided interval: "improved", "no detectable change" or "harmed"; of rivals "a has the lower loss", by name, or
        "no detectable difference".
    level : float
    decision : Decision or None
        When a cost was given.
    rivals : (str, str) or None
        Names of two predictions that were compared as rivals; None of one prediction before and after a change.

    Examples
    --------
    >>> import numpy as np
    >>> from orthocal import QuadraticLoss, compare
    >>> rng = np.random.default_rng(0)
    >>> prediction = rng.standard_normal(2000)
    >>> effects = QuadraticLoss(0.5 * prediction + rng.standard_normal(2000), np.ones(2000))
    >>> change = compare(prediction, 0.5 * prediction, effects)
    >>> change.verdict, round(change.risk_difference, 1)
    ('improved', -0.1)
    """

    risk_difference: float
    standard_error: float
    interval: tuple[float, float]
    p_value_harm: float
    verdict: str
    level: float
    decision: Decision | None = None
    rivals: tuple[str, str] | None = None

    def __str__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """Return the verdict and the numbers behind it as text."""
        from orthocal.reporting.figures import comparison_summary

        return comparison_summary(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers and strings, ready for JSON."""
        from orthocal.reporting.figures import comparison_figures

        return {**as_plain(self), "figures": [line._asdict() for line in comparison_figures(self)]}

    def _repr_html_(self) -> str:
        from orthocal.reporting.notebook import comparison_html

        return comparison_html(self)


def as_plain(value: Any) -> Any:
    """Return a record as plain numbers, strings, lists and dicts, ready for JSON."""
    if hasattr(value, "to_dict") and not isinstance(value, Assessment | Comparison):
        return as_plain(value.to_dict())
    if is_dataclass(value):
        return {field.name: as_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {key: as_plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        # NaN is what a column does not show.
        return [None if empty else entry for entry, empty in zip(value.tolist(), np.isnan(value), strict=True)]
    if isinstance(value, tuple | list):
        return [as_plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value
