"""What checks look at, and how they answer."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.arrays import Floats, Integers, Labels
from orthocal.assessment.parts import Check
from orthocal.folds import row_order
from orthocal.losses import Overlap
from orthocal.observations import Observations, encode
from orthocal.study.arm_predictions import columns_named
from orthocal.study.columns import MemoryTable
from orthocal.values import series_values

if TYPE_CHECKING:
    from orthocal.study.definition import StudyDefinition

PASSED, WARNING, FAILED = "passed", "warning", "failed"
SAME = 1e-9
"""Share of their size within which numbers are the same."""
MOST_ROWS = 5000
"""Rows that a check looks at which fits something for every covariate."""


class StudyEvidence:
    """The columns of a study, and what was learnt of them.

    Parameters
    ----------
    study : Study
    table : MemoryTable
    engine : MemoryEngine
        Or what it learnt of one contrast of several.
    effect : Effect, optional
        The effect that predictions are of; that of the study by default.
    """

    def __init__(self, study: StudyDefinition, table: MemoryTable, engine: Any, effect: Any = None) -> None:
        self.study, self.table, self.engine = study, table, engine
        self.effect: Any = study.estimand if effect is None else effect

    @property
    def rows(self) -> Observations:
        """The rows."""
        found: Observations = self.engine.observations
        return found

    @property
    def overlap(self) -> Overlap | None:
        """How well treatment arms overlap."""
        found: Overlap | None = self.engine.learnt.loss.overlap
        return found

    @cached_property
    def names(self) -> list[str]:
        """The name of each column of the covariates' matrix; of an indicator, with its value."""
        roles = self.study.roles
        if not roles.covariates:
            return []
        _, encoding = encode(self.table.covariates(roles.covariates))
        levels = encoding.levels
        return [
            text
            for name in roles.covariates
            for text in ([f"{name} = {value}" for value in levels[name][1:]] if name in levels else [name])
        ]

    @cached_property
    def some(self) -> Integers:
        """A few thousand rows, drawn by what they hold, in an order drawn by that, too."""
        return row_order(self.rows, 0)[:MOST_ROWS]

    @cached_property
    def in_arms(self) -> Integers:
        """Those of them that got one of the two arms that are compared."""
        treatment = self.rows.treatment[self.some]
        kept = (treatment == self.effect.arm) | (treatment == self.effect.control)
        return np.asarray(self.some[np.flatnonzero(kept)])

    @cached_property
    def noise(self) -> Any:
        """The noise of the outcomes, for the check of predictions made in sample."""
        from orthocal.study.checks.in_sample import noise_of

        return noise_of(self)

    def plain_columns(self) -> dict[str, Labels]:
        """Return the columns of whole numbers or text that are covariates or have no part."""
        roles = self.study.roles
        taken = {*roles.parts, roles.key, roles.fold, *columns_named(self.study.predictions)}
        taken |= {value for value in roles.nuisances.values() if isinstance(value, str)}
        found = {}
        for name in self.table.columns:
            if name in taken:
                continue
            series = self.table.frame[name]
            other = series.dtype.is_numeric() or series.dtype.is_temporal() or series.dtype.is_nested()
            if series.dtype.is_integer() or not other:
                found[name] = series_values(series)
        return found


def passed(name: str, figure: str, sentence: str) -> Check:
    """Return a check that found nothing."""
    return Check(name, PASSED, figure, sentence)


def largest_correlation(columns: Floats, values: Floats) -> tuple[int, float]:
    """Return the column most correlated with some values, and how much; 0 where nothing varies or something is missing."""
    if columns.shape[1] == 0 or not np.ptp(values) > 0:
        return 0, 0.0
    centred = values - values.mean()
    found = []
    for column in columns.T:
        own = column - column.mean()
        size = float(np.sqrt((own @ own) * (centred @ centred)))
        found.append(abs(float(own @ centred)) / size if np.isfinite(size) and size > 0 else 0.0)
    place = int(np.argmax(found))
    return place, found[place]


def same_column(columns: Floats, values: Floats) -> int | None:
    """Return the column that holds the same numbers, if there is one."""
    size = SAME * float(np.abs(values).max())
    return next((place for place, column in enumerate(columns.T) if (np.abs(column - values) <= size).all()), None)
