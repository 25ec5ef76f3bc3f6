"""Ratio effects (mathematics 9): measured against the mass of all rows, a bin's own ratio only where its mass is away from 0."""

import functools
import json
import re
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as t_distribution

import orthocal
from orthocal import OrthocalError, QuadraticLoss, assess, orthogonal_loss, plots
from orthocal.assessment.bin_table import shown_bins
from orthocal.assessment.bins import binned
from orthocal.assessment.ratios import Shown, mean_mass
from orthocal.assessment.sweeps import SortedRows, answer
from orthocal.calibrators import CALIBRATORS
from orthocal.losses import columns_of, is_ratio, of_columns
from tests.small_samples import CASES, RATIOS, infinite_numbers, known_nuisances, numbers_in, small_sample

pytestmark = pytest.mark.filterwarnings("ignore::orthocal.errors.SkewWarning", "ignore::orthocal.OverlapWarning")


def few_treated(n=200, share=0.15, seed=3):
    """CATT with so few treated that some bins have one or none."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    treatment = (rng.random(n) < share).astype(int)
    y = X[:, 0] + treatment * (1 + X[:, 1]) + rng.standard_normal(n)
    known = {"propensity": share, "outcome_control": X[:, 0]}
    return 1 + X[:, 1], orthogonal_loss("catt", X, y, treatment=treatment, nuisances=known)


def masses(n=240, seed=0, **settings):
    """A ratio loss of known masses around 1, some negative, with weights and clusters."""
    rng = np.random.default_rng(seed)
    prediction, mass = rng.uniform(-1, 1, n), rng.normal(1, 1.5, n)
    weight, groups = rng.uniform(0.5, 2, n), rng.integers(0, 40, n)
    numerator = mass * prediction + 0.4 * prediction + rng.standard_normal(n)
    columns = {"weight": weight, "groups": groups, **settings}
    return prediction, QuadraticLoss(weight * numerator, weight * mass, is_ratio=True, **columns)


def by_hand(prediction, loss, edges):
    """Means of the bins against the mass of all rows, their pair averages and covariance, row by row and cluster by cluster."""
    unit = np.arange(len(loss)) if loss.groups is None else loss.groups
    base = loss.weight * loss.mass.sum() / loss.weight.sum()
    residual, inside = loss.numerator - loss.denominator * prediction, np.searchsorted(edges, prediction)
    bins = len(edges) + 1
    r = np.array([[residual[(unit == g) & (inside == b)].sum() for b in range(bins)] for g in np.unique(unit)])
    m = np.array([[base[(unit == g) & (inside == b)].sum() for b in range(bins)] for g in np.unique(unit)])
    mean = r.sum(axis=0) / m.sum(axis=0)
    pairs = (r.sum(axis=0) ** 2 - (r**2).sum(axis=0)) / (m.sum(axis=0) ** 2 - (m**2).sum(axis=0))
    part = (r - mean * m) / m.sum(axis=0) / np.sqrt(1 - np.minimum(m / m.sum(axis=0), 0.9))
    return mean, pairs, part.T @ part, m.sum(axis=0) / m.sum(), r


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("clustered", [False, True])
def test_moments_are_against_the_mass_of_all_rows(weighted, clustered):
    settings = ({} if weighted else {"weight": np.ones(240)}) | ({} if clustered else {"groups": None})
    prediction, loss = masses(**settings)
    found = binned(prediction, loss, 6)
    mean, pairs, covariance, share, sums = by_hand(prediction, loss, found.edges)
    np.testing.assert_allclose(found.residual, mean)
    np.testing.assert_allclose(found.pairs, pairs)
    np.testing.assert_allclose(found.covariance, covariance)
    np.testing.assert_allclose(found.share, share)
    verdict = assess(prediction, loss, bins=6)
    assert verdict.error_squared == pytest.approx(share @ pairs)
    if clustered:
        total = sums.sum(axis=0)
        assert verdict.tests["bins"].statistic == pytest.approx(total @ np.linalg.solve(sums.T @ sums, total))
    else:
        scores = t_distribution.logsf(np.abs(mean) / np.sqrt(np.diag(covariance)), found.freedom)
        assert verdict.tests["bins"].statistic == pytest.approx(float((norm.isf(np.exp(scores)) ** 2).sum()))


@pytest.mark.parametrize("clustered", [False, True])
def test_sizes_know_the_noise_of_the_mean_mass(clustered):
    prediction, loss = masses(**({} if clustered else {"groups": None}))
    order = np.argsort(prediction)
    prediction, loss = prediction[order], loss[order]
    rows, tested = SortedRows(prediction, loss), binned(prediction, loss, 4)
    shown, sized = answer(rows, shown_bins(rows, tested, answer(rows, mean_mass(rows))))
    unit = np.unique(loss.groups, return_inverse=True)[1] if clustered else np.arange(240)
    table = (unit * 4 + np.searchsorted(tested.edges, prediction), 4 * (unit.max() + 1))
    base = loss.weight * loss.mass.sum() / loss.weight.sum()
    residual, mass, own = (
        np.bincount(table[0], column, table[1]).reshape(-1, 4)
        for column in (loss.numerator - loss.mass * prediction, loss.mass, base)
    )
    held = own.sum(axis=0)
    leverage = np.sqrt(1 - own / held)
    part, part_of_mass = ((column - column.sum(axis=0) / held * own) / held / leverage for column in (residual, mass))
    products = part**2, part * part_of_mass, part_of_mass**2
    np.testing.assert_allclose(shown.squares, [product.sum(axis=0) for product in products])
    moved = ((mass - own).sum(axis=1) / loss.mass.sum())[:, None]
    whole = part - tested.residual * moved
    np.testing.assert_allclose(sized.covariance, whole.T @ whole, atol=1e-12)
    np.testing.assert_allclose(tested.covariance, part.T @ part, atol=1e-12)


def test_the_error_of_a_population_with_uneven_masses():
    # Two bins of equally many rows, masses 1/2 and 3/2 (mean 1), effects 1 and 2 above the prediction:
    # the squared error is (1/2)(1/2 * 1)^2 + (1/2)(3/2 * 2)^2 = 37/8.
    rows = np.arange(4000)
    prediction, mass = (rows >= 2000).astype(float), np.where(rows >= 2000, 1.5, 0.5)
    noise = np.tile([-1.0, 1.0], 2000)
    loss = QuadraticLoss(mass * (prediction + 1 + prediction) + 0.1 * noise, mass, np.ones(4000), is_ratio=True)
    verdict = assess(prediction, loss, bins=2)
    assert verdict.error_squared == pytest.approx(37 / 8, abs=1e-4)
    np.testing.assert_allclose(verdict.bins["residual"], [1, 2])
    np.testing.assert_allclose(verdict.bins["target"], [1, 3])


def test_weights_have_no_unit_and_count_like_the_rows_they_stand_for():
    prediction, loss = masses(groups=None)
    scaled = replace(loss, numerator=7 * loss.numerator, denominator=7 * loss.denominator, weight=7 * loss.weight)
    one, other = (assess(prediction, each, random_state=0).to_dict() for each in (loss, scaled))
    for name in ("error_squared", "interval", "tests", "average", "linear_predictor"):
        pairs = zip(numbers_in(one[name]), numbers_in(other[name]), strict=True)
        assert all(a == pytest.approx(b, rel=1e-9) for (_, a), (_, b) in pairs)
    # A row of weight 2 and the same row twice have the same means.
    whole = replace(
        loss, weight=np.ones(240), numerator=loss.numerator / loss.weight, denominator=loss.mass / loss.weight
    )
    doubled = np.repeat(np.arange(240), 1 + np.arange(240) % 2)
    count = 1.0 + np.arange(240) % 2
    weighed = replace(whole, weight=count, numerator=count * whole.numerator, denominator=count * whole.mass)
    edges = binned(prediction, weighed, 4).edges
    np.testing.assert_allclose(binned(prediction[doubled], whole[doubled], 4).edges, edges)
    np.testing.assert_allclose(
        binned(prediction[doubled], whole[doubled], 4).residual, binned(prediction, weighed, 4).residual
    )


def test_fieller_ends_solve_their_equation_and_are_missing_where_the_mass_is_not_away_from_0():
    shown = Shown(np.array([0.3, 0.3]), np.array([1.0, 0.2]), np.array([[0.04, 0.04], [0.01, 0.01], [0.02, 0.02]]))
    for end in np.array(shown.interval(2.0))[:, 0]:
        assert (0.3 - end) ** 2 == pytest.approx(4 * (0.04 - 2 * end * 0.01 + end**2 * 0.02))
    assert np.isnan(np.array(shown.interval(2.0))[:, 1]).all()  # 0.2 is less than 2 standard errors of 0.14
    gap, error = shown.gap(np.full(2, 2.0))
    assert gap[0] == pytest.approx(0.3)
    assert error[0] == pytest.approx(np.sqrt(0.04 - 0.6 * 0.01 + 0.09 * 0.02))
    assert np.isnan([gap[1], error[1]]).all()
    plain = Shown(np.array([0.3]), np.ones(1), np.array([[0.04], [0.0], [0.0]]))
    np.testing.assert_allclose(np.ravel(plain.interval(2.0)), [0.3 - 0.4, 0.3 + 0.4])


def test_bins_without_mass_are_empty_everywhere_and_nothing_else_is(tmp_path):
    prediction, loss = few_treated()
    verdict = assess(prediction, loss, cost=1.0, by={"x": np.arange(len(loss)) % 2}, random_state=0)
    empty = np.isnan(verdict.bins["residual"])
    assert 0 < empty.sum() < len(empty)
    for name in ("target", "standard_error", "residual_lower", "residual_upper", "band_lower"):
        assert np.isnan(verdict.bins[name][empty]).all()
    for name in ("n", "mass", "lower", "upper", "prediction"):
        assert np.isfinite(verdict.bins[name]).all()
    np.testing.assert_allclose(verdict.bins["residual"], verdict.bins["target"] - verdict.bins["prediction"])
    assert not infinite_numbers(verdict)
    again = json.loads(json.dumps(verdict.to_dict(), allow_nan=False))
    assert [value is None for value in again["bins"]["residual"]] == empty.tolist()
    orthocal.report(verdict, tmp_path / "page.html")
    for html in ((tmp_path / "page.html").read_text(), verdict._repr_html_()):
        words = re.sub(r"<style.*?</style>", "", html, flags=re.DOTALL)
        assert not re.search(r"\b(nan|inf)\b", words, flags=re.IGNORECASE)
    for draw in (verdict.plot, lambda: plots.reliability(verdict, curve=True), lambda: plots.overlay(verdict, verdict)):
        draw().figure.canvas.draw()
        plt.close("all")


def test_no_bin_has_mass_enough():
    prediction, loss = masses(n=60)
    weak = replace(loss, denominator=loss.denominator - loss.mass.mean() + 0.01)
    verdict = assess(prediction, weak, bins=1, random_state=0)
    assert np.isnan(verdict.bins["residual"]).all()
    assert not infinite_numbers(verdict)
    verdict.plot().figure.canvas.draw()
    verdict._repr_html_()
    plt.close("all")


def test_subgroups_without_mass_have_a_test_and_no_size(tmp_path):
    prediction, loss = few_treated(n=400, share=0.3)
    by = {"treated": loss.mass.astype(int)}
    verdict = assess(prediction, loss, by=by, random_state=0)
    without, having = verdict.subgroups
    assert (without.error, without.interval, without.excess, without.excess_interval) == (None,) * 4
    assert 0 <= without.p_value <= without.p_value_adjusted <= 1
    assert having.error is not None
    assert not infinite_numbers(verdict)
    orthocal.report(verdict, tmp_path / "page.html")


def test_half_of_the_rows_without_mass_have_no_decomposition():
    prediction, loss = few_treated()
    few = np.flatnonzero(loss.mass)[2:]  # two treated rows are left
    rows = np.setdiff1d(np.arange(len(loss)), few)
    found = [assess(prediction[rows], loss[rows], random_state=seed).decomposition for seed in range(6)]
    assert {one.miscalibration is None for one in found} == {True, False}


@functools.cache
def drawn(case, seed):
    """A small sample with known nuisances, which need no learning."""
    return small_sample(case, seed, nuisances=known_nuisances(case, seed))


@pytest.mark.parametrize("case", CASES)
def test_no_number_is_infinite_on_small_samples(case):
    for seed in range(20 if case in RATIOS else 3):
        if drawn(case, seed) is not None:
            assert infinite_numbers(assess(*drawn(case, seed), random_state=0)) == [], seed


@pytest.mark.parametrize("method", sorted(set(CALIBRATORS) - {"auto"}))
@pytest.mark.parametrize("case", RATIOS)
def test_calibrators_fit_ratio_effects_of_small_samples(case, method):
    for seed in range(4):
        prediction, loss = drawn(case, seed)
        assert np.isfinite(CALIBRATORS[method]().fit(prediction, loss).predict(prediction)).all()


def test_a_line_is_found_where_masses_hide_the_spread_of_predictions():
    # Mass 3 at the middle and -1 at both ends: the spread of predictions is negative, that of three runs is not.
    prediction, mass = np.array([-1.0, -1.0, 0.0, 1.0, 1.0]), np.array([-1.0, 0.5, 3.0, 0.5, -1.0])
    fitted = orthocal.Linear().fit(prediction, QuadraticLoss(2 * mass, mass, is_ratio=True)).map_
    assert fitted.predict(prediction) == pytest.approx(2.0)


def test_a_total_without_mass_is_an_error():
    prediction, loss = masses()
    with pytest.raises(OrthocalError, match="summed mass of the loss must be positive; it is -"):
        assess(prediction, replace(loss, denominator=-loss.denominator))


def test_the_flag_travels_with_the_rows_and_an_own_loss_need_not_have_it():
    _, loss = masses()
    assert is_ratio(loss[:5])
    assert is_ratio(of_columns(loss[:0], columns_of(loss)))
    assert not is_ratio(object())
    assert (QuadraticLoss(np.ones(2), np.array([0.0, 2.0]), is_ratio=True).weight == 1).all()
    prediction, plain = few_treated(share=0.05)
    with pytest.raises(OrthocalError, match="Use fewer `bins`, or is_ratio=True"):
        assess(prediction, replace(plain, is_ratio=False))


@pytest.mark.parametrize("case", CASES)
def test_effects_say_whether_they_are_ratios(case):
    assert is_ratio(drawn(case, 0)[1]) == (case in RATIOS)


class OwnRatio:
    """A ratio loss of a user's own: no quadratic loss of ours, but the protocol and the flag."""

    is_ratio, unit, bounds, overlap, groups = True, "effect", (-np.inf, np.inf), None, None

    def __init__(self, numerator, mass):
        self.numerator, self.mass, self.weight = numerator, mass, np.ones(len(mass))

    def __len__(self):
        return len(self.mass)

    def __getitem__(self, rows):
        return OwnRatio(self.numerator[rows], self.mass[rows])

    def derivative(self, v):
        return self.mass * v - self.numerator

    def at(self, prediction):
        del prediction
        return self


def test_an_own_ratio_loss_is_binned_like_ours():
    prediction, loss = few_treated()
    one, other = binned(prediction, loss, 10), binned(prediction, OwnRatio(loss.numerator, loss.mass), 10)
    np.testing.assert_allclose(other.residual, one.residual)
    np.testing.assert_allclose(other.covariance, one.covariance)
