import itertools
import json

import numpy as np
import pytest
from scipy.stats import f as f_distribution
from scipy.stats import ncx2, norm
from scipy.stats import t as t_distribution

from orthocal import ExpectileLoss, HingeLoss, OrthocalError, QuadraticLoss, assess, compare
from orthocal.arrays import step_of
from orthocal.assessment import linear_test
from orthocal.assessment.bins import binned
from orthocal.assessment.error import error_interval, minimum_detectable_error, squared_error


def twelve_rows():
    """Two bins of six: predictions 0 and 1; residuals by hand below."""
    prediction = np.repeat([0.0, 1.0], 6)
    target = np.array([1.0, 2, 3, 0, 1, 5, 0, 2, 1, 1, 0, 2])
    return prediction, QuadraticLoss(target, np.ones(12))


def test_twelve_rows_by_hand():
    # Bin 0: r = 1 2 3 0 1 5, sum 12, mean 2, sum of squares 40, s^2 = (40 - 6*4)/5 = 3.2, v = 3.2/6 = 0.53333
    # Bin 1: r = -1 1 0 0 -1 1, sum 0, mean 0, sum of squares 4, s^2 = 4/5 = 0.8, v = 0.13333
    # U_0 = 4 - 0.53333 = 3.46667, U_1 = -0.13333; error^2 = (3.46667 - 0.13333)/2 = 1.66667
    # V_deg = (1/4)(2*3.2^2/30 + 2*0.8^2/30) = (0.682667 + 0.042667)/4 = 0.181333 (ddof form)
    # V_lin = (1/4) 4 (3.46667*0.53333 - 0.13333*0.13333) + (1/12)(1/2)((1.8)^2 + (1.8)^2) = 1.831111 + 0.27
    prediction, loss = twelve_rows()
    verdict = assess(prediction, loss)
    assert verdict.error_squared == pytest.approx(5 / 3)
    assert verdict.error == pytest.approx(np.sqrt(5 / 3))
    degenerate = (2 * 0.53333333**2 + 2 * 0.13333333**2) / 4  # v^2 in place of s^4/(n(n-1)), as the general form has it
    assert verdict.standard_error**2 == pytest.approx(degenerate + 1.8311111 + 0.27, rel=1e-6)
    np.testing.assert_allclose(verdict.bins["residual"], [2, 0], atol=1e-15)
    np.testing.assert_allclose(verdict.bins["standard_error"] ** 2, [3.2 / 6, 0.8 / 6])
    np.testing.assert_allclose(verdict.bins["target"], [2, 1])
    np.testing.assert_allclose(verdict.bins["prediction"], [0, 1])
    np.testing.assert_array_equal(verdict.bins["n"], [6, 6])
    # Average: mean target 18/12 = 1.5, mean prediction 0.5
    assert verdict.average.effect == pytest.approx(1.5)
    assert verdict.average.prediction == pytest.approx(0.5)
    # L1 at no error: mean of se * sqrt(2/pi)
    assert verdict.l1.null == pytest.approx(np.sqrt([3.2 / 6, 0.8 / 6]).mean() * np.sqrt(2 / np.pi))
    assert float(verdict.linf) == pytest.approx(2)
    # Mean loss: half the mean square of the residuals, whose squares add up to 40 and 4.
    assert verdict.risk == pytest.approx((40 + 4) / 2 / 12)


def test_the_squared_error_is_the_average_over_pairs_of_different_rows():
    rng = np.random.default_rng(0)
    prediction = rng.standard_normal(60)
    weight = rng.uniform(0.5, 2, 60)
    loss = QuadraticLoss(weight * (prediction + 0.3 + rng.standard_normal(60)), weight)
    edges = binned(prediction, loss, 4).edges
    index = step_of(prediction, edges)
    r, total = -loss.derivative(prediction), 0.0
    for b in range(len(edges) + 1):
        rows = np.flatnonzero(index == b)
        pairs = list(itertools.permutations(rows, 2))
        mean = sum(r[i] * r[j] for i, j in pairs) / sum(weight[i] * weight[j] for i, j in pairs)
        total += weight[rows].sum() / weight.sum() * mean
    assert assess(prediction, loss, bins=4).error_squared == pytest.approx(total)


def test_clusters_enter_as_sums():
    rng = np.random.default_rng(0)
    prediction, groups = rng.standard_normal(60), np.arange(60) // 3
    loss = QuadraticLoss(prediction + rng.standard_normal(60), np.ones(60), groups=groups)
    moments = binned(prediction, loss, 3)
    index = step_of(prediction, moments.edges)
    r = -loss.derivative(prediction)
    table = np.zeros((20, 3))
    size = np.zeros((20, 3))
    np.add.at(table, (groups, index), r)
    np.add.at(size, (groups, index), 1)
    mean = table.sum(0) / size.sum(0)
    np.testing.assert_allclose(moments.residual, mean)
    scaled = (table - mean * size) / np.sqrt(1 - size / size.sum(0)) / size.sum(0)
    np.testing.assert_allclose(moments.covariance, scaled.T @ scaled)
    assert moments.clusters == 20
    estimate, error = squared_error(moments)
    assert np.isfinite([estimate, error]).all()


def test_clusters_of_one_row_equal_no_clusters():
    rng = np.random.default_rng(0)
    prediction = rng.standard_normal(200)
    target = prediction + rng.standard_normal(200)
    plain = assess(prediction, QuadraticLoss(target, np.ones(200)), random_state=0)
    single = assess(prediction, QuadraticLoss(target, np.ones(200), groups=rng.permutation(200)), random_state=0)
    assert plain.error_squared == pytest.approx(single.error_squared)
    assert plain.standard_error == pytest.approx(single.standard_error)
    assert plain.interval == pytest.approx(single.interval)
    assert plain.tests["linear"].p_value == pytest.approx(single.tests["linear"].p_value)


def test_the_interval_inverts_a_noncentral_chi_square_with_the_variance_at_its_end():
    prediction, loss = twelve_rows()
    moments = binned(prediction, loss, 10)
    # Hand: w = 1/2 each, v = 8/15 and 2/15, so wv = 4/15 and 1/15; residuals are 2 and 0, so S = 2 and U = 4 - 8/15 and -2/15.
    noise, pairs = np.array([4, 1]) / 15, np.array([4 - 8 / 15, -2 / 15])
    np.testing.assert_allclose(np.sort(moments.residual**2), [0, 4], atol=1e-12)
    trace, square, cube = noise.sum(), (noise**2).sum(), (noise**3).sum()
    estimate = pairs.mean()
    known = estimate**2 / (estimate**2 + 2 * square)
    rho = known * 4 / 15 + (1 - known) * square / trace  # noise @ pairs / pairs.sum() is above 4/15
    beyond = max(rho, cube / square)
    q = ((pairs - estimate) ** 2 / 2).mean() / 6 / (estimate**2 + 2 * square)  # shares vary by 1/2 * 1/2 / 12

    def cdf(error):
        linear = rho * min(error, estimate) + beyond * max(error - estimate, 0)
        scale = (2 * square + 4 * linear + min(q, 0.25) * error**2) / (2 * trace + 4 * error)
        return ncx2.cdf(2 / scale, trace / scale, error / scale)

    low, high = error_interval(moments, 0.9)
    assert cdf(low**2) == pytest.approx(0.95, abs=1e-8)
    assert cdf(high**2) == pytest.approx(0.05, abs=1e-8)


def test_the_detectable_error_is_where_the_interval_starts_above_zero_four_times_in_five():
    rng = np.random.default_rng(0)
    deviation = np.repeat([0.5, 1.0, 2.0, 3.0], 50)
    wanted = minimum_detectable_error(noisy(deviation, 0.0, rng), 0.95)
    seen = [error_interval(noisy(deviation, wanted, rng), 0.95)[0] > 0 for _ in range(500)]
    assert np.mean(seen) == pytest.approx(0.8, abs=0.06)


def noisy(deviation, error, rng):
    """Moments of four bins of 50 rows whose true error is the same in all."""
    prediction = np.arange(200.0)
    noise = rng.standard_normal((4, 50))
    noise = (noise - noise.mean(1, keepdims=True)) / noise.std(
        1, ddof=1, keepdims=True
    )  # the variances are as they should be
    shift = rng.standard_normal(4).repeat(50) / np.sqrt(50)
    target = prediction + error + deviation * (noise.ravel() + shift)
    return binned(prediction, QuadraticLoss(target, np.ones(200)), 4)


def test_the_interval_starts_at_zero_when_the_error_may_be_zero():
    rng = np.random.default_rng(5)
    prediction = rng.standard_normal(500)
    verdict = assess(prediction, QuadraticLoss(prediction + rng.standard_normal(500), np.ones(500)))
    assert verdict.interval[0] == 0
    assert verdict.status == "calibrated"


def test_a_large_error_in_large_data_has_a_tight_interval():
    rng = np.random.default_rng(0)
    prediction = rng.standard_normal(200_000)
    verdict = assess(prediction + 50, QuadraticLoss(prediction + rng.standard_normal(200_000), np.ones(200_000)))
    assert verdict.interval[0] < 50 < verdict.interval[1]
    assert verdict.interval[1] - verdict.interval[0] < 0.02


def test_the_linear_test_is_hc3_with_an_f_law():
    rng = np.random.default_rng(0)
    prediction = rng.standard_normal(40)
    target = 0.5 + 1.4 * prediction + rng.standard_normal(40)
    design = np.column_stack([np.ones(40), prediction])
    inverse = np.linalg.inv(design.T @ design)
    beta = inverse @ design.T @ target
    leverage = np.einsum("ij,jk,ik->i", design, inverse, design)
    residual = (target - design @ beta) / (1 - leverage)
    covariance = inverse @ (design * residual[:, None] ** 2).T @ design @ inverse * 39 / 40
    gap = beta - [0, 1]
    # The jackknife centres at the full estimate, as HC3 does; 39/40 is its usual factor.
    direction = np.linalg.solve(covariance, gap)
    t = np.sqrt(gap @ direction)
    contribution = (direction / t) @ inverse @ (design * residual[:, None]).T
    skewness = (contribution**3).sum() / (contribution**2).sum() ** 1.5 * 40 / 140  # believed by 40 / (40 + 100)
    statistic = (t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 6) ** 2 / 2  # Hall 1992
    test = assess(prediction, QuadraticLoss(target, np.ones(40))).tests["linear"]
    assert test.statistic == pytest.approx(statistic)
    assert test.p_value == pytest.approx(f_distribution.sf(statistic, 2, 39))


def clustered(seed=0, clusters=12, size=5):
    """Predictions, weights and a loss whose clusters span bins and share a shock."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(clusters), size)
    prediction, weight = rng.standard_normal(clusters * size), rng.uniform(0.5, 2, clusters * size)
    target = 0.3 + prediction + rng.standard_normal(clusters)[groups] + rng.standard_normal(clusters * size)
    return prediction, weight, target, QuadraticLoss(weight * target, weight, groups=groups)


def test_the_clustered_linear_test_is_a_jackknife_over_clusters():
    prediction, weight, target, loss = clustered()
    design = np.column_stack([np.ones(60), prediction])

    def solve(rows):
        z, w = design[rows], weight[rows]
        return np.linalg.solve((z * w[:, None]).T @ z, (z * w[:, None]).T @ (target - prediction)[rows])

    whole = solve(np.arange(60))
    changes = np.array([solve(np.flatnonzero(loss.groups != g)) - whole for g in range(12)])
    covariance = 11 / 12 * changes.T @ changes
    direction = np.linalg.solve(covariance, whole)
    t = np.sqrt(whole @ direction)
    contribution = -changes @ direction / t
    held = np.array([weight[loss.groups == g].sum() for g in range(12)])
    number = held.sum() ** 2 / (held**2).sum()
    skewness = (contribution**3).sum() / (contribution**2).sum() ** 1.5 * number / (number + 100) * (number / 12) ** 2
    statistic = (t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 6) ** 2 / 2
    test = assess(prediction, loss, bins=3).tests["linear"]
    assert test.statistic == pytest.approx(statistic)
    held = np.array([weight[loss.groups == g].sum() for g in range(12)])
    assert test.p_value == pytest.approx(f_distribution.sf(statistic, 2, held.sum() ** 2 / (held**2).sum() - 1))


def test_error_interval_and_average_use_the_whole_covariance_of_clusters():
    prediction, weight, target, loss = clustered()
    prediction -= 1.0  # an error that is seen
    moments = binned(prediction, loss, 3)
    w, v, u = moments.share, moments.covariance, moments.pairs
    index = step_of(prediction, moments.edges)
    assert np.abs(v - np.diag(np.diag(v))).max() > 0.01
    products = np.outer(moments.residual, moments.residual) - v
    np.fill_diagonal(products, u)
    estimate = w @ u
    degenerate = 2 * sum(w[a] * w[b] * v[a, b] ** 2 for a in range(3) for b in range(3))
    linear = 4 * sum(w[a] * w[b] * products[a, b] * v[a, b] for a in range(3) for b in range(3))
    totals = np.array([[weight[(loss.groups == g) & (index == b)].sum() for b in range(3)] for g in range(12)])
    shares = ((totals / weight.sum() @ (u - estimate)) ** 2).sum()
    verdict = assess(prediction, loss, bins=3)
    assert verdict.standard_error**2 == pytest.approx(degenerate + max(linear + shares, 0))
    wv = np.diag(w) @ v
    trace, square, cube = (float(np.trace(np.linalg.matrix_power(wv, k))) for k in (1, 2, 3))
    known = estimate**2 / (estimate**2 + 2 * square)
    rho = (
        known * np.clip(linear / 4 / estimate, *np.sort(np.linalg.eigvals(wv).real)[[0, -1]])
        + (1 - known) * square / trace
    )
    error, q = verdict.interval[1] ** 2, min(known * shares / estimate**2, 0.25)
    variance = 2 * square + 4 * (rho * estimate + max(rho, cube / square) * (error - estimate)) + q * error**2
    scale = variance / (2 * trace + 4 * error)
    statistic = w @ moments.residual**2
    assert estimate > 0
    assert ncx2.cdf(statistic / scale, trace / scale, error / scale) == pytest.approx(0.025, abs=1e-7)
    # Average effect: weighted mean with a cluster-robust error
    mean = weight @ target / weight.sum()
    sums = np.array([(weight * (target - mean))[loss.groups == g].sum() for g in range(12)])
    shares = np.array([weight[loss.groups == g].sum() for g in range(12)]) / weight.sum()
    error = np.sqrt(11 / 12 * (sums**2 / (1 - shares) ** 2).sum()) / weight.sum()  # CR3: each left out in turn
    left_out = [np.average(target[loss.groups != g], weights=weight[loss.groups != g]) for g in range(12)]
    assert error == pytest.approx(np.sqrt(11 / 12 * ((left_out - mean) ** 2).sum()))
    reach = t_distribution.ppf(0.975, 1 / (shares**2).sum() - 1) * error  # Kish's effective number of clusters less one
    assert verdict.average.effect == pytest.approx(mean)
    assert verdict.average.standard_error == pytest.approx(error)
    assert verdict.average.interval == pytest.approx((mean - reach, mean + reach), rel=1e-6)


def test_compare_weighs_rows_and_adds_up_clusters():
    prediction, weight, target, loss = clustered()
    after = prediction + 0.3
    gain = weight * 0.5 * ((after - target) ** 2 - (prediction - target) ** 2)
    mean = gain.sum() / weight.sum()
    sums = np.array([(gain - mean * weight)[loss.groups == g].sum() for g in range(12)])
    comparison = compare(prediction, after, loss)
    assert comparison.risk_difference == pytest.approx(mean)
    shares = np.array([weight[loss.groups == g].sum() for g in range(12)]) / weight.sum()
    error = np.sqrt(11 / 12 * (sums**2 / (1 - shares) ** 2).sum()) / weight.sum()
    parts = (sums / (1 - shares)) ** 2
    steady = 3 * parts.sum() ** 2 / (parts**2).sum()  # so many equal normal clusters have as steady a sum of squares
    reach = t_distribution.ppf(0.975, min(1 / (shares**2).sum(), steady) - 1) * error
    assert comparison.standard_error == pytest.approx(error)
    assert comparison.interval == pytest.approx((mean - reach, mean + reach))
    assert assess(prediction, loss).risk == pytest.approx(
        (weight * (prediction - target) ** 2).sum() / 2 / weight.sum()
    )


def test_rows_of_weight_zero_are_no_evidence():
    rng = np.random.default_rng(0)
    prediction = rng.standard_normal(60)
    weight = np.where(np.arange(60) < 20, 1.0, 0.0)
    loss = QuadraticLoss(weight * (prediction + 1 + rng.standard_normal(60)), weight)
    every, few = assess(prediction, loss, random_state=0), assess(prediction[:20], loss[:20], random_state=0)
    assert every.to_dict() == few.to_dict()
    assert compare(prediction, prediction + 1, loss) == compare(prediction[:20], prediction[:20] + 1, loss[:20])


def test_too_few_clusters_are_refused_and_a_lone_cluster_is_joined():
    rng = np.random.default_rng(0)
    prediction, target = np.sort(rng.standard_normal(100)), rng.standard_normal(100)
    alone = QuadraticLoss(target, np.ones(100), groups=np.zeros(100, dtype=int))
    for judge in (lambda: assess(prediction, alone), lambda: compare(prediction, target, alone)):
        with pytest.raises(OrthocalError, match="at least two rows, or clusters; there is 1"):
            judge()
    # Five clusters that follow each other: a bin must hold two of them.
    ordered = QuadraticLoss(target, np.ones(100), groups=np.arange(100) // 20)
    verdict = assess(prediction, ordered)
    assert np.isfinite([verdict.error_squared, verdict.standard_error, *verdict.interval]).all()
    index = np.searchsorted(verdict.bins["upper"][:-1], prediction)
    assert min(len(np.unique(ordered.groups[index == b])) for b in range(index.max() + 1)) >= 2


def test_a_slope_that_rests_on_one_row_is_not_tested():
    rng = np.random.default_rng(0)
    verdict = assess(np.r_[1.0, np.zeros(50)], QuadraticLoss(rng.standard_normal(51), np.ones(51)))
    assert verdict.tests["linear"].p_value is None
    assert "determines the slope" in verdict.tests["linear"].note
    assert "determines the slope" in verdict.summary()


def test_a_covariance_along_one_line_is_not_inverted(monkeypatch):
    """But for rounding it is: one prediction a million millions away, and rounding decides whether it has an inverse."""
    over_rows = linear_test._over_rows

    def along_a_line(scale):
        return (yield from over_rows(scale))._replace(covariance=np.outer([1, 19], [1, 19]) / 10)

    monkeypatch.setattr(linear_test, "_over_rows", along_a_line)
    rng = np.random.default_rng(0)
    verdict = assess(rng.standard_normal(50), QuadraticLoss(rng.standard_normal(50), np.ones(50)))
    assert "determines the slope" in verdict.tests["linear"].note


def test_errors_of_any_size_have_an_interval():
    rng = np.random.default_rng(0)
    prediction = rng.standard_normal(1000)
    loss = QuadraticLoss(prediction + 1e-4 * rng.standard_normal(1000), np.ones(1000))
    for offset in (10.0, 1e4, 1e8):
        low, high = assess(prediction + offset, loss).interval
        assert low <= offset * (1 + 1e-9)
        assert high >= offset * (1 - 1e-9)
    assert assess(prediction, loss, level=0.1).minimum_detectable_error >= 0


def test_every_verdict_is_worded():
    rng = np.random.default_rng(3)
    prediction = rng.standard_normal(3000)
    loss = QuadraticLoss(prediction + rng.standard_normal(3000), np.ones(3000))
    assert assess(prediction, loss).verdict.startswith("The predictions are calibrated within the tolerance of 0.4")
    assert "On average they are too high by 0.51" in assess(prediction + 0.5, loss).verdict
    assert "On average they are too low by 0.48" in assess(prediction - 0.5, loss).verdict
    assert "On average no error was detected: too" in assess(1.5 * prediction, loss).verdict
    scaled = (assess(prediction * (1 + s), loss) for s in np.linspace(0.01, 0.2, 40))
    slight = next(verdict for verdict in scaled if verdict.status == "miscalibrated")
    assert slight.verdict.startswith("The predictions are miscalibrated (linear test, p = ")
    assert "That is within the tolerance of" in slight.verdict
    assert slight.tests["linear"].p_value < 0.025


def test_the_l1_error_is_corrected_for_folding():
    # Bins: residual 2 with se sqrt(3.2/6), and 0 with se sqrt(0.8/6). fold = se sqrt(2/pi) e^(-z^2/2) + r (1 - 2 Phi(-z))
    verdict = assess(*twelve_rows())
    se = np.sqrt([3.2 / 6, 0.8 / 6])
    z = np.array([2, 0]) / se
    fold = se * np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2) + np.array([2, 0]) * (1 - 2 * norm.cdf(-z))
    assert verdict.l1.value == pytest.approx(np.mean(2 * np.array([2, 0]) - fold))


@pytest.mark.parametrize("levels", [1, 2, 3, 7, 20])
def test_ties_never_count_a_row_twice(levels):
    rng = np.random.default_rng(0)
    prediction = rng.integers(0, levels, 1000).astype(float)
    verdict = assess(prediction, QuadraticLoss(prediction + rng.standard_normal(1000), np.ones(1000)))
    assert verdict.bins["n"].sum() == 1000
    assert verdict.bins["mass"].sum() == pytest.approx(1000)
    assert len(verdict.bins["n"]) <= min(levels, 10)
    edges = verdict.bins["upper"][:-1]
    assert len(np.unique(edges)) == len(edges)


def test_the_error_of_a_constant_is_as_uncertain_as_its_gap():
    """Farther from the estimate its upper end is larger, and it covers the true gap as often as the interval of the gap."""
    rng, covered = np.random.default_rng(0), 0
    for _ in range(400):
        loss = QuadraticLoss(1 + rng.standard_normal(200), np.ones(200))
        verdict = assess(np.full(200, 1.1), loss, tolerance=0.3, draws=2, random_state=0)
        low, high = verdict.interval
        covered += low <= 0.1 <= high
        ends = verdict.average.excess_interval
        assert verdict.interval == (max(ends[0], -ends[1], 0.0), max(-ends[0], ends[1]))
    assert 365 <= covered <= 397  # 0.95 to 0.975 of 400, and three deviations
    upper = [assess(np.full(200, loss.target.mean() + gap), loss, draws=2).interval[1] for gap in (0.0, 0.02, 0.1, 0.5)]
    assert (np.diff(upper) > 0).all()


def test_a_constant_prediction_is_judged_by_its_mean_and_the_test_says_so():
    rng = np.random.default_rng(0)
    verdict = assess(np.full(300, 2.0), QuadraticLoss(rng.normal(1, 1, 300), np.ones(300)))
    assert len(verdict.bins["n"]) == 1
    assert verdict.error == pytest.approx(1, abs=0.2)
    assert "the prediction is constant" in verdict.tests["linear"].note
    assert verdict.tests["linear"].p_value < 1e-6
    assert "too high" in verdict.verdict


def test_bins_of_a_single_row_join_a_neighbour():
    weight = np.array([100.0, 1, 1, 1, 1, 100.0])
    prediction = np.arange(6.0)
    verdict = assess(prediction, QuadraticLoss(weight * prediction, weight), bins=3)
    assert (verdict.bins["n"] >= 2).all()
    assert verdict.bins["n"].sum() == 6


def test_no_noise_needs_no_interval():
    prediction = np.arange(6.0)
    verdict = assess(prediction, QuadraticLoss(prediction + 1, np.ones(6)), bins=2)
    assert verdict.error == pytest.approx(1)
    assert verdict.interval == pytest.approx((1, 1))
    assert verdict.tests["linear"].p_value is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bins": 0}, "`bins` must be a whole number of at least 1"),
        ({"level": 1.0}, "`level` must lie strictly between 0 and 1"),
        ({"draws": 0}, "`draws` must be a whole number of at least 1"),
    ],
)
def test_settings_are_checked(arguments, message):
    with pytest.raises(OrthocalError, match=message):
        assess(*twelve_rows(), **arguments)


def test_too_little_to_judge_is_an_error():
    with pytest.raises(OrthocalError, match="at least two rows"):
        assess([1.0], QuadraticLoss(np.ones(1), np.ones(1)))
    with pytest.raises(OrthocalError, match="`prediction` must have one value per row"):
        assess([1.0], QuadraticLoss(np.ones(3), np.ones(3)))
    with pytest.raises(OrthocalError, match="Every bin must have positive mass"):
        assess(np.arange(6.0), QuadraticLoss(np.ones(6), np.array([-1.0, -1, -1, 4, 4, 4])), bins=2)


def test_several_predictions_get_a_verdict_each_and_numbers_become_json():
    prediction, loss = twelve_rows()
    verdicts = assess({"a": prediction, "b": prediction + 1}, loss)
    assert set(verdicts) == {"a", "b"}
    record = json.loads(json.dumps(verdicts["a"].to_dict()))
    assert record["bins"]["n"] == [6, 6]
    assert record["tests"]["linear"]["note"] == "intercept 0 and slope 1"
    assert "predictions" not in record
    assert "calibration error" in verdicts["a"].summary()


def test_compare_by_hand():
    # chi = 1, 3; before 0, after 1: loss difference (1/2 - 1), (1/2 - 3): mean -1.5, sd sqrt(2), se 1
    comparison = compare([0, 0], [1, 1], QuadraticLoss(np.array([1.0, 3.0]), np.ones(2)))
    assert comparison.risk_difference == pytest.approx(-1.5)
    assert comparison.standard_error == pytest.approx(1)
    # t law with one degree of freedom: 12.7062; P(T > -1.5) = 1/2 + arctan(1.5) / pi
    assert comparison.interval == pytest.approx((-1.5 - 12.706205, -1.5 + 12.706205), rel=1e-5)
    assert comparison.p_value_harm == pytest.approx(0.5 + np.arctan(1.5) / np.pi)
    assert comparison.verdict == "no detectable change"
    assert json.dumps(comparison.to_dict())


def test_compare_names_good_and_harm_and_nothing():
    rng = np.random.default_rng(0)
    truth = rng.standard_normal(2000)
    loss = QuadraticLoss(truth + rng.standard_normal(2000), np.ones(2000), groups=np.arange(2000) // 2)
    assert compare(truth + 1, truth, loss).verdict == "improved"
    assert compare(truth, truth + 1, loss).verdict == "harmed"
    assert compare(truth, truth + 1, loss).p_value_harm < 1e-6
    same = compare(truth, truth, loss)
    assert (same.verdict, same.p_value_harm, same.interval) == ("no detectable change", 1.0, (0.0, 0.0))


@pytest.mark.parametrize("make", [HingeLoss, ExpectileLoss])
def test_the_interval_of_a_searched_for_average_is_in_its_own_units(make):
    """A thousandfold outcome has a thousandfold interval, which covers what it is of."""
    outcome = np.random.default_rng(0).standard_normal(900)
    tilt = 0.5 if make is HingeLoss else 0.0
    ends = []
    for scale in (1.0, 1000.0):
        loss = make(scale * outcome, np.ones(900), np.full(900, tilt))
        average = assess(scale * outcome / 9, loss, random_state=0).average
        assert average.interval[0] < average.effect < average.interval[1]
        ends.append(np.array(average.interval) / scale)
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-6)
    half = (ends[0][1] - ends[0][0]) / 2  # a median of 900 normal outcomes: 1.2533 / 30, a mean: 1 / 30
    assert half == pytest.approx(1.96 / 30 * (1.2533 if make is HingeLoss else 1.0), rel=0.15)


def test_bins_that_agree_too_well_do_not_prove_an_error_of_zero():
    prediction = np.repeat(np.arange(10.0), 50)
    noise = np.tile(np.repeat([1.0, -1.0], 25), 10)  # every bin's mean is exactly right
    verdict = assess(prediction, QuadraticLoss(prediction + noise, np.ones(500)), random_state=0)
    assert verdict.error == 0
    assert verdict.interval == (0.0, verdict.minimum_detectable_error)
    assert verdict.interval[1] > 0


@pytest.mark.filterwarnings("ignore::orthocal.SkewWarning")
def test_an_interval_above_0_has_an_error_above_0():
    # Few clusters of very unequal sizes: the plug-in error is large where the debiased one is not.
    above = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        groups = np.repeat(np.arange(6), [60, 30, 10, 5, 3, 2])
        prediction = rng.standard_normal(110)
        target = prediction + rng.standard_normal(6)[groups] + 0.3 * rng.standard_normal(110)
        verdict = assess(prediction, QuadraticLoss(target, np.ones(110), groups=groups), bins=3, draws=1)
        above += verdict.interval[0] > 0
        assert verdict.interval[0] == 0 or verdict.error > 0
    assert above / 300 < 0.06


def test_a_weight_lost_beside_the_others_leaves_ranks_as_they_are():
    rng = np.random.default_rng(0)
    prediction, noise = rng.standard_normal(400), rng.standard_normal(400)
    weight = np.ones(400)
    weight[np.argsort(prediction)[200]] = 1e-18
    found = assess(prediction, QuadraticLoss(weight * (prediction + noise), weight), draws=1).rate.autoc
    kept = weight > 0.5
    alone = assess(prediction[kept], QuadraticLoss((prediction + noise)[kept], weight[kept]), draws=1).rate.autoc
    assert found.value == pytest.approx(alone.value, rel=1e-9)
    assert found.interval == pytest.approx(alone.interval, rel=1e-5)
