import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm
from sklearn.isotonic import IsotonicRegression

from orthocal import Auto, HingeLoss, Histogram, Isotonic, Linear, OrthocalError, Platt, QuadraticLoss
from orthocal.calibration.schemes import _levels, fit_calibrator
from orthocal.calibrators import new_calibrator
from orthocal.calibrators.auto import LINES, SHAPES
from orthocal.calibrators.histogram import uniform_mass_edges
from orthocal.calibrators.isotonic import join_small
from orthocal.distributions import TableDistribution


def weighted(n=500, seed=0, decimals=2):
    rng = np.random.default_rng(seed)
    prediction = np.round(rng.standard_normal(n), decimals)
    d = rng.uniform(0.2, 3, n)
    return prediction, QuadraticLoss(d * (prediction + rng.standard_normal(n)), d)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("decimals", [0, 1, 8])
def test_isotonic_equals_scikit_learn_at_the_training_rows(seed, decimals):
    prediction, loss = weighted(seed=seed, decimals=decimals)
    peer = IsotonicRegression(out_of_bounds="clip").fit(prediction, loss.target, sample_weight=loss.denominator)
    ours = Isotonic(min_samples=1).fit(prediction, loss).predict(prediction)
    np.testing.assert_allclose(ours, peer.predict(prediction), atol=1e-10)


def test_isotonic_is_a_step_map_that_covers_up_to_the_last_prediction_of_a_block():
    loss = QuadraticLoss(np.array([0.0, 1.0, 5.0]), np.ones(3))
    learnt = Isotonic(min_samples=1).fit([0.0, 1.0, 2.0], loss)
    # Between 1 and 2 lies the block of 2, ( , ]: no interpolation; outside the map is clipped.
    np.testing.assert_array_equal(learnt.predict([-9, 0, 0.5, 1, 1.001, 2, 9]), [0, 0, 1, 1, 5, 5, 5])


def test_min_samples_bounds_every_block_and_keeps_the_block_means():
    prediction, loss = weighted(decimals=8)
    learnt = Isotonic(min_samples=40).fit(prediction, loss)
    block = np.searchsorted(learnt.map_.edges, prediction)
    scaled = loss.weight / loss.weight.mean()
    assert np.bincount(block, scaled).min() >= 40
    means = np.bincount(block, loss.numerator) / np.bincount(block, loss.denominator)
    np.testing.assert_allclose(learnt.map_.values, means)
    assert (np.diff(means) > 0).all()


def test_a_light_block_joins_the_neighbour_nearest_in_value():
    # Blocks of weight 5, 1, 5: the middle one is nearer to the right.
    np.testing.assert_array_equal(join_small(np.array([5.0, 1, 5]), np.array([0.0, 8, 10]), 2), [0, 1, 1])
    np.testing.assert_array_equal(join_small(np.array([5.0, 1, 5]), np.array([0.0, 2, 10]), 2), [0, 0, 1])
    # Two light ends each join inwards; three light blocks become one.
    np.testing.assert_array_equal(join_small(np.array([1.0, 9, 1]), np.array([0.0, 1, 2]), 2), [0, 0, 0])
    np.testing.assert_array_equal(join_small(np.ones(3), np.array([0.0, 1, 2]), 3), [0, 0, 0])
    np.testing.assert_array_equal(join_small(np.full(4, 2.0), np.arange(4.0), 2), [0, 1, 2, 3])


def test_isotonic_with_negative_denominators_pools_until_the_mass_is_positive():
    rng = np.random.default_rng(0)
    prediction = np.sort(rng.standard_normal(2000))
    d = rng.normal(0.5, 1, 2000)
    loss = QuadraticLoss(d * prediction + rng.standard_normal(2000), d)
    learnt = Isotonic(min_samples=1).fit(prediction, loss)
    block = np.searchsorted(learnt.map_.edges, prediction)
    mass = np.bincount(block, d)
    assert mass.min() >= 0.01 * d.sum()
    np.testing.assert_allclose(learnt.map_.values, np.bincount(block, loss.numerator) / mass)


def test_no_positive_mass_is_an_error():
    loss = QuadraticLoss(np.ones(3), np.array([-1.0, 0.5, 0.2]))
    for calibrator in (Isotonic(), Linear()):
        with pytest.raises(OrthocalError, match="mass of the loss must be positive"):
            calibrator.fit([0.0, 1, 2], loss)
    with pytest.raises(OrthocalError, match="group of rows must have positive mass"):
        Histogram(bins=3).fit([0.0, 1, 2], loss)


def test_linear_equals_weighted_least_squares():
    prediction, loss = weighted()
    slope, intercept = np.polyfit(prediction, loss.target, 1, w=np.sqrt(loss.denominator))
    learnt = Linear().fit(prediction, loss).map_
    np.testing.assert_allclose([learnt.intercept, learnt.slope], [intercept, slope], rtol=1e-10)


def test_linear_is_flat_where_masses_leave_no_spread():
    # Pooled until the mass is positive, all three rows are one run of mass 1 and numerator 3.
    loss = QuadraticLoss(np.ones(3), np.array([-1.0, 3.0, -1.0]))
    assert Linear().fit([0.0, 1.0, 2.0], loss).map_.predict([0.0, 5.0]).tolist() == [3.0, 3.0]


@pytest.mark.parametrize(("n", "bins"), [(100, 4), (10, 4), (7, 3), (1000, 20), (3, 20)])
def test_histogram_edges_are_order_statistics_from_minus_infinity_on(n, bins):
    prediction = np.random.default_rng(0).permutation(np.arange(1.0, n + 1))
    ordered = np.concatenate([[-np.inf], np.sort(prediction)])  # theta_(0) = -inf (mathematics 12.11)
    wanted = np.unique([ordered[b * n // bins] for b in range(1, bins)])
    np.testing.assert_array_equal(uniform_mass_edges(prediction, np.ones(n), bins), wanted[np.isfinite(wanted)])


def test_histogram_bins_of_100_rows_hold_25_each():
    prediction = np.random.default_rng(0).standard_normal(100)
    learnt = Histogram(bins=4).fit(prediction, QuadraticLoss(prediction, np.ones(100)))
    assert np.bincount(np.searchsorted(learnt.map_.edges, prediction)).tolist() == [25, 25, 25, 25]


def test_histogram_drops_duplicate_edges_and_an_empty_last_bin():
    prediction = np.array([0.0, 0, 0, 0, 1, 2, 2, 2])
    edges = uniform_mass_edges(prediction, np.ones(8), 8)
    np.testing.assert_array_equal(edges, [0, 1])


def test_weights_that_are_no_whole_numbers_put_edges_at_equal_weight():
    edges = uniform_mass_edges(np.array([1.0, 2, 3, 4]), np.array([0.1, 0.1, 0.1, 0.7]), 2)
    np.testing.assert_array_equal(edges, [])  # half of the weight is reached only at the last prediction
    edges = uniform_mass_edges(np.array([1.0, 2, 3, 4]), np.array([0.7, 0.1, 0.1, 0.1]), 2)
    np.testing.assert_array_equal(edges, [1])


def test_platt_meets_both_first_order_conditions_with_targets_outside_the_bounds():
    rng = np.random.default_rng(0)
    prediction = rng.standard_normal(400)
    d = rng.uniform(0.5, 2, 400)
    target = 2 * expit(prediction) + 3 * rng.standard_normal(400)
    assert (target < 0).any()
    assert (target > 2).any()
    loss = QuadraticLoss(d * target, d)
    calibrated = Platt(lower=0, upper=2).fit(prediction, loss).predict(prediction)
    residual = loss.derivative(calibrated)
    assert abs(residual.sum()) < 1e-7
    assert abs(residual @ prediction) < 1e-7


def test_platt_records_the_bounds_it_chose():
    prediction, loss = weighted()
    learnt = Platt().fit(prediction, loss).map_
    values = Histogram(20).fit(prediction, loss).map_.values
    line = Linear().fit(prediction, loss).predict([prediction.min(), prediction.max()])
    low, high = min(line.min(), values.min()), max(line.max(), values.max())
    assert learnt.lower == pytest.approx(low - 0.25 * (high - low))
    assert learnt.upper == pytest.approx(high + 0.25 * (high - low))
    assert Platt(lower=-9).fit(prediction, loss).map_.lower == -9


def test_platt_says_so_when_no_sigmoid_fits_best():
    loss = QuadraticLoss(np.array([2.0, 2.0, 3.0, 3.0]), np.ones(4))  # the mean lies above `upper`
    with pytest.raises(OrthocalError, match="No sigmoid"):
        Platt(lower=0, upper=1).fit([0.0, 1, 2, 3], loss)
    with pytest.raises(OrthocalError, match="below `upper`"):
        Platt(lower=2, upper=1).fit([0.0, 1, 2, 3], loss)


def test_settings_are_checked():
    prediction, loss = weighted()
    for calibrator in (Isotonic(min_samples=0), Histogram(bins=0)):
        with pytest.raises(OrthocalError, match="at least 1"):
            calibrator.fit(prediction, loss)


def test_an_unknown_method_is_answered_with_the_known_ones():
    with pytest.raises(OrthocalError, match="'identity', 'constant', 'shift', 'linear'"):
        new_calibrator("isotonics")


class Refuses(Linear):
    """A calibrator that cannot be fitted."""

    def fit(self, prediction, loss):
        raise OrthocalError("not today")


def test_auto_leaves_out_what_cannot_be_fitted_and_says_why():
    prediction, loss = weighted()
    chosen = Auto({"refuses": Refuses()}).fit(prediction, loss)
    assert [trial.name for trial in chosen.trials_] == [*LINES, "refuses"]
    refused = chosen.trials_[-1]
    assert (refused.weight, refused.note) == (0.0, "not today")
    assert np.isnan(refused.excess)


def test_auto_chooses_once_and_refines_its_choice_for_a_loss_that_depends_on_the_level():
    rng = np.random.default_rng(0)
    prediction = rng.standard_normal(600)
    outcome = 1 + 2 * prediction + rng.standard_normal(600)
    slope = 2.0 * (rng.random(600) < 0.5)
    levels = np.linspace(-8, 10, 60)
    law = TableDistribution(levels, norm.cdf(levels[None, :] - (1 + 2 * prediction)[:, None]))
    loss = HingeLoss(outcome, slope, np.zeros(600), distribution=law).at(prediction)
    fitted = fit_calibrator("auto", prediction, loss, fold=np.arange(600) % 3)
    assert fitted.weights_.keys() <= {candidate.member for candidate in (*LINES.values(), *SHAPES.values())} | {
        *LINES,
        *SHAPES,
    }
    assert fitted.choice_ != "identity"
    np.testing.assert_allclose(fitted.predict([-0.5, 0.0, 0.5]), [0, 1, 2], atol=0.3)
    assert fit_calibrator("auto", prediction, loss, refinements=0).map_ is not None
    assert fit_calibrator("linear", prediction, loss, fold=np.zeros(600, int)).map_.slope == pytest.approx(2, abs=0.2)


def test_a_row_s_level_comes_from_a_map_fitted_without_its_fold():
    prediction, loss = weighted(60)
    fold = np.arange(60) % 3
    levels = _levels(Linear(), prediction, loss, fold)
    for k in range(3):
        own = Linear().fit(prediction[fold != k], loss[np.flatnonzero(fold != k)])
        np.testing.assert_array_equal(levels[fold == k], own.predict(prediction[fold == k]))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("digits", [1, 2])
def test_ties_are_never_divided_where_many_rows_are_pooled_in_parts(digits, seed):
    """20,000 rows are pooled some thousand at a time; levels that reach over a border must stay whole."""
    rng = np.random.default_rng(seed)
    prediction = np.round(rng.standard_normal(20_000), digits)
    target = prediction + 3 * rng.standard_normal(20_000)
    found = Isotonic(min_samples=1).fit(prediction, QuadraticLoss(target, np.ones(20_000)))
    exact = IsotonicRegression().fit(prediction, target)
    np.testing.assert_allclose(found.predict(prediction), exact.predict(prediction), atol=1e-10)
