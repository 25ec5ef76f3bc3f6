"""How well a correction balances functions of a continuous treatment and the covariates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from orthocal.arrays import Floats

TREATMENT = "treatment"


@dataclass(frozen=True, eq=False)
class Balance:
    r"""Sums over rows that say whether :math:`E_n[\zeta b] = E_n[\partial_a b]` for the main functions b of (a, x).

    A right correction :math:`\zeta` has it for every b. Where it fails for a b that the outcome depends on, and the outcome's
    regression misses that, the effect is biased.

    Parameters
    ----------
    names : tuple of str
        Of the functions; the treatment comes first.
    sums : array of shape (functions, 6)
        Of weight w, of w b, w b**2, w times the correction, w times the correction times b, and w times the derivative of b.
    squares : array of shape (6,)
        Of the treatment a and the correction z: sums of squared weights times (z a)**2, z**2 a, z**2, z a, z and 1.
    """

    names: tuple[str, ...]
    sums: Floats
    squares: Floats

    def merge(self, other: Balance) -> Balance:
        """Of both."""
        return Balance(self.names, self.sums + other.sums, self.squares + other.squares)

    @property
    def treatment(self) -> float:
        """Mean of correction times treatment, from its mean: 1 when balanced."""
        return 1.0 + float(self._gaps[0])

    @property
    def chance(self) -> float:
        """Standard error of the mean of correction times treatment, from its mean."""
        weight, b, _, correction, product, _ = self.sums[0]
        middle = b / weight
        mean = (product - middle * correction) / weight
        square, twice, plain, cross, alone, ones = self.squares
        about = square - 2 * middle * twice + middle**2 * plain - 2 * mean * (cross - middle * alone) + mean**2 * ones
        return float(np.sqrt(max(about, 0.0)) / weight)

    @property
    def worst(self) -> tuple[str, float]:
        """The function that is least balanced, and by how much: what the treatment would be off by if it were as unbalanced."""
        at = int(np.argmax(np.abs(self._gaps)))
        return self.names[at], float(self._gaps[at])

    @property
    def _gaps(self) -> Floats:
        """Gap of each function in its standard deviations, times that of the treatment: free of all units."""
        weight, b, square, correction, product, derivative = self.sums.T
        deviation = np.sqrt(np.maximum(square / weight - (b / weight) ** 2, 0.0))
        gap = (product - b / weight * correction - derivative) / weight
        varies = deviation > 1e-9 * np.sqrt(square / weight)
        return np.asarray(np.divide(gap, deviation, out=np.zeros(len(gap)), where=varies) * deviation[0])

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain numbers and strings."""
        name, gap = self.worst
        return {"treatment": self.treatment, "worst": {"function": name, "gap": gap}}

    def __str__(self) -> str:
        name, gap = self.worst
        return (
            f"mean of correction x treatment {self.treatment:.3f} (1 when balanced); worst balance {gap:+.3f} ({name})"
        )


def balance_of(covariates: Floats, treatment: Floats, correction: Floats, weight: Floats) -> Balance:
    """Sum up the balance of the treatment, its square, each covariate, and the treatment times each covariate."""
    names, sums = [], []
    for name, b, derivative in _functions(np.nan_to_num(covariates), treatment):
        names.append(name)
        products = (
            weight,
            weight * b,
            weight * b**2,
            weight * correction,
            weight * correction * b,
            weight * derivative,
        )
        sums.append([float(product.sum()) for product in products])
    weights = weight**2
    parts = (
        (correction * treatment) ** 2,
        correction**2 * treatment,
        correction**2,
        correction * treatment,
        correction,
    )
    squares = np.array([*(float(weights @ part) for part in parts), float(weights.sum())])
    return Balance(tuple(names), np.array(sums), squares)


def _functions(X: Floats, a: Floats) -> Iterator[tuple[str, Floats, Floats]]:
    """Yield the name of each function, its values and its derivatives in the treatment."""
    yield TREATMENT, a, np.ones_like(a)
    yield f"{TREATMENT} squared", a**2, 2 * a
    for j, x in enumerate(X.T, start=1):
        yield f"covariate {j}", x, np.zeros_like(a)
        yield f"{TREATMENT} x covariate {j}", a * x, x
