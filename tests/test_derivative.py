"""The causal derivative under strong confounding: its correction balances, its figures are right, and units do not matter."""

import json

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask import config
from sklearn.linear_model import LinearRegression

import orthocal
from orthocal import CausalCalibrator, CausalDerivative, OrthocalError, OverlapWarning, assess, orthogonal_loss
from orthocal.distributed import assess as assess_on_dask
from orthocal.losses.balance import balance_of
from orthocal.nuisances.corrections import Balanced, RieszCorrection, riesz_weights
from orthocal.nuisances.derivatives import WithDerivative
from orthocal.nuisances.polynomials import polynomial, ridge
from tests.derivative_designs import (
    INDICATORS_AVERAGE,
    NONLINEAR_AVERAGE,
    heteroskedastic,
    indicators,
    nonlinear,
    strong,
)

N = 1000


def test_the_average_of_the_nonlinear_design_is_what_quadrature_gives():
    node, weight = np.polynomial.hermite_e.hermegauss(200)
    share = np.outer(weight, weight) / weight.sum() ** 2
    value = np.exp(-0.245) * np.cos(1.5 * np.sin(node)[:, None] + np.abs(node))
    assert (share * value).sum() == pytest.approx(NONLINEAR_AVERAGE, abs=2e-3)
    assert nonlinear(10, 0).effect.shape == (10,)


def test_the_average_of_the_design_of_indicators_is_what_quadrature_gives():
    node, weight = np.polynomial.legendre.leggauss(60)
    share, x = np.outer(weight, weight) / 4, 1.5 * node
    chances = [0.6, 0.4]
    found = sum(
        chances[x4]
        * chances[x5]
        * chances[x6]
        * (1 + x4)
        / 2
        * np.exp(-((0.8 + 0.4 * x6) ** 2) / 8)
        * (share * np.cos((x[:, None] ** 2 + x + x4 - x5) / 2)).sum()
        for x4 in (0, 1)
        for x5 in (0, 1)
        for x6 in (0, 1)
    )
    assert found == pytest.approx(INDICATORS_AVERAGE, abs=1e-4)
    assert indicators(4000, 0).effect.mean() == pytest.approx(found, abs=0.03)


def test_slopes_are_not_pooled_where_the_treatment_varies_little():
    """Rows with x2 < -1 have a third of the treatment's deviation; their slopes must not be those of the others."""
    gaps = []
    for seed in range(10):
        seen, other = heteroskedastic(400, seed), heteroskedastic(2000, 100 + seed)
        features = np.column_stack([seen.X, seen.treatment])
        fitted = WithDerivative(LinearRegression()).fit(features, seen.y)
        narrow = other.X[:, 1] < -1
        slope = fitted.predict(np.column_stack([other.X, other.treatment]))[:, 1]
        gaps.append((slope - other.effect)[narrow].mean())
    assert abs(np.mean(gaps)) < 0.18


@pytest.fixture(scope="module")
def confounded():
    """Strongly confounded rows, a prediction off by .3 and its calibration."""
    data = strong(N, 0)
    off = data.effect + 0.3 * data.X[:, 1] + 0.1
    fitted = CausalCalibrator("derivative", "linear", random_state=0)
    return data, off, fitted.fit(data.X, data.y, treatment=data.treatment, prediction=off)


def test_strong_confounding_does_not_end_up_in_the_average(confounded):
    data, off, fitted = confounded
    average = assess(off, fitted.loss_, random_state=0).average
    low, high = average.interval
    assert low < 0.015 < high
    assert high - low < 0.25
    confounded_slope = np.polyfit(data.treatment, data.y, 1)[0]
    assert confounded_slope == pytest.approx(7.4, abs=0.3)


def test_calibration_does_not_raise_the_squared_error_under_strong_confounding(confounded):
    data, off, fitted = confounded
    assert np.mean((fitted.map_.predict(off) - data.effect) ** 2) < np.mean((off - data.effect) ** 2)


def test_the_balance_is_a_figure_of_the_overlap_summary(confounded):
    data, off, fitted = confounded
    zeta, a = fitted.nuisances_["score_correction"], data.treatment
    verdict = assess(off, fitted.loss_, random_state=0)
    balance = verdict.overlap.balance
    assert balance.treatment == pytest.approx((zeta * (a - a.mean())).mean(), rel=1e-9)
    assert balance.treatment == pytest.approx(1, abs=0.1)
    assert abs(zeta.mean()) < 0.1
    assert f"mean of correction x treatment {balance.treatment:.3f}" in verdict.summary()
    assert json.loads(json.dumps(verdict.to_dict()))["overlap"]["balance"] == balance.to_dict()
    assert str(balance) in fitted._repr_html_()


def test_the_page_shows_the_balance_and_no_propensities(confounded, tmp_path):
    _, off, fitted = confounded
    orthocal.report({"model": assess(off, fitted.loss_, random_state=0)}, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "mean of correction x treatment" in page
    assert "Propensities of the level" not in page


def test_balance_by_hand():
    """Two rows a = -1, 1 with correction -1, 1: mean(zeta a) = 1; x = 0, 2: mean(zeta (x - 1)) = 1, in deviations 1."""
    balance = balance_of(np.array([[0.0], [2.0]]), np.array([-1.0, 1.0]), np.array([-1.0, 1.0]), np.ones(2))
    assert balance.treatment == 1
    assert balance.worst == ("covariate 1", 1.0)


def test_a_correction_that_does_not_balance_is_warned_of(confounded):
    data, _, fitted = confounded
    given = {**fitted.nuisances_, "score_correction": 0.7 * fitted.nuisances_["score_correction"]}
    with pytest.warns(OverlapWarning, match="`score_correction` times the treatment must be 1; it is 0.7"):
        orthogonal_loss("derivative", data.X, data.y, treatment=data.treatment, nuisances=given)


def test_the_normal_equations_balance_every_function():
    """Without the shrinkage of the basis, mean(zeta b) is the mean difference quotient of b on the rows of the fit."""
    rng = np.random.default_rng(0)
    basis, change = rng.standard_normal((200, 4)), rng.standard_normal((200, 4))
    zeta = basis @ riesz_weights(basis, change, 0.0)
    np.testing.assert_allclose(basis.T @ zeta / 200, change.mean(axis=0), atol=1e-6)


@pytest.mark.parametrize("name", ["gaussian", "shift", "riesz"])
def test_every_correction_balances_the_treatment(name):
    data = strong(N, 1)
    given = {"outcome": data.y, "outcome_derivative": data.effect}
    loss = orthogonal_loss(
        CausalDerivative(name), data.X, data.y, treatment=data.treatment, nuisances=given, random_state=0
    )
    assert loss.overlap.balance.treatment == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_units_of_outcome_and_treatment_do_not_matter(unit):
    data = strong(300, 2)

    def target(y, a):
        settings = {"folds": 2, "key": np.arange(300), "random_state": 0}  # without a key, the treatment is part of it
        return orthogonal_loss("derivative", data.X, y, treatment=a, **settings).target

    one = target(data.y, data.treatment)
    spread = one.std()
    np.testing.assert_allclose(target(unit * data.y, data.treatment) / unit, one, atol=1e-6 * spread)
    np.testing.assert_allclose(target(data.y, unit * data.treatment) * unit, one, atol=1e-6 * spread)


def test_missing_and_constant_covariates_are_no_obstacle():
    data = strong(300, 3)
    X = np.column_stack([data.X, np.ones(300)])
    X[::7, 0] = np.nan
    loss = orthogonal_loss("derivative", X, data.y, treatment=data.treatment, folds=2, random_state=0)
    assert np.isfinite(loss.target).all()


@pytest.mark.filterwarnings("ignore::orthocal.OverlapWarning")
def test_a_treatment_that_covariates_determine_is_refused():
    data = strong(200, 0)
    X = np.column_stack([data.X, data.treatment])
    with pytest.raises(OrthocalError, match="must vary among people with the same covariates"):
        orthogonal_loss("derivative", X, data.y, treatment=data.treatment)
    with pytest.raises(OrthocalError, match="`step` must be positive; it is 0"):
        orthogonal_loss(CausalDerivative(step=0), data.X, data.y, treatment=data.treatment)


def test_the_ridge_start_finds_lines_curves_and_products_and_takes_weights_as_repeats():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3))
    y = 5 + X[:, 0] - 2 * np.abs(X[:, 1]) + X[:, 0] * X[:, 2]
    terms = polynomial(X)(X)
    assert np.std(y - ridge(terms, y)(terms)) < 0.2 * np.std(y)
    weight = rng.integers(1, 4, 400).astype(float)
    fitted = ridge(terms, y, weight)
    np.testing.assert_allclose(fitted(terms).mean(), ridge(terms, y, 3 * weight)(terms).mean())


def test_weights_and_rows_of_other_folds_only_enter_a_correction():
    data = strong(200, 5)
    features = np.column_stack([data.X, data.treatment])
    plain = Balanced(RieszCorrection(None)).fit(features, data.treatment)
    alike = Balanced(RieszCorrection(None)).fit(features, data.treatment, np.full(200, 2.0))
    np.testing.assert_allclose(plain.predict(features), alike.predict(features), rtol=1e-8)
    np.testing.assert_allclose(plain.predict(features)[:7], plain.predict(features[:7]), rtol=1e-10)


@pytest.mark.parametrize("parts", [2, 5])
def test_on_dask_the_balance_is_that_of_all_rows_however_they_are_cut(parts):
    data = strong(N, 4)
    frame = pd.DataFrame(data.X, columns=[f"x{j}" for j in range(8)]).assign(
        y=data.y,
        a=data.treatment,
        tau=data.effect,
        outcome=0.0,
        slope=data.effect,
        zeta=data.treatment - data.X.sum(axis=1),
    )
    given = {"outcome": "outcome", "outcome_derivative": "slope", "score_correction": "zeta"}
    columns = {"outcome": "y", "treatment": "a", "prediction": "tau", "covariates": [f"x{j}" for j in range(8)]}
    with config.set(scheduler="threads"):
        found = assess_on_dask(
            dd.from_pandas(frame, npartitions=parts, sort=False),
            effect="derivative",
            nuisances=given,
            random_state=0,
            **columns,
        )
    expected = balance_of(data.X, data.treatment, frame.zeta.to_numpy(), np.ones(N))
    assert found.overlap.balance.treatment == pytest.approx(expected.treatment, rel=1e-9)


def test_on_dask_strong_confounding_does_not_end_up_in_the_average_either():
    data = strong(N, 0)
    names = [f"x{j}" for j in range(8)]
    frame = pd.DataFrame(data.X, columns=names).assign(y=data.y, a=data.treatment, tau=data.effect)
    with config.set(scheduler="threads"):
        found = assess_on_dask(
            dd.from_pandas(frame, npartitions=3, sort=False),
            outcome="y",
            treatment="a",
            prediction="tau",
            covariates=names,
            effect="derivative",
            sample=N,
            random_state=0,
        )
    low, high = found.average.interval
    assert low < 0.015 < high
    assert found.overlap.balance.treatment == pytest.approx(1, abs=0.1)
