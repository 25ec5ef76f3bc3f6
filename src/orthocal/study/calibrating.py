"""How a calibration comes about on any engine: fit on some rows, judge on others, fit again on all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.assessment import Assessment
from orthocal.assessment.parts import Check
from orthocal.assessment.records import Settings
from orthocal.calibrators import Calibrator
from orthocal.calibrators.within import GroupsWithin
from orthocal.effects.description import words_of
from orthocal.engines.protocol import Engine, JudgedMap
from orthocal.group_maps import GroupMap
from orthocal.maps import IdentityMap, Map
from orthocal.study.recommendation import (
    USE_AVERAGE,
    USE_CALIBRATED,
    WORTH_HALF_A_SQUARE,
    Found,
    Recommendation,
    recommend,
    with_average_of_all,
)

if TYPE_CHECKING:
    from orthocal.study.definition import StudyDefinition

FARTHEST = 0.5
"""Of the tolerance, that the shipped map may be away from the verified one."""


def calibrated(
    engine: Engine,
    prediction: Any,
    method: str | Calibrator,
    holdout: Any,
    settings: Settings,
    *,
    checks: Sequence[Check],
    more_checks: Any,
    redraws: int,
    within: GroupsWithin | None = None,
) -> dict[str, Any]:
    """Fit the map on the rows that are not held out, judge it on the others, and fit it on all rows where it is recommended.

    Where nothing is held out, nothing can be said of the map, only of the prediction before it.
    """
    trial, unchanged = engine.trial(prediction, method, holdout, settings.by, within), IdentityMap()
    before = trial.assess(settings, unchanged)
    every = (*checks, *more_checks(before))
    average = float(trial.constant.predict([0.0])[0])
    known: dict[str, Any] = {
        "verified_map": trial.map,
        "before": before,
        "average": average,
        "judged": trial.judged,
        "reason": trial.reason,
        "bound": trial.bound,
        "checks": every,
        "fitted_range": trial.fitted_range,
        "fitted_rows": trial.fitted,
        "audit_before": trial.audit(settings, unchanged),
    }
    if not np.size(holdout) > 1 and holdout == 0:
        return {
            **known,
            "map": trial.map,
            "recommendation": recommend(Found(every, before, audit_before=known["audit_before"])),
        }
    goal = replace(settings, tolerance=before.tolerance)  # the same before and after: no map moves the goal posts
    after = replace(trial.assess(goal, trial.map), tolerance_note=before.tolerance_note)
    found = Found(
        every,
        before,
        after,
        trial.compare(settings, unchanged, trial.map),
        trial.compare(settings, trial.constant, unchanged),
        trial.compare(settings, trial.constant, trial.map),
        average,
        len(trial.judged) / (trial.fitted + len(trial.judged)),
        known["audit_before"],
        trial.audit(settings, trial.map),
    )
    recommendation = recommend(found)
    if recommendation.action == USE_AVERAGE:
        whole = engine.judge(prediction, replace(settings, by={}, cost=None))
        recommendation = with_average_of_all(recommendation, whole.average)
    shipped, distance = _shipped(trial, before, recommendation)
    if shipped is not trial.map:
        ends = (*trial.fitted_range, *before.predictions[[0, -1]].tolist())
        known["fitted_range"] = (min(ends), max(ends))
    again = tuple(engine.errors_again(prediction, method, holdout, redraws, within)) if redraws else ()
    return {
        **known,
        "map": shipped,
        "distance": distance,
        "after": after,
        "audit_after": found.audit_after,
        "comparison": found.comparison,
        "prediction_over_average": found.prediction_over_average,
        "calibrated_over_average": found.calibrated_over_average,
        "recommendation": recommendation,
        "redraws": ((before.error, after.error), *again) if again else (),
    }


def _shipped(trial: JudgedMap, before: Assessment, recommendation: Recommendation) -> tuple[Map, float | None]:
    """Return the map that ships, and how far it is from the verified one.

    It is fitted on all rows where it is recommended, unless that moves it by more than half the tolerance.
    """
    if recommendation.action != USE_CALIBRATED or before.unit not in WORTH_HALF_A_SQUARE:
        return trial.map, None
    again = trial.refitted()
    distance = float(np.sqrt(np.mean(trial.gaps(again, before.predictions) ** 2)))
    return (again if distance <= FARTHEST * before.tolerance else trial.map), distance


def about_map(study: StudyDefinition, name: str, done: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a map is a map of."""
    before, after = done["before"], done.get("after")
    return {
        "prediction": name,
        "effect": repr(study.estimand),
        "contrast": contrast_of(study),
        "estimand": words_of(study.estimand).estimand,
        "outcome": study.outcome,
        "treatment": study.treatment,
        "fitted_range": list(done["fitted_range"]),
        **({"groups": list(done["map"].columns)} if isinstance(done["map"], GroupMap) else {}),
        "rows": study.rows.count if done["map"] is not done["verified_map"] else done["fitted_rows"],
        "status": (after or before).status,
        "recommendation": done["recommendation"].action,
        "date": datetime.now(UTC).date().isoformat(),
    }


def contrast_of(study: StudyDefinition) -> str | None:
    """Return which values of the treatment are compared, in words; None for effects without arms."""
    effect: Any = study.estimand
    if not hasattr(effect, "arm"):
        return None
    against = f" against {effect.control!r}" if hasattr(effect, "control") else ""
    return f"{study.treatment} {effect.arm!r}{against}"
