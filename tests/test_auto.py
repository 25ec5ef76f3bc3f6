"""The automatic choice: what it weighs, what it says, and what it never does."""

import numpy as np
import pytest

from orthocal import Auto, ExpectileLoss, HingeLoss, Isotonic, OrthocalError, QuadraticLoss
from orthocal.calibration.schemes import fit_calibrator
from orthocal.calibrators import CALIBRATORS
from orthocal.calibrators.auto import LINES, SHAPES
from orthocal.calibrators.evidence import bend_evidence, deciding_rows, line_evidence, with_hardest_left_out
from orthocal.calibrators.left_out import by_value, left_out
from orthocal.calibrators.lines import Rising
from orthocal.calibrators.mixture import Mixture, mixed
from orthocal.maps import AffineMap, IdentityMap, MixtureMap, SplineMap, StepMap
from tests.auto_designs import DESIGNS

GRID = np.linspace(-3, 3, 301)


def drawn(name, n=1000, seed=0):
    return DESIGNS[name].draw(n, np.random.default_rng(seed))


def plain(prediction, target):
    return prediction, QuadraticLoss(target, np.ones(len(target)))


@pytest.mark.parametrize("name", DESIGNS)
def test_never_falls_but_for_a_histogram_where_the_effect_drops(name):
    prediction, loss = drawn(name)
    auto = Auto().fit(prediction, loss)
    falls = (np.diff(auto.predict(np.sort(prediction))) < -1e-9).any()
    assert falls == ("histogram" in auto.weights_)
    assert falls == (name in {"not monotone", "valley"})
    assert sum(auto.weights_.values()) == pytest.approx(1)
    assert len(auto.weights_) <= 3
    assert min(auto.weights_.values()) >= 0.02
    assert auto.choice_ == " + ".join(auto.weights_)


def test_where_the_best_line_falls_everybody_gets_the_average():
    prediction, loss = drawn("reversed")
    auto = Auto().fit(prediction, loss)
    np.testing.assert_allclose(auto.predict(GRID), loss.numerator.mean())
    assert auto.choice_ == "constant"
    assert auto.reason_.startswith("The best line falls, by ")
    assert CALIBRATORS["linear"]().fit(prediction, loss).map_.slope < 0  # asked for by name


def test_a_flat_map_is_a_constant():
    prediction, loss = drawn("noise", seed=3)
    auto = Auto()
    auto.choose(prediction, loss)
    flat = Mixture([Rising(CALIBRATORS["linear"]()), CALIBRATORS["constant"]()], [1e-6, 1 - 1e-6])
    auto.adopt(flat.fit(prediction, loss), prediction, loss)
    assert len(np.unique(auto.predict(GRID))) == 1
    assert auto.reason_.startswith("The best map is flat")
    assert auto.choice_ == "constant"


def test_a_constant_says_where_the_order_still_carries_information():
    """A few predictions far off hide from the line what the ranks show."""
    rng = np.random.default_rng(0)
    prediction = rng.standard_normal(1000)
    target = 1.0 * (prediction > 0) + rng.standard_normal(1000)
    wild = np.where(np.arange(1000) < 10, -1000.0, prediction)
    target = np.where(np.arange(1000) < 10, 5.0, target)
    auto = Auto().fit(*plain(wild, target))
    assert auto.choice_ == "constant"
    assert auto.reason_.endswith("The order of the predictions still carries information about who gains more.")


def test_all_predictions_the_same():
    auto = Auto().fit(*plain(np.full(50, 0.1), np.arange(50.0)))
    assert (auto.choice_, auto.reason_) == ("constant", "All predictions are the same.")
    assert auto.predict([7.0]) == 24.5


def test_a_right_model_is_hardly_changed_and_a_wrong_one_is():
    prediction, loss = drawn("perfect", 4000)
    assert np.abs(Auto().fit(prediction, loss).predict(GRID) - GRID).max() < 0.15
    line = Auto().fit(2 * prediction + 3, loss)
    np.testing.assert_allclose(line.predict(2 * GRID + 3), GRID, atol=0.3)


def test_what_the_reason_says_is_true():
    """Losses of the original predictions and of the constant, on held-out rows, by hand."""
    prediction, loss = drawn("exaggerated twice", 600)
    auto = Auto(repeats=1).fit(prediction, loss)
    p, its = by_value(prediction, loss)
    seen = left_out({"constant": CALIBRATORS["constant"]()}, p, its, folds=10, repeats=1, sample=10**6)
    alone = (p - its.numerator) ** 2 / 2
    constant = (seen.draws[0]["constant"] + its.numerator.mean() - its.numerator) ** 2 / 2
    trials = {trial.name: trial for trial in auto.trials_}
    gap = trials["identity"].excess - trials["constant"].excess
    assert gap == pytest.approx(float((alone - constant).mean()))
    assert f"original predictions would have lost {trials['identity'].excess:.3g} more (standard error" in auto.reason_
    assert f"a constant effect {trials['constant'].excess:.3g} more (standard error" in auto.reason_
    for name, weight in auto.weights_.items():
        assert f"{name} {weight:.0%}" in auto.reason_
    assert "600 held-out rows" in auto.reason_


@pytest.mark.parametrize(("name", "n"), [("step", 500), ("sigmoid", 600), ("hinge", 4000)])
def test_weights_by_hand(name, n):
    """A shape's evidence is the mean of its gain on rows left out and of the test of bends, at most 30."""
    prediction, loss = drawn(name, n)
    trials = {trial.name: trial.weight for trial in Auto(repeats=1).fit(prediction, loss).trials_}
    p, its = by_value(prediction, loss)
    candidates = {**LINES, **SHAPES}
    calibrators = {name: one.calibrator for name, one in candidates.items()}
    seen = left_out(calibrators, p, its, folds=10, repeats=1, sample=10**6)
    bent = bend_evidence(p, its, CALIBRATORS["linear"]().fit(p, its).predict(p), 6)
    behind = dict(line_evidence(p, its).lines)
    behind |= {name: (seen.behind(name, "linear") - min(bent[SHAPES[name].bends], 30.0)) / 2 for name in SHAPES}
    kept = [name for name, weight in trials.items() if weight > 0]
    raw = np.exp([-behind[name] - candidates[name].handicap for name in kept])
    np.testing.assert_allclose([trials[name] for name in kept], raw / raw.sum(), rtol=1e-6)
    assert any(name in SHAPES for name in kept)


def far_rows(n, rng):
    """Predictions that are noise, some of them far off, where outcomes are noisy: a handful of rows decides the slope."""
    prediction = rng.standard_t(3, n)
    return plain(prediction, 0.5 + (1 + np.abs(prediction)) * rng.standard_t(2.5, n))


def test_where_a_handful_of_rows_decides_the_constant_must_prove_less():
    """Its handicap is a fifth of those rows, and no more than 4: weights of two lines differ by evidence and handicaps."""
    handicaps = []
    for prediction, loss in (drawn("noise", 500, seed=1), far_rows(500, np.random.default_rng(0))):
        trials = {trial.name: trial.weight for trial in Auto(repeats=1).fit(prediction, loss).trials_}
        rows = by_value(prediction, loss)
        behind = with_hardest_left_out(line_evidence(*rows), *rows).lines
        handicaps.append(np.log(trials["shift"] / trials["constant"]) + behind["shift"] - behind["constant"] + 2)
        assert handicaps[-1] == pytest.approx(min(4, deciding_rows(prediction, loss) / 5))
    assert handicaps[0] == pytest.approx(4)
    assert handicaps[1] < 2


def test_where_a_handful_of_rows_decides_noise_is_not_followed(monkeypatch):
    costs = []
    for candidate in (LINES["constant"], LINES["constant"]._replace(per_row=np.inf)):
        monkeypatch.setitem(LINES, "constant", candidate)
        fits = [Auto(repeats=1).fit(*far_rows(300, np.random.default_rng(seed))) for seed in range(12)]
        costs.append(np.mean([np.mean((fit.predict(GRID) - 0.5) ** 2) for fit in fits]))
    print(f"mean cost {costs[0]:.3f}, with the handicap of many rows {costs[1]:.3f}")
    assert costs[0] < 0.8 * costs[1]


@pytest.mark.parametrize("kind", [QuadraticLoss, ExpectileLoss, HingeLoss])
def test_one_wild_row_does_not_make_a_constant(kind):
    """Outcomes follow half the prediction; one of 400 is far off. A quantile does not mind it anyway."""
    rng = np.random.default_rng(3)
    prediction = np.sort(rng.standard_normal(400))
    outcome = 0.5 * prediction + 0.5 * rng.standard_normal(400)
    outcome[-1] -= 40.0
    tilt = {HingeLoss: [np.full(400, 0.5)], ExpectileLoss: [np.zeros(400)]}.get(kind, [])
    trials = Auto(repeats=1).fit(prediction, kind(outcome, np.ones(400), *tilt)).trials_
    assert {trial.name: trial.weight for trial in trials}["constant"] < 0.01


def test_units_have_no_say():
    prediction, loss = far_rows(300, np.random.default_rng(1))
    small = Auto(repeats=1).fit(prediction, loss)
    large = Auto(repeats=1).fit(1000 * prediction, QuadraticLoss(1000 * loss.numerator, loss.denominator))
    np.testing.assert_allclose(large.predict(1000 * GRID), 1000 * small.predict(GRID), rtol=1e-6)
    assert [trial.weight for trial in large.trials_] == pytest.approx([trial.weight for trial in small.trials_])


@pytest.mark.parametrize("name", ["affine", "step", "clusters", "weights", "coarse"])
def test_the_order_of_rows_has_no_say(name):
    prediction, loss = drawn(name, 400)
    order = np.random.default_rng(1).permutation(400)
    one, other = Auto().fit(prediction, loss), Auto().fit(prediction[order], loss[order])
    np.testing.assert_allclose(one.predict(GRID), other.predict(GRID), atol=1e-9)


@pytest.mark.parametrize("kind", [HingeLoss, ExpectileLoss])
def test_quantiles_and_expectiles(kind):
    rng = np.random.default_rng(0)
    prediction = rng.standard_normal(2000)
    outcome = prediction**3 / 3 + rng.standard_normal(2000)
    tilt = np.full(2000, 0.5) if kind is HingeLoss else np.zeros(2000)
    auto = Auto().fit(prediction, kind(outcome, np.ones(2000), tilt))
    inside = np.abs(GRID) < 1.5
    assert np.sqrt(np.mean((auto.predict(GRID) - GRID**3 / 3)[inside] ** 2)) < 0.25
    assert auto.choice_ != "line"
    assert np.isfinite([trial.excess for trial in auto.trials_]).all()


def test_ratios_with_rows_of_negative_mass():
    rng = np.random.default_rng(0)
    prediction = rng.standard_normal(2000)
    mass = 0.5 + rng.standard_normal(2000)
    loss = QuadraticLoss(mass * prediction / 2 + rng.standard_normal(2000), mass, np.ones(2000), is_ratio=True)
    auto = Auto().fit(prediction, loss)
    inside = np.abs(GRID) < 1.5
    assert np.sqrt(np.mean((auto.predict(GRID) - GRID / 2)[inside] ** 2)) < 0.3


def test_clusters_are_kept_whole():
    """Copies of one row: rows left out alone would be seen in their copies, and the roughest map would look best."""
    cost = np.empty((6, 2))
    copies = np.repeat(np.arange(200), 20)
    for seed in range(6):
        prediction, loss = drawn("noise", 200, seed)
        rows = prediction[copies], loss.numerator[copies], np.ones(4000)
        for column, groups in enumerate((copies, None)):
            auto = Auto().fit(rows[0], QuadraticLoss(*rows[1:], groups=groups))
            cost[seed, column] = np.mean((auto.predict(prediction) - 0.3) ** 2)
    together, apart = cost.mean(axis=0)
    print(f"mean cost with clusters {together:.3f}, without {apart:.3f}")
    assert together < apart / 3


def test_few_rows():
    for n in (2, 3, 5, 12, 30):
        rng = np.random.default_rng(n)
        prediction, target = rng.standard_normal(n), rng.standard_normal(n)
        assert np.isfinite(Auto().fit(*plain(prediction, target)).predict(GRID)).all()


def test_a_sample_is_used_and_named():
    prediction, loss = drawn("curved", 3000)
    auto = Auto(sample=1000).fit(prediction, loss)
    assert "1,000 held-out rows" in auto.reason_
    groups = np.arange(3000) // 3
    clustered = QuadraticLoss(loss.numerator, np.ones(3000), groups=groups)
    p, its = by_value(prediction, clustered)
    seen = left_out({"isotonic": Isotonic()}, p, its, folds=5, repeats=1, sample=1000)
    assert (np.unique(seen.loss.groups, return_counts=True)[1] == 3).all()
    assert 800 < seen.rows < 1200


def test_own_shapes():
    prediction, loss = drawn("step", 2000)
    auto = Auto({"steps": Isotonic(min_samples=200)}).fit(prediction, loss)
    assert [trial.name for trial in auto.trials_] == [*LINES, "steps"]
    assert auto.weights_["steps"] > 0.5


def test_nothing_can_be_fitted():
    class Refuses(Isotonic):
        def fit(self, prediction, loss):
            raise OrthocalError("not today")

    prediction, loss = drawn("affine", 100)
    with pytest.raises(OrthocalError, match="No candidate could be fitted; the first said: not today"):
        left_out({"refuses": Refuses()}, prediction, loss, folds=5, repeats=1, sample=100)


def test_a_line_that_cannot_be_fitted_without_some_fold_is_left_out(monkeypatch):
    """As for ratio effects, whose spread by mass may be negative on some of the rows."""

    class Refuses(Isotonic):
        def fit(self, prediction, loss):
            raise OrthocalError("not today")

    prediction, loss = drawn("curved", 500)
    monkeypatch.setitem(LINES, "linear", LINES["linear"]._replace(calibrator=Refuses()))
    auto = Auto().fit(prediction, loss)
    trials = {trial.name: trial for trial in auto.trials_}
    assert (trials["linear"].weight, trials["linear"].note) == (0.0, "not today")
    assert np.isfinite(auto.predict(GRID)).all()
    monkeypatch.setitem(LINES, "constant", LINES["constant"]._replace(calibrator=Refuses()))
    with pytest.raises(OrthocalError, match="No candidate could be fitted; the first said: not today"):
        Auto().fit(prediction, loss)


def test_members_are_frozen_where_the_loss_depends_on_the_level(simulated):
    prediction, loss = drawn("affine", 300)
    auto = Auto()
    frozen = auto.choose(prediction, loss)
    assert isinstance(frozen, Mixture)
    assert fit_calibrator("auto", prediction, loss).weights_ == auto.weights_


def test_lines_mix_into_a_line_and_splines_into_a_spline():
    line = mixed([0.25, 0.25, 0.5], [IdentityMap(), StepMap([], [2.0]), AffineMap(1.0, 3.0)])
    assert (line.intercept, line.slope) == (1.0, 1.75)
    assert mixed([1.0], [IdentityMap()]) == IdentityMap()
    knots = [0.0] * 4 + [1.0] * 4
    parts = [
        SplineMap(knots, [0.0, 1, 2, 3]),
        SplineMap(knots, [1.0, 1, 1, 1]),
        StepMap([0.5], [0.0, 1.0]),
        StepMap([0.6], [0.0, 1.0]),
    ]
    mixture = mixed([0.2, 0.2, 0.3, 0.3], parts)
    assert isinstance(mixture, MixtureMap)
    assert len(mixture.maps) == 3
    values = np.linspace(-1, 2, 50)
    wanted = np.average([part.predict(values) for part in parts], axis=0, weights=[0.2, 0.2, 0.3, 0.3])
    np.testing.assert_allclose(mixture.predict(values), wanted)


def test_every_member_has_a_name():
    assert {candidate.member for candidate in LINES.values()} == {"line"}
    assert {candidate.member for candidate in SHAPES.values()} == {
        "platt",
        "spline",
        "histogram",
        "isotonic",
        "isotonic-100",
    }
