"""assess for a dask.dataframe: columns by name, the rest as in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orthocal.assessment import Assessment
from orthocal.assessment.records import Settings
from orthocal.effects import Effect, new_effect
from orthocal.engines.dask.table import DaskTable
from orthocal.engines.partitioned.preparation import prepared
from orthocal.engines.partitioned.verdict import judged
from orthocal.nuisances.learners import Recipe
from orthocal.roles import Roles


def assess(
    frame: Any,
    *,
    outcome: str,
    treatment: str,
    prediction: str,
    effect: str | Effect = "cate",
    covariates: Sequence[str] | None = None,
    instrument: str | None = None,
    event: str | None = None,
    sample_weight: str | None = None,
    groups: str | None = None,
    key: str | None = None,
    nuisances: Mapping[str, Any] | None = None,
    learners: Mapping[str, Any] | None = None,
    folds: int = 5,
    clip: float = 0.01,
    sample: int | None = None,
    bins: int = 10,
    level: float = 0.95,
    cost: float | None = None,
    by: Sequence[str] = (),
    draws: int = 1000,
    random_state: int | None = None,
    exact: bool = False,
) -> Assessment:
    """Judge a column of predicted effects of a ``dask.dataframe``: the numbers of `orthocal.assess`, wherever the rows are.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
    outcome, treatment, prediction, covariates, instrument, event, sample_weight, groups, key, nuisances
        As in `CausalCalibrator.fit`.
    effect, learners, folds, clip, sample
        As in `CausalCalibrator`.
    by : sequence of str
        Columns of subgroups, of at most 12 values each.
    bins, level, cost, draws, random_state
        As in `orthocal.assess`.
    exact : bool, default False
        False sums rows up by cells of the prediction, and moves none: bins, average, linear test and error are those of all rows.
        True sorts all rows by the prediction, which takes several times as long.
    """
    roles = Roles(
        outcome=outcome,
        treatment=treatment,
        prediction=prediction,
        instrument=instrument,
        event=event,
        sample_weight=sample_weight,
        groups=groups,
        key=key,
        covariates=tuple(covariates or ()),
        nuisances=dict(nuisances or {}),
        by=tuple(by),
    )
    recipe = Recipe(learners, clip, random_state, sample=sample)
    source = prepared(DaskTable(frame), roles, new_effect(effect), folds, recipe, all_covariates=covariates is None)
    settings = Settings(bins=bins, level=level, cost=cost, draws=draws, random_state=random_state)
    return judged(source, settings, exact=exact)
