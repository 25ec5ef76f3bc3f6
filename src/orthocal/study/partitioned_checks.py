"""Checks of rows in partitions: counts, moments and ranges of all rows, and a sample of them, in one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.arrays import Floats
from orthocal.assessment.parts import Check
from orthocal.engines.partitioned.keys import keys_of, sampled
from orthocal.engines.partitioned.partition_loss import Job, fitted_of, observed
from orthocal.engines.partitioned.passes import each, reduced
from orthocal.engines.partitioned.source import Source
from orthocal.engines.partitioned.summed_overlap import summed_overlap_of
from orthocal.engines.partitioned.training import encoding_of
from orthocal.errors import OrthocalError
from orthocal.hashing import scrambled
from orthocal.observations import Encoding, Observations, as_numbers, encode, observe
from orthocal.orthogonal import Orthogonal
from orthocal.roles import Roles
from orthocal.study.checks import DataSums, PredictionSums, StudyEvidence, checks_of_prediction
from orthocal.study.checks.predictions import assumed_range
from orthocal.study.columns import MemoryTable

if TYPE_CHECKING:
    from orthocal.study.definition import StudyDefinition

ROWS = 100_000
"""Rows that checks look at one by one; what they only count, they count in all rows."""
OWN = 2**33
"""Added to the seed, so that the sample has nothing to do with folds, and with rows held out."""


@dataclass(frozen=True, eq=False)
class Looked:
    """What a pass found: sums of all rows, sums of each prediction, and frames of sampled rows in order."""

    data: DataSums
    predictions: Mapping[str, PredictionSums]
    rows: tuple[Any, ...]

    def merge(self, other: Looked) -> Looked:
        """Of these rows and the next."""
        both = {name: one.merge(other.predictions[name]) for name, one in self.predictions.items()}
        return Looked(self.data.merge(other.data), both, (*self.rows, *other.rows))


@dataclass(frozen=True, eq=False)
class LookPlan:
    """What a pass looks for.

    Parameters
    ----------
    roles : Roles
        With the covariates.
    job : Job
    encoding : Encoding or None
        Of text covariates.
    predictions : mapping of str to (float, float) or None
        Columns, and between which numbers they must lie.
    share : float
        Of the rows, that is sampled.
    """

    roles: Roles
    job: Job
    encoding: Encoding | None
    predictions: Mapping[str, tuple[float, float] | None]
    share: float


@dataclass(frozen=True, eq=False)
class SampledRows:
    """A sample as checks see it: the rows, and what was learnt of them."""

    observations: Observations
    to_learn: tuple[list[Any], list[str]]
    learnt: Orthogonal


@dataclass(frozen=True, eq=False)
class PartitionedEvidence:
    """What checks look at: a sample of the rows, with sums of all of them.

    Parameters
    ----------
    evidence : StudyEvidence
    predictions : mapping of str to PredictionSums
    """

    evidence: StudyEvidence
    predictions: Mapping[str, PredictionSums]

    def prediction(self, name: str) -> Floats:
        """Return a column of predictions of the sample."""
        return as_numbers(self.evidence.table.column(name), name)

    def checks_of(self, column: str, name: str) -> tuple[Check, ...]:
        """Return the checks of a prediction."""
        return checks_of_prediction(self.evidence, self.prediction(column), name, self.predictions[column])


def looked_at(
    study: StudyDefinition, source: Source, columns: Sequence[str], predictions: Sequence[str], count: int
) -> PartitionedEvidence:
    """Look at all rows once, and keep a seeded sample of them, drawn by a hash of what they hold.

    Parameters
    ----------
    study : Study
    source : Source
        The rows with their loss, at any prediction.
    columns : sequence of str
        All columns of the table.
    predictions : sequence of str
        Columns of predictions.
    count : int
        How many rows there are.
    """
    table, roles = study.rows.engine.table, study.roles
    ends = assumed_range(study, study.estimand)
    plan = LookPlan(
        roles=roles,
        job=source.job,
        encoding=source.job.encoding or _encoding(table, roles),
        predictions=dict.fromkeys(predictions, ends),
        share=min(1.0, ROWS / count),
    )
    found = reduced(table.select(list(columns)), _looked, Looked.merge, plan)
    return PartitionedEvidence(_evidence(study, plan, found), found.predictions)


def _encoding(table: Any, roles: Roles) -> Encoding | None:
    """Return how text covariates become numbers; a look at the first rows says whether there are any."""
    names = list(roles.covariates)
    first = next(
        (one for k in range(len(table.names)) for one in each(table.select(names), _kinds, parts=[k]) if one), ""
    )
    return encoding_of(table.select(names), roles) if names and set(first) - set("fiub") else None


def _kinds(part: Any) -> str:
    return "".join(part[name].dtype.kind for name in part.columns)


def _looked(part: Any, plan: LookPlan) -> Looked:
    """Question: sums of a partition, and a sample of its rows."""
    roles, job = plan.roles, plan.job
    rows = observed(part, replace(roles, prediction=None), plan.encoding)
    if plan.encoding is None and rows.covariates.shape[1] != len(roles.covariates):
        raise OrthocalError(
            "Covariates must hold the same kind of value in every partition; one has text where others have numbers. "
            "Convert it to one of them first."
        )
    fitted, loss = _loss(part, job)
    predictions = {
        name: PredictionSums.of(rows, as_numbers(part[name], name, len(part)), ends)
        for name, ends in plan.predictions.items()
    }
    data = DataSums.of(rows, fitted.values, summed_overlap_of(loss))
    return Looked(data, predictions, (part[_drawn(part, roles, plan.share, job.seed)],))


def _loss(part: Any, job: Job) -> tuple[Any, Any]:
    """Return nuisances and loss of a partition, of all its rows."""
    own = observed(part, job.roles, job.encoding)
    fitted = fitted_of(part, own, job)
    return fitted, job.effect.loss(own, fitted)


def _drawn(part: Any, roles: Roles, share: float, seed: int) -> Any:
    """Return which rows are in the sample; of rows that hold the same, each has a chance of its own."""
    import pandas as pd

    if share == 1:
        return np.ones(len(part), dtype=bool)
    own = [name for name in roles.parts if name != roles.prediction]
    keys = keys_of(part[[roles.key] if roles.key else [*own, *roles.covariates]])
    if pd.Series(keys).duplicated().any():
        keys = keys + scrambled(pd.Series(keys).groupby(keys).cumcount().to_numpy().astype(np.uint64), seed + OWN)
    return sampled(keys, share, seed + OWN)


def _evidence(study: StudyDefinition, plan: LookPlan, found: Looked) -> StudyEvidence:
    """Return what checks look at in memory, of the sample, with the sums of all rows."""
    import pandas as pd

    frame, roles, job = pd.concat(found.rows, ignore_index=True), plan.roles, plan.job
    covariates = frame[list(roles.covariates)]
    X, encoding = encode(covariates, plan.encoding) if roles.covariates else (np.empty((len(frame), 0)), None)
    columns = replace(roles, prediction=None).of(frame, key=True)
    fitted, loss = _loss(frame, job)
    learnt = Orthogonal(
        loss=loss, nuisances=fitted.values, prediction=None, fold=fitted.fold, rows=np.arange(len(frame))
    )
    engine = SampledRows(observe(X, columns.pop("y"), **columns), ([], list(roles.nuisances)), learnt)
    return StudyEvidence(study, MemoryTable(frame), engine, sums=found.data, encoding=encoding)
