"""Shuffling the rows changes nothing beyond rounding: no loss, no map, no verdict."""

import json
from dataclasses import fields

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

from orthocal import CATE, CausalCalibrator, CrossCalibratedModel, Histogram, Spline, assess, compare, orthogonal_loss
from orthocal.calibrators import CALIBRATORS
from orthocal.datasets import simulate_cate
from orthocal.effects import EFFECTS
from orthocal.losses import ExpectileLoss, HingeLoss, QuadraticLoss, columns_of
from orthocal.nuisances.learners import Recipe
from orthocal.observations import observe
from tests.command_line import run
from tests.effects_by_name import AT_A_TIME, effect_by_name
from tests.pages import verified

FAST = {"propensity": LogisticRegression(), "outcome": LinearRegression()}
GRID = np.linspace(-3, 3, 61)
ROWS = 240
every_calibrator = pytest.mark.parametrize("method", CALIBRATORS)
every_effect = pytest.mark.parametrize("effect", EFFECTS)


def columns_for(effect, n=ROWS, seed=0, covariates=None):
    """Rows for any effect; its treatment is a number where it must be continuous. Outcomes are positive, for ratios."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)) if covariates is None else covariates
    instrument = rng.integers(0, 2, n)
    treatment = rng.integers(0, 2, n)
    if effect == "late":
        treatment = np.where(rng.random(n) < 0.8, instrument, treatment)
    if effect == "derivative":
        treatment = rng.standard_normal(n)
    y = 5 + X[:, 0] + treatment * (1 + 0.5 * X[:, 1]) + rng.standard_normal(n)
    prediction = 1 + X[:, 1] + (5 if effect in {"quantile", "cvar", "expectile"} else 0)
    found = {"X": X, "y": y, "treatment": treatment, "prediction": np.round(prediction, 1)}
    if effect in AT_A_TIME:
        found["event"] = rng.random(n) < 0.7
    return found | ({"instrument": instrument} if effect == "late" else {})


def shuffled(columns, seed=5):
    order = np.random.default_rng(seed).permutation(len(columns["y"]))
    return order, {name: value[order] for name, value in columns.items()}


def assert_same_loss(one, other, order):
    ours, theirs = columns_of(one), columns_of(other)
    assert set(ours) == set(theirs)
    for name, values in ours.items():
        np.testing.assert_allclose(values[order], theirs[name], rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.filterwarnings("ignore::orthocal.errors.OverlapWarning")
@every_effect
def test_loss_and_map_of_every_effect_by_the_default_learners(effect):
    columns = columns_for(effect)
    order, other = shuffled(columns)
    fits = [
        CausalCalibrator(effect_by_name(effect, 6.0), folds=2, random_state=0).fit(
            c["X"], c["y"], **{k: c[k] for k in c if k not in ("X", "y")}
        )
        for c in (columns, other)
    ]
    assert_same_loss(*(one.loss_ for one in fits), order)
    np.testing.assert_allclose(*(one.calibrate(columns["prediction"]) for one in fits), rtol=1e-7, atol=1e-7)


def tilted(kind, n=200):
    rng = np.random.default_rng(4)
    prediction = np.round(rng.standard_normal(n), 1)
    slope = 2.0 * (rng.random(n) < 0.5)
    outcome = 0.5 * prediction + rng.standard_normal(n)
    return prediction, kind(outcome, slope, (0.6 if kind is HingeLoss else 0.1) * slope)


@every_calibrator
@pytest.mark.parametrize("kind", [QuadraticLoss, HingeLoss, ExpectileLoss])
@pytest.mark.parametrize("clustered", [False, True])
def test_every_calibrator_on_every_loss(method, kind, clustered):
    rng = np.random.default_rng(0)
    if kind is QuadraticLoss:
        prediction = np.round(rng.standard_normal(400), 1)
        weight = rng.integers(1, 3, 400).astype(float)
        loss = QuadraticLoss(weight * (prediction**3 + 2 * rng.standard_normal(400)), weight)
    else:
        prediction, loss = tilted(kind)
    if clustered:
        own = {f.name: getattr(loss, f.name) for f in fields(loss)}
        loss = kind(**{**own, "groups": rng.integers(0, 60, len(loss))})
    wanted = CALIBRATORS[method]().fit(prediction, loss).predict(GRID)
    order = np.random.default_rng(1).permutation(len(prediction))
    found = CALIBRATORS[method]().fit(prediction[order], loss[order]).predict(GRID)
    np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("method", ["spline", "auto"])
def test_what_is_chosen_by_validation(method):
    """Several tables, for on most of them every division of the rows gives the same choice."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        prediction = np.round(rng.standard_normal(120), 1)
        loss = QuadraticLoss(np.tanh(2 * prediction) + 2 * rng.standard_normal(120), np.ones(120))
        order = rng.permutation(120)
        fits = [CALIBRATORS[method]().fit(prediction[rows], loss[rows]) for rows in (np.arange(120), order)]
        np.testing.assert_allclose(*(one.predict(GRID) for one in fits), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("few", [False, True], ids=["many kinds of rows", "few kinds of rows"])
@pytest.mark.parametrize("scheme", ["cross", "split", "three-way"])
def test_every_scheme(scheme, few):
    rng = np.random.default_rng(1)
    covariates = rng.integers(0, 3, (900, 3)).astype(float) if few else None
    columns = columns_for("cate", 900, covariates=covariates)
    if few:
        columns["y"] = np.round(columns["y"])
    else:
        columns["groups"] = np.array([f"clinic {g}" for g in rng.integers(0, 90, 900)])
    _, other = shuffled(columns)
    fits = [
        CausalCalibrator(
            method=Histogram(6) if scheme == "three-way" else Spline(), scheme=scheme, learners=FAST, random_state=3
        ).fit(c["X"], c["y"], **{k: c[k] for k in c if k not in ("X", "y")})
        for c in (columns, other)
    ]
    np.testing.assert_allclose(*(one.calibrate(GRID) for one in fits), rtol=1e-7, atol=1e-7)
    if scheme == "cross":
        honest = [np.sort(one.honest_prediction_) for one in fits]
        np.testing.assert_allclose(*honest, rtol=1e-7, atol=1e-7)


def test_a_verdict_on_ties():
    rng = np.random.default_rng(0)
    for n in (500, 3000):  # halves are drawn where rows are few, and else alternate
        prediction = np.round(rng.standard_normal(n), 1)
        loss = QuadraticLoss(prediction + rng.integers(-2, 3, n), np.ones(n))
        order = rng.permutation(n)
        verdicts = [assess(prediction, loss, random_state=0), assess(prediction[order], loss[order], random_state=0)]
        assert_alike(*(verdict.to_dict() for verdict in verdicts))


def assert_alike(one, other):
    """Records hold the same, numbers up to rounding."""
    if isinstance(one, dict):
        assert set(one) == set(other)
        for name in one:
            assert_alike(one[name], other[name])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for ours, theirs in zip(one, other, strict=True):
            assert_alike(ours, theirs)
    elif isinstance(one, float):
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)
    else:
        assert one == other


@pytest.mark.parametrize("method", ["auto", "isotonic"])
def test_a_verdict_on_rows_held_out(method):
    columns = columns_for("cate", 800)
    _, other = shuffled(columns)
    done = []
    for c in (columns, other):
        rows = observe(c["X"], c["y"], treatment=c["treatment"], prediction=c["prediction"])
        done.append(verified("cate", method, rows, c["X"], recipe=Recipe(FAST, random_state=0)))
    for name in ("before", "after", "comparison"):
        assert_alike(*(getattr(one, name).to_dict() for one in done))
    assert_alike(*(one.redraws for one in done))
    assert len(done[0].redraws) == 3


def test_nothing_is_done_again_where_nothing_is_learnt():
    data = simulate_cate(400, random_state=0)
    rows = observe(data.X, data.y, treatment=data.treatment, prediction=data.effect)
    done = verified("cate", "linear", rows, data.X, nuisances=data.nuisances, recipe=Recipe(random_state=0))
    assert done.redraws == ()
    assert done.after is not None


@pytest.mark.parametrize("estimator", [LinearRegression(), HistGradientBoostingRegressor(max_iter=20, random_state=0)])
def test_a_model_trained_by_folds(estimator):
    columns = columns_for("cate", 600, covariates=np.random.default_rng(2).integers(0, 5, (600, 3)).astype(float))
    _, other = shuffled(columns)
    models = [
        CrossCalibratedModel(estimator, learners=FAST, random_state=0).fit(c["X"], c["y"], treatment=c["treatment"])
        for c in (columns, other)
    ]
    np.testing.assert_allclose(*(one.predict(columns["X"]) for one in models), rtol=1e-7, atol=1e-7)


def test_an_own_model_trained_by_folds_on_frames():
    columns = columns_for("cate", 400)
    columns["X"] = pd.DataFrame(columns["X"], columns=list("abc"))
    order = np.random.default_rng(5).permutation(400)
    seen = []

    def train(X, y, treatment):
        assert isinstance(X, pd.DataFrame)
        seen.append(X.to_numpy())
        model = LinearRegression().fit(X, y * (2 * treatment - 1))
        return model.predict

    fits = []
    for rows in (np.arange(400), order):
        model = CrossCalibratedModel(train, learners=FAST, random_state=0)
        fits.append(model.fit(columns["X"].iloc[rows], columns["y"][rows], treatment=columns["treatment"][rows]))
    for ours, theirs in zip(seen[: len(seen) // 2], seen[len(seen) // 2 :], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_allclose(fits[0].prediction_[order], fits[1].prediction_, rtol=1e-9)


def test_none_draws_a_seed_and_a_generator_gives_one():
    data = simulate_cate(300, random_state=0)
    arguments = {"treatment": data.treatment, "learners": FAST}
    one, two = (orthogonal_loss("cate", data.X, data.y, **arguments) for _ in range(2))
    assert (one.numerator != two.numerator).any()
    again = orthogonal_loss("cate", data.X, data.y, random_state=int(one.origin.seed), **arguments)
    np.testing.assert_array_equal(again.numerator, one.numerator)
    drawn = [
        orthogonal_loss("cate", data.X, data.y, random_state=np.random.default_rng(7), **arguments) for _ in range(2)
    ]
    np.testing.assert_array_equal(drawn[0].numerator, drawn[1].numerator)


def test_nuisances_serve_several_predictions_and_scales():
    """Folds do not look at outcome, prediction or weight, so that what is learnt does not hang on them."""
    columns = columns_for("cate")
    arguments = {"treatment": columns["treatment"], "learners": FAST, "random_state": 0}
    one = orthogonal_loss("cate", columns["X"], columns["y"], prediction=columns["prediction"], **arguments)
    other = orthogonal_loss("cate", columns["X"], 1000 * columns["y"], prediction=columns["X"][:, 2], **arguments)
    np.testing.assert_allclose(1000 * one.numerator, other.numerator, rtol=1e-9)


def test_a_key_is_taken_everywhere(tmp_path, capsys):
    columns = columns_for("cate", 400)
    key = np.random.default_rng(0).permutation(400)
    arguments = {"treatment": columns["treatment"], "random_state": 0, "learners": FAST}
    plain = orthogonal_loss("cate", columns["X"], columns["y"], **arguments)
    keyed = orthogonal_loss("cate", columns["X"], columns["y"], key=key, **arguments)
    assert (plain.numerator != keyed.numerator).any()
    calibrator = CausalCalibrator(learners=FAST, random_state=0)
    calibrator.fit(
        columns["X"], columns["y"], treatment=columns["treatment"], prediction=columns["prediction"], key=key
    )
    np.testing.assert_array_equal(calibrator.loss_.numerator, keyed.numerator)
    model = CrossCalibratedModel(LinearRegression(), learners=FAST, random_state=0)
    model.fit(columns["X"], columns["y"], treatment=columns["treatment"], key=key)
    np.testing.assert_array_equal(model.loss_.numerator, keyed.numerator)


@pytest.mark.parametrize("key", [[], ["--key", "id"]])
def test_the_command_line_on_a_shuffled_file(table, tmp_path, key):
    keyed = table.append_column("id", pa.array(np.arange(table.num_rows)))
    order = np.random.default_rng(0).permutation(table.num_rows)
    records = []
    for name, rows in (("a", keyed), ("b", keyed.take(order))):
        csv.write_csv(rows, tmp_path / f"{name}.csv")
        arguments = [
            "--outcome",
            "y",
            "--treatment",
            "a",
            "--prediction",
            "tau",
            "--covariates",
            "x0,x1",
            "--key",
            "id",
        ]
        assert run("calibrate", tmp_path / f"{name}.csv", *arguments, "--folds", "2", "--out", tmp_path / name) == 0
        records.append([json.loads((tmp_path / name / file).read_text()) for file in ("assessment.json", "map.json")])
    assert_alike(*records)


def test_an_arm_as_text_and_as_a_category():
    columns = columns_for("cate", 300)
    arm = np.array(["placebo", "drug"])[columns["treatment"]]
    effect = CATE(arm="drug", control="placebo")
    losses = [
        orthogonal_loss(effect, columns["X"], columns["y"], treatment=kind(arm), learners=FAST, random_state=0)
        for kind in (np.asarray, pd.Categorical, lambda arm: pd.Series(arm, dtype="string"))
    ]
    for other in losses[1:]:
        np.testing.assert_array_equal(losses[0].numerator, other.numerator)


def test_comparisons():
    rng = np.random.default_rng(0)
    prediction = np.round(rng.standard_normal(300), 1)
    loss = QuadraticLoss(prediction + rng.standard_normal(300), np.ones(300))
    order = rng.permutation(300)
    found = [compare(prediction[rows], 0.5 * prediction[rows], loss[rows]) for rows in (np.arange(300), order)]
    assert_alike(*(one.to_dict() for one in found))
