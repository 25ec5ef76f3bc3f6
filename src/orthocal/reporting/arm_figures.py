"""The figures of verdicts and calibrations of several arms, from one list."""

from __future__ import annotations

from collections.abc import Iterator

from orthocal.formats import estimate, number, p_value, percent
from orthocal.reporting.figures import Figure
from orthocal.study.arms_assessment import ArmsAssessment
from orthocal.study.arms_calibration import ArmsCalibration


def arms_figures(verdict: ArmsAssessment) -> list[Figure]:
    """Return the status of all contrasts together, and the error of each."""
    together = f"{len(verdict.contrasts)} contrasts; p-values adjusted for their number at {percent(verdict.level)}"
    return [Figure("status", verdict.status, together), *_contrast_figures(verdict)]


def _contrast_figures(verdict: ArmsAssessment) -> Iterator[Figure]:
    for name, one in verdict.contrasts.items():
        adjusted = f"adjusted {p_value(verdict.p_values[name])}"
        meaning = (
            f"{one.status}; tolerance {number(one.tolerance)}, {adjusted}, average effect {number(one.average.effect)}"
        )
        yield Figure(f"error, {name}", estimate(one.error, one.interval), meaning)


def arms_calibration_figures(done: ArmsCalibration) -> list[Figure]:
    """Return the figures of a calibration of several arms that stand above its verdicts."""
    return list(_calibration_figures(done))


def _calibration_figures(done: ArmsCalibration) -> Iterator[Figure]:
    yield Figure("recommendation", done.recommendation.action, " ".join(done.recommendation.reasons))
    yield Figure("status before", done.before.status, "of all contrasts together")
    if done.after is None:
        yield Figure("status after", "not verified", "no rows were held out")
        return
    yield Figure("status after", done.after.status, "of all contrasts together, on rows the map never saw")
    for name, before in done.before.contrasts.items():
        after = done.after.contrasts[name]
        was = f"{estimate(before.error, before.interval)} before; tolerance {number(before.tolerance)}"
        yield Figure(f"error, {name}", estimate(after.error, after.interval), was)
    losses = {
        "mean loss, after - before": done.comparison,
        "prediction - average": done.prediction_over_average,
        "calibrated - average": done.calibrated_over_average,
    }
    for name, change in losses.items():
        if change is not None:
            figure = estimate(change.risk_difference, change.interval)
            yield Figure(name, figure, "summed over the arms; negative is better")
    if done.distance is not None:
        ships = "which ships" if done.map is not done.verified_map else "too far: the verified one ships"
        meaning = f"largest root mean square distance of the map of all rows from the verified one; {ships}"
        yield Figure("refitted on all rows", number(done.distance), meaning)
