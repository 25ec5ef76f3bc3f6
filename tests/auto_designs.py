"""Populations for the automatic choice: what the prediction says, what is true given it, and how noisy the losses are.

Each design draws rows and knows the mean effect given the prediction. Pseudo-outcomes have about five times the variance of the
effect, as in a trial of moderate size.
"""

from dataclasses import dataclass, field
from zlib import crc32

import numpy as np
from joblib import Parallel, delayed
from scipy.special import expit
from scipy.stats import norm
from sklearn.base import clone

from orthocal import Auto, Histogram, Isotonic, QuadraticLoss
from orthocal.calibrators import CALIBRATORS

NOISE = 2.0
"""Deviation of a pseudo-outcome around the effect, in deviations of the effect: its variance is 1 + 4 = 5 times the effect's."""
FRESH = norm.ppf((np.arange(4000) + 0.5) / 4000)


def plain(chi):
    return QuadraticLoss(chi, np.ones(len(chi)))


def gaussian(rng, score, effect, noise):
    return plain(effect + noise * rng.standard_normal(len(score)))


def heavy(rng, score, effect, noise):
    return plain(effect + noise / np.sqrt(3) * rng.standard_t(3, len(score)))


def skewed(rng, score, effect, noise):
    outcome = rng.exponential(size=len(score)) ** 1.5
    return plain(effect + noise * (outcome - 1.3293) / np.sqrt(6 - 1.3293**2))


def overlap(rng, score, effect, noise):
    """Noise as of an outcome divided by a propensity that lies between 4% and 96% for most; 9.19 is the mean of 1 / p(1 - p)."""
    chance = expit(1.6 * (0.6 * score + 0.8 * rng.standard_normal(len(score))))
    treated = rng.random(len(score)) < chance
    outcome = noise / np.sqrt(9.19) * rng.standard_normal(len(score))
    return plain(effect + np.where(treated, outcome / chance, -outcome / (1 - chance)))


def binary(rng, score, effect, noise):
    """Two arms of a fair coin, outcomes 0 and 1, and the arms' true means as nuisances; the effect is a difference of chances."""
    base = 0.4 - effect / 2
    treated = rng.random(len(score)) < 0.5
    y = rng.random(len(score)) < np.where(treated, base + effect, base)
    return plain(effect + np.where(treated, 2 * (y - base - effect), -2 * (y - base)))


def clustered(rng, score, effect, noise):
    groups = rng.integers(0, len(score) // 10, len(score))
    outcome = 0.8 * rng.standard_normal(len(score)) + 0.6 * rng.standard_normal(len(score))[groups]
    return QuadraticLoss(effect + noise * outcome, np.ones(len(score)), groups=groups)


def weighted(rng, score, effect, noise):
    weight = rng.lognormal(0, 0.7, len(score))
    return QuadraticLoss(weight * (effect + noise * rng.standard_normal(len(score))), weight)


@dataclass(frozen=True)
class Design:
    """How rows are drawn.

    `truth` gives the mean effect of a standard normal score, `shown` the prediction it turns into with n rows, `noisy` the loss;
    `unit` is the variance of the effect (of the prediction, where the effect is constant), `falls` marks truths whose best line
    falls.
    """

    truth: object
    shown: object = lambda s, n: s
    noisy: object = gaussian
    unit: float = 1.0
    falls: bool = False
    fresh: np.ndarray = field(default_factory=lambda: FRESH)

    def draw(self, n, rng):
        """Return (prediction, loss)."""
        score = rng.choice(self.fresh, n) if len(self.fresh) < len(FRESH) else rng.standard_normal(n)
        return self.shown(score, n), self.noisy(rng, score, self.truth(score), NOISE * np.sqrt(self.unit))

    def distortion(self, n):
        """Return the root mean square distance of the prediction from the truth, in standard errors of the average effect."""
        prediction, effect = self.population(n)
        return np.sqrt(np.mean((prediction - effect) ** 2) / self.unit) / error(n)

    def population(self, n):
        """Return (prediction, mean effect) of many fresh rows."""
        return self.shown(self.fresh, n), self.truth(self.fresh)


def error(n):
    """Standard error of the average effect, in deviations of the effect."""
    return np.sqrt((1 + NOISE**2) / n)


LEVELS = np.array([-1.4, -0.6, 0.0, 0.5, 1.5])

DESIGNS = {
    "perfect": Design(lambda s: s),
    "affine": Design(lambda s: (s - 1) / 2, unit=0.25),
    "exaggerated": Design(lambda s: s, lambda s, n: 0.1 + 1.15 * s),
    "exaggerated twice": Design(lambda s: s, lambda s, n: 0.2 + 2 * s),
    "shift": Design(lambda s: s, lambda s, n: s + 0.5),
    **{f"shift of {t} errors": Design(lambda s: s, lambda s, n, t=t: s + t * error(n)) for t in (1, 2, 4, 8)},
    **{f"slope of {t} errors": Design(lambda s: s, lambda s, n, t=t: s / (1 - t * error(n))) for t in (1, 2, 4, 8)},
    "curved": Design(lambda s: 1.2 * np.arcsinh(1.5 * s) - 0.2),
    "exponential": Design(lambda s: 0.8 * np.exp(0.7 * s) - 1, unit=0.64 * (np.exp(0.98) - np.exp(0.49))),
    "sigmoid": Design(lambda s: 2.6 * expit(2.5 * s) - 1),
    "hinge": Design(lambda s: 1.6 * np.maximum(s - 0.3, 0)),
    "step": Design(lambda s: np.select([s < -0.5, s < 0.7], [-1.2, 0.0], 1.4)),
    "coarse": Design(
        lambda s: np.select([s < -1, s < -0.1, s < 0.2, s < 1], [-1.0, -0.9, 0.3, 0.5], 1.6), fresh=LEVELS
    ),
    "not monotone": Design(lambda s: 1.4 * np.sin(2 * s)),
    "valley": Design(lambda s: (s**2 - 1) / np.sqrt(2)),
    "reversed": Design(lambda s: 0.3 - 0.6 * s, unit=0.36, falls=True),
    "noise": Design(lambda s: 0 * s + 0.3),
    "effect and noise": Design(lambda s: 0.5 * s + 0.2, lambda s, n: 1.4 * s),
    "weak ranks": Design(lambda s: 0.3 + 0.12 * s),
    "constant effect": Design(lambda s: 0 * s + 1, lambda s, n: 1 + 0.6 * s, unit=0.36),
    "heavy tails": Design(lambda s: (s - 1) / 2, noisy=heavy, unit=0.25),
    "heavy tails, curved": Design(lambda s: 1.2 * np.arcsinh(1.5 * s), noisy=heavy),
    "weak overlap": Design(lambda s: (s - 1) / 2, noisy=overlap, unit=0.25),
    "weak overlap, step": Design(lambda s: np.where(s < 0.3, -0.8, 1.2), noisy=overlap),
    "skewed": Design(lambda s: (s - 1) / 2, noisy=skewed, unit=0.25),
    "binary": Design(lambda s: 0.4 * expit(1.5 * s) - 0.1, lambda s, n: 0.3 * s, binary, unit=0.0125),
    "clusters": Design(lambda s: 1.2 * np.arcsinh(1.5 * s) - 0.2, noisy=clustered),
    "weights": Design(lambda s: (s - 1) / 2, noisy=weighted, unit=0.25),
}
SIZES = (500, 1000, 4000)
SEED = 1
"""Draws that were not looked at when the handicaps were chosen."""
ADDED = 0.004
"""Of the effect's variance, added to both sides of a ratio: costs smaller than this are alike."""
RESAMPLES = 2000
SINGLE = {
    **{name: build() for name, build in CALIBRATORS.items() if name not in {"auto", "histogram"}},
    "histogram": Histogram(bins=10),
    "isotonic-100": Isotonic(min_samples=100),
}
"""Every method that could have been chosen by name."""


def costs(name, n, draws, methods):
    """Return the mean squared distance of calibrated predictions from the true mean effect, one array a method."""
    design = DESIGNS[name]
    prediction, effect = design.population(n)
    found = {method: [] for method in methods}
    for draw in range(draws):
        rows = design.draw(n, np.random.default_rng([SEED, draw, n, crc32(name.encode())]))
        for method, calibrator in methods.items():
            found[method].append(np.mean((clone(calibrator).fit(*rows).predict(prediction) - effect) ** 2))
    return {method: np.array(values) for method, values in found.items()}


@dataclass(frozen=True)
class Outcome:
    """What auto and the best single method cost in one design, draw by draw, in variances of the effect."""

    design: str
    n: int
    auto: np.ndarray
    best: np.ndarray
    method: str

    @property
    def ratio(self):
        return (self.auto.mean() + ADDED) / (self.best.mean() + ADDED)

    @property
    def interval(self):
        """Of the ratio, 99%, over draws (bootstrap of both costs together)."""
        some = np.random.default_rng(0).integers(len(self.auto), size=(RESAMPLES, len(self.auto)))
        ratio = (self.auto[some].mean(axis=1) + ADDED) / (self.best[some].mean(axis=1) + ADDED)
        return tuple(np.quantile(ratio, [0.005, 0.995]).tolist())

    @property
    def is_mild(self):
        """Whether the prediction is wrong by 1 to 3 standard errors, where nobody can know whether to trust it."""
        return 0.99 <= DESIGNS[self.design].distortion(self.n) <= 3.01

    @property
    def bound(self):
        return 1.8 if self.is_mild else 1.35


def outcome(name, n, draws):
    """Compare auto with the single method whose mean cost is least: in hindsight, over the draws of this design and size."""
    design = DESIGNS[name]
    found = {
        method: values / design.unit for method, values in costs(name, n, draws, {**SINGLE, "auto": Auto()}).items()
    }
    auto = found.pop("auto")
    if design.falls:  # the best that does not turn the ranking round
        found = {method: cost for method, cost in found.items() if method not in {"linear", "platt", "histogram"}}
    best = min(found, key=lambda method: found[method].mean())
    return Outcome(name, n, auto, found[best], best)


def compared(draws, jobs=-1):
    """Return the outcomes of all designs but the perfect model, which no method can improve, at all sizes."""
    cells = [(name, n) for n in SIZES for name in DESIGNS if name != "perfect"]
    return Parallel(n_jobs=jobs)(delayed(outcome)(name, n, draws) for name, n in cells)


def geometric_mean(outcomes):
    return float(np.exp(np.mean([np.log(one.ratio) for one in outcomes])))
