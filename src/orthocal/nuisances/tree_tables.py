"""Probabilities at many values of the last feature at once: boosted trees are read once, not once for every value."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from orthocal.arrays import Booleans, Floats

ROWS = 4096
"""Rows whose leaves are looked up together."""
CLOSE = 1e-7
"""How near probabilities read from the trees must be to those that the model itself gives."""


class Leaf(NamedTuple):
    """A leaf: the nodes on the way to it with the side that is taken, and what it adds at each value of the last feature."""

    way: tuple[tuple[int, bool], ...]
    added: Floats


class Tree(NamedTuple):
    """The leaves of a tree, and the feature, threshold and side of missing values of its nodes."""

    feature: Any
    threshold: Floats
    missing_left: Any
    leaves: list[Leaf]


def probability_table(model: Any, X: Floats, values: Floats) -> Floats:
    """Return P(1 | x, value) for each row at every value of a last feature.

    Parameters
    ----------
    model : fitted classifier of (X, value)
    X : array of shape (rows, columns)
    values : array of shape (values,)
    """
    trees = boosted_trees(model, X.shape[1], values)
    if trees is not None:
        found = np.asarray(expit(_raw(trees, X, len(values)) + float(np.ravel(model._baseline_prediction)[0])))
        if _agrees(model, X, values, found):
            return found
    return np.column_stack([_asked(model, X, value) for value in values])


def boosted_trees(model: Any, last: int, values: Floats) -> list[Tree] | None:
    """Return the trees of a gradient-boosted binary classifier of numbers; None where the model is something else."""
    stages = getattr(model, "_predictors", None)
    if not stages or not hasattr(model, "_baseline_prediction") or any(len(stage) != 1 for stage in stages):
        return None
    nodes = [stage[0].nodes for stage in stages]
    if any(one["is_categorical"].any() for one in nodes):
        return None
    return [_tree(one, last, values) for one in nodes]


def _tree(nodes: Any, last: int, values: Floats) -> Tree:
    """Follow all ways down; a split by the last feature divides the values, any other the rows."""
    leaves: list[Leaf] = []
    open_ways: list[tuple[int, tuple[tuple[int, bool], ...], Booleans]] = [(0, (), np.ones(len(values), dtype=bool))]
    while open_ways:
        place, way, reached = open_ways.pop()
        node = nodes[place]
        if node["is_leaf"]:
            leaves.append(Leaf(way, node["value"] * reached))
            continue
        left = values <= node["num_threshold"]
        for child, taken, side in ((node["left"], True, left), (node["right"], False, ~left)):
            if node["feature_idx"] != last:
                open_ways.append((int(child), (*way, (place, taken)), reached))
            elif (reached & side).any():
                open_ways.append((int(child), way, reached & side))
    return Tree(nodes["feature_idx"], nodes["num_threshold"], nodes["missing_go_to_left"].astype(bool), leaves)


def _raw(trees: list[Tree], X: Floats, count: int) -> Floats:
    """Return the sum over trees at every value: which leaves a row reaches, times what they add."""
    added = np.array([leaf.added for tree in trees for leaf in tree.leaves])
    answer, buffer = np.empty((len(X), count)), np.empty((len(added), min(ROWS, len(X))))
    for start in range(0, len(X), ROWS):
        columns = np.ascontiguousarray(X[start : start + ROWS].T)
        reached = buffer[:, : columns.shape[1]]
        for place, own in enumerate(own for tree in trees for own in _reached(tree, columns)):
            reached[place] = own
        answer[start : start + ROWS] = reached.T @ added
    return answer


def _reached(tree: Tree, columns: Floats) -> list[Booleans]:
    """Return for each leaf which rows reach it."""
    sides: dict[tuple[int, bool], Booleans] = {}
    for place in {place for leaf in tree.leaves for place, _ in leaf.way}:
        x = columns[tree.feature[place]]
        left = x <= tree.threshold[place]
        left = left | np.isnan(x) if tree.missing_left[place] else left
        sides[place, True], sides[place, False] = left, ~left
    every = np.ones(columns.shape[1], dtype=bool)
    return [np.logical_and.reduce([every, *(sides[step] for step in leaf.way)]) for leaf in tree.leaves]


def _asked(model: Any, X: Floats, value: float) -> Floats:
    """Return what the model itself says at one value."""
    return np.asarray(model.predict_proba(np.column_stack([X, np.full(len(X), value)]))[:, 1])


def _agrees(model: Any, X: Floats, values: Floats, found: Floats) -> bool:
    """Return whether the model itself says the same of some rows; how it keeps its trees is its own affair and may change."""
    some, place = slice(0, 256), len(values) // 2
    return bool(np.allclose(found[some, place], _asked(model, X[some], values[place]), rtol=0, atol=CLOSE))
