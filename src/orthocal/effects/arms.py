"""What effects of a treatment with arms have in common."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from orthocal.arrays import Booleans, Floats, Integers, Labels, group_sums
from orthocal.errors import OrthocalError, OverlapWarning, require_level
from orthocal.folds import OTHER
from orthocal.formats import shown
from orthocal.losses import Overlap
from orthocal.nuisances import Fitted, Nuisance
from orthocal.observations import Observations


def doubly_robust_mean(y: Floats, got: Booleans, pi: Floats, mu: Floats) -> Floats:
    r"""Pseudo-outcome of the mean outcome under one arm, :math:`\mu + \frac{1\{got\}}{\pi}(y - \mu)` (mathematics 3.1)."""
    score = y - mu
    score *= got  # in place: on many rows new memory costs as much as the arithmetic
    score /= pi
    score += mu
    return score


def pseudo_outcome(
    y: Floats, treated: Booleans, control: Booleans, pi1: Floats, pi0: Floats, mu1: Floats, mu0: Floats
) -> Floats:
    r"""Doubly robust pseudo-outcome of a contrast of two arms; two arms have :math:`\pi_0 = 1 - \pi_1` (mathematics 3.1).

    .. math:: \chi = \mu_1 - \mu_0 + \frac{1\{a = 1\}}{\pi_1}(y - \mu_1) - \frac{1\{a = 0\}}{\pi_0}(y - \mu_0)
    """
    return doubly_robust_mean(y, treated, pi1, mu1) - doubly_robust_mean(y, control, pi0, mu0)


def outcome_residual(y: Floats, treated: Booleans, control: Booleans, mu1: Floats, mu0: Floats) -> Floats:
    """Outcome less its mean in the arm that a row got; 0 where it got neither."""
    residual: Floats = y - np.where(treated, mu1, mu0)
    residual *= treated | control
    return residual


MOST_CLIPPED = 0.05
"""Share of clipped rows above which overlap deserves a warning."""


FIRST = 100
"""Outcomes that are looked at first: mostly they say it already."""


def is_binary(outcome: Floats) -> bool:
    """Whether every outcome is 0 or 1, so that a classifier should learn it."""
    return all(bool(((some == 0) | (some == 1)).all()) for some in (outcome[:FIRST], outcome))


def require_levels(treatment: Labels, *levels: tuple[str, Any]) -> None:
    """The treatment varies, and the values that are asked for occur and differ."""
    if (treatment == treatment[0]).all():  # which is faster to see than all levels
        raise OrthocalError(
            f"The treatment must have at least two values; every row is {shown(treatment[:1].tolist()[0])}. "
            "Add rows of the other arm."
        )
    for name, level in levels:
        require_level(treatment, level, name)
    if len({level for _, level in levels}) < len(levels):
        raise OrthocalError(f"`arm` and `control` must differ; both are {shown(levels[0][1])}.")


def strata_of(treatment: Labels, *levels: Any) -> Labels:
    """Return 0, 1, ... for the values that count, and one stratum for all others."""
    strata = np.full(len(treatment), OTHER)
    for j, level in enumerate(levels):
        strata[treatment == level] = j
    return strata


def require_binary(values: Labels, name: str) -> None:
    """A column holds 0 and 1, both of them."""
    if not set(np.unique(values).tolist()) <= {0, 1}:
        odd = next(value for value in np.unique(values).tolist() if value not in {0, 1})
        raise OrthocalError(
            f"`{name}` must be 0 or 1 in every row for this effect; {shown(odd)} occurs. Recode the column."
        )
    if len(np.unique(values)) == 1:
        raise OrthocalError(f"`{name}` must take both 0 and 1; every row is {shown(np.unique(values).tolist()[0])}.")


def outcome_nuisance(name: str, outcome: Floats, rows: Booleans | None = None) -> Nuisance:
    """Return the regression of the outcome, by a classifier when it is binary."""
    return Nuisance(name, "outcome", outcome, rows, is_probability=is_binary(outcome))


def propensity_nuisance(got: Booleans, name: str = "propensity") -> Nuisance:
    """Return the chance of having got a level, by which a formula divides."""
    return Nuisance(name, "propensity", got.astype(float), is_probability=True, is_divisor=True)


def propensities(treated: Booleans, control: Booleans) -> list[Nuisance]:
    """Return the propensity to learn, and the control's own when some rows have neither arm."""
    learnt = [propensity_nuisance(treated)]
    if not (treated | control).all():
        learnt.append(propensity_nuisance(control, "propensity_control"))
    return learnt


def both_propensities(fitted: Fitted) -> tuple[Floats, Floats]:
    """Return the propensities of arm and control, which add to one when there are no other arms."""
    propensity, control = fitted["propensity"], fitted.values.get("propensity_control")
    if control is None:
        return propensity, 1 - propensity
    are_given = not {"propensity", "propensity_control"} & set(fitted.clipped)
    if are_given and (propensity + control).max() > 1 + 1e-9:
        row = int(np.argmax(propensity + control))
        raise OrthocalError(
            f"`propensity` and `propensity_control` as given must not add to more than 1; in row {row} they do."
        )
    return propensity, control


def hajek(inverse: Floats, observations: Observations, fitted: Fitted) -> Floats:
    """Scale inverse propensity weights so that in every fold their weighted mean is one (mathematics 3.10)."""
    total, held = fitted.sums.get("hajek", hajek_sums(inverse, observations, fitted))
    fold = _fold_of(observations, fitted)
    if not (held[np.unique(fold)] > 0).all():
        raise OrthocalError("Every fold must hold rows of the arm; one has none. Use fewer folds or more data.")
    return np.asarray(inverse * (total / np.where(held > 0, held, 1.0))[fold])


def hajek_sums(inverse: Floats, observations: Observations, fitted: Fitted) -> Floats:
    """Return the weight, and the weight times the inverse propensity, of each fold."""
    fold, weight = _fold_of(observations, fitted), observations.weight
    count = int(fold.max()) + 1
    return np.array([group_sums(fold, weight, count), group_sums(fold, weight * inverse, count)])


def _fold_of(observations: Observations, fitted: Fitted) -> Integers:
    return np.zeros(len(observations), dtype=np.int64) if fitted.fold is None else fitted.fold


def overlap_of(
    levels: Mapping[str, tuple[Booleans, Floats]], fitted: Fitted, weight: Floats, notes: tuple[str, ...] = ()
) -> Overlap:
    """Summarise overlap and warn where many rows were clipped; `levels` maps a name to (who got it, its propensity)."""
    if not fitted.is_part:
        warn_if_clipped(fitted.clipped, fitted.clip)
    return Overlap(fitted.clip, dict(fitted.clipped), dict(levels), weight, notes)


def warn_if_clipped(clipped: Mapping[str, float], clip: float) -> None:
    """Say where many fitted propensities had to be moved away from 0 or 1."""
    for name, share in clipped.items():
        if share > MOST_CLIPPED:
            warnings.warn(
                f"`{name}` was clipped at {clip} in {share:.1%} of rows: overlap is poor, and effects there rest on "
                "extrapolation. Restrict the rows to those that could have had either arm, or use effect='overlap'.",
                OverlapWarning,
                stacklevel=3,
            )
