"""What notebooks show: the verdict and its numbers in well-formed HTML of any theme, and nothing of the user's as markup."""

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from scipy.stats import t as t_law
from sklearn.linear_model import LinearRegression, LogisticRegression

from orthocal import CATE, CausalCalibrator, CrossCalibratedModel, QuadraticLoss, assess, compare
from orthocal.assessment.parts import Coefficient
from orthocal.datasets import simulate_cate
from orthocal.formats import estimate
from orthocal.reporting.notebook import BOTTOM, EDGE, LEFT, SIZE, ticks

FAST = {"propensity": LogisticRegression(), "outcome": LinearRegression()}


@pytest.fixture(scope="module")
def data():
    return simulate_cate(600, random_state=0)


@pytest.fixture
def judged(scored):
    prediction, loss = scored
    by = {"<b>sex</b>": np.where(np.arange(len(prediction)) % 2, "f & m", "<script>")}
    return assess(prediction + 1, loss, by=by, cost=0.2, draws=100, random_state=0)


def parsed(shown):
    """Return the fragment as a tree; it must be well formed."""
    return ET.fromstring(shown._repr_html_())


def rows_of(tree):
    """Return name, number and meaning by row of the table."""
    rows = [["".join(cell.itertext()) for cell in row] for row in tree.iter("tr")]
    return {name: (number, meaning) for name, number, meaning in rows}


def shown_things(judged, data):
    arguments = {"treatment": data.treatment}
    calibrator = CausalCalibrator(learners=FAST, random_state=0)
    model = CrossCalibratedModel(LinearRegression(), method="isotonic", learners=FAST, random_state=0)
    return [
        judged,
        compare(np.zeros(3), np.ones(3), QuadraticLoss(np.array([1.0, 2.0, 0.0]), np.ones(3)), cost=0.5),
        calibrator.fit(data.X, data.y, prediction=1 + 2 * data.effect, **arguments),
        model.fit(data.X, data.y, **arguments),
        CausalCalibrator(CATE(arm="<i>")),
    ]


def test_every_fragment_is_well_formed_and_takes_the_colours_of_its_page(judged, data):
    for shown in shown_things(judged, data):
        text = shown._repr_html_()
        assert ET.fromstring(text).tag == "div"
        assert not re.search(r"#[0-9a-f]{3}|rgb\(|background|(?<!-)color:|https?:|url\(|nan|inf\b", text)
        assert all(svg.get("fill") == "currentColor" for svg in ET.fromstring(text).iter("svg"))
        assert len(text) < 15_000


def test_an_assessment_shows_verdict_table_and_picture(judged):
    tree, rows = parsed(judged), rows_of(parsed(judged))
    assert judged.verdict in "".join(tree.itertext())
    assert judged.sensitivity.text in "".join(tree.itertext())
    low, high = judged.interval
    assert rows["calibration error"][0] == f"{judged.error:.4g} ({low:.4g} to {high:.4g})"
    assert "95% intervals" in rows["rows judged"][1]
    assert rows["detectable"][0] == f"{judged.minimum_detectable_error:.4g}"
    assert rows["mean prediction"][0] == f"{judged.average.prediction:.4g}"
    statistic = judged.tests["linear"].statistic
    assert rows["linear test"] == (f"p < 0.0001 (statistic {statistic:.4g})", "intercept 0 and slope 1")
    slope, value, group = judged.linear_predictor.slope, judged.value, judged.groups[0]
    assert rows["slope"][0] == estimate(slope.value, slope.interval)
    assert rows["value at cost 0.2"][0] == estimate(value.value, value.interval)
    assert rows["error, <b>sex</b> = <script>"][0] == estimate(group.error, group.interval)


def points(tree):
    return [(float(c.get("cx")), float(c.get("cy"))) for c in tree.iter("circle")]


def test_the_picture_has_a_point_per_bin_and_one_scale(judged):
    tree = parsed(judged)
    assert len(points(tree)) == len(judged.bins["n"])
    across, up = np.array(points(tree)).T
    assert 0 < across.min() < across.max() < SIZE
    # Pixels are linear in the numbers: across the page in the prediction, and up it (from the top) in the target.
    assert np.polyfit(judged.bins["prediction"], across, 1)[0] > 0
    assert np.corrcoef(judged.bins["prediction"], across)[0, 1] == pytest.approx(1, abs=1e-4)
    assert np.corrcoef(judged.bins["target"], up)[0, 1] == pytest.approx(-1, abs=1e-4)
    # A prediction that is right lies on the diagonal, which runs from corner to corner of the axes.
    right = replace(judged, bins={**judged.bins, "target": judged.bins["prediction"]})
    across, up = np.array(points(parsed(right))).T
    diagonal = next(p.get("d") for p in parsed(right).iter("path") if p.get("stroke-dasharray"))
    x0, y0, x1, y1 = (float(n) for n in re.findall(r"[\d.]+", diagonal))
    assert (x0, y0, x1, y1) == (LEFT, SIZE - BOTTOM, SIZE - EDGE, EDGE)
    np.testing.assert_allclose(up, y0 + (across - x0) * (y1 - y0) / (x1 - x0), atol=0.2)


def test_bars_are_the_intervals(judged):
    paths = {p.get("stroke-width"): p.get("d") for p in parsed(judged).iter("path") if p.get("stroke-width")}
    length = {w: [abs(float(a) - float(b)) for a, b in re.findall(r" ([\d.]+)V([\d.]+)", d)] for w, d in paths.items()}
    ratio = judged.linf.band / t_law.ppf(0.975, judged.bins["n"] - 1)
    np.testing.assert_allclose(np.divide(length["1"], length["3"]), ratio, rtol=0.02)


def test_residuals_in_other_units_are_drawn_against_zero(judged):
    tree = parsed(replace(judged, curve=None, unit="score < 0", linear_predictor=None, value=None, groups=()))
    up = np.array(points(tree))[:, 1]
    assert np.corrcoef(judged.bins["residual"], up)[0, 1] == pytest.approx(1, abs=1e-4)
    assert "too high or low, score < 0" in "".join(tree.itertext())
    assert not {"slope", "value at cost 0.2"} & set(rows_of(tree))


def test_a_single_bin_can_be_drawn():
    loss = QuadraticLoss(np.array([1.0, 2.0, 3.0]), np.ones(3))
    assert len(points(parsed(assess(np.ones(3), loss, draws=10, random_state=0)))) == 1


def test_a_comparison_shows_its_numbers():
    loss = QuadraticLoss(np.array([1.0, 2.0, 0.0, 1.0]), np.ones(4))
    result = compare(np.full(4, 5.0), np.ones(4), loss, cost=2.0)
    rows = rows_of(parsed(result))
    assert "Improved." in "".join(parsed(result).itertext())
    assert rows["mean loss, after - before"][0] == estimate(result.risk_difference, result.interval)
    assert rows["test for harm"][0] == f"p = {result.p_value_harm:.4f}"
    assert rows["decisions changed at cost 2"][0] == "100.0%"
    assert rows["gain of that, per row"][0] == estimate(result.decision.gain, result.decision.interval)
    assert len(rows_of(parsed(replace(result, decision=None)))) == 2


def test_an_estimator_shows_what_it_does(data):
    calibrator = CausalCalibrator(CATE(arm="<i>"), learners=FAST, random_state=0)
    assert "Not fitted yet." in "".join(parsed(calibrator).itertext())
    assert "CATE(arm='<i>', control=0)" in "".join(parsed(calibrator).itertext())
    calibrator.set_params(effect="cate", scheme="split")
    calibrator.fit(data.X, data.y, treatment=data.treatment, prediction=1 + 2 * data.effect)
    rows = rows_of(parsed(calibrator))
    assert rows["method"] == (calibrator.calibrator_.choice_, calibrator.calibrator_.reason_)
    assert rows["rows"][0] == str(len(calibrator.rows_))
    assert rows["mean prediction"][0] == f"{calibrator.prediction_.mean():.4g}"
    after = calibrator.calibrate(calibrator.prediction_)
    assert rows["mean calibrated prediction"][0] == f"{after.mean():.4g}"
    assert rows["propensity clipped"] == (f"{calibrator.overlap_.clipped['propensity']:.1%}", "of rows, at 0.01")
    line = next(parsed(calibrator).iter("polyline")).get("points")
    across, up = np.array([[float(n) for n in point.split(",")] for point in line.split()]).T
    grid = np.linspace(calibrator.prediction_.min(), calibrator.prediction_.max(), len(across))
    assert np.corrcoef(calibrator.calibrate(grid), up)[0, 1] == pytest.approx(-1, abs=1e-4)


def test_an_effect_without_propensities_shows_none(data):
    calibrator = CausalCalibrator(method="linear", learners=FAST, random_state=0)
    calibrator.fit(data.X, data.y, treatment=data.treatment, prediction=data.effect)
    loss = QuadraticLoss(calibrator.loss_.numerator, calibrator.loss_.denominator)
    calibrator.learnt_ = replace(calibrator.learnt_, loss=loss)
    assert not any("propensity" in name for name in rows_of(parsed(calibrator)))


def test_a_constant_prediction_can_be_drawn(data):
    calibrator = CausalCalibrator(method="identity", learners=FAST, random_state=0)
    calibrator.fit(data.X, data.y, treatment=data.treatment, prediction=np.ones(600))
    assert "nan" not in calibrator._repr_html_()


def test_notebooks_get_it_where_they_look_first(data):
    for estimator in (CausalCalibrator(), CrossCalibratedModel(LinearRegression())):
        bundle = estimator._repr_mimebundle_(include=None, exclude=None)
        assert bundle == {"text/plain": repr(estimator), "text/html": estimator._repr_html_()}


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [(0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]), (-3, 60, [0, 10, 20, 30, 40, 50, 60]), (0.011, 0.012, None), (-5, 7, None)],
)
def test_ticks_are_round_and_inside(low, high, wanted):
    found = ticks(low, high)
    assert wanted is None or found == wanted
    assert 3 <= len(found) <= 8
    assert all(low <= tick <= high for tick in found)
    assert all(len(f"{tick:g}") <= 7 for tick in found)


def test_a_missing_number_is_said_to_be_missing(judged):
    no_p = replace(judged.tests["linear"], p_value=None, statistic=None, note="not here")
    rows = rows_of(parsed(replace(judged, tests={"linear": no_p})))
    assert rows["linear test"] == ("none", "not here")
    slope = Coefficient(1.0, 0.0, (1.0, 1.0))
    tied = replace(judged.linear_predictor, slope=slope)
    assert rows_of(parsed(replace(judged, linear_predictor=tied)))["slope"][0] == "1 (1 to 1)"
