"""Unmeasured confounding: bounds on enumerated populations with a hidden confounder, benchmarks, records and refusals."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from scipy.optimize import linprog
from sklearn.linear_model import LinearRegression

import orthocal
from orthocal import CATE, BoundedCATE, OrthocalError, QuadraticLoss, Study
from orthocal.assessment.bins import binned
from orthocal.assessment.error import error_interval, excludes_zero
from orthocal.assessment.loss_pair import LossPair
from orthocal.assessment.omitted_variable import (
    ConfoundingScale,
    average_path,
    error_path,
    product_of,
    robustness_value,
    scale_of,
    value_path,
)
from orthocal.assessment.robustness import BY_DESIGN
from orthocal.datasets import simulate_cate
from orthocal.nuisances import Fitted
from orthocal.nuisances.outcome_tails import OutcomeTails, Tail, binary_tail, tail_of
from orthocal.observations import Observations
from tests.command_line import run

SHARE = np.array([0.2, 0.5, 0.3])
NOISE = (-1.0, 1.0)


class Hidden:
    """Cells of x (three), u (two, not measured), a and noise, enumerated; all figures are exact.

    **Truth**: mu_a(x, u) = base(x) + a effect(x) + push(x) (u - P(u|x)), chance of treatment PI(x, u); the effect of x is
    effect(x). `aligned` moves the outcome in proportion to how u moves the representer, so that the bound is attained.
    """

    def __init__(self, push, aligned=False, chance=((0.3, 0.5), (0.4, 0.7), (0.6, 0.65))):
        cells = list(itertools.product(range(3), (0, 1), (0, 1), NOISE))
        self.x, self.u, self.a, noise = (np.array(column) for column in zip(*cells, strict=True))
        x, u, a = self.x, self.u, self.a
        chance = np.array(chance)
        share_u = np.array([0.5, 0.3, 0.4])
        got = np.where(a == 1, chance[x, u], 1 - chance[x, u])
        self.probability = SHARE[x] * np.where(u == 1, share_u[x], 1 - share_u[x]) * got * 0.5
        self.effect = np.array([1.0, 2.0, -0.5])
        self.alpha = a / chance[x, u] - (1 - a) / (1 - chance[x, u])
        short = self.mean(a, self.x)
        self.pi = short
        self.alpha_short = a / short[x] - (1 - a) / (1 - short[x])
        lean = self.alpha - self.alpha_short
        tilt = np.asarray(push)[x] * (lean if aligned else (u - share_u[x]))
        long = np.array([3.0, 1.0, 0.0])[x] + a * self.effect[x] + tilt
        self.y = long + noise
        arms = [self.mean(self.y * (a == k), x) / self.mean(1.0 * (a == k), x) for k in (0, 1)]
        self.mu = arms
        self.short = np.where(a == 1, arms[1][x], arms[0][x])
        self.long = long
        treated = np.array([self._potential(1, c) for c in range(3)])
        control = np.array([self._potential(0, c) for c in range(3)])
        self.truth = treated - control

    def mean(self, value, by):
        """Mean of a value in each cell of x."""
        return np.bincount(by, self.probability * value) / np.bincount(by, self.probability)

    def _potential(self, arm, cell):
        """Mean potential outcome in a cell: u as it is among all, not among those treated."""
        own = (self.x == cell) & (self.a == arm)
        share = np.array([self.probability[(self.x == cell) & (self.u == u)].sum() for u in (0, 1)])
        mean = [np.average(self.y[own & (self.u == u)], weights=self.probability[own & (self.u == u)]) for u in (0, 1)]
        return float(np.array(mean) @ share / share.sum())

    @property
    def loss(self):
        """The loss with the true nuisances of who does not see u."""
        rows = Observations(
            covariates=self.x[:, None].astype(float),
            outcome=self.y,
            treatment=self.a,
            weight=self.probability,
        )
        nuisances = {"propensity": self.pi[self.x], "outcome_control": self.mu[0][self.x]}
        nuisances["outcome_treated"] = self.mu[1][self.x]
        return CATE().loss(rows, Fitted(nuisances, clip=0.0, clipped={"propensity": 0.0}))

    def strength(self, rows=None):
        """C_Y C_D of u over some rows, by the definitions: R^2 of the outcome, 1 - R^2 of the representer."""
        w = self.probability * (1.0 if rows is None else rows)
        outcome = w @ (self.long - self.short) ** 2 / (w @ (self.y - self.short) ** 2)
        treatment = 1 - (w @ self.alpha_short**2) / (w @ self.alpha**2)
        return float(product_of(outcome, treatment))


POPULATIONS = [Hidden([0.5, 1.0, -0.7]), Hidden([-2.0, 0.3, 1.5]), Hidden([0.4, 0.4, 0.4], aligned=True)]
every_population = pytest.mark.parametrize("hidden", POPULATIONS)


def in_order(hidden, prediction):
    order = np.argsort(prediction, kind="stable")
    loss = hidden.loss
    return order, prediction[order], loss[order], scale_of(loss.overlap).of(order)


@every_population
def test_the_bound_of_the_average_effect_holds_at_the_strength_of_the_hidden_confounder(hidden):
    _, prediction, loss, scale = in_order(hidden, hidden.x * 1.0)
    path = average_path(prediction, loss, scale, 0.95)
    low, high = path.bounds(hidden.strength())
    assert low <= SHARE @ hidden.truth + 1e-12
    assert SHARE @ hidden.truth <= high + 1e-12
    assert path.estimate != pytest.approx(SHARE @ hidden.truth, abs=1e-3)  # there is something to bound


def test_the_bound_is_attained_where_the_confounder_moves_outcomes_as_it_moves_treatment():
    # push is the same in all cells, so that g - g_s is proportional to alpha - alpha_s and Cauchy-Schwarz is an equality: the
    # true effect is the estimated one plus E[(g - g_s)(alpha - alpha_s)].
    hidden = POPULATIONS[2]
    _, prediction, loss, scale = in_order(hidden, hidden.x * 1.0)
    _, high = average_path(prediction, loss, scale, 0.95).bounds(hidden.strength())
    assert high == pytest.approx(SHARE @ hidden.truth, abs=1e-12)


@every_population
@pytest.mark.parametrize("theta", [[0.0, 1.0, 2.0], [1.0, 1.0, -0.5], [4.0, 2.0, 3.0]])
def test_the_bounds_of_the_error_hold_at_the_largest_strength_of_a_bin(hidden, theta):
    theta = np.asarray(theta)
    order, prediction, loss, scale = in_order(hidden, theta[hidden.x])
    path = error_path(prediction, loss, scale, 3)
    cell = hidden.x[order]
    bins = np.searchsorted(path.binned.edges, prediction, side="left")
    strength = max(hidden.strength(np.isin(hidden.x, np.unique(cell[bins == b]))) for b in np.unique(bins))
    share, gap = np.bincount(bins, loss.weight), np.bincount(bins, loss.weight * (hidden.truth - theta)[cell])
    truth = float(np.sqrt((gap**2 / share).sum()))
    size, reach = np.abs(path.binned.residual), strength * path.slope
    assert np.sqrt(share @ np.maximum(size - reach, 0) ** 2) <= truth + 1e-12
    assert truth <= np.sqrt(share @ (size + reach) ** 2) + 1e-12
    np.testing.assert_allclose(path.at(-strength).residual, np.sign(path.binned.residual) * np.maximum(size - reach, 0))


def test_a_confounder_in_one_bin_is_stronger_there_than_overall():
    """Strength over all rows is not enough: the error can then lie below its lower bound."""
    hidden = Hidden([0.0, 0.0, 6.0], chance=((0.3, 0.3), (0.4, 0.4), (0.4, 0.8)))
    theta = hidden.truth  # perfect, but the estimated effect of the last cell is off
    _, prediction, loss, scale = in_order(hidden, theta[hidden.x])
    path = error_path(prediction, loss, scale, 3)
    overall, largest = hidden.strength(), max(hidden.strength(hidden.x == cell) for cell in range(3))
    assert overall < largest
    left = [np.abs(path.at(-strength).residual).max() for strength in (overall, largest)]
    assert left[0] > 1e-3
    assert left[1] < 1e-12


def test_a_bin_that_no_confounder_moves_divides_nothing_by_0():
    """The other bins say how strong one must be; a bin without noise is as it is at any strength."""
    rng = np.random.default_rng(0)
    prediction = np.sort(rng.standard_normal(3000))
    loss = QuadraticLoss(prediction + 1 + rng.standard_normal(3000), np.ones(3000))
    scale = ConfoundingScale(np.ones(3000), np.full(3000, 4.0), np.ones(3000))
    path = error_path(prediction, loss, scale, 3)
    still = path._replace(slope=np.where([True, False, False], 0.0, path.slope))
    assert path.slope.min() > 0
    assert 0 < path.product_to_zero(0.95) <= still.product_to_zero(0.95) < np.inf


@every_population
@pytest.mark.parametrize("cost", [0.5, 1.5])
def test_the_bound_of_the_value_holds_at_the_strength_among_those_treated(hidden, cost):
    theta = np.array([0.8, 2.5, 1.0])
    _, prediction, loss, scale = in_order(hidden, theta[hidden.x])
    chosen = theta > cost
    truth = float(SHARE @ (chosen * (hidden.truth - cost)))
    low, high = value_path(prediction, loss, scale, cost, 0.95).bounds(hidden.strength(chosen[hidden.x]))
    assert low - 1e-12 <= truth <= high + 1e-12


@pytest.mark.parametrize("clusters", [False, True])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_an_error_excludes_zero_where_its_interval_does(level, clusters):
    rng = np.random.default_rng(0)
    groups = np.arange(400) % 12 if clusters else None
    found = []
    for size in np.linspace(0, 0.6, 200):
        prediction = rng.standard_normal(400)
        target = prediction * (1 + size) + rng.standard_normal(400)
        moments = binned(prediction, QuadraticLoss(target, np.ones(400), groups=groups), 5)
        found.append(excludes_zero(moments, level))
        assert found[-1] == (error_interval(moments, level)[0] > 0)
    assert 40 < sum(found) < 195


@pytest.mark.parametrize("gap", [0.0, 1.0])
def test_an_error_without_noise_excludes_zero_where_there_is_one(gap):
    prediction = np.arange(40.0)
    moments = binned(prediction, QuadraticLoss(prediction + gap, np.ones(40)), 4)
    assert excludes_zero(moments, 0.95) == (error_interval(moments, 0.95)[0] > 0) == (gap > 0)


def test_the_scale_is_that_of_the_definitions():
    hidden = POPULATIONS[0]
    outcome, treatment = scale_of(hidden.loss.overlap).means(hidden.x, 3)
    np.testing.assert_allclose(outcome, hidden.mean((hidden.y - hidden.short) ** 2, hidden.x))
    np.testing.assert_allclose(treatment, 1 / hidden.pi + 1 / (1 - hidden.pi))


def test_the_robustness_value_is_the_share_of_both_with_that_product():
    assert robustness_value(0.0) == 0
    for share in (0.01, 0.2, 0.9):
        assert robustness_value(float(product_of(share, share))) == pytest.approx(share)


LAWS = {1: np.array([0.1, 0.4, 0.2, 0.3]), 0: np.array([0.3, 0.3, 0.15, 0.25])}
VALUES = np.array([0.0, 1.0, 2.5, 4.0])
CHANCE = 0.35


def largest_effect(strength, sign):
    """Linear program over the joint distribution of both potential outcomes and treatment, odds within a factor of strength."""
    cells = list(itertools.product(range(4), range(4), (0, 1)))  # y1, y0, a
    y1, y0, a = (np.array(column) for column in zip(*cells, strict=True))
    equal = [(a == 1) & (y1 == j) for j in range(4)] + [(a == 0) & (y0 == j) for j in range(4)]
    totals = np.concatenate([CHANCE * LAWS[1], (1 - CHANCE) * LAWS[0]])
    odds, above = CHANCE / (1 - CHANCE), []
    for pair in itertools.product(range(4), range(4)):
        own = (y1 == pair[0]) & (y0 == pair[1])
        above += [1.0 * (own & (a == 1)) - strength * odds * (own & (a == 0))]
        above += [odds / strength * (own & (a == 0)) - 1.0 * (own & (a == 1))]
    gain = VALUES[y1] - VALUES[y0]
    found = linprog(
        -sign * gain, A_ub=np.array(above), b_ub=np.zeros(len(above)), A_eq=np.array(equal) * 1.0, b_eq=totals
    )
    assert found.success
    return -sign * found.fun


def enumerated(effect):
    """The loss of a population of one cell with the true nuisances."""
    cells = list(itertools.product((0, 1), range(4)))
    a, j = (np.array(column) for column in zip(*cells, strict=True))
    law = np.where(a == 1, LAWS[1][j], LAWS[0][j])
    rows = Observations(
        covariates=np.zeros((8, 1)), outcome=VALUES[j], treatment=a, weight=np.where(a == 1, CHANCE, 1 - CHANCE) * law
    )
    nuisances = {"propensity": np.full(8, CHANCE)}
    for name, arm in (("treated", 1), ("control", 0)):
        quantile, beyond = tail_of(VALUES, LAWS[arm], effect.tails[name])
        nuisances |= {f"outcome_{name}": np.full(8, LAWS[arm] @ VALUES)}
        nuisances |= {f"quantile_{name}": np.full(8, quantile), f"tail_{name}": np.full(8, beyond)}
    return effect.loss(rows, Fitted(nuisances, clip=0.0))


@pytest.mark.parametrize("strength", [1.0, 1.3, 2.0, 5.0])
@pytest.mark.parametrize("side", ["upper", "lower"])
def test_the_marginal_sensitivity_bounds_are_those_of_a_linear_program(strength, side):
    found = enumerated(BoundedCATE(strength, side)).numerator.sum()
    assert found == pytest.approx(largest_effect(strength, 1 if side == "upper" else -1), abs=1e-9)


def test_at_strength_one_both_ends_are_the_cate():
    ends = [enumerated(BoundedCATE(1.0, side)).numerator.sum() for side in ("lower", "upper")]
    assert ends == pytest.approx([(LAWS[1] - LAWS[0]) @ VALUES] * 2)


def test_a_wrong_quantile_widens_the_bound():
    effect = BoundedCATE(2.0, "upper")
    tail = Tail(1 / 3, 1)
    q, beyond = tail_of(VALUES, LAWS[1], tail)
    for wrong in (q - 1, q + 1):
        assert wrong + np.maximum(VALUES - wrong, 0) @ LAWS[1] / tail.share > beyond
    assert effect.tails == {"treated": tail, "control": Tail(1 / 3, -1)}


def test_tails_are_learnt_with_location_and_scale():
    """Normal outcomes; **truth** x + (1 + (x > 0)/2) (z, or mean beyond it): z = 0.431 and 1.091 for the largest third."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 1))
    scale = 1 + 0.5 * (X[:, 0] > 0)
    y = X[:, 0] + scale * rng.standard_normal(4000)
    tails = (Tail(1 / 3, 1), Tail(1 / 3, -1))
    found = OutcomeTails(LinearRegression(), tails, random_state=0).fit(X, y).predict(X)
    for column, z in enumerate((0.431, 1.091, -0.431, -1.091)):
        gap = found[:, column] - (X[:, 0] + scale * z)
        assert abs(gap.mean()) < 0.06
        assert np.sqrt((gap**2).mean()) < 0.2


@pytest.mark.parametrize("tail", [Tail(0.3, 1), Tail(0.3, -1), Tail(0.5, 1)])
def test_a_weight_of_two_is_a_value_twice_in_a_tail(tail):
    rng = np.random.default_rng(0)
    values, weight = rng.standard_normal(50), rng.integers(1, 4, 50)
    repeated = np.repeat(values, weight)
    assert tail_of(values, weight.astype(float), tail) == pytest.approx(tail_of(repeated, np.ones(len(repeated)), tail))


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("chance", [0.1, 0.4, 0.9])
def test_the_tails_of_a_binary_outcome_follow_from_its_mean(side, chance):
    tail = Tail(0.3, side)
    found = [float(one[0]) for one in binary_tail(np.array([chance]), tail)]
    assert found == pytest.approx(list(tail_of(np.array([0.0, 1.0]), np.array([1 - chance, chance]), tail)))


@pytest.mark.parametrize("theta", [-3.0, 0.3, 0.9, 6.0])
def test_the_error_of_a_pair_is_the_distance_from_the_interval(theta):
    """The population 500 times over, so that chance hardly matters: 0.3 and 0.9 are possible effects."""
    many = np.tile(np.arange(8), 500)
    lower, upper = (enumerated(BoundedCATE(1.5, side))[many] for side in ("lower", "upper"))
    ends = [loss.numerator.sum() / 500 for loss in (lower, upper)]
    pair = LossPair(np.full(len(many), theta), lower, upper)
    found, table = pair.error(1, 0.95), pair.bins(1)
    assert [float(table[name][0]) for name in ("lower", "upper")] == pytest.approx(ends)
    near, far = max(ends[0] - theta, theta - ends[1], 0.0), max(abs(theta - end) for end in ends)
    assert (found.lower, found.upper) == pytest.approx((near, far), abs=0.01)
    assert found.interval[0] <= near <= far <= found.interval[1]
    assert (found.interval[0] > 0) == (near > 0)


def test_a_bin_that_may_be_right_adds_nothing_to_the_error_of_another():
    many = np.tile(np.arange(8), 1000)
    lower, upper = (enumerated(BoundedCATE(1.5, side))[many] for side in ("lower", "upper"))
    ends = [loss.numerator.sum() / 1000 for loss in (lower, upper)]
    inside, below = ends[0] + 0.1, ends[0] - 0.5  # the first is far from the upper end
    found = LossPair(np.repeat([below, inside], 4000), lower, upper).error(2, 0.95)
    assert found.lower == pytest.approx(np.sqrt(0.5 * 0.5**2), abs=0.02)
    assert 0 < found.interval[0] < np.sqrt(0.5 * 0.5**2)


COVARIATES = ["a", "b", "c", "d", "e"]


def table_of(n=1200, seed=0, **columns):
    data = simulate_cate(n, confounding=1.0, random_state=seed)
    y = data.y + data.treatment  # the average effect is clearly positive
    frame = pd.DataFrame(data.X, columns=COVARIATES).assign(y=y, got=data.treatment, tau=0.5 + 2 * data.effect)
    return frame.assign(**{name: make(frame) for name, make in columns.items()})


def study_of(frame, **settings):
    return Study(frame, outcome="y", treatment="got", covariates=COVARIATES, learners="linear", **settings)


@pytest.fixture(scope="module")
def found():
    return study_of(table_of()).sensitivity("tau", benchmarks=["a", "e"], strengths=[1.0, 1.5], cost=0.2)


def test_at_no_strength_it_is_the_verdict(found):
    verdict = study_of(table_of()).assess("tau", cost=0.2)
    still = found.at(0.0, 0.0)
    assert still["average"].interval == pytest.approx(verdict.average.interval)
    assert still["error"].interval == pytest.approx(verdict.interval)
    assert still["value"].interval == pytest.approx(verdict.value.interval)
    assert verdict.sensitivity == found.robustness
    at_one = found.marginal[0]
    assert at_one.average.interval == pytest.approx(verdict.average.interval)
    assert at_one.error.interval == pytest.approx(verdict.interval)


def test_at_the_robustness_value_the_interval_reaches_zero(found):
    for name in ("average", "error"):
        value = getattr(found.robustness, name)
        before, beyond = (found.at(share * value, share * value)[name].interval for share in (0.98, 1.02))
        assert not before[0] <= 0 <= before[1]
        assert beyond[0] <= 0 <= beyond[1]


def test_a_benchmark_is_a_study_without_the_covariate(found):
    frame = table_of()
    with_it, without = (
        Study(frame, outcome="y", treatment="got", covariates=names, learners="linear").rows.engine.learnt.loss
        for names in (COVARIATES, COVARIATES[1:])
    )
    scales = [scale_of(loss.overlap) for loss in (with_it, without)]
    outcome, treatment = ([float(getattr(one, name).mean()) for one in scales] for name in ("outcome", "treatment"))
    mark = next(one for one in found.benchmarks if one.covariate == "a")
    assert mark.outcome == pytest.approx(1 - outcome[0] / outcome[1], rel=1e-12)
    assert mark.treatment == pytest.approx(1 - treatment[1] / treatment[0], rel=1e-12)
    assert mark.change == pytest.approx(without.target.mean() - with_it.target.mean(), rel=1e-9)
    assert abs(mark.change) < found.average.slope * product_of(mark.outcome, mark.treatment) * 1.2
    assert [one.covariate for one in found.benchmarks] == ["a", "e"]  # the strongest first


def test_bounds_widen_with_strength_and_so_do_intervals(found):
    columns = found.table()
    assert (np.diff(columns["average_lower"]) < 0).all()
    assert (np.diff(columns["average_upper"]) > 0).all()
    assert (np.diff(columns["error_lower"]) <= 0).all()
    assert (np.diff(columns["error_upper"]) > 0).all()


def test_weights_are_rows_and_clusters_are_units():
    frame = table_of(600)
    twice = pd.concat([frame, frame], ignore_index=True).assign(who=np.tile(np.arange(600), 2))
    known = study_of(frame).rows.engine.learnt.nuisances

    def analysed(rows, **settings):
        given = {name: np.tile(value, len(rows) // 600) for name, value in known.items() if name != "propensity"}
        study = study_of(rows, nuisances=given, folds=2, **settings)
        return study.rows.engine, study.sensitivity("tau", strengths=[])

    _, once = analysed(frame.assign(w=2.0), weight="w")
    _, plain = analysed(frame)
    _, grouped = analysed(twice, groups="who", key="who")
    assert once.at(0.1, 0.1)["average"].interval == pytest.approx(plain.at(0.1, 0.1)["average"].interval, rel=1e-6)
    reach = [np.ptp(one.at(0.1, 0.1)["average"].interval) for one in (plain, grouped)]
    assert reach[1] == pytest.approx(reach[0], rel=0.05)  # rows repeated within a cluster are no more evidence
    assert once.benchmarks == ()  # nuisances that are known do not change when a covariate is left out


def test_a_zero_weight_is_no_row():
    frame = table_of(600).assign(w=1.0)
    frame.loc[:49, ["w", "tau"]] = 0.0, 50.0
    found = study_of(frame, weight="w").sensitivity("tau", benchmarks=[], strengths=[1.0])
    still = found.at(0.0, 0.0)
    assert found.rows == 550
    assert found.marginal[0].bins["prediction"].max() < 40
    assert found.marginal[0].average.interval == pytest.approx(still["average"].interval)
    assert found.marginal[0].error.interval == pytest.approx(still["error"].interval)


def test_it_is_left_out_of_an_experiment():
    frame = table_of()
    study = study_of(frame, propensity=0.5)
    found = study.sensitivity("tau")
    assert str(found) == BY_DESIGN
    assert study.assess("tau").sensitivity.text == BY_DESIGN
    assert found.to_dict()["reason"] == BY_DESIGN
    assert "known probabilities" in found._repr_html_()
    with pytest.raises(OrthocalError, match="there is none"):
        found.plot()


def test_what_it_does_not_apply_to_is_refused():
    frame = table_of(300)
    with pytest.raises(OrthocalError, match="must be that of the effect 'cate'"):
        study_of(frame, effect="catt").sensitivity("tau")
    with pytest.raises(OrthocalError, match="one contrast"):
        study_of(frame.assign(got=np.arange(300) % 3), arms="all").sensitivity("tau")
    with pytest.raises(OrthocalError, match="`strength` must be a factor"):
        study_of(frame).sensitivity("tau", strengths=[0.5])
    with pytest.raises(OrthocalError, match="`benchmarks`"):
        study_of(frame).sensitivity("tau", benchmarks=["y"])
    with pytest.raises(OrthocalError, match="must be a list of covariates"):
        study_of(frame).sensitivity("tau", benchmarks="a")
    with pytest.raises(OrthocalError, match="`treatment`"):
        study_of(frame).sensitivity("tau", benchmarks=[], strengths=[]).at(0.1, 1.0)
    dd = pytest.importorskip("dask.dataframe")
    with pytest.raises(OrthocalError, match="must have rows in memory"):
        study_of(dd.from_pandas(frame, npartitions=2)).sensitivity("tau")


def test_the_record_is_text_json_and_a_picture(found):
    text = str(found)
    assert "would have to explain" in text
    assert "as strong as a" in text
    assert "odds of treatment x 1.5" in text
    record = json.loads(json.dumps(found.to_dict()))
    assert record["benchmarks"][0]["covariate"] == "a"
    assert len(record["table"]["strength"]) == len(record["table"]["error_upper"])
    for of in ("average", "error", "value"):
        ax = found.plot(of=of)
        assert "end of the interval" in ax.get_title(loc="left")
        assert {text.get_text() for text in ax.texts} & {"a", "a, e"}
        plt.close(ax.figure)
    with pytest.raises(OrthocalError, match="`of`"):
        found.plot(of="ranking")
    assert "<svg" in found._repr_html_()


def test_a_binary_outcome_and_several_predictions():
    frame = table_of(800).assign(y=lambda t: (t["y"] > 0).astype(float))
    both = study_of(frame).sensitivity({"one": "tau", "none": np.zeros(800)}, benchmarks=[], strengths=[2.0])
    assert set(both) == {"one", "none"}
    assert both["none"].marginal[0].bins["prediction"] == pytest.approx(0)
    assert both["one"].marginal[0].average.lower < both["one"].average.estimate < both["one"].marginal[0].average.upper


def test_of_three_arms_one_contrast_is_analysed():
    """Propensities that are learnt apart may add up to more than 1 in some rows."""
    frame = table_of(600)
    frame["got"] = np.where(frame["d"] > 0.8, 2, frame["got"])
    found = study_of(frame, arm=1, control=0).sensitivity("tau", benchmarks=[], strengths=[1.0, 2.0])
    still, wide = found.marginal
    assert still.average.lower == pytest.approx(found.average.estimate)
    assert wide.average.lower < found.average.estimate < wide.average.upper


def test_the_command_line_and_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table_of(400)[["a", "b", "y", "got", "tau"]].to_csv("rows.csv", index=False)
    columns = ["--outcome", "y", "--treatment", "got", "--covariates", "a,b", "--prediction", "tau"]
    assert run("assess", "rows.csv", *columns, "--learner", "linear", "--jobs", 1, "--sensitivity") == 0
    assert "odds of treatment x 2" in capsys.readouterr().out
    page = (tmp_path / "orthocal-assess" / "report.html").read_text()
    assert "tau: sensitivity to unmeasured confounding" in page
    record = json.loads((tmp_path / "orthocal-assess" / "assessment.json").read_text())
    assert record["sensitivity"]["tau"]["marginal"][0]["strength"] == 1.25


def test_the_command_line_refuses_before_it_learns(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table_of(200)[["a", "b", "y", "got", "tau"]].to_csv("rows.csv", index=False)
    columns = ["--outcome", "y", "--treatment", "got", "--covariates", "a,b", "--prediction", "tau"]
    assert run("assess", "rows.csv", *columns, "--effect", "catt", "--sensitivity") == 2
    assert "must be that of the effect 'cate'" in capsys.readouterr().err


def test_a_page_takes_one_analysis_or_several(found, tmp_path):
    verdict = study_of(table_of()).assess("tau")
    pages = []
    for name, given in {"one": found, "several": {"tau": found}}.items():
        orthocal.report(verdict, tmp_path / f"{name}.html", sensitivity=given)
        pages.append((tmp_path / f"{name}.html").read_text(encoding="utf-8"))
    assert pages[0] == pages[1]


def test_a_benchmark_that_its_strength_does_not_explain_says_so(found):
    weak = replace(found, benchmarks=tuple(replace(one, outcome=0.0, change=1.0) for one in found.benchmarks))
    assert str(weak).count("more than this strength allows") == 2
    assert "more than this strength allows" not in str(
        replace(found, benchmarks=tuple(replace(one, change=0.0) for one in found.benchmarks))
    )
