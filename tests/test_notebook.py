"""What notebooks show: the verdict and its numbers in well-formed HTML of any theme, and nothing of the user's as markup."""

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from orthocal import CATE, CausalCalibrator, CrossCalibratedModel, QuadraticLoss, assess, compare
from orthocal.assessment.parts import Coefficient
from orthocal.datasets import simulate_cate
from orthocal.formats import estimate

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
        assert not re.search(
            r"#[0-9a-f]{6}\b|rgb\(|background|(?<!-)color:|https?://(?!www.w3.org)|url\((?!#)|\bnan\b|\binf\b", text
        )
        assert len(text) < 100_000


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
    assert rows["linear test"] == (f"p < 0.0001, statistic {statistic:.4g}", "intercept 0 and slope 1")
    slope, value, group = judged.linear_predictor.slope, judged.value, judged.subgroups[0]
    assert rows["slope"][0] == estimate(slope.value, slope.interval)
    assert rows["value at cost 0.2"][0] == estimate(value.value, value.interval)
    assert rows["error, <b>sex</b> = <script>"][0] == estimate(group.error, group.interval)


def test_the_picture_is_that_of_the_page_in_the_ink_of_the_notebook(judged):
    (shown,) = [div for div in parsed(judged).iter("div") if div.get("aria-label") == "Reliability plot"]
    (svg,) = shown
    assert svg.tag.endswith("svg")
    assert "--accent:currentColor" in shown.get("style")
    marks = [use for use in svg.iter() if use.tag.endswith("use") and use.get("y")]
    assert len(marks) >= len(judged.bins["n"])


def test_names_in_pictures_differ(judged):
    names = [{node.get("id") for node in parsed(judged).iter() if node.get("id")} for _ in range(2)]
    assert names[0]
    assert not names[0] & names[1]


def test_a_single_bin_can_be_drawn():
    loss = QuadraticLoss(np.array([1.0, 2.0, 3.0]), np.ones(3))
    assert parsed(assess(np.ones(3), loss, draws=10, random_state=0)).tag == "div"


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
    assert any(div.get("aria-label") == "Calibration map" for div in parsed(calibrator).iter("div"))


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


def test_a_missing_number_is_said_to_be_missing(judged):
    no_p = replace(judged.tests["linear"], p_value=None, statistic=None, note="not here")
    rows = rows_of(parsed(replace(judged, tests={"linear": no_p})))
    assert rows["linear test"] == ("none", "not here")
    slope = Coefficient(1.0, 0.0, (1.0, 1.0))
    tied = replace(judged.linear_predictor, slope=slope)
    assert rows_of(parsed(replace(judged, linear_predictor=tied)))["slope"][0] == "1 (1 to 1)"
