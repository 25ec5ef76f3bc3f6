"""Losses: one convex function of a number per row, nuisances already filled in.

The loss is the hub: everything downstream sees only (prediction, loss).
"""

from orthocal.losses.arm_scores import ArmScores
from orthocal.losses.balance import Balance, balance_of
from orthocal.losses.counting import as_counts
from orthocal.losses.protocol import (
    Loss,
    Origin,
    Overlap,
    columns_of,
    counted_rows,
    is_ratio,
    joined,
    of_columns,
    require_loss,
    rows_that_count,
    total_mass,
    without_overlap,
)
from orthocal.losses.quadratic import QuadraticLoss
from orthocal.losses.tilted import ExpectileLoss, HingeLoss
from orthocal.losses.units import score_at

__all__ = [
    "ArmScores",
    "Balance",
    "ExpectileLoss",
    "HingeLoss",
    "Loss",
    "Origin",
    "Overlap",
    "QuadraticLoss",
    "as_counts",
    "balance_of",
    "columns_of",
    "counted_rows",
    "is_ratio",
    "joined",
    "of_columns",
    "require_loss",
    "rows_that_count",
    "score_at",
    "total_mass",
    "without_overlap",
]
