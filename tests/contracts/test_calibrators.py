"""Laws of every calibrator."""

import numpy as np
import pytest
from sklearn.base import clone

import orthocal
from orthocal import ExpectileLoss, HingeLoss, QuadraticLoss
from orthocal.calibrators import CALIBRATORS, new_calibrator
from orthocal.maps import StepMap
from orthocal.solvers import constants

CROSS_VALIDATING = {"spline", "auto"}  # their folds depend on the number of rows
every_calibrator = pytest.mark.parametrize("name", CALIBRATORS)
KEEPS_DISTANCES = {"identity", "shift"}  # a constant may be better than these
GRID = np.linspace(-4, 4, 101)


def fitted(name, prediction, loss):
    return CALIBRATORS[name]().fit(prediction, loss)


@pytest.mark.parametrize("name", sorted(set(CALIBRATORS) - CROSS_VALIDATING))
def test_weight_k_equals_the_row_repeated_k_times(name, scored):
    prediction, loss = scored
    times = loss.weight.astype(int)
    repeated = QuadraticLoss(np.repeat(loss.target, times), np.ones(times.sum()))
    ours, theirs = fitted(name, prediction, loss), fitted(name, np.repeat(prediction, times), repeated)
    np.testing.assert_allclose(ours.predict(GRID), theirs.predict(GRID), atol=1e-7)


@every_calibrator
def test_the_order_of_rows_does_not_matter(name, scored):
    prediction, loss = scored
    order = np.random.default_rng(0).permutation(len(prediction))
    mixed = fitted(name, prediction[order], loss[order])
    np.testing.assert_allclose(fitted(name, prediction, loss).predict(GRID), mixed.predict(GRID), atol=1e-7)


@every_calibrator
def test_scaling_all_weights_changes_nothing(name, scored):
    prediction, loss = scored
    weight = np.random.default_rng(1).uniform(0.5, 2, len(loss))
    one = QuadraticLoss(weight * loss.target, weight)
    half = QuadraticLoss(0.001 * weight * loss.target, 0.001 * weight)
    ours, theirs = fitted(name, prediction, one), fitted(name, prediction, half)
    np.testing.assert_allclose(ours.predict(GRID), theirs.predict(GRID), atol=1e-7)


@every_calibrator
def test_rows_of_weight_zero_do_not_matter(name, scored):
    prediction, loss = scored
    weight = np.where(np.arange(300) % 3 == 0, 0.0, loss.weight)
    mixed = QuadraticLoss(weight * loss.target, weight)
    kept = np.flatnonzero(weight > 0)
    ours, theirs = fitted(name, prediction, mixed), fitted(name, prediction[kept], mixed[kept])
    np.testing.assert_allclose(ours.predict(GRID), theirs.predict(GRID), atol=1e-9)


@every_calibrator
def test_on_each_level_set_of_a_step_map_the_summed_derivative_is_zero(name, scored):
    prediction, loss = scored
    learnt = fitted(name, prediction, loss)
    if not isinstance(learnt.map_, StepMap):
        return
    calibrated = learnt.predict(prediction)
    derivative = loss.derivative(calibrated)
    for value in np.unique(calibrated):
        assert abs(derivative[calibrated == value].sum()) < 1e-9


def tilted(kind, n=400):
    """A hinge or expectile loss with half of the rows carrying weight."""
    rng = np.random.default_rng(4)
    prediction = np.round(rng.standard_normal(n), 1)
    slope = 2.0 * (rng.random(n) < 0.5)
    outcome = 0.5 * prediction + rng.standard_normal(n)
    tilt = 0.6 + (slope - 1) * 0.6 if kind is HingeLoss else 0.1 * (slope - 1)
    return prediction, kind(outcome, slope, tilt)


@every_calibrator
@pytest.mark.parametrize("kind", [HingeLoss, ExpectileLoss])
def test_every_calibrator_serves_every_loss(name, kind):
    prediction, loss = tilted(kind)
    learnt = fitted(name, prediction, loss)
    calibrated = learnt.predict(prediction)
    low, high = loss.bounds
    if name not in KEEPS_DISTANCES:
        constant = constants(loss, np.zeros(len(loss), int), 1)[0]
        assert loss.value(calibrated).sum() <= loss.value(np.full(len(loss), constant)).sum() + 1e-6
    if isinstance(learnt.map_, StepMap):
        for value in np.unique(calibrated):
            own = loss[np.flatnonzero(calibrated == value)]
            right = own.derivative(np.full(len(own), value)).sum()
            left = own.derivative(np.full(len(own), value - 1e-9)).sum()
            assert right >= -1e-6 or value == high
            assert left <= 1e-6 or value == low


@every_calibrator
def test_a_constant_prediction_gives_a_constant_map(name):
    target = np.random.default_rng(0).standard_normal(1000)
    target += 0.1 - target.mean()
    calibrated = fitted(name, np.full(1000, 0.1), QuadraticLoss(target, np.ones(1000))).predict([0.1, 0.1])
    np.testing.assert_allclose(calibrated, 0.1, atol=1e-9)


@every_calibrator
def test_clone_forgets_what_was_learnt_and_keeps_the_settings(name, scored):
    learnt = fitted(name, *scored)
    copy = clone(learnt)
    assert copy.get_params() == learnt.get_params()
    assert not hasattr(copy, "map_")


@every_calibrator
def test_a_saved_map_predicts_the_same(name, scored, tmp_path):
    learnt = fitted(name, *scored)
    orthocal.save(learnt, tmp_path / "map.json")
    np.testing.assert_array_equal(orthocal.load(tmp_path / "map.json").predict(GRID), learnt.predict(GRID))


@pytest.mark.parametrize("name", ["identity", "constant", "shift", "linear", "isotonic", "spline", "platt", "auto"])
def test_monotone_where_promised(name, scored):
    assert (np.diff(fitted(name, *scored).predict(GRID)) >= 0).all()


@every_calibrator
def test_no_calibrator_raises_the_loss_it_minimises_above_the_best_constant(name, scored):
    prediction, loss = scored
    if name in KEEPS_DISTANCES:
        return
    constant = np.full(len(loss), loss.numerator.sum() / loss.denominator.sum())
    assert loss.value(fitted(name, prediction, loss).predict(prediction)).sum() <= loss.value(constant).sum() + 1e-9


@every_calibrator
def test_a_class_or_nothing_is_no_method(name):
    for wrong in (CALIBRATORS[name], None, 3):
        with pytest.raises(orthocal.OrthocalError, match="`method` must be a name or a calibrator"):
            new_calibrator(wrong)


@every_calibrator
def test_lengths_must_agree(name, scored):
    with pytest.raises(orthocal.OrthocalError, match="one value per row"):
        fitted(name, scored[0][:-1], scored[1])
