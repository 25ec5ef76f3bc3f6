"""Subgroups that nobody named: found by a shallow tree of residuals on some rows, in words, to be tested on others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.tree import DecisionTreeRegressor

from orthocal.arrays import Booleans, Floats, Integers, Labels
from orthocal.losses import Loss
from orthocal.observations import MISSING, as_groups

DEPTH = 3
SMALLEST_SHARE, FEWEST_ROWS = 0.05, 30
"""Of the rows that are searched, that a subgroup must have; and how many."""
MOST_LEVELS = 30
"""Values of text that are looked at, the most frequent ones."""
DIGITS = 3
"""Significant digits of a threshold."""


class Condition(NamedTuple):
    """A number above, or up to, a threshold; or a text that is, or is not, a value."""

    column: str
    is_above: bool
    threshold: float
    value: Any = None

    def holds(self, labels: Labels) -> Booleans:
        """Return in which rows it holds; where the column is missing, it does not."""
        if self.value is not None:
            return np.asarray(((labels == self.value) == self.is_above) & (labels != MISSING))
        return np.asarray(labels > self.threshold if self.is_above else labels <= self.threshold)


@dataclass(frozen=True)
class Feature:
    """What a tree can divide by: a column of numbers, or whether a column has a value."""

    column: str
    value: Any = None
    is_whole: bool = False
    other: Any = None
    """The one other value of the column, where it has two."""

    def numbers(self, labels: Labels) -> Floats:
        """Return what the tree sees; numbers may be missing."""
        own = labels.astype(np.float64) if self.value is None else np.asarray(labels == self.value).astype(np.float64)
        return np.where(np.isfinite(own), own, np.nan)

    def condition(self, threshold: float, is_above: bool) -> Condition:
        """Return a side of a division, with a threshold of few digits."""
        if self.value is not None:
            if not is_above and self.other is not None:
                return Condition(self.column, True, 0.0, self.other)
            return Condition(self.column, is_above, 0.0, self.value)
        short = np.floor(threshold) if self.is_whole else float(f"{threshold:.{DIGITS}g}")
        return Condition(self.column, is_above, float(short))


def discovered(
    prediction: Floats, loss: Loss, columns: Mapping[str, Any], rows: Integers, random_state: int
) -> dict[str, Labels]:
    """Return columns of subgroups of all rows, one for each depth of a tree that was fitted on some of them.

    Parameters
    ----------
    prediction : array of shape (rows,)
    loss : Loss
    columns : mapping of str to array
        That subgroups are made of.
    rows : array of int
        To fit the tree on; those that subgroups are tested on must not be among them.
    random_state : int
        Of ties between divisions.
    """
    labels = {name: as_groups(given, name, len(prediction)) for name, given in columns.items()}
    features = [one for name in labels for one in features_of(name, labels[name][rows])]
    residual, weight = -loss[rows].at(prediction[rows]).derivative(prediction[rows]), loss.weight[rows]
    least = max(FEWEST_ROWS, int(SMALLEST_SHARE * len(rows)))
    tree = DecisionTreeRegressor(max_depth=DEPTH, min_samples_leaf=least, random_state=random_state)
    seen = np.column_stack([one.numbers(labels[one.column][rows]) for one in features])
    positive = weight > 0
    tree.fit(seen[positive], (residual / np.where(positive, weight, 1.0))[positive], sample_weight=weight[positive])
    found: dict[str, Labels] = {}
    for conditions in _nodes(tree.tree_, features):
        name = f"depth {len(conditions)}"
        column = found.setdefault(name, np.full(len(prediction), MISSING, dtype=object))
        inside = np.all([one.holds(labels[one.column]) for one in conditions], axis=0)
        column[inside] = in_words(conditions)
    return {name: column.astype(str) for name, column in found.items()}


def features_of(name: str, labels: Labels) -> list[Feature]:
    """Return what a tree can divide a column by."""
    if labels.dtype.kind in "fiub":
        known = labels[np.isfinite(labels)].astype(np.float64)
        return [Feature(name, is_whole=bool((known == np.floor(known)).all()))]
    values, counts = np.unique(labels[labels != MISSING], return_counts=True)
    if len(values) == 2:
        return [Feature(name, values[1], other=values[0])]
    return [Feature(name, one) for one in values[np.argsort(-counts, kind="stable")][:MOST_LEVELS]]


def _nodes(tree: Any, features: list[Feature]) -> list[tuple[Condition, ...]]:
    """Return the conditions of every node of a tree but its root."""
    found: list[tuple[Condition, ...]] = []
    left: list[tuple[int, tuple[Condition, ...]]] = [(0, ())]
    while left:
        node, conditions = left.pop()
        if conditions:
            found.append(conditions)
        if tree.children_left[node] >= 0:
            feature, threshold = features[tree.feature[node]], float(tree.threshold[node])
            children = ((tree.children_left[node], False), (tree.children_right[node], True))
            left += [(int(child), (*conditions, feature.condition(threshold, above))) for child, above in children]
    return found


def in_words(conditions: tuple[Condition, ...]) -> str:
    """Return conditions in words, those on one column together."""
    columns = dict.fromkeys(one.column for one in conditions)
    return " and ".join(_of_column([one for one in conditions if one.column == name]) for name in columns)


def _of_column(conditions: list[Condition]) -> str:
    column = conditions[0].column
    if conditions[0].value is not None:
        equal = [one.value for one in conditions if one.is_above]
        others = " nor ".join(str(one.value) for one in conditions)
        return f"{column} = {equal[-1]}" if equal else f"{column} is not {others}"
    low = max((one.threshold for one in conditions if one.is_above), default=-np.inf)
    high = min((one.threshold for one in conditions if not one.is_above), default=np.inf)
    if np.isinf(high):
        return f"{column} > {low:,.12g}"
    return f"{column} <= {high:,.12g}" if np.isinf(low) else f"{low:,.12g} < {column} <= {high:,.12g}"
