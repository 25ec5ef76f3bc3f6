"""The frozen records of an audit of subgroups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.formats import brief

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EVERYONE = "all rows"
SHOWN = 10
"""Cells that are off, the most surprising ones, that words and tables name."""


@dataclass(frozen=True, kw_only=True)
class AuditedCell:
    """What an audit found in one cell: a group, or a group and a range of predictions.

    Parameters
    ----------
    column : str
        Of the group; without one, all rows.
    group : str
        In words.
    range : (float, float) or None
        Of predictions, closed on the right; None where the whole group is meant.
    rows : float
        Effective number of rows (clusters).
    excess : float
        By how much predictions are too high on average, in units of the residual.
    interval : (float, float)
        Of the excess, simultaneous over all cells.
    p_value : float
        Adjusted for all cells.
    """

    column: str
    group: str
    range: tuple[float, float] | None
    rows: float
    excess: float
    interval: tuple[float, float]
    p_value: float

    @property
    def name(self) -> str:
        """The cell in words."""
        if self.range is None:
            return self.group
        low, high = self.range
        if np.isinf(low):
            return f"{self.group}, predictions up to {brief(high)}"
        return f"{self.group}, predictions above {brief(low)}" + ("" if np.isinf(high) else f", up to {brief(high)}")

    def __str__(self) -> str:
        sign = 1.0 if self.excess >= 0 else -1.0
        low, high = sorted(sign * end for end in self.interval)
        side = "high" if self.excess >= 0 else "low"
        return f"{self.name}: too {side} by {brief(abs(self.excess))} ({brief(low)} to {brief(high)})"


@dataclass(frozen=True, kw_only=True)
class Audit:
    """Whether a prediction is calibrated in every named subgroup.

    Parameters
    ----------
    cells : tuple of AuditedCell
        The smallest p-value first.
    p_value : float
        Of the hypothesis that every cell is calibrated.
    level : float
        Of confidence.
    draws : int
        Of the multiplier bootstrap.
    searched : tuple of str
        Columns by which groups were discovered, on other rows; none where groups were named.

    Examples
    --------
    >>> from orthocal import Audit
    >>> from orthocal.assessment.audit_records import AuditedCell
    >>> cell = AuditedCell(
    ...     column="age", group="age over 60", range=None, rows=900.0, excess=3.1, interval=(1.2, 5.0), p_value=0.002
    ... )
    >>> print(Audit(cells=(cell,), p_value=0.002, level=0.95, draws=9999))
    1 of 1 cells is miscalibrated (p = 0.002, adjusted for all cells).
      age over 60: too high by 3.1 (1.2 to 5)
    """

    cells: tuple[AuditedCell, ...]
    p_value: float
    level: float
    draws: int
    searched: tuple[str, ...] = ()

    @property
    def found(self) -> tuple[AuditedCell, ...]:
        """The miscalibrated cells, by adjusted p-values."""
        return tuple(cell for cell in self.cells if cell.p_value <= 1 - self.level)

    @property
    def headline(self) -> str:
        """How many cells are miscalibrated, in a sentence."""
        count = len(self.found) or "None"
        where = f", found on the other half of the rows by {', '.join(self.searched)}," if self.searched else ""
        verb = "is" if len(self.found) <= 1 else "are"
        return f"{count} of {len(self.cells)} cells{where} {verb} miscalibrated (p = {self.p_value:.3g}, adjusted for all cells)."

    def __str__(self) -> str:
        more = len(self.found) - SHOWN
        last = [f"  and {more} more"] if more > 0 else []
        return "\n".join([self.headline, *(f"  {cell}" for cell in self.found[:SHOWN]), *last])

    def to_dict(self) -> dict[str, Any]:
        """Return the audit as plain numbers, strings, lists and dicts, ready for JSON."""
        cells = [
            {
                "name": cell.name,
                "column": cell.column or None,
                "group": cell.group,
                "range": cell.range and [None if np.isinf(end) else end for end in cell.range],
                "rows": cell.rows,
                "excess": cell.excess,
                "interval": list(cell.interval),
                "p_value": cell.p_value,
                "is_off": cell in self.found,
            }
            for cell in self.cells
        ]
        head = {"verdict": self.headline, "p_value": self.p_value, "level": self.level, "draws": self.draws}
        return {**head, "searched": list(self.searched), "cells": cells}

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw by how much predictions are too high in each group, and in the miscalibrated cells; see `plots.audit_forest`."""
        from orthocal.plots import audit_forest

        return audit_forest(self, ax)

    def _repr_html_(self) -> str:
        from orthocal.reporting.notebook import audit_html

        return audit_html(self)
