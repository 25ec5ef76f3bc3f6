"""Ridge regression on curves in each covariate and on products of two: a start that trees alone take many rows to find."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from orthocal.arrays import Booleans, Floats

FARTHEST = 3.0
"""Curves and products take covariates no farther from their mean than this many standard deviations: tails are for lines."""
MOST_TERMS, ROWS_PER_TERM = 300, 4
"""Curves, or products, join where they are at most so many, with so many rows to each."""
KNOTS = (-1.0, 0.0, 1.0)
"""Of the curves, in standard deviations from the mean."""
MAIN = 5.0
"""Main columns count as so much larger, and so are penalised by the square of it less."""
PENALTIES = np.logspace(-5, 1, 13)
"""Of which generalised cross-validation chooses, as shares of the mean eigenvalue."""


@dataclass(frozen=True, eq=False)
class Scaling:
    """Mean and standard deviation of each column; missing values take the mean."""

    centre: Floats
    scale: Floats

    def __call__(self, columns: Floats) -> Floats:
        """Return the columns in standard deviations from their means."""
        return np.nan_to_num((columns - self.centre) / self.scale)


def scaling(columns: Floats, weight: Floats | None = None) -> Scaling:
    """Learn the scaling of columns; one that does not vary keeps its unit."""
    seen = ~np.isnan(columns)
    share = seen * (1.0 if weight is None else weight[:, None])
    total = np.maximum(share.sum(axis=0), np.finfo(float).tiny)
    centre = (np.where(seen, columns, 0.0) * share).sum(axis=0) / total
    gap = np.where(seen, columns - centre, 0.0)
    deviation = np.sqrt((gap**2 * share).sum(axis=0) / total)
    varies = deviation > 1e-12 * np.abs(centre)
    return Scaling(centre, np.where(varies & (deviation > 0), deviation, 1.0))


@dataclass(frozen=True, eq=False)
class Polynomial:
    """Covariates in standard deviations, and curves in them and products of two where the rows allow them.

    A curve is a square and a broken line.
    """

    scaling: Scaling
    curved: Booleans
    has_products: bool

    def __call__(self, X: Floats) -> Floats:
        """Return the terms of each row."""
        line = self.scaling(X)
        near = np.clip(line, -FARTHEST, FARTHEST)
        curved = near[:, self.curved]
        parts = [line, curved**2, *(np.maximum(curved - knot, 0.0) for knot in KNOTS)]
        if self.has_products:
            first, second = np.triu_indices(X.shape[1], 1)
            parts.append(near[:, first] * near[:, second])
        return np.hstack(parts)

    def near(self, X: Floats) -> Floats:
        """Return the covariates in standard deviations, at most `FARTHEST` of them."""
        return np.clip(self.scaling(X), -FARTHEST, FARTHEST)


def polynomial(X: Floats, weight: Floats | None = None) -> Polynomial:
    """Learn which terms to take and how to scale them; an indicator has no curve."""
    rows, columns = X.shape
    most = min(MOST_TERMS, rows // ROWS_PER_TERM)
    few = columns * (1 + len(KNOTS)) <= most
    curved = np.array([few and len(np.unique(x[~np.isnan(x)])) > 2 for x in X.T], dtype=bool)
    return Polynomial(scaling(X, weight), curved, 0 < columns * (columns - 1) // 2 <= most)


@dataclass(frozen=True, eq=False)
class RidgeLine:
    """A fitted linear function of columns."""

    scaling: Scaling
    weights: Floats
    intercept: float

    def __call__(self, columns: Floats) -> Floats:
        """Predict each row."""
        return np.asarray(self.scaling(columns) @ self.weights + self.intercept)


def ridge(columns: Floats, y: Floats, weight: Floats | None = None, *, main: int = 0) -> RidgeLine:
    """Ridge regression with the penalty that generalised cross-validation chooses; free of the units of both sides.

    The first `main` columns are hardly shrunk: a line that is shrunk leaves confounding behind.
    """
    share = np.full(len(y), 1 / len(y)) if weight is None else weight / weight.sum()
    scale, mean = scaling(columns, weight), float(share @ y)
    scale = Scaling(scale.centre, scale.scale / np.where(np.arange(columns.shape[1]) < main, MAIN, 1.0))
    Z, gap = scale(columns), y - mean
    if not columns.shape[1]:
        return RidgeLine(scale, np.empty(0), mean)
    values, vectors = np.linalg.eigh((Z * share[:, None]).T @ Z)
    values, d = np.maximum(values, 0.0), vectors.T @ (Z.T @ (share * gap))
    penalty = (PENALTIES * values.mean())[:, None] + np.finfo(float).tiny
    coefficients = d / (values + penalty)
    left = share @ gap**2 - 2 * coefficients @ d + coefficients**2 @ values
    freedom = 1 - (1 + (values / (values + penalty)).sum(axis=1)) / len(y)
    best = int(np.argmin(left / np.maximum(freedom, 1e-3) ** 2))
    return RidgeLine(scale, vectors @ coefficients[best], mean)
