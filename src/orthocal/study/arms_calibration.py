"""A calibration of several arms together: the joint map, the verdicts before and after it, and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from orthocal.arrays import Floats, Integers
from orthocal.assessment import Comparison
from orthocal.assessment.compare import concluded, loss_change, moments_of
from orthocal.assessment.parts import Check
from orthocal.assessment.records import Settings
from orthocal.calibrators.joint import JointCalibrator
from orthocal.engines.protocol import require_both_sides
from orthocal.joint_maps import JointMap
from orthocal.losses import ArmScores
from orthocal.mapfile import save
from orthocal.study.arms_assessment import ArmsAssessment, assess_arms
from orthocal.study.arms_recommendation import ArmsFound, recommend_for_arms
from orthocal.study.recommendation import USE_CALIBRATED, Recommendation

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from orthocal.study.definition import StudyDefinition

FARTHEST = 0.5
"""Of the tolerance, that the shipped map may be away from the verified one."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ArmsCalibration:
    """A joint map of several arms with the verdicts before and after it: what `Study.calibrate` returns for several arms.

    Parameters
    ----------
    name : str
        Of the model.
    arms : tuple
        The control first.
    columns : tuple of str
        What the predictions of the arms are called, in the order of the arms.
    map : JointMap
        The map that ships: fitted again on all rows where it is recommended; else the verified one.
    verified_map : JointMap
        Fitted on the rows that were not held out, and judged on those that were.
    distance : float or None
        Root mean square distance of the map of all rows from the verified one, the largest of the arms.
    before, after : ArmsAssessment
        `after` is None where nothing was held out.
    comparison, prediction_over_average, calibrated_over_average : Comparison or None
        Of losses summed over the arms: after with before, and both with the average effect of each arm for everyone.
    averages : dict
        The average effect of each arm against the control, of the rows the map was fitted on.
    recommendation : Recommendation
    checks : tuple of Check
    judged : array
    reason : str
        How the map was weighed.
    about : dict
        What it is a map of, as `save` writes it into the file.

    Examples
    --------
    >>> import pandas as pd
    >>> from orthocal import Study
    >>> from orthocal.datasets import simulate_arms
    >>> data = simulate_arms(n=6000, random_state=0)
    >>> trial = pd.DataFrame({"y": data.y, "a": data.treatment, "one": 1 + 2 * data.effect[:, 0], "two": data.effect[:, 1]})
    >>> study = Study(trial, outcome="y", treatment="a", arms="all", covariates=[], propensity=1 / 3)
    >>> done = study.calibrate({1: "one", 2: "two"})
    >>> done.before.status, done.recommendation.action
    ('miscalibrated', 'use the calibrated prediction')
    """

    name: str
    arms: tuple[Any, ...]
    columns: tuple[str, ...]
    map: JointMap
    verified_map: JointMap
    distance: float | None = None
    before: ArmsAssessment
    after: ArmsAssessment | None = None
    comparison: Comparison | None = None
    prediction_over_average: Comparison | None = None
    calibrated_over_average: Comparison | None = None
    averages: dict[Any, float]
    recommendation: Recommendation
    checks: tuple[Check, ...] = ()
    judged: Integers
    reason: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)
    predictions: Floats = field(repr=False)
    study: StudyDefinition | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return self.summary()

    @property
    def status(self) -> str:
        """The status after calibration; before it, where no rows were held out."""
        return (self.after or self.before).status

    def summary(self) -> str:
        """Return recommendation, checks and verdicts as text."""
        from orthocal.reporting.arms import arms_calibration_summary

        return arms_calibration_summary(self)

    def table(self) -> Any:
        """Return the study's table with a column of calibrated predictions for each arm."""
        assert self.study is not None  # noqa: S101
        values = self.map.predict(self.predictions)
        return self.study.rows.with_columns({f"{name}_calibrated": values[:, k] for k, name in enumerate(self.columns)})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the map that ships as JSON, with what it is a map of."""
        save(self.map, path, about=self.about)

    def report(self, path: str | Path, *, title: str | None = None, how: Any = None, since: Any = None) -> None:
        """Write one self-contained HTML page with every contrast, before and after."""
        from orthocal.reporting.arms import arms_report

        arms_report(self, path, **({} if title is None else {"title": title}), how=how, since=since)

    def to_dict(self) -> dict[str, Any]:
        """Return the verdicts as plain numbers, strings, lists and dicts, ready for JSON."""
        from orthocal.reporting.arms import arms_calibration_record

        return arms_calibration_record(self)

    def _repr_html_(self) -> str:
        from orthocal.reporting.arms import arms_calibration_html

        return arms_calibration_html(self)


def calibrated_arms(
    predictions: Floats,
    scores: ArmScores,
    calibrator: JointCalibrator,
    sides: tuple[Integers, Integers],
    settings: Settings,
    by: Mapping[str, Any],
    checks: Sequence[Check],
) -> dict[str, Any]:
    """Fit the joint map on some rows, judge it on others, and fit it on all rows where it is recommended.

    Where both sides are all rows, nothing can be said of the map, only of the predictions before it.
    """
    is_held_out = len(sides[0]) < len(scores)
    fitted, judged = (side[scores.weight[side] > 0] for side in sides)
    require_both_sides("as given", len(scores), len(fitted), len(judged))
    own = _with_subgroups(settings, by, judged)
    verified = clone(calibrator).fit(predictions[fitted], scores[fitted])
    averages = np.average(scores.gains[fitted], axis=0, weights=scores.weight[fitted])
    rows, unchanged = scores[judged], predictions[judged]
    before = assess_arms(unchanged, rows, own)
    known = {
        "verified_map": verified.map_,
        "reason": verified.reason_,
        "before": before,
        "averages": dict(zip(scores.treatments, averages.tolist(), strict=True)),
        "checks": tuple(checks),
        "judged": judged,
    }
    if not is_held_out:
        return {**known, "map": verified.map_, "recommendation": recommend_for_arms(ArmsFound(checks, before))}
    changed = verified.map_.predict(unchanged)
    average = np.broadcast_to(averages, unchanged.shape)
    found = ArmsFound(
        checks,
        before,
        assess_arms(changed, rows, own, before.contrasts),
        *(
            compare_arms(one, two, rows, settings.level)
            for one, two in ((unchanged, changed), (average, unchanged), (average, changed))
        ),
    )
    recommendation = recommend_for_arms(found)
    shipped, distance = _shipped(verified, predictions, scores, found, recommendation)
    return {
        **known,
        "map": shipped,
        "distance": distance,
        "after": found.after,
        "comparison": found.comparison,
        "prediction_over_average": found.prediction_over_average,
        "calibrated_over_average": found.calibrated_over_average,
        "recommendation": recommendation,
    }


def compare_arms(
    before: Floats, after: Floats, scores: ArmScores, level: float, rivals: tuple[str, str] | None = None
) -> Comparison:
    """Compare two predictions of all arms by their losses, summed over the contrasts with the control."""
    change = np.sum(
        [loss_change(scores.contrast(arm), before[:, k], after[:, k]) for k, arm in enumerate(scores.treatments)],
        axis=0,
    )
    return concluded(moments_of([scores.weight, change], scores.groups), level, None, rivals)


def _with_subgroups(settings: Settings, by: Mapping[str, Any], rows: Integers) -> Settings:
    return replace(settings, by={name: values[rows] for name, values in by.items()})


def _shipped(
    fitted: JointCalibrator,
    predictions: Floats,
    scores: ArmScores,
    found: ArmsFound,
    recommendation: Recommendation,
) -> tuple[JointMap, float | None]:
    """Return the map that ships: of all rows where it is recommended, unless that moves an arm by half its tolerance."""
    if recommendation.action != USE_CALIBRATED:
        return fitted.map_, None
    again = fitted.refitted(predictions, scores)
    counted = predictions[scores.weight > 0]
    gap = np.sqrt(np.mean((again.predict(counted) - fitted.map_.predict(counted)) ** 2, axis=0))
    allowed = [FARTHEST * found.before.of(arm).tolerance for arm in scores.treatments]
    return (again if (gap <= allowed).all() else fitted.map_), float(gap.max())


def about_arms(
    study: StudyDefinition, name: str, columns: Sequence[str], predictions: Floats, done: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what a joint map is a map of."""
    effect: Any = study.estimand
    return {
        "prediction": name,
        "columns": list(columns),
        "fitted_ranges": [[float(one.min()), float(one.max())] for one in predictions.T],
        "arms": [str(arm) for arm in effect.arms[1:]],
        "control": str(effect.arms[0]),
        "effect": repr(effect),
        "outcome": study.outcome,
        "treatment": study.treatment,
        "rows": study.rows.count,
        "status": (done.get("after") or done["before"]).status,
        "recommendation": done["recommendation"].action,
        "date": datetime.now(UTC).date().isoformat(),
    }
