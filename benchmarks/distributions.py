"""How should boosted trees learn a conditional distribution? Writes distributions.md in a few minutes of one core.

Each way learns P(Y <= v | x) of the same rows and is compared with the truth on fresh rows, at values v that outcomes have, and
at the median and the 0.9 quantile of each row. Rows are those that one fold of a study leaves to one of two arms: 0.4 of all.
Run: OMP_NUM_THREADS=1 python benchmarks/distributions.py
"""

import time
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy.special import expit, ndtr
from scipy.stats import gamma
from sklearn.ensemble import HistGradientBoostingClassifier

from orthocal.distributions import TableDistribution
from orthocal.effects.quantile import quantile_levels
from orthocal.nuisances import conditional_distribution
from orthocal.nuisances.conditional_distribution import ConditionalDistribution
from orthocal.nuisances.learners import DISTRIBUTION_SETTINGS, SETTINGS

SIZES = {2000: 12, 10_000: 6, 40_000: 3}
"""Draws, by the rows of a study."""
TAUGHT, FRESH, OWN = 0.4, 4000, (0.5, 0.9)
LEGEND = """# Ways to learn a conditional distribution, compared

Written by `benchmarks/distributions.py`. Squared error of P(Y <= v | x) times 10^4, averaged over fresh rows: over 50 quantiles
of all outcomes, and at each row's own median and 0.9 quantile; in brackets the change from "copies set aside" in percent, +- its
paired standard error over draws. Time is that of one fit, in processor seconds, with the number of trees.

Each row is shown at six values of the outcome. *Copies set aside*: scikit-learn sets some of these copies aside and stops when
trees no longer help with them, although it was taught other copies of the same rows. *Default*: all copies of some rows are set
aside; `{settings}`;
and rows are shown at fewer values, but at least three, where six make more than 160,000 copies.
"""


class CopiesSetAside(HistGradientBoostingClassifier):
    """Trees that cannot be given rows to stop by."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, sample_weight)


DEFAULT = HistGradientBoostingClassifier(**{**SETTINGS, **DISTRIBUTION_SETTINGS})
WAYS = {
    "copies set aside": (CopiesSetAside(**SETTINGS), 6),
    "default": (DEFAULT, conditional_distribution.FEWEST_COPIES),
}
"""The learner, and at how many values rows are shown at least, however many they are."""


class Normal:
    """Normal with unequal variances around a surface with interactions."""

    def centre(self, X):
        return X[:, 0] + 0.7 * X[:, 1] * X[:, 2] + 0.5 * np.sin(2 * X[:, 3])

    def spread(self, X):
        return np.exp(0.4 * X[:, 2] - 0.2 * X[:, 4])

    def draw(self, X, rng):
        return self.centre(X) + self.spread(X) * rng.standard_normal(len(X))

    def below(self, X, v):
        return ndtr((v - self.centre(X)) / self.spread(X))


class Skewed:
    """Lognormal."""

    def centre(self, X):
        return 1 + 0.5 * X[:, 0] + 0.3 * np.abs(X[:, 2])

    def draw(self, X, rng):
        return np.exp(self.centre(X) + 0.8 * rng.standard_normal(len(X)))

    def below(self, X, v):
        return np.where(v > 0, ndtr((np.log(np.maximum(v, 1e-300)) - self.centre(X)) / 0.8), 0.0)


class Masses:
    """An atom at 0, a rare one at 5, and gamma in between."""

    def zero(self, X):
        return 0.98 * expit(-2 + X[:, 0] + 0.5 * X[:, 1])

    def scale(self, X):
        return np.exp(0.3 * X[:, 2] + 0.2 * X[:, 0] * X[:, 3])

    def draw(self, X, rng):
        chance, zero = rng.random(len(X)), self.zero(X)
        amount = self.scale(X) * rng.gamma(2, size=len(X))
        return np.where(chance < zero, 0.0, np.where(chance < zero + 0.02, 5.0, amount))

    def below(self, X, v):
        zero = self.zero(X)
        inside = zero + 0.02 * (v >= 5) + (0.98 - zero) * gamma.cdf(v / self.scale(X), 2)
        return np.where(v < 0, 0.0, inside)


class Mixture:
    """Almost binary: 0 or 1, with a little noise."""

    def chance(self, X):
        return expit(X[:, 0] + X[:, 1] * X[:, 2])

    def draw(self, X, rng):
        return (rng.random(len(X)) < self.chance(X)) + 0.1 * rng.standard_normal(len(X))

    def below(self, X, v):
        one = self.chance(X)
        return (1 - one) * ndtr(v / 0.1) + one * ndtr((v - 1) / 0.1)


DESIGNS = {design.__name__.lower(): design() for design in (Normal, Skewed, Masses, Mixture)}


def covariates(n, rng):
    return rng.standard_normal((n, 5))


def own_quantile(design, X, q, bounds):
    """Find each row's quantile by bisection."""
    low, high = (np.full(len(X), bound) for bound in bounds)
    for _ in range(60):
        middle = (low + high) / 2
        reached = design.below(X, middle) >= q
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return high


class Truth:
    """Fresh rows of a design, values at which distributions are compared, and the truth there."""

    def __init__(self, design):
        rng = np.random.default_rng(10**6)
        self.X = covariates(FRESH, rng)
        outcomes = design.draw(covariates(10**5, rng), rng)
        values = np.quantile(outcomes, (np.arange(50) + 0.5) / 50)
        bounds = outcomes.min() - 1, outcomes.max() + 1
        own = [own_quantile(design, self.X, q, bounds) for q in OWN]
        self.values = np.array([*(np.full(FRESH, v) for v in values), *own])
        self.below = np.array([design.below(self.X, v) for v in self.values])

    def errors(self, learnt):
        """Return 10^4 times the squared error over all values, and at each of the rows' own quantiles."""
        error = 1e4 * np.mean((np.array([learnt.below(v) for v in self.values]) - self.below) ** 2, axis=1)
        return [error[: -len(OWN)].mean(), *error[-len(OWN) :]]


def one_draw(name, n, seed, truth):
    """Return a record for each way."""
    rng = np.random.default_rng([seed, n])
    X = covariates(int(TAUGHT * n), rng)
    y = DESIGNS[name].draw(X, rng)
    levels = quantile_levels(y)
    for way, (learner, fewest) in WAYS.items():
        model = ConditionalDistribution(learner.set_params(random_state=seed), levels, random_state=seed)
        start = time.process_time()
        with patch.object(conditional_distribution, "FEWEST_COPIES", fewest):
            model.fit(X, y)
        seconds = time.process_time() - start
        everywhere, *own = truth.errors(TableDistribution(levels, model.predict(truth.X)))
        yield [n, name, seed, way, seconds, model.model_.n_iter_, everywhere, *own]


FIGURES = ["everywhere", *(f"at its {q} quantile" for q in OWN)]


def with_change(found, before):
    """Return a mean, and the change in percent of the mean before with its standard error."""
    change = (found - before).to_numpy() / before.mean() * 100
    return f"{found.mean():.1f} ({change.mean():+.0f} +- {change.std(ddof=1) / len(change) ** 0.5:.0f})"


def table(records):
    """Return one row for each size, design and way."""
    lines = []
    for (n, name), own in records.groupby(["rows", "design"], sort=False):
        ways = {way: part.set_index("seed") for way, part in own.groupby("way", sort=False)}
        before = ways["copies set aside"]
        for way, part in ways.items():
            figures = {figure: with_change(part[figure], before[figure]) for figure in FIGURES}
            effort = {"seconds": f"{part['seconds'].mean():.2f}", "trees": f"{part['trees'].mean():.0f}"}
            lines.append({"rows": n, "design": name, "way": way, **figures, **effort})
    return lines


def markdown(lines):
    rows = [list(lines[0]), ["---"] * len(lines[0]), *(line.values() for line in lines)]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows) + "\n"


def main():
    truths = {name: Truth(design) for name, design in DESIGNS.items()}
    found = []
    for n, draws in SIZES.items():
        found += [
            record for name in DESIGNS for seed in range(draws) for record in one_draw(name, n, seed, truths[name])
        ]
        records = pd.DataFrame(found, columns=["rows", "design", "seed", "way", "seconds", "trees", *FIGURES])
        text = LEGEND.format(settings=DISTRIBUTION_SETTINGS) + "\n" + markdown(table(records))
        Path(__file__).with_suffix(".md").write_text(text)


if __name__ == "__main__":
    main()
