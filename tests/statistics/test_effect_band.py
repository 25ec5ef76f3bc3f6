"""Coverage of the band of the calibrated effect, where the truth is known: shapes, sizes, weights, clusters, learnt nuisances."""

import numpy as np
import pytest
from scipy.stats import binomtest

import orthocal
from orthocal.assessment.effect_band import effect_band
from orthocal.calibrators import Histogram
from tests.effect_band_truths import BINDING, ROWS, SHAPES, Confounded, drawn, holds

pytestmark = pytest.mark.slow
DRAWS = 300


def width(band, prediction):
    """Average over rows where both ends exist."""
    return np.nanmean(np.diff(band.interval(prediction), axis=0))


@pytest.mark.parametrize("n", [1000, 4000])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rows", ROWS)
def test_the_whole_curve_is_held(rows, shape, n):
    """A coverage of 95% shows 92.5% or less in 300 draws once in forty times."""
    kept, widths = [], []
    for draw in range(DRAWS):
        prediction, loss, truth = drawn(rows, shape, n, np.random.default_rng([draw, n]))
        band = effect_band(prediction, loss, draws=500)
        kept.append(holds(band, prediction, truth))
        widths.append(width(band, prediction))
    print(f"{rows}, {shape}, {n} rows: held in {np.mean(kept):.3f}, width {np.mean(widths):.2f}")
    assert np.mean(kept) >= 0.925


@pytest.mark.parametrize("n", [1000, 4000])
def test_the_averages_of_bins_are_held(n):
    """A curve that falls: the band of the bins holds their true averages."""
    kept = []
    for draw in range(DRAWS):
        rng = np.random.default_rng([draw, n])
        prediction = rng.uniform(-1, 1, n)
        truth = np.cos(3 * prediction)
        loss = orthocal.losses.QuadraticLoss(truth + rng.standard_normal(n), np.ones(n))
        edges = Histogram(bins=10).fit(prediction, loss).map_.edges
        mean = Histogram(bins=10).fit(prediction, orthocal.losses.QuadraticLoss(truth, np.ones(n))).predict(prediction)
        kept.append(holds(effect_band(prediction, loss, bins=edges, draws=500), prediction, mean))
    assert 0.925 <= np.mean(kept) <= 0.99


def test_it_is_not_much_wider_than_the_intervals_of_bins():
    """Width is averaged over rows where both ends exist."""
    for shape in ("flat", "linear", "step", "steep end", "plateau"):
        widths = []
        for draw in range(20):
            prediction, loss, _ = drawn("alone", shape, 4000, np.random.default_rng(draw))
            edges = Histogram(bins=20).fit(prediction, loss).map_.edges
            bands = effect_band(prediction, loss), effect_band(prediction, loss, bins=edges)
            widths.append([width(band, prediction) for band in bands])
        ours, theirs = np.mean(widths, axis=0)
        print(f"{shape}: width {ours:.3f}, of bins {theirs:.3f}")
        assert ours <= 1.6 * theirs


def learnt_bands(study, shape, known, seed):
    """Return the band, that of bins of a hundred rows or more, and the nuisances that do not depend on the shape."""
    more = {"sample_weight": study.weight, "groups": study.groups, "nuisances": known}
    calibrator = orthocal.CausalCalibrator(method="isotonic", random_state=seed)
    calibrator.fit(
        study.covariates, study.outcome(shape), treatment=study.treatment, prediction=study.prediction, **more
    )
    edges = Histogram(bins=min(len(study.prediction) // 100, 20)).fit(study.prediction, calibrator.loss_).map_.edges
    binned = effect_band(study.prediction, calibrator.loss_, bins=edges)
    return calibrator.band_, binned, {name: calibrator.nuisances_[name] for name in ("propensity", "outcome_control")}


@pytest.mark.parametrize(("n", "draws"), [(1000, 60), (4000, 30)])
@pytest.mark.parametrize("rows", ["alone", "weighted", "clustered"])
def test_with_nuisances_that_are_learnt(rows, n, draws):
    """Curved confounding and the default learners, cross-fitted; a rate is met where its 99% interval reaches it."""
    kept, widths = {shape: [] for shape in BINDING}, {shape: [] for shape in BINDING}
    for draw in range(draws):
        study, known = Confounded.drawn(rows, n, np.random.default_rng([19, draw, n])), None
        for shape in BINDING:
            band, binned, known = learnt_bands(study, shape, known, draw)
            kept[shape].append(holds(band, study.prediction, study.truth(shape)))
            widths[shape].append([width(one, study.prediction) for one in (band, binned)])
    for shape in BINDING:
        ours, theirs = np.mean(widths[shape], axis=0)
        held = int(np.sum(kept[shape]))
        print(f"learnt, {rows}, {shape}, {n} rows: held in {held} of {draws}, width {ours:.2f}, of bins {theirs:.2f}")
        assert binomtest(held, draws).proportion_ci(0.99).high >= 0.93
        assert ours <= 1.6 * theirs
    every = np.concatenate(list(kept.values()))
    assert binomtest(int(every.sum()), len(every)).proportion_ci(0.99).high >= 0.93
