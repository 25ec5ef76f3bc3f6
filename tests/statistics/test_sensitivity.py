"""Bounds under unmeasured confounding hold the truth of a simulated confounder as strong as stated, and are attained by it."""

from functools import lru_cache

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from scipy.special import expit
from scipy.stats import binomtest, norm

from orthocal import Study
from orthocal.assessment.omitted_variable import product_of

DRAWS, ROWS, OFF = 200, 2000, 0.5
COVARIATES = ["x0", "x1"]
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::orthocal.OverlapWarning")]


def effect_of(X):
    return 1 + 0.5 * X[:, 0]


def reaches(held, share=0.95):
    """The rate is the share or more, or its 99% binomial interval reaches it."""
    held = np.asarray(held)
    print(f"{held.mean():.3f} of {len(held)}")
    return binomtest(int(held.sum()), len(held)).proportion_ci(0.99).high >= share


class Omitted:
    """A hidden u of -1 or 1, as likely, that pushes outcome and treatment; **effect** 1 + x0/2 whatever u is.

    The chance of treatment is logistic in 0.4 x0 + 0.5 u and the outcome is x1 + push u + effect + noise of deviation 1.
    """

    def __init__(self, push, pull=0.5):
        self.push, self.pull = push, pull

    def chance(self, X, u):
        return expit(0.4 * X[:, 0] + self.pull * u)

    def draw(self, n, seed):
        rng = np.random.default_rng(seed)
        X, u = rng.standard_normal((n, 2)), rng.choice([-1, 1], n)
        a = (rng.random(n) < self.chance(X, u)).astype(int)
        y = X[:, 1] + self.push * u + a * effect_of(X) + rng.standard_normal(n)
        return pd.DataFrame(X, columns=COVARIATES).assign(y=y, a=a, tau=effect_of(X) + OFF)

    def strengths(self, n=200_000):
        """Both parts over all rows, and their largest product in a tenth of the predictions, by what u and x say exactly."""
        X = np.random.default_rng(1).standard_normal((n, 2))
        high, low = self.chance(X, 1), self.chance(X, -1)
        mean = (high + low) / 2
        # E[(g - g_s)^2 | x]: u given arm and x; E[alpha^2 | x] with and without u
        left = [0.25 * h * lo / m for h, lo, m in ((high, low, mean), (1 - high, 1 - low, 1 - mean))]
        explained = 4 * self.push**2 * (left[0] + left[1])
        short = 1 / (mean * (1 - mean))
        long = (1 / (high * (1 - high)) + 1 / (low * (1 - low))) / 2

        def parts(rows):
            gain = explained[rows].mean()
            return gain / (gain + 1), 1 - short[rows].mean() / long[rows].mean()

        tenth = np.argsort(np.argsort(effect_of(X))) * 10 // n
        overall = parts(slice(None))
        return overall, max(float(product_of(*parts(tenth == k))) for k in range(10))


OMITTED = {"weak": Omitted(0.3), "strong": Omitted(1.5), "other way": Omitted(-0.8, 0.8)}


@lru_cache
def omitted_draws(name):
    design = OMITTED[name]
    overall, largest = design.strengths()
    found = []
    for seed in range(DRAWS):
        study = Study(design.draw(ROWS, seed), outcome="y", treatment="a", covariates=COVARIATES, learners="linear")
        own = study.sensitivity("tau", benchmarks=[], strengths=[], cost=1.0)
        found.append((own.at(*overall), own.at_product(largest)))
    return found


def within(bounds, truth):
    return bounds.interval[0] <= truth <= bounds.interval[1]


@pytest.mark.parametrize("name", OMITTED)
def test_omitted_variable_bounds_hold_the_average_effect(name):
    assert reaches([within(overall["average"], 1.0) for overall, _ in omitted_draws(name)])


@pytest.mark.parametrize("name", OMITTED)
def test_omitted_variable_bounds_hold_the_error(name):
    assert reaches([within(largest["error"], OFF) for _, largest in omitted_draws(name)])


@pytest.mark.parametrize("name", OMITTED)
def test_omitted_variable_bounds_hold_the_value(name):
    # treated where 1 + x0/2 + OFF > 1, that is x0 > -1: E[x0/2; x0 > -1] = pdf(1)/2; u has one distribution for all x
    assert reaches([within(largest["value"], norm.pdf(1) / 2) for _, largest in omitted_draws(name)])


def test_without_bounds_the_average_effect_is_missed():
    at_zero = [own for own, _ in omitted_draws("strong")]
    centre = [(own["average"].lower + own["average"].upper) / 2 for own in at_zero]
    assert np.mean(centre) - 1 > 0.5


STRENGTH = 2.0


def share_of_tail():
    return 1 / (1 + STRENGTH)


class Worst:
    """The confounder that attains the upper bounds at strength 2; **effect** as in `largest`.

    Outcomes of an arm given x0 are normal, with deviation 1 + (x0 > 0)/2 and means x1 (+ 1 + x0/2 if treated). Hidden u moves the
    odds of treatment by the factor 2 up or down; those it moves down have the largest outcomes under treatment, those it moves up
    the smallest without.
    """

    def chance(self, X):
        return expit(0.4 * X[:, 0])

    def scale(self, X):
        return 1 + 0.5 * (X[:, 0] > 0)

    def draw(self, n, seed):
        rng = np.random.default_rng(seed)
        X, share = rng.standard_normal((n, 2)), share_of_tail()
        mean = self.chance(X)
        odds = mean / (1 - mean)
        up, down = STRENGTH * odds / (1 + STRENGTH * odds), odds / (STRENGTH + odds)
        u = rng.random(n) < (mean - down) / (up - down)
        a = (rng.random(n) < np.where(u, up, down)).astype(int)
        place = rng.random((2, n))
        treated = norm.ppf(np.where(u, (1 - share) * place[0], 1 - share * place[0]))
        control = norm.ppf(np.where(u, share * place[1], share + (1 - share) * place[1]))
        y1, y0 = (X[:, 1] + self.scale(X) * z for z in (treated, control))
        y = np.where(a == 1, y1 + effect_of(X), y0)
        return pd.DataFrame(X, columns=COVARIATES).assign(y=y, a=a, tau=self.largest(X) + OFF)

    def largest(self, X):
        """The true effect: that of those alike in x0 and x1, plus what the confounder hides, by a linear program."""
        return effect_of(X) + self.scale(X) * farthest(STRENGTH)


@lru_cache
def farthest(strength, points=400):
    """Largest mean of a standard normal outcome among those without the arm, whose odds may differ by a factor: linear program.

    Of the treated a share 1 - pi and of the controls a share pi gain as much, so that together they gain it once.
    """
    z = norm.ppf((np.arange(points) + 0.5) / points)
    found = linprog(
        -z / points, A_eq=np.full((1, points), 1 / points), b_eq=[1.0], bounds=[(1 / strength, strength)] * points
    )
    return -found.fun


@lru_cache
def worst_draws():
    found = []
    for seed in range(DRAWS):
        table = Worst().draw(ROWS, seed)
        study = Study(table, outcome="y", treatment="a", covariates=COVARIATES, learners="linear")
        own = study.sensitivity("tau", benchmarks=[], strengths=[STRENGTH], cost=1.0)
        found.append((own.at_product(0.0)["average"].lower, own.marginal[0]))
    return found


def worst_truth(n=400_000):
    X = np.random.default_rng(2).standard_normal((n, 2))
    return Worst().largest(X)


def test_the_linear_program_is_the_mean_beyond_the_quantile():
    beyond = norm.pdf(norm.ppf(1 - share_of_tail())) / share_of_tail()
    assert farthest(STRENGTH) == pytest.approx((1 - 1 / STRENGTH) * beyond, rel=0.01)


def test_marginal_bounds_hold_the_average_effect():
    truth = worst_truth().mean()
    assert reaches([within(own.average, truth) for _, own in worst_draws()])


def test_marginal_bounds_are_attained_within_a_tenth():
    truth = worst_truth().mean()
    added = np.array([own.average.upper - start for start, own in worst_draws()]).mean()
    hidden = truth - np.mean([start for start, _ in worst_draws()])
    print(f"bound {added:.3f}, attained {hidden:.3f}, ratio {added / hidden:.3f}")
    assert added / hidden == pytest.approx(1, abs=0.1)


def test_marginal_bounds_hold_the_error():
    assert reaches([within(own.error, OFF) for _, own in worst_draws()])


def test_marginal_bounds_hold_the_value():
    effect = worst_truth()
    truth = float(np.mean(np.maximum(effect + OFF > 1, 0) * (effect - 1)))
    assert reaches([within(own.value, truth) for _, own in worst_draws()])
