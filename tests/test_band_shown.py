"""Where the band of the calibrated effect is shown: pictures, page, notebook, and the check of the map; each says what it is."""

import re

import numpy as np
import pandas as pd
import pytest

import orthocal
from orthocal import plots
from orthocal.losses import QuadraticLoss
from orthocal.maps import AffineMap, IdentityMap
from orthocal.study.checks import checks_of_map
from tests.effect_band_truths import drawn

NEVER = "never for a person's own effect"


@pytest.fixture(scope="module")
def rows():
    prediction, loss, _ = drawn("alone", "linear", 3000, np.random.default_rng(0))
    return prediction, loss, orthocal.effect_band(prediction, loss)


@pytest.fixture(scope="module")
def done():
    data = orthocal.datasets.simulate_cate(n=3000, confounding=0, random_state=0)
    table = pd.DataFrame({"y": data.y, "a": data.treatment, "tau": 1 + 2 * data.effect})
    study = orthocal.Study(table, outcome="y", treatment="a", covariates=[], propensity=0.5)
    return study.calibrate("tau", method="linear", draws=50)


def said(ax):
    return [" ".join(text.get_text().split()) for text in ax.get_legend().get_texts()]


def shaded(ax):
    """Return the lowest and the highest end drawn at each prediction of the shade."""
    (shade,) = [own for own in ax.collections if own.get_label().startswith("95% band")]
    corners = np.concatenate([path.vertices for path in shade.get_paths()])
    return pd.DataFrame(corners, columns=["x", "y"]).groupby("x")["y"].agg(["min", "max"])


def test_the_map_the_band_and_the_reliability_picture_say_what_it_is(rows):
    prediction, loss, band = rows
    verdict = orthocal.assess(prediction, loss, draws=50, random_state=0)
    pictures = [
        plots.calibration_map(IdentityMap(), prediction, band=band),
        plots.reliability(verdict, band=band),
        plots.before_and_after(verdict, verdict, band=band).axes[0],
    ]
    for ax in pictures:
        assert any("average effect of people with that prediction" in text and NEVER in text for text in said(ax))
    assert band.plot(prediction).get_ylabel() == "average effect"
    assert plots.reliability(verdict).get_legend() is None
    assert plots.before_and_after(verdict, verdict, band=band).axes[1].get_legend() is None


def test_the_shade_on_the_reliability_picture_is_the_band(rows):
    prediction, loss, band = rows
    ends = shaded(plots.reliability(orthocal.assess(prediction, loss, draws=50, random_state=0), band=band))
    low, high = band.interval(ends.index)
    both = np.isfinite(low) & np.isfinite(high)
    assert both.mean() > 0.9
    np.testing.assert_allclose(ends["min"][both], low[both])
    np.testing.assert_allclose(ends["max"][both], high[both])


def test_a_quantile_has_no_shade(rows):
    """Its picture is of residuals, which have no band."""
    data = orthocal.datasets.simulate_quantile(n=800, random_state=0)
    known = {"propensity": data.nuisances["propensity"], "below": lambda X, value: np.full(len(X), 0.5)}
    loss = orthocal.orthogonal_loss(
        "quantile", data.X, data.y, treatment=data.treatment, nuisances=known, prediction=data.effect
    )
    verdict = orthocal.assess(data.effect, loss, draws=50, random_state=0)
    assert plots.reliability(verdict, band=rows[2]).get_legend() is None


def test_page_and_notebook_say_what_it_is(done, tmp_path):
    done.report(tmp_path / "page.html")
    page = " ".join((tmp_path / "page.html").read_text().replace("&#39;", "'").split())
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", page)
    shown = [caption for caption in captions if "Shaded" in caption]
    assert len(shown) >= 2  # reliability, and the map
    assert all("average effect of people with that prediction" in caption and NEVER in caption for caption in shown)
    assert "map inside the band" in page
    assert done._repr_html_().count("<svg") == 1


def test_a_map_inside_the_band_passes(rows, done):
    prediction, _, band = rows
    (check,) = checks_of_map(AffineMap(0.0, 1.5), prediction, band)
    assert (check.name, check.result, check.figure) == ("map inside the band", "passed", "outside for 0% of rows")
    assert NEVER in check.sentence
    assert [one.result for one in done.checks if one.name == "map inside the band"] == ["passed"]
    assert done.band is done.study.rows.band(done.prediction, None, 0.95)  # made once, for check, table and page


def test_a_map_that_leaves_the_band_is_told_with_the_share_of_rows(rows):
    """By hand: the constant 0 leaves it where the lower end is above 0 or the upper below."""
    prediction, _, band = rows
    low, high = band.interval(prediction)
    share = np.mean((low > 0) | (high < 0))
    (check,) = checks_of_map(AffineMap(0.0, 0.0), prediction, band)
    assert share > 0.3
    assert check.result == "warning"
    assert float(re.search(r"outside for ([\d.]+)%", check.figure)[1]) == pytest.approx(100 * share, rel=0.01)
    assert f"for {check.figure.split()[2]} of rows" in check.sentence
    assert NEVER in check.sentence


def test_a_falling_effect_crosses_the_ends():
    """No rising map is inside a band whose lower end is above its upper."""
    prediction = np.random.default_rng(0).uniform(-1, 1, 3000)
    loss = QuadraticLoss(-2 * prediction + np.random.default_rng(1).standard_normal(3000), np.ones(3000))
    band = orthocal.effect_band(prediction, loss)
    assert band.crossed(prediction) > 0.5
    (check,) = checks_of_map(AffineMap(0.0, 0.0), prediction, band)
    assert check.result == "warning"
    assert "falls as it rises" in check.sentence
    assert "histogram" in check.advice


def test_a_study_warns_of_a_constant_map_of_varying_effects():
    data = orthocal.datasets.simulate_cate(n=3000, confounding=0, random_state=0)
    table = pd.DataFrame({"y": data.y, "a": data.treatment, "tau": data.effect})
    study = orthocal.Study(table, outcome="y", treatment="a", covariates=[], propensity=0.5)
    done = study.calibrate("tau", method="constant", draws=50)
    (check,) = [one for one in done.checks if one.name == "map inside the band"]
    assert check.result == "warning"
    assert "map inside the band" in done.summary()
