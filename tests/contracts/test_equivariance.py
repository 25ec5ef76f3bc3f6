"""Laws of scale and shift: the unit of the outcome, of the prediction or of a covariate is not information."""

import numpy as np
import pytest

from orthocal import CausalCalibrator, assess, compare, orthogonal_loss
from orthocal.calibrators import CALIBRATORS, Auto, Linear, Spline, new_calibrator
from orthocal.effects import EFFECTS
from orthocal.effects.description import RATIO
from orthocal.errors import OrthocalError
from orthocal.losses import ExpectileLoss, HingeLoss, QuadraticLoss
from orthocal.nuisances import Nuisance, default_learner
from orthocal.nuisances.wrapped import fit_weighted
from tests.equivariance import NEAR, SIMULATIONS, calibrated, distance, figures, learnt, rows_of

UNITS = [(1e-9, 0.0), (1e9, 1e6)]
"""What the outcome is multiplied by, and by how many deviations it is moved then; tests/statistics has more of them."""
pytestmark = pytest.mark.filterwarnings("ignore::orthocal.OverlapWarning", "ignore::orthocal.SkewWarning")
every_effect = pytest.mark.parametrize("name", EFFECTS)
every_unit = pytest.mark.parametrize(("scale", "deviations"), UNITS)


def test_every_effect_says_how_it_moves_and_has_rows():
    assert set(SIMULATIONS) == set(EFFECTS)
    assert all(EFFECTS[name].equivariance.power in {0, 1} for name in EFFECTS)


def test_a_ratio_has_no_rule_for_a_shift():
    assert RATIO.of(1.2, scale=1000.0) == 1.2
    with pytest.raises(OrthocalError, match="must have a shift of 0"):
        RATIO.of(1.2, shift=1.0)


@every_unit
@every_effect
def test_the_map_moves_with_the_outcome(name, scale, deviations):
    """Default learners, every calibrator, refined where the loss depends on the level."""
    before, after = calibrated(name), calibrated(name, scale, deviations)
    for method in CALIBRATORS:
        assert distance(before[method], after[method]) < NEAR, method


@pytest.mark.parametrize("name", ["cate", "derivative"])
def test_the_map_moves_with_the_outcome_where_rows_have_weights(name):
    """Weighted rows have other default learners, with covariates in bins."""
    (rows, loss), (moved, moved_loss) = learnt(name, weighted=True), learnt(name, 1e-9, 1e6, weighted=True)
    before = Linear().fit(rows.prediction, loss).predict(rows.prediction)
    after = Linear().fit(moved.prediction, moved_loss).predict(moved.prediction)
    assert distance(before, moved.back(after)) < NEAR


@pytest.mark.parametrize(("scheme", "method"), [("split", "auto"), ("three-way", "histogram")])
@pytest.mark.parametrize("name", ["cate", "quantile"])
def test_every_scheme_moves_with_the_outcome(name, scheme, method):
    found = []
    for scale, deviations in [(1.0, 0.0), (1e-9, 1e6)]:
        rows = rows_of(name, scale, deviations)
        chosen = CausalCalibrator(name, method, scheme=scheme, random_state=0)
        chosen.fit(rows.X, rows.y, **{**rows.roles, "prediction": rows.prediction})
        found.append(rows.back(chosen.calibrate(rows.prediction)))
    assert distance(*found) < NEAR


TILTED = {"hinge": HingeLoss, "expectile": ExpectileLoss}


def tilted(kind, n=300):
    """Predictions and a loss with tilts of both signs."""
    rng = np.random.default_rng(2)
    prediction = rng.standard_normal(n)
    slope, outcome = rng.uniform(0, 2, n), np.exp(prediction / 2) + rng.standard_normal(n)
    return prediction, TILTED[kind](outcome, slope, 0.5 * slope + 0.1 * rng.standard_normal(n))


def quadratic(n=300):
    """Predictions and a quadratic loss with uneven masses."""
    rng = np.random.default_rng(2)
    prediction, mass = rng.standard_normal(n), rng.uniform(0.2, 2, n)
    return prediction, QuadraticLoss(mass * (np.exp(prediction / 2) + rng.standard_normal(n)), mass)


@pytest.mark.parametrize("kind", ["quadratic", *TILTED])
@pytest.mark.parametrize("method", [name for name in CALIBRATORS if name not in {"identity", "shift", "auto"}])
def test_the_prediction_s_own_unit_does_not_matter(method, kind):
    """Methods that keep distances between predictions cannot hold this law, nor can one that may have a part of them."""
    prediction, loss = quadratic() if kind == "quadratic" else tilted(kind)
    before = new_calibrator(method).fit(prediction, loss).predict(prediction)
    for scale, shift in [(1e-9, 0.0), (1e9, 0.0), (1.0, 1e6), (1e-3, 7.0)]:
        moved = scale * (prediction + shift)
        assert distance(before, new_calibrator(method).fit(moved, loss).predict(moved)) < NEAR


def test_auto_among_methods_that_change_the_prediction_does_not_see_its_unit():
    prediction, loss = quadratic()
    chooser = Auto({"linear": Linear(), "spline": Spline()})
    before = chooser.fit(prediction, loss).predict(prediction)
    assert distance(before, chooser.fit(1e-9 * prediction, loss).predict(1e-9 * prediction)) < NEAR


@every_unit
@every_effect
def test_every_figure_of_a_verdict_has_a_unit(name, scale, deviations):
    """Scaled, each is multiplied by a power of the scale; moved, each stays or moves along."""
    found = []
    for rows, loss in (learnt(name), learnt(name, scale, deviations)):
        found.append((rows, dict(figures(assess(rows.prediction, loss, random_state=0).to_dict()))))
    (_, before), (rows, after) = found
    assert set(before) == set(after)
    moved = (rows.equivariance.moves or 0) * rows.shift
    for figure, value in before.items():
        if any(part in figure for part in EXEMPT.get(name, ())):
            continue
        other, reach = after[figure], NEAR * (max(abs(value), 1.0) if moved else abs(value))
        near = any(abs(other / scale**power - value) <= reach for power in (-2, -1, 0, 1, 2))
        near |= abs((other - moved) / scale - value) <= reach
        assert near or (np.isnan(value) and np.isnan(other)), (figure, value, other)


@every_effect
def test_a_comparison_has_a_unit(name):
    found = []
    for scale, deviations in [(1.0, 0.0), *UNITS]:
        rows, loss = learnt(name, scale, deviations)
        better = rows.equivariance.of(0.9 * rows.back(rows.prediction), scale=scale, shift=rows.shift)
        one = compare(rows.prediction, better, loss)
        found.append((one.risk_difference, one.standard_error, one.p_value_harm))
    (difference, error, harm), *others = found
    for other in others:
        assert other[2] == pytest.approx(harm, rel=NEAR)
        assert other[0] / other[1] == pytest.approx(difference / error, rel=NEAR)


EXEMPT = dict.fromkeys(("quantile", "expectile", "cvar"), ("linear_predictor.intercept",))
"""Figures the law is not about: the intercept of a line moves by 1 - slope times what the rest moves by."""


def test_default_regressors_scale_and_shift_with_their_target():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 3)), rng.standard_normal(300)
    y = y + X[:, 0] ** 2
    found = []
    for scale, shift in [(1.0, 0.0), *UNITS]:
        learner = default_learner(Nuisance("outcome", "outcome", y)).set_params(learner__random_state=0)
        fitted = fit_weighted(learner, X, scale * (y + shift), None)
        found.append(fitted.predict(X) / scale - shift)
    assert max(distance(found[0], other) for other in found[1:]) < NEAR


@pytest.mark.parametrize("weighted", [False, True])
def test_the_unit_of_covariates_does_not_matter(weighted):
    rows = rows_of("cate")
    weight = np.random.default_rng(1).uniform(0.5, 2, len(rows.y)) if weighted else None
    # Without a key of its own a row is known by its covariates, and stands elsewhere before a learner when they change.
    settings = {**rows.roles, "sample_weight": weight, "folds": 2, "key": np.arange(len(rows.y)), "random_state": 0}
    losses = [orthogonal_loss("cate", scale * rows.X, rows.y, **settings) for scale in (1.0, 1e-9, 1e9)]
    for loss in losses[1:]:
        np.testing.assert_allclose(loss.numerator, losses[0].numerator, atol=NEAR)
