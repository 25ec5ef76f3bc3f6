"""Named checks of data, predictions, verdicts and maps, before anything is believed; a new one is a function in one list."""

from __future__ import annotations

from collections.abc import Callable

from orthocal.arrays import Floats
from orthocal.assessment import Assessment
from orthocal.assessment.effect_band import EffectBand
from orthocal.assessment.parts import Check
from orthocal.maps import Map
from orthocal.study.checks.design import (
    balance,
    extreme_weights,
    few_clusters,
    follow_up,
    instrument_strength,
    positivity,
)
from orthocal.study.checks.evidence import FAILED, PASSED, WARNING, StudyEvidence
from orthocal.study.checks.in_sample import in_sample
from orthocal.study.checks.leakage import censoring, giveaway, hidden_clusters, identifiers, outcome_among_covariates
from orthocal.study.checks.maps import inside_band
from orthocal.study.checks.predictions import (
    Predicted,
    outcome_as_prediction,
    possible,
    predicted_by,
    prediction_among_covariates,
    ranking,
    skewness,
)
from orthocal.study.checks.sums import DataSums, PredictionSums

__all__ = [
    "FAILED",
    "PASSED",
    "WARNING",
    "DataSums",
    "PredictionSums",
    "StudyEvidence",
    "checks_of_data",
    "checks_of_map",
    "checks_of_prediction",
    "checks_of_verdict",
]

OF_DATA: tuple[Callable[[StudyEvidence], Check | None], ...] = (
    positivity,
    follow_up,
    balance,
    giveaway,
    outcome_among_covariates,
    identifiers,
    hidden_clusters,
    instrument_strength,
    few_clusters,
    extreme_weights,
    censoring,
)
OF_PREDICTION: tuple[Callable[[StudyEvidence, Predicted], Check | None], ...] = (
    outcome_as_prediction,
    prediction_among_covariates,
    possible,
    in_sample,
)
OF_VERDICT: tuple[Callable[[Assessment], Check | None], ...] = (ranking, skewness)
OF_MAP: tuple[Callable[[Map, Floats, EffectBand], Check | None], ...] = (inside_band,)


def checks_of_data(evidence: StudyEvidence) -> tuple[Check, ...]:
    """Return the checks of the data that apply."""
    return tuple(found for check in OF_DATA if (found := check(evidence)) is not None)


def checks_of_prediction(
    evidence: StudyEvidence, prediction: Floats, name: str, sums: PredictionSums | None = None
) -> tuple[Check, ...]:
    """Return the checks of a prediction that apply; `sums` are of all rows where those at hand are a sample."""
    own = predicted_by(evidence, prediction, name, sums)
    return tuple(found for check in OF_PREDICTION if (found := check(evidence, own)) is not None)


def checks_of_verdict(verdict: Assessment) -> tuple[Check, ...]:
    """Return the checks of what a verdict found that apply."""
    return tuple(found for check in OF_VERDICT if (found := check(verdict)) is not None)


def checks_of_map(fitted: Map, prediction: Floats, band: EffectBand) -> tuple[Check, ...]:
    """Return the checks of a map that apply."""
    return tuple(found for check in OF_MAP if (found := check(fitted, prediction, band)) is not None)
