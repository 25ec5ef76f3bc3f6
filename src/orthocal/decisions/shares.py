"""The table of top shares: people from the most promising down, with what they were predicted and estimated to gain."""

from __future__ import annotations

import numpy as np

from orthocal.arrays import Booleans, Floats, Integers
from orthocal.assessment.compare import moments_of
from orthocal.decisions.allocation import Allocation
from orthocal.decisions.people import People
from orthocal.errors import require_one_of, require_whole


def top_share_table(
    people: People, rule: str, bins: int = 10, *, level: float = 0.95, by_ratio: bool = False
) -> dict[str, Floats]:
    """Return the table of top shares of a prediction, one entry a bin of about equally many people.

    Everyone is considered with the arm that promises most: the largest predicted gain less cost, or per cost with `by_ratio`
    (within a budget). People come in the order of predicted gain per cost, or of predicted gain where nothing costs anything.
    People who are tied are in the same bin, so that the order of the rows does not matter.

    Parameters
    ----------
    people : People
    rule : str
        Name of the prediction.
    bins : int, default 10
    level : float, default 0.95
    by_ratio : bool, default False

    Returns
    -------
    dict of str to array
        n (rows), share (of people, this bin and those before), predicted and estimated (mean gain per person of the bin, before
        costs), standard_error, lower, upper (interval of the estimated gain; NaN of a bin with one row or cluster), cost,
        cumulative_gain and cumulative_cost (per person of all people, when this bin and those before are treated), and
        cost_per_gain (cost of the bin over its estimated gain; NaN where nothing is gained).

    Examples
    --------
    >>> import numpy as np
    >>> from orthocal.decisions.people import people_of
    >>> from orthocal.losses.arm_scores import ArmScores
    >>> values = np.array([[0.0, 4.0], [0.0, 2.0], [0.0, 1.0], [0.0, -1.0]])
    >>> people = people_of(ArmScores(arms=("none", "mail"), values=values, weight=np.ones(4)), {"tau": [3.0, 2.0, 1.0, 0.0]})
    >>> table = top_share_table(people, "tau", bins=2)
    >>> table["share"], table["estimated"], table["cumulative_gain"]
    (array([0.5, 1. ]), array([3., 0.]), array([1.5, 1.5]))
    """
    require_one_of(rule, tuple(people.predictions), "rule")
    require_whole(bins, 1, "bins")
    prediction, weight = people.predictions[rule], people.weight
    given = _most_promising(prediction, people.cost, by_ratio=by_ratio)
    predicted, gain, cost = (given.expected(columns) for columns in (prediction, people.gains, people.cost))
    place = _bins_of(_per_cost(predicted, cost) if people.has_cost else predicted, predicted, weight, bins)
    held = np.bincount(place, weight, bins)
    filled = np.flatnonzero(held > 0)
    total, sums = weight.sum(), {}
    for name, column in {"predicted": predicted, "estimated": gain, "cost": cost}.items():
        sums[name] = np.bincount(place, weight * column, bins)[filled]
    means = {name: summed / held[filled] for name, summed in sums.items()}
    paid = np.full(len(filled), np.nan)
    np.divide(sums["cost"], sums["estimated"], out=paid, where=sums["estimated"] > 0)
    return {
        "n": np.bincount(place[weight > 0], minlength=bins)[filled].astype(np.float64),
        "share": np.cumsum(held)[filled] / total,
        **means,
        **_errors(people, gain, [place == one for one in filled], level),
        "cumulative_gain": np.cumsum(sums["estimated"]) / total,
        "cumulative_cost": np.cumsum(sums["cost"]) / total,
        "cost_per_gain": paid,
    }


def _most_promising(prediction: Floats, cost: Floats, *, by_ratio: bool) -> Allocation:
    """Return the arm of each row that promises most, even where it promises a loss."""
    worth = prediction - cost
    if by_ratio:
        worth = np.stack([_per_cost(p, c) for p, c in zip(prediction.T, cost.T, strict=True)], axis=1)
    arm = np.argmax(worth, axis=1).astype(np.int64) + 1
    return Allocation(arm, arm)


def _per_cost(gain: Floats, cost: Floats) -> Floats:
    """Return gain over cost: without a cost, infinite with the sign of the gain."""
    ratio = np.where(gain == 0, 0.0, np.copysign(np.inf, gain))
    return np.divide(gain, cost, out=ratio, where=cost > 0)


def _bins_of(first: Floats, second: Floats, weight: Floats, bins: int) -> Integers:
    """Return the bin of each row, highest first: that in which the middle of its block of tied rows lies."""
    order = np.lexsort((-second, -first))
    first, second, held = first[order], second[order], np.cumsum(weight[order])
    new = np.append(True, (first[1:] != first[:-1]) | (second[1:] != second[:-1]))
    block = np.cumsum(new) - 1
    ends = held[np.append(np.flatnonzero(new)[1:] - 1, len(held) - 1)]
    middle = (ends + np.append(0.0, ends[:-1])) / 2 / held[-1]
    place = np.empty(len(first), dtype=np.int64)
    place[order] = np.minimum((middle * bins).astype(np.int64), bins - 1)[block]
    return place


def _errors(people: People, gain: Floats, members: list[Booleans], level: float) -> dict[str, Floats]:
    """Return standard errors and intervals of the mean gains of bins, by rows or clusters."""
    columns = {name: np.full(len(members), np.nan) for name in ("standard_error", "lower", "upper")}
    for k, members_of_bin in enumerate(members):
        rows = members_of_bin & (people.weight > 0)
        weight, groups = people.weight[rows], None if people.groups is None else people.groups[rows]
        found = moments_of([weight, weight * gain[rows]], groups)
        if (len(weight) if groups is None else len(np.unique(groups))) > 1:
            _, columns["standard_error"][k], (columns["lower"][k], columns["upper"][k]), _ = found.mean(1, level)
    return columns
