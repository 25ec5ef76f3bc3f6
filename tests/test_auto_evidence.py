"""Score tests of lines and bends by hand: what the automatic choice knows without validation."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from orthocal import HingeLoss, QuadraticLoss
from orthocal.calibrators.evidence import (
    Evidence,
    bend_evidence,
    bends,
    deciding_rows,
    largest_drop,
    line_evidence,
    pull_of,
    with_hardest_left_out,
    without_hardest,
)


def plain(prediction, target):
    return prediction, QuadraticLoss(target, np.ones(len(target)))


def test_half_statistics_of_lines_by_hand():
    """Score tests against the best line, by least squares: shift and constant for the slope, the model for both."""
    rng = np.random.default_rng(2)
    p = rng.standard_normal(300)
    y = 0.2 + 0.8 * p + rng.standard_normal(300)
    evidence = line_evidence(*plain(p, y))
    x = p - p.mean()

    def one(residual, z):
        return (residual @ z) ** 2 / ((residual * z) ** 2).sum() / 2

    both = np.column_stack([np.ones(300), x]) * (y - p)[:, None]
    slope = LinearRegression().fit(p[:, None], y).coef_[0]
    wanted = {
        "identity": both.sum(0) @ np.linalg.inv(both.T @ both) @ both.sum(0) / 2,
        "constant": one(y - y.mean(), x),
        "shift": one(y - p - (y - p).mean(), x),
        "slope": one(y - p.mean() - slope * x, np.ones(300)),
        "linear": 0.0,
    }
    assert evidence.lines == pytest.approx(wanted)
    assert evidence.slope == pytest.approx(np.sqrt(2 * wanted["constant"]))


def test_bends_are_orthogonal_to_lines_and_the_smoothest_come_first():
    rng = np.random.default_rng(4)
    p, weight = np.sort(rng.standard_normal(500)), rng.random(500)
    found = bends(p, weight)
    line = np.column_stack([np.ones(500), p])
    np.testing.assert_allclose(found * weight @ line / weight.sum(), 0, atol=1e-5)
    np.testing.assert_allclose(found * weight @ found.T / weight.sum(), np.eye(9), atol=1e-4)
    turns = (np.diff(np.sign(found), axis=1) != 0).sum(axis=1)
    assert turns.tolist() == list(range(2, 11))


def test_half_statistics_of_bends_by_hand():
    """A score test of the residuals of the best line, in whatever unit the prediction is; clusters are summed first."""
    rng = np.random.default_rng(5)
    p, clusters = np.sort(rng.standard_normal(300)), rng.integers(0, 60, 300)
    y = p**2 + rng.standard_normal(300)
    line = LinearRegression().fit(p[:, None], y).predict(p[:, None])
    rows = (y - line)[:, None] * bends(p, np.ones(300))[:4].T
    sums = np.zeros((60, 4))
    np.add.at(sums, clusters, rows)
    for groups, own in ((None, rows), (clusters, sums)):
        wanted = [
            own[:, :k].sum(0) @ np.linalg.solve(own[:, :k].T @ own[:, :k], own[:, :k].sum(0)) / 2 for k in range(1, 5)
        ]
        loss = QuadraticLoss(y, np.ones(300), groups=groups)
        np.testing.assert_allclose(bend_evidence(p, loss, line, 4), [0, *wanted])
        np.testing.assert_allclose(bend_evidence(1e6 * p + 1e7, loss, line, 4), [0, *wanted], rtol=1e-6)


def test_few_predictions_have_few_bends():
    rng = np.random.default_rng(6)
    p = np.repeat([0.0, 1.0, 5.0], 40)
    y = 0.2 * p + (p == 1) + rng.standard_normal(120)
    line = LinearRegression().fit(p[:, None], y).predict(p[:, None])
    found = bend_evidence(*plain(p, y), line, 6)
    assert found[1] > 0
    np.testing.assert_allclose(found[1:], found[1])
    for rows in (80, 40):  # two predictions, one
        assert not bend_evidence(*plain(p[:rows], y[:rows]), p[:rows] + 0.1, 6).any()


def test_the_largest_drop_by_hand():
    rng = np.random.default_rng(3)
    p, y = np.arange(1000.0), np.repeat(np.arange(10.0), 100) + rng.standard_normal(1000)
    y[700:800] -= 4
    means, errors = y.reshape(10, 100).mean(1), y.reshape(10, 100).std(1) / 10
    wanted = max((means[i] - means[7]) / np.hypot(errors[i], errors[7]) for i in range(7))
    assert largest_drop(*plain(p, y)) == pytest.approx(wanted)


def test_at_a_kink_both_sides_count_half():
    loss = HingeLoss(np.array([0.0, 1.0]), np.ones(2), np.full(2, 0.5))
    np.testing.assert_allclose(pull_of(loss, np.array([0.0, 0.0])), [0.0, 0.5])


def test_rows_that_decide_the_slope_by_hand():
    """Residuals times centred predictions: four pulls of 1 are four rows; two of 1 and two of 3 are 20^2 / 164."""
    p = np.array([-1.0, -1.0, 1.0, 1.0])
    assert deciding_rows(*plain(p, np.array([-1.0, 1.0, -1.0, 1.0]))) == pytest.approx(4)
    assert deciding_rows(*plain(p, np.array([-1.0, 1.0, -3.0, 3.0]) + 7)) == pytest.approx(20**2 / 164)
    assert deciding_rows(*plain(3 * p + 5, np.array([-1.0, 1.0, -3.0, 3.0]))) == pytest.approx(20**2 / 164)
    assert deciding_rows(*plain(p, np.full(4, 2.0))) == 4  # nothing pulls anywhere


def test_normal_rows_count_a_ninth_and_far_ones_a_handful():
    """Fourth moments of normal noise and predictions are 3 times the squared second ones, each."""
    rng = np.random.default_rng(7)
    p, noise = rng.standard_normal((2, 200_000))
    assert deciding_rows(*plain(p, noise)) == pytest.approx(200_000 / 9, rel=0.05)
    far = p[:2000] * np.exp(rng.standard_normal(2000))
    assert deciding_rows(*plain(far, far * noise[:2000])) < 15


def test_rows_that_decide_do_not_depend_on_units_and_clusters_count_once():
    rng = np.random.default_rng(8)
    p, y = rng.standard_normal((2, 300))
    once = deciding_rows(*plain(p, y))
    for scale in (1e-40, 1e-3, 1e40):
        assert deciding_rows(*plain(scale * p, scale * y)) == pytest.approx(once)
    copies = np.repeat(np.arange(300), 3)
    clustered = QuadraticLoss(y[copies], np.ones(900), groups=copies)
    assert deciding_rows(p[copies], clustered) == pytest.approx(once)
    assert deciding_rows(*plain(p[copies], y[copies])) == pytest.approx(3 * once)


def hidden_slope(n=400, seed=3):
    """A clear slope of a half, and one wild outcome that hides it."""
    rng = np.random.default_rng(seed)
    p = np.sort(rng.standard_normal(n))
    y = 0.5 * p + 0.5 * rng.standard_normal(n)
    y[-1] -= 60.0
    return p, y


def test_without_the_hardest_pulls_by_hand():
    """Of 400 rows, the 2 of the largest |residual times centred prediction|; of few rows one."""
    p, y = hidden_slope()
    pull = np.abs((y - y.mean()) * (p - p.mean()))
    np.testing.assert_array_equal(without_hardest(*plain(p, y)), np.sort(np.argsort(pull)[:-2]))
    assert len(without_hardest(*plain(p[:20], y[:20]))) == 19


def test_clusters_are_left_out_whole():
    p, y = hidden_slope()
    groups = np.arange(400)[::-1] // 4
    rest = without_hardest(p, QuadraticLoss(y, np.ones(400), groups=groups))
    np.testing.assert_array_equal(rest, np.arange(396))


def test_one_wild_row_does_not_hide_a_slope():
    """E + (1 - m / 15) max(0, E' - E), with E' the evidence of the rows that remain."""
    p, loss = plain(*hidden_slope())
    before, rows = line_evidence(p, loss), deciding_rows(p, loss)
    after = with_hardest_left_out(before, p, loss)
    rest = without_hardest(p, loss)
    others = line_evidence(p[rest], loss[rest]).lines
    assert rows < 2
    assert before.lines["constant"] < 2
    assert after.lines["constant"] > 30
    for name, value in before.lines.items():
        assert after.lines[name] == pytest.approx(value + (1 - rows / 15) * max(0.0, others[name] - value))
    assert after[1:] == before[1:]


def test_many_deciding_rows_leave_the_evidence_as_it_is():
    rng = np.random.default_rng(4)
    p, noise = rng.standard_normal((2, 1000))
    evidence = line_evidence(*plain(p, p + noise))
    assert with_hardest_left_out(evidence, *plain(p, p + noise)) is evidence


@pytest.mark.parametrize("is_ratio", [False, True])
def test_rows_without_a_line_add_nothing(is_ratio):
    """The only row with another prediction pulls hardest; or the rest of a ratio effect has a negative spread."""
    p, y = np.array([0.0, 0.0, 0.0, 5.0]), np.array([1.0, 2.0, 0.0, 9.0])
    mass = np.ones(4)
    if is_ratio:
        p, y = np.array([0.0, 1.0, 2.0, 9.0]), np.array([-2.0, 2.0, -2.0, 4.0])
        mass = np.array([-1.0, 3.0, -1.0, 1.0])  # constant 1, pulls -1, -1, -1, 3, centred predictions -5, -4, -3, 4
    loss = QuadraticLoss(y, mass, weight=np.ones(4), is_ratio=is_ratio)
    evidence = Evidence({"constant": 1.0}, 1.0, 0.0)
    assert 3 not in without_hardest(p, loss)
    assert with_hardest_left_out(evidence, p, loss) is evidence


def test_bins_without_noise_are_no_overflow():
    """Ten rows, one in each bin: a drop of large numbers over an error of 0 is as sure as can be."""
    prediction = np.arange(10.0)
    loss = QuadraticLoss(1e4 * np.random.default_rng(0).standard_normal(10), np.ones(10))
    assert largest_drop(prediction, loss) > 1e9
