"""What checks look at, and how they answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.arrays import Integers, Labels
from orthocal.assessment.parts import Check
from orthocal.folds import row_order
from orthocal.losses import Overlap
from orthocal.observations import Encoding, Observations, encode
from orthocal.study.arm_predictions import columns_named
from orthocal.study.checks.sums import DataSums
from orthocal.study.columns import MemoryTable
from orthocal.values import series_values

if TYPE_CHECKING:
    from orthocal.study.definition import StudyDefinition

PASSED, WARNING, FAILED = "passed", "warning", "failed"
MOST_ROWS = 5000
"""Rows that a check looks at which fits something for every covariate."""


class StudyEvidence:
    """The columns of a study, and what was learnt of them.

    Parameters
    ----------
    study : Study
    table : MemoryTable
    engine : MemoryEngine
        Or what it learnt of one contrast of several, or of a sample.
    effect : Effect, optional
        The effect that predictions are of; that of the study by default.
    sums : DataSums, optional
        What is known of all rows, where those of the table are a sample of them.
    encoding : Encoding, optional
        Of the covariates, where it is not that of the table.
    """

    def __init__(
        self,
        study: StudyDefinition,
        table: MemoryTable,
        engine: Any,
        effect: Any = None,
        sums: DataSums | None = None,
        encoding: Encoding | None = None,
    ) -> None:
        self.study, self.table, self.engine = study, table, engine
        self.effect: Any = study.estimand if effect is None else effect
        self._sums, self._encoding = sums, encoding

    @cached_property
    def sums(self) -> DataSums:
        """What checks must know of all rows."""
        if self._sums is not None:
            return self._sums
        return DataSums.of(self.rows, self.engine.learnt.nuisances, self.overlap)

    @property
    def is_sample(self) -> bool:
        """Whether the rows at hand are fewer than all."""
        return self._sums is not None and self._sums.rows > len(self.rows)

    @property
    def rows(self) -> Observations:
        """The rows."""
        found: Observations = self.engine.observations
        return found

    @property
    def overlap(self) -> Overlap | None:
        """How well treatment arms overlap, row by row."""
        found: Overlap | None = self.engine.learnt.loss.overlap
        return found

    def as_seen(self, check: Check) -> Check:
        """Return a check of single rows; where these are a sample, its figure says of how many."""
        if not self.is_sample:
            return check
        seen = f"on a sample of {len(self.rows):,} rows"
        return replace(check, figure=", ".join(filter(None, [check.figure, seen])))

    @cached_property
    def names(self) -> list[str]:
        """The name of each column of the covariates' matrix; of an indicator, with its value."""
        roles = self.study.roles
        if not roles.covariates:
            return []
        encoding = self._encoding or encode(self.table.covariates(roles.covariates))[1]
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


def looks_at_rows(check: Callable[..., Check | None]) -> Callable[..., Check | None]:
    """Mark a check that looks at single rows: where these are a sample, its figure says of how many."""

    @wraps(check)
    def looked(evidence: StudyEvidence, *more: Any) -> Check | None:
        found = check(evidence, *more)
        return None if found is None else evidence.as_seen(found)

    return looked
