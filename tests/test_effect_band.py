"""The band of the calibrated effect: hand arithmetic, ties, open ends, weights, clusters, refusals, and every door to it."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import orthocal
from orthocal.assessment.band_intervals import (
    AROUND,
    BandRows,
    critical_values,
    interval_means,
    interval_sums,
    local_residuals,
    tied_starts,
)
from orthocal.assessment.effect_band import EffectBand, effect_band
from orthocal.errors import OrthocalError
from orthocal.losses import HingeLoss, QuadraticLoss
from tests.command_line import run
from tests.effect_band_truths import drawn, holds


def band_of(rows="alone", shape="linear", n=1000, seed=0, **how):
    prediction, loss, truth = drawn(rows, shape, n, np.random.default_rng(seed))
    return effect_band(prediction, loss, **how), prediction, loss, truth


def test_ends_are_the_best_of_all_intervals_by_hand():
    """One interval: 64 rows at 0 and at 1 in turn, all predictions tied, so the mean is 0.5 and neighbours are half zeros."""
    prediction, value = np.full(64, 3.0), np.tile([0.0, 1.0], 32)
    band = effect_band(prediction, QuadraticLoss(value, np.ones(64)))
    low, high = band.interval([2.9, 3.0, 3.1])
    assert np.isnan(low).tolist() == [True, False, False]
    assert np.isnan(high).tolist() == [False, False, True]
    assert low[1] + high[1] == pytest.approx(1.0)
    # residuals are about 0.5, the error 0.5 / 8, and the critical value of one interval about t with 32 degrees: 2.04
    assert (high[1] - low[1]) / 2 == pytest.approx(2.04 * 0.5 / 8, rel=0.08)


def test_residuals_by_hand():
    """A row in the middle against eight on each side; a slope cancels there, and the scale is the root of 1 + 1/16."""
    value = np.arange(40.0)
    value[20] += 1
    residual = local_residuals(BandRows(value, value, np.ones(40), None))
    assert residual[20] == pytest.approx(1 / np.sqrt(1 + 1 / 16))
    assert residual[35 - 4] == pytest.approx(0)


def test_what_a_cluster_shares_does_not_cancel():
    shock = np.repeat(np.random.default_rng(0).standard_normal(40), 5)
    residual = local_residuals(BandRows(np.zeros(200), shock, np.ones(200), np.repeat(np.arange(40), 5)))
    assert np.mean(residual**2) == pytest.approx(np.var(shock), rel=0.3)


def test_neighbours_are_of_other_clusters():
    """Two clusters in turn, shocks -1 and 1: neighbours of the other cluster are 2 away, those of the own would bring it to 1."""
    groups = np.tile([0, 1], 50)
    residual = local_residuals(BandRows(np.zeros(100), 2.0 * groups - 1, np.ones(100), groups))
    assert np.abs(residual[20:80]).min() > 1.8


def test_cells_never_divide_ties():
    prediction = np.sort(np.random.default_rng(0).integers(0, 30, 1000)).astype(float)
    starts = tied_starts(prediction)
    assert (prediction[starts[1:]] > prediction[starts[1:] - 1]).all()
    assert len(starts) > 15


def test_monotone_and_open_at_the_ends():
    band, prediction, _, truth = band_of(n=1024)
    low, high = band.interval(np.sort(prediction))
    assert np.isnan(low[0])
    assert np.isnan(high[-1])
    assert np.isnan(low).sum() == np.isnan(high).sum() == 63  # the 64th row ends the shortest interval
    assert (np.diff(low[63:]) >= 0).all()
    assert (np.diff(high[:-63]) >= 0).all()
    assert holds(band, prediction, truth)
    assert np.isfinite(band.interval([100.0])[0]).all()  # nondecreasing: what holds below holds above
    assert np.isnan(band.interval([100.0])[1]).all()


@pytest.mark.parametrize("rows", ["alone", "weighted", "clustered", "villages"])
def test_holds_the_truth(rows):
    kept = [
        holds(band, prediction, truth)
        for band, prediction, _, truth in (band_of(rows, "step", seed=s) for s in range(60))
    ]
    assert np.mean(kept) >= 0.87


def test_clusters_widen_it_and_weights_enter():
    clustered, prediction, loss, _ = band_of("villages", "flat", n=4000)
    alone = effect_band(prediction, QuadraticLoss(loss.numerator, loss.denominator))
    widths = [np.nanmean(np.diff(band.interval(prediction), axis=0)) for band in (clustered, alone)]
    assert widths[0] > 1.3 * widths[1]
    band, prediction, loss, _ = band_of("weighted")
    scaled = effect_band(prediction, QuadraticLoss(3 * loss.numerator, 3 * loss.denominator))
    np.testing.assert_allclose(scaled.interval(prediction), band.interval(prediction))
    with_zeros = QuadraticLoss(np.append(loss.numerator, 0.0), np.append(loss.denominator, 0.0))
    same = effect_band(np.append(prediction, 9.0), with_zeros)
    np.testing.assert_allclose(same.interval(prediction), band.interval(prediction))


def test_order_of_rows_does_not_matter_and_seed_repeats():
    band, prediction, loss, _ = band_of()
    order = np.random.default_rng(1).permutation(len(prediction))
    again = effect_band(prediction[order], loss[order])
    np.testing.assert_allclose(again.interval(prediction), band.interval(prediction))


def test_a_table_sorted_by_outcome_is_as_uncertain():
    """Among ties the order in the table must not make neighbours alike."""
    rng = np.random.default_rng(0)
    prediction, noise = np.repeat([0.0, 1.0, 2.0, 3.0], 250), rng.standard_normal(1000)
    ordered = np.lexsort((noise, prediction))
    bands = [effect_band(prediction, QuadraticLoss(noise[rows], np.ones(1000))) for rows in (np.arange(1000), ordered)]
    one, other = (np.nanmean(np.diff(band.interval([1.0, 2.0]), axis=0)) for band in bands)
    assert other == pytest.approx(one, rel=0.25)


def test_quiet_rows_take_the_noise_around_them_and_skewness_widens():
    """Rows 480 to 543 (cells 15 and 16) show no noise of their own; by hand, kappa grows by skewness (kappa**2 - 1) / 6."""
    noise = np.random.default_rng(0).exponential(size=1024) - 1
    noise[480:544] = 0
    rows = BandRows(np.arange(1024.0), noise, np.ones(1024), None)
    cells = interval_sums(rows, tied_starts(rows.prediction), noise)
    means = interval_means(cells, [2], AROUND)
    assert means.error[means.first == 15] > 0.8 * np.median(means.error)
    how = {"level": 0.95, "draws": 200, "random_state": 0}
    many = np.full(len(means.mean), 1e9)
    plain, widened = (critical_values(cells, one, many, **how) for one in (replace(means, skewness=0 * many), means))
    np.testing.assert_allclose(widened - plain, means.skewness * (plain**2 - 1) / 6, rtol=1e-6)
    assert np.median(means.skewness) == pytest.approx(2 / 8, rel=0.3)  # of 64 exponential rows


def rare_outcome(rng, n):
    """Noise of doubly robust pseudo-outcomes: 6% of the treated have an event, no one else."""
    treated = rng.integers(0, 2, n)
    return 2 * treated * ((rng.random(n) < 0.06) - 0.06)


@pytest.mark.parametrize(
    "noise",
    [rare_outcome, lambda rng, n: rng.lognormal(0, 1, n) - np.exp(0.5)],
    ids=["rare", "skewed"],
)
def test_skewed_noise(noise):
    """Rows without a large outcome must not seem sure of their mean: without the noise around them none of the bands holds."""
    kept = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        prediction = rng.uniform(size=2000)
        loss = QuadraticLoss(noise(rng, 2000), np.ones(2000))
        kept.append(holds(effect_band(prediction, loss, draws=300), prediction, np.zeros(2000)))
    assert np.mean(kept) >= 0.87


def test_bins_need_no_order():
    """A falling curve: the bins' band holds their averages, and is open between and beyond the rows."""
    rng = np.random.default_rng(0)
    prediction = rng.uniform(-1, 1, 4000)
    loss = QuadraticLoss(-prediction + 0.1 * rng.standard_normal(4000), np.ones(4000))
    band = effect_band(prediction, loss, bins=np.array([-0.5, 0.0, 0.5]))
    low, high = band.interval([-2.0, -0.75, -0.25, 0.25, 0.75, 2.0])
    assert np.isnan([low[0], low[-1], high[0], high[-1]]).all()
    assert (low[1:-1] < [0.75, 0.25, -0.25, -0.75]).all()
    assert (high[1:-1] > [0.75, 0.25, -0.25, -0.75]).all()
    assert not band.monotone


@pytest.mark.parametrize(
    ("loss", "match"),
    [
        (QuadraticLoss(np.ones(200), np.ones(200), is_ratio=True), "ratio of means"),
        (QuadraticLoss(np.ones(200), -np.ones(200)), "ratio of means"),
        (HingeLoss(np.zeros(200), np.ones(200), np.full(200, 0.5)), "quantiles, expectiles"),
        (QuadraticLoss(np.ones(40), np.ones(40)), "effective sample size of 48"),
    ],
)
def test_refusals(loss, match):
    with pytest.raises(OrthocalError, match=match):
        effect_band(np.arange(len(loss)) * 1.0, loss)


def test_json_and_sql_give_the_same_ends():
    duckdb = pytest.importorskip("duckdb")
    band, prediction, _, _ = band_of(n=4000)
    text = json.dumps(band.to_dict(), allow_nan=False)
    assert "never for a person's own effect" in text
    again = EffectBand.from_dict(json.loads(text))
    np.testing.assert_array_equal(again.interval(prediction), band.interval(prediction))
    for end in ("lower", "upper"):
        steps = getattr(band, end)
        points = np.concatenate([steps.edges, np.nextafter(steps.edges, 9), prediction[:200]])
        query = f"SELECT {orthocal.to_sql(steps, 'tau')} FROM (SELECT unnest($1) AS tau)"
        found = [np.nan if row[0] is None else row[0] for row in duckdb.execute(query, [points.tolist()]).fetchall()]
        np.testing.assert_array_equal(found, steps.predict(points))


def test_causal_calibrator_has_it():
    data = orthocal.datasets.simulate_cate(n=1500, random_state=0)
    known = {"nuisances": data.nuisances, "treatment": data.treatment, "prediction": data.effect}
    calibrator = orthocal.CausalCalibrator(method="isotonic").fit(data.X, data.y, **known)
    low, high = calibrator.interval(data.effect)
    assert not ((low > data.effect) | (high < data.effect)).any()
    assert calibrator.band_ is calibrator.band_
    assert calibrator.band_.outside(calibrator.calibrate(data.effect), data.effect) < 0.1
    first = calibrator.band_
    calibrator.fit(data.X, data.y, **known)
    assert calibrator.band_ is not first
    binned = orthocal.CausalCalibrator(method="histogram").fit(data.X, data.y, **known)
    assert not binned.band_.monotone
    assert np.isfinite(binned.interval(data.effect)).all()


def trial(n=2000):
    data = orthocal.datasets.simulate_cate(n=n, confounding=0, random_state=0)
    return pd.DataFrame({"y": data.y, "a": data.treatment, "tau": 1 + 2 * data.effect})


def test_study_table_and_apply_have_the_same_ends(tmp_path, capsys):
    rows = trial()
    study = orthocal.Study(rows, outcome="y", treatment="a", covariates=[], propensity=0.5)
    done = study.calibrate("tau", method="isotonic", draws=50)
    table = done.table()
    assert list(table.columns) == [*rows.columns, "tau_calibrated", "tau_lower", "tau_upper"]
    assert table["tau_lower"].isna().any()
    np.testing.assert_array_equal(table[["tau_lower", "tau_upper"]].T, done.band.interval(rows["tau"]))
    done.save(tmp_path / "map.json")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    said = [
        "apply",
        str(tmp_path / "map.json"),
        str(tmp_path / "rows.csv"),
        "--prediction",
        "tau",
        "--interval",
        "--out",
    ]
    for name, read in (("new.csv", pd.read_csv), ("new.parquet", pd.read_parquet)):
        assert run(*said, tmp_path / name) == 0
        printed = capsys.readouterr()
        assert "never for a person's own effect" in " ".join((printed.out + printed.err).split())
        pd.testing.assert_frame_equal(read(tmp_path / name), table)


def test_no_band_no_columns(tmp_path):
    study = orthocal.Study(trial(800), outcome="y", treatment="a", covariates=[], effect="quantile", propensity=0.5)
    done = study.calibrate("tau", method="shift", draws=50)
    assert list(done.table().columns)[-1] == "tau_calibrated"
    with pytest.raises(OrthocalError, match="quantiles, expectiles"):
        _ = done.band
    done.save(tmp_path / "map.json")
    (tmp_path / "rows.csv").write_text("tau\n1.0\n")
    said = ["apply", str(tmp_path / "map.json"), str(tmp_path / "rows.csv"), "--prediction", "tau", "--interval"]
    assert run(*said, "--out", tmp_path / "new.csv") != 0
    assert not (tmp_path / "new.csv").exists()


def test_a_broken_band_is_refused():
    with pytest.raises(OrthocalError, match="A band must have level"):
        EffectBand.from_dict({"level": 0.95, "lower": {"edges": [0.0]}})
