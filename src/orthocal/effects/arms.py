"""What effects of a treatment with levels have in common."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from orthocal.errors import OverlapWarning
from orthocal.losses import Overlap
from orthocal.nuisances import Nuisance

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orthocal.arrays import Booleans, Floats
    from orthocal.nuisances import Fitted

MOST_CLIPPED = 0.05
"""Share of clipped rows above which overlap deserves a warning."""


def is_binary(outcome: Floats) -> bool:
    """Whether every outcome is 0 or 1, so that a classifier should learn it."""
    return bool(((outcome == 0) | (outcome == 1)).all())


def propensities(treated: Booleans, control: Booleans) -> list[Nuisance]:
    """Return the propensity to learn, and the control's own when some rows have neither level."""
    learnt = [Nuisance("propensity", "propensity", treated.astype(float), is_probability=True, is_divisor=True)]
    if not (treated | control).all():
        learnt.append(
            Nuisance(
                "propensity_control",
                "propensity",
                control.astype(float),
                is_probability=True,
                is_divisor=True,
            )
        )
    return learnt


def overlap_of(levels: Mapping[str, tuple[Booleans, Floats]], fitted: Fitted) -> Overlap:
    """Summarise overlap and warn where many rows were clipped; `levels` maps a name to (who got it, its propensity)."""
    for name, share in fitted.clipped.items():
        if share > MOST_CLIPPED:
            warnings.warn(
                f"`{name}` was clipped at {fitted.clip} in {share:.1%} of rows: overlap is poor, and effects there rest on "
                "extrapolation. Restrict the rows to those that could have had either level, or use effect='overlap'.",
                OverlapWarning,
                stacklevel=2,
            )
    return Overlap(
        clip=fitted.clip,
        clipped=dict(fitted.clipped),
        propensity={name: _range(p) for name, (_, p) in levels.items()},
        effective_rows={name: _effective(1 / p[got]) for name, (got, p) in levels.items()},
    )


def _range(propensity: Floats) -> tuple[float, float, float]:
    low, middle, high = np.quantile(propensity, [0.0, 0.5, 1.0]).tolist()
    return low, middle, high


def _effective(weight: Floats) -> float:
    return float(weight.sum() ** 2 / (weight @ weight)) if len(weight) else 0.0
