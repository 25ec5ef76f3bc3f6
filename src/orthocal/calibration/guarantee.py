"""A bound on the calibration error of three-way binning that holds for finitely many rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from orthocal.arrays import Floats, Integers, group_sums
from orthocal.effects.arms import is_binary
from orthocal.errors import OrthocalError, require_inside
from orthocal.maps import StepMap
from orthocal.orthogonal import Orthogonal


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """A bound on the calibration error that holds with a stated probability, whatever the distribution of the data.

    Parameters
    ----------
    bound : float
        Beyond the nuisances' own second-order error.
    probability : float
    smallest_bin : float
        Effective number of independent rows (clusters, where there are groups) in the smallest bin.
    is_vacuous : bool
        The bound says no more than could be said without data.
    text : str
    """

    bound: float
    probability: float
    smallest_bin: float
    is_vacuous: bool
    text: str


@dataclass(frozen=True)
class Outcomes:
    """What was seen of the outcome: its range, and whether it is 0 or 1 throughout."""

    low: float
    high: float
    is_binary: bool

    @classmethod
    def of(cls, outcome: Floats) -> Outcomes:
        """Look at an outcome."""
        return cls(float(outcome.min()), float(outcome.max()), is_binary(outcome))

    def range(self, given: tuple[float, float] | None) -> tuple[float, float]:
        """Return the range that the outcome cannot leave: as given, or 0 to 1 of a binary one; what was seen is no bound."""
        if given is None and not self.is_binary:
            raise OrthocalError(
                f"A guarantee must know the range that the outcome cannot leave; outcomes from {self.low:.4g} to {self.high:.4g} "
                "were seen, which does not bound others. Pass outcome_range=(low, high)."
            )
        low, high = (0.0, 1.0) if given is None else map(float, given)
        if not (np.isfinite(high - low) and low < high and low <= self.low and self.high <= high):
            raise OrthocalError(
                f"`outcome_range` must be two finite numbers around every outcome; it is {given}, and outcomes go from "
                f"{self.low:.4g} to {self.high:.4g}."
            )
        return low, high


def guarantee_of(
    effect: Any, learnt: Orthogonal, map_: StepMap, outcome_range: tuple[float, float], delta: float
) -> Guarantee:
    """Return the bound for the bins of a three-way fit, by a range of the outcome that is a fact (mathematics 5.3)."""
    require_inside(delta, 0, 1, "delta")
    if not hasattr(effect, "reach"):
        raise OrthocalError(
            f"There is no guarantee for {type(effect).__name__}: the range of the outcome does not bound its score. "
            "Effects with one are CATE and CVaRUnderTreatment."
        )
    reach, width = effect.reach(learnt.nuisances, *outcome_range)
    bins = np.searchsorted(map_.edges, cast("Floats", learnt.prediction), side="left")
    bound, fewest = deviation_bound(reach, width, learnt.loss.weight, bins, learnt.loss.groups, delta)
    is_vacuous = bool(bound >= width / 2)  # the middle of the effect's range is that near without data
    verdict = f"against {width / 2:.3g} without data"
    if is_vacuous:
        verdict = "which is vacuous: use more rows or fewer bins"
    text = (
        f"With probability {1 - delta:g} over the rows that gave the values, the calibration error is at most {bound:.3g} in "
        f"units of the effect, {verdict}. The nuisances' second-order error comes on top."
    )
    return Guarantee(bound=bound, probability=1 - delta, smallest_bin=fewest, is_vacuous=is_vacuous, text=text)


def deviation_bound(
    reach: Floats, width: float, weight: Floats, bins: Integers, groups: Integers | None, delta: float
) -> tuple[float, float]:
    r"""Return the largest deviation of a bin's value from its mean effect, and the effective size of the smallest bin.

    A bin's weighted mean of pseudo-outcomes :math:`\chi_i` differs from its mean effect by the mean of
    :math:`\chi_i - E[\chi_i \mid x_i]`, whose range is :math:`R_i` (`reach`) given the covariates, by that of
    :math:`\tau(x_i) - E[\tau]`, of range `width`, and by the nuisances' error, which is not counted. Hoeffding's inequality for
    both, in B bins, with sums over independent units g (rows, or clusters) of the weights' shares :math:`\omega_i` of the bin:

    .. math:: \max_b \sqrt{\tfrac12\log(4B/\delta)}\Big(\sqrt{\textstyle\sum_g (\sum_{i \in g}\omega_i R_i)^2} +
              \text{width}\sqrt{\textstyle\sum_g (\sum_{i \in g}\omega_i)^2}\Big)

    The second root is one over the root of Kish's effective number. Weights and sizes of clusters are taken as they are.
    """
    count = int(bins.max()) + 1
    share = weight / group_sums(bins, weight, count)[bins]
    unit = np.arange(len(bins)) if groups is None else groups
    pairs, code = np.unique(np.column_stack([bins, unit]), axis=0, return_inverse=True)
    code = code.ravel()
    noise, size = (
        np.sqrt(group_sums(pairs[:, 0], group_sums(code, values, len(pairs)) ** 2, count))
        for values in (share * reach, share)
    )
    factor = float(np.sqrt(np.log(4 * count / delta) / 2))
    return factor * float((noise + width * size).max()), float((1 / size**2).min())
