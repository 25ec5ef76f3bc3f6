"""What effects on censored times share: their nuisances, follow-up, and the doubly robust sum over cells of time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from orthocal.arrays import Booleans, Floats, Labels, runs
from orthocal.effects.arms import both_propensities, overlap_of, propensities, require_levels, strata_of
from orthocal.effects.curve_scores import mean_and_error
from orthocal.errors import OrthocalError, OverlapWarning, require_inside
from orthocal.losses import ArmScores, Loss, Overlap, QuadraticLoss
from orthocal.losses.average_curves import AverageCurves
from orthocal.nuisances import Fitted, Nuisance
from orthocal.nuisances.hazards import CensoringProcess, EventProcess, curve_estimator, signed_times
from orthocal.nuisances.learners import hazard_learner
from orthocal.nuisances.time_grid import CurveReader, Histories, SurvivalCurve, TimeGrid, event_grid, fitted_curve
from orthocal.observations import Observations

WELL_FOLLOWED, MOST_LOST = 0.2, 0.05
"""The probability of being followed to the horizon should be at least the first in all but the second share of rows."""
FEW = 50
"""Rows of an arm with an event, or without, that are too few to be spread over the folds in equal shares."""

Formula = Callable[[TimeGrid, Floats, Histories, Floats], tuple[Floats, Floats]]
"""Of some rows: from the grid, the event curves, what became of the rows and their times to (start, gains by cell)."""


@dataclass(frozen=True)
class CensoredContrast:
    """What an effect on censored times asks.

    Parameters
    ----------
    name : str
        Of the argument that holds the horizon.
    horizon : float, optional
        Time up to which rows are followed.
    arm, control : object
    grid : int or sequence of float
        Number of grid times, or the times.
    min_followed : float
        Fitted probabilities of not being censored are at least this.
    """

    name: str
    horizon: float | None
    arm: Any
    control: Any
    grid: int | Sequence[float]
    min_followed: float

    def required(self, observations: Observations) -> tuple[float, Booleans]:
        """Return horizon and events, which must be there."""
        if self.horizon is None:
            raise OrthocalError(
                f"`{self.name}` must be given, in the unit of y; it is None. Pass {self.name}=... to the effect, as in "
                "SurvivalProbability(time=365) or RestrictedMeanTime(horizon=365)."
            )
        if observations.event is None:
            raise OrthocalError(
                "Effects on censored times must have an `event`, 1 where y is the time of the event and 0 where it is censored; "
                "none was given. Pass event=..., all 1 if nothing is censored."
            )
        return float(self.horizon), observations.event

    def nuisances(self, observations: Observations) -> list[Nuisance]:
        """Propensity, and in each arm the chance of having had no event and of not being censored by each grid time."""
        horizon, event = self.required(observations)
        time, treatment = observations.outcome, observations.treatment
        require_levels(treatment, ("arm", self.arm), ("control", self.control))
        require_inside(self.min_followed, 0, 1, "min_followed")
        treated, control = treatment == self.arm, treatment == self.control
        either = treated | control
        require_follow_up(time[either], event[either], horizon, self.name)
        grid = event_grid(time[either], event[either], horizon, self.grid)
        target, is_named = signed_times(time, event), not isinstance(self.grid, int | np.integer)
        curves = [
            curve_nuisance(role, arm, rows, target, process, least, is_named)
            for arm, rows in (("control", control), ("treated", treated))
            for role, process, least in (
                ("event", EventProcess(grid), 0.0),
                ("censoring", CensoringProcess(grid), self.min_followed),
            )
        ]
        return [*propensities(treated, control), *curves]

    def strata(self, observations: Observations) -> Labels:
        """Arm and control, each with and without an event where both are common; the rest."""
        strata = strata_of(observations.treatment, self.arm, self.control)
        for arm in (0, 1):
            seen = (strata == arm) & self.required(observations)[1]
            if min(np.count_nonzero(seen), np.count_nonzero(strata == arm) - np.count_nonzero(seen)) >= FEW:
                strata[seen] = arm + 2
        return strata

    def scores(self, observations: Observations, fitted: Fitted, formula: Formula) -> ArmScores:
        """Return the doubly robust score of each arm."""
        _, event = self.required(observations)
        curves, time = self.curves(fitted), observations.outcome
        grid = common_grid(curves)
        history, columns = grid.histories(time, event), []
        for name, arm, pi in zip(
            ("treated", "control"), (self.arm, self.control), both_propensities(fitted), strict=True
        ):
            survival, follow_up = (curves[f"{role}_survival_{name}"].table for role in ("event", "censoring"))
            inverse = (observations.treatment == arm) / pi
            columns.append(pseudo_outcome_of_times(formula, grid, survival, follow_up, history, time, inverse))
        return ArmScores(
            arms=(self.control, self.arm),
            values=np.column_stack(columns[::-1]),
            weight=observations.weight,
            groups=observations.groups,
        )

    def loss(self, observations: Observations, fitted: Fitted, formula: Formula) -> Loss:
        """Squared loss on the difference of the arms' scores."""
        control, treated = self.scores(observations, fitted, formula).values.T
        weight, pi = observations.weight, both_propensities(fitted)
        got = [observations.treatment == arm for arm in (self.arm, self.control)]
        overlap = overlap_of(dict(zip(("treated", "control"), zip(got, pi, strict=True), strict=True)), fitted, weight)
        overlap = with_follow_up(overlap, self.curves(fitted), self, is_part=fitted.is_part)
        if not fitted.is_part:
            overlap = replace(overlap, curves=self.average_curves(observations, fitted))
        return QuadraticLoss(weight * (treated - control), weight, weight, observations.groups, overlap)

    def average_curves(self, observations: Observations, fitted: Fitted) -> AverageCurves:
        """Return the survival curve of each arm, averaged over all rows."""
        _, event = self.required(observations)
        curves, found = self.curves(fitted), {}
        grid = common_grid(curves)
        history = grid.histories(observations.outcome, event)
        for name, arm, pi in zip(
            ("treated", "control"), (self.arm, self.control), both_propensities(fitted), strict=True
        ):
            survival, follow_up = (curves[f"{role}_survival_{name}"].table for role in ("event", "censoring"))
            inverse = (observations.treatment == arm) / pi
            own = mean_and_error(survival, follow_up, history, inverse, observations.weight, observations.groups)
            found[name] = own
        return AverageCurves(grid.times, found)

    def curves(self, fitted: Fitted) -> dict[str, SurvivalCurve]:
        """The curves, by name."""
        return {name: self._curve(fitted, name) for name in CURVES}

    def _curve(self, fitted: Fitted, name: str) -> SurvivalCurve:
        """A curve; a plain table where it is known at the times that the effect names."""
        found = fitted[name]
        if isinstance(found, SurvivalCurve):
            return found
        assert self.horizon is not None  # noqa: S101
        return SurvivalCurve(event_grid(np.empty(0), np.empty(0, dtype=bool), self.horizon, self.grid), found)


CURVES = (
    *("event_survival_control", "censoring_survival_control"),
    *("event_survival_treated", "censoring_survival_treated"),
)
"""The nuisances that are curves."""


def curve_nuisance(
    role: str,
    arm: str,
    rows: Booleans,
    target: Floats,
    process: EventProcess | CensoringProcess,
    least: float,
    is_named: bool,
) -> Nuisance:
    """Return a curve of an arm, learnt from its rows."""
    name = f"{role}_survival_{arm}"
    reader = CurveReader(name, process.grid, process.asked, is_named=is_named, is_divisor=least > 0)
    return Nuisance(
        name,
        role,
        target,
        rows,
        is_probability=True,
        wrap=partial(curve_estimator, process=process),
        finish=partial(fitted_curve, process.grid, least),
        call=reader.call,
        read=reader.read,
        learner=hazard_learner(len(process.grid)),
    )


def require_follow_up(time: Floats, event: Booleans, horizon: float, name: str) -> None:
    """There are events, and somebody is followed to the horizon."""
    if not horizon > 0:
        raise OrthocalError(f"`{name}` must be positive; it is {horizon:g}.")
    if not event.any():
        raise OrthocalError(
            "`event` must be 1 somewhere; every row is 0 (censored). Check the coding: 1 means that the event was observed."
        )
    if time.max() < horizon:
        raise OrthocalError(
            f"`{name}` must be a time to which some row is followed; it is {horizon:g}, and the longest time is {time.max():g}."
        )


def common_grid(curves: Mapping[str, SurvivalCurve]) -> TimeGrid:
    """Return the grid, which must be the same for all curves."""
    grid = curves[CURVES[0]].grid
    for name, curve in curves.items():
        if not np.array_equal(curve.grid.times, grid.times):
            raise OrthocalError(
                f"All curves must have the same grid times; those of `{name}` and `{CURVES[0]}` differ. Name the times in the "
                "effect, grid=(...)."
            )
    return grid


def pseudo_outcome_of_times(
    formula: Formula,
    grid: TimeGrid,
    survival: Floats,
    follow_up: Floats,
    history: Histories,
    time: Floats,
    inverse: Floats,
) -> Floats:
    r"""Doubly robust pseudo-outcome of one arm, :math:`s + \frac{1\{a\}}{\pi_a} \sum_k g_k / G(k-)` (mathematics 3.13).

    :math:`s` is what the event curve says at the start, :math:`g_k` what was gained in cell k over what it said on entry, and
    :math:`G(k-)` the chance of entering cell k uncensored.
    """
    chi = np.empty(len(time))
    for some in runs(len(time)):
        own = Histories(history.entered[some], history.died[some])
        start, gains = formula(grid, survival[some].astype(np.float64), own, time[some])
        chi[some] = start + inverse[some] * (gains / follow_up[some]).sum(axis=1)
    return chi


def with_follow_up(
    overlap: Overlap, curves: Mapping[str, SurvivalCurve], contrast: CensoredContrast, *, is_part: bool
) -> Overlap:
    """Add to the overlap how well rows are followed up, and warn where that is not enough."""
    own = {name: curve for name, curve in curves.items() if name.startswith("censoring")}
    clipped = {name: float(np.mean(curve.moved)) for name, curve in own.items() if curve.moved is not None}
    lost = share_lost(list(own.values()), overlap.weight)
    notes = [
        f"{lost[-1]:.1%} of rows have a probability below {WELL_FOLLOWED} of being followed to {contrast.horizon:g}",
        *(
            f"{name} was kept at {contrast.min_followed:g} or more in {share:.1%} of rows"
            for name, share in clipped.items()
        ),
    ]
    if lost[-1] > MOST_LOST and not is_part:
        _warn_of_follow_up(contrast, float(lost[-1]), common_grid(curves).times[lost <= MOST_LOST])
    return replace(overlap, clipped={**overlap.clipped, **clipped}, notes=(*overlap.notes, *notes))


def share_lost(curves: Sequence[SurvivalCurve], weight: Floats) -> Floats:
    """Return by cell the share of rows that are too likely to be censored before it, in the arm in which they are more."""
    return np.asarray(np.max([weight @ (curve.table < WELL_FOLLOWED) / weight.sum() for curve in curves], axis=0))


def _warn_of_follow_up(contrast: CensoredContrast, share: float, enough: Floats) -> None:
    way_out = (
        f"{contrast.name}={enough[-1]:g} would do"
        if len(enough)
        else "no time on the grid would do: get longer follow-up"
    )
    warnings.warn(
        f"The probability of being followed to {contrast.name}={contrast.horizon:g} is below {WELL_FOLLOWED} in {share:.1%} of "
        f"rows: the effect there rests on a few rows with large weights. Choose an earlier time; {way_out}.",
        OverlapWarning,
        stacklevel=4,
    )
