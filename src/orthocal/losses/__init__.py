"""Losses: one convex function of a number per row, nuisances already filled in.

The loss is the hub: everything downstream sees only (prediction, loss).
"""

from orthocal.losses.balance import Balance, balance_of
from orthocal.losses.columns import columns_of, joined, of_columns
from orthocal.losses.expectile import ExpectileLoss
from orthocal.losses.hinge import HingeLoss
from orthocal.losses.protocol import Loss, Origin, Overlap, as_counts, rows_that_count, total_mass, without_overlap
from orthocal.losses.quadratic import QuadraticLoss

__all__ = [
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
    "joined",
    "of_columns",
    "rows_that_count",
    "total_mass",
    "without_overlap",
]
