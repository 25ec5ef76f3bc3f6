"""Predictions of the same rows side by side, in partitions: what a leaderboard must know of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from orthocal.arrays import Floats
from orthocal.assessment.rivals_side_by_side import RivalSums, rival_sums
from orthocal.engines.partitioned.partition_loss import Job, loss_of
from orthocal.engines.partitioned.passes import reduced
from orthocal.engines.partitioned.source import Source
from orthocal.engines.protocol import PartitionedTable
from orthocal.maps import Map
from orthocal.observations import as_numbers
from orthocal.roles import Roles


class RivalColumn(NamedTuple):
    """A prediction in partitions: a column, and what is made of it."""

    column: str
    map: Map

    def values(self, part: Any, roles: Roles) -> Floats:
        """Return the predictions of a partition; rows of weight 0 are left out."""
        own = as_numbers(part[self.column], self.column, len(part))
        weight = None if roles.sample_weight is None else as_numbers(part[roles.sample_weight], "sample_weight")
        return self.map.predict(own if weight is None else own[weight > 0])


def with_columns_of(source: Source, table: PartitionedTable, rivals: Sequence[RivalColumn], *more: str) -> Source:
    """Return the source with the columns of all rivals."""
    names = dict.fromkeys([*source.job.roles.needed, *(one.column for one in rivals), *more])
    return replace(source, table=table.select(list(names)))


def summed_rivals(
    source: Source, table: PartitionedTable, rivals: Sequence[RivalColumn], cost: float | None
) -> RivalSums:
    """Sum losses of rivals, their products, and what decisions by them are worth, in one pass over the table of a source."""
    own = with_columns_of(source, table, rivals)
    return reduced(own.table, _summed, RivalSums.merge, own.job, tuple(rivals), cost)


def _summed(part: Any, job: Job, rivals: Sequence[RivalColumn], cost: float | None) -> RivalSums | None:
    """Question: what a leaderboard must know of a partition."""
    prediction, loss = loss_of(part, job)
    if not len(prediction):
        return None
    return rival_sums([np.asarray(one.values(part, job.roles)) for one in rivals], loss, cost)
