import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from orthocal import CATE, CausalCalibrator, Histogram, OrthocalError, OverlapWarning, orthogonal_loss
from orthocal.datasets import simulate_cate
from orthocal.effects.cate import pseudo_outcome
from orthocal.nuisances import Nuisance, cross_fit, default_learner
from orthocal.nuisances.learners import Recipe
from orthocal.observations import observe
from tests.pages import verified

FAST = {"propensity": LogisticRegression(), "outcome": LinearRegression()}


class Spy(LinearRegression):
    """Remembers the rows it was fitted on and predicts the number of them it is asked about."""

    def fit(self, X, y):
        self.seen_ = set(X[:, 0])
        return super().fit(X, y)

    def predict(self, X):
        return np.array([float(row in self.seen_) for row in X[:, 0]])


def test_a_row_never_meets_a_model_that_saw_it():
    X = np.arange(60.0)[:, None]
    nuisance = Nuisance("outcome", "outcome", np.random.default_rng(0).standard_normal(60))
    fold = np.arange(60) % 4
    fitted = cross_fit([nuisance], X, fold, learners={"outcome": Spy()})
    assert (fitted["outcome"] == 0).all()


def test_a_nuisance_learns_from_its_own_rows_only():
    X = np.arange(60.0)[:, None]
    even = np.arange(60) % 2 == 0
    nuisance = Nuisance("outcome", "outcome", np.where(even, 1.0 + X[:, 0], 1e6), rows=even)
    fitted = cross_fit([nuisance], X, np.arange(60) % 3, learners={"outcome": LinearRegression()})
    np.testing.assert_allclose(fitted["outcome"], 1 + X[:, 0])


def test_the_answer_does_not_depend_on_the_number_of_jobs(simulated):
    args = {"treatment": simulated.treatment, "random_state": 0}
    one = orthogonal_loss("cate", simulated.X, simulated.y, n_jobs=1, **args)
    two = orthogonal_loss("cate", simulated.X, simulated.y, n_jobs=2, **args)
    np.testing.assert_array_equal(one.numerator, two.numerator)


def test_known_nuisances_as_number_array_and_function_agree(simulated):
    truth = simulated.nuisances
    given = [
        {**truth, "propensity": 0.5},
        {**truth, "propensity": np.full(1200, 0.5)},
        {**truth, "propensity": pd.Series(np.full(1200, 0.5))},
        {**truth, "propensity": lambda X: np.full(len(X), 0.5)},
    ]
    losses = [
        orthogonal_loss("cate", simulated.X, simulated.y, treatment=simulated.treatment, nuisances=known)
        for known in given
    ]
    for loss in losses[1:]:
        np.testing.assert_array_equal(loss.numerator, losses[0].numerator)
    a, y = simulated.treatment, simulated.y
    chi = pseudo_outcome(y, a == 1, a == 0, 0.5, 0.5, truth["outcome_treated"], truth["outcome_control"])
    np.testing.assert_array_equal(losses[0].target, chi)


def test_sample_weights_multiply_the_loss(simulated):
    weight = np.random.default_rng(0).uniform(0.5, 2, 1200)
    args = {"treatment": simulated.treatment, "nuisances": simulated.nuisances}
    plain = orthogonal_loss("cate", simulated.X, simulated.y, **args)
    loss = orthogonal_loss("cate", simulated.X, simulated.y, sample_weight=weight, **args)
    np.testing.assert_allclose(loss.numerator, weight * plain.numerator)
    np.testing.assert_array_equal(loss.denominator, weight)


class Weighed(LinearRegression):
    """Refuses to be fitted without weights."""

    def fit(self, X, y, sample_weight=None):
        if sample_weight is None or np.ptp(sample_weight) == 0:
            raise ValueError("no weights arrived")
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("learner", [Weighed(), make_pipeline(StandardScaler(), Weighed())])
def test_weights_reach_the_learners_that_take_them(simulated, learner):
    args = {"treatment": simulated.treatment, "learners": {"outcome": learner, "propensity": LogisticRegression()}}
    weight = np.random.default_rng(0).uniform(0.5, 2, 1200)
    orthogonal_loss("cate", simulated.X, simulated.y, sample_weight=weight, **args)
    with pytest.raises(OrthocalError, match="of nuisance `outcome_control` failed: no weights arrived"):
        orthogonal_loss("cate", simulated.X, simulated.y, **args)


def assert_finds_the_average(loss, effect):
    """The weighted mean of the pseudo-outcomes is the average effect, but for four standard errors."""
    mean = np.average(loss.target, weights=loss.weight)
    error = np.sqrt(np.sum((loss.weight * (loss.target - mean)) ** 2)) / loss.weight.sum()
    assert abs(mean - np.average(effect, weights=loss.weight)) < 4 * error < 1


def test_learners_that_take_no_weights_serve_too(simulated):
    learners = {"outcome": KNeighborsRegressor(), "propensity": LogisticRegression()}
    weight = np.random.default_rng(0).uniform(0.5, 2, 1200)
    loss = orthogonal_loss(
        "cate",
        simulated.X,
        simulated.y,
        treatment=simulated.treatment,
        sample_weight=weight,
        learners=learners,
        random_state=0,
    )
    np.testing.assert_array_equal(loss.denominator, weight)
    assert_finds_the_average(loss, simulated.effect)


def test_a_learner_is_chosen_by_name_before_role(simulated):
    learners = {**FAST, "outcome_treated": Ridge(alpha=1e9)}
    args = {"treatment": simulated.treatment, "random_state": 0}
    by_role = orthogonal_loss("cate", simulated.X, simulated.y, learners=FAST, **args)
    by_name = orthogonal_loss("cate", simulated.X, simulated.y, learners=learners, **args)
    control = simulated.treatment == 0
    assert (by_role.numerator != by_name.numerator).all()
    assert by_role.numerator[control].std() > 0


def test_multi_valued_treatment_keeps_all_rows_and_finds_the_contrast():
    rng = np.random.default_rng(0)
    n = 6000
    x = rng.standard_normal((n, 2))
    arm = rng.choice(["placebo", "low", "high"], n, p=[0.5, 0.3, 0.2])
    y = x[:, 0] + np.select([arm == "low", arm == "high"], [1.0, 2.0 + x[:, 1]], 0.0) + rng.standard_normal(n)
    effect = CATE(arm="high", control="placebo")
    loss = orthogonal_loss(effect, x, y, treatment=arm, learners=FAST, random_state=0)
    assert len(loss) == n
    assert loss.numerator.mean() == pytest.approx(2.0, abs=0.15)
    known = {"propensity": 0.2, "propensity_control": 0.5, "outcome_treated": 0, "outcome_control": 0}
    exact = orthogonal_loss(effect, x, y, treatment=arm, nuisances=known)
    np.testing.assert_allclose(exact.target, (arm == "high") / 0.2 * y - (arm == "placebo") / 0.5 * y)


def test_a_binary_outcome_is_learnt_by_a_classifier():
    data = simulate_cate(600, random_state=0)
    y = (data.y > 0).astype(int)
    args = {"treatment": data.treatment, "random_state": 0}
    loss = orthogonal_loss("cate", data.X, y, **args)
    assert np.abs(loss.target).max() > 1
    by_hand = orthogonal_loss("cate", data.X, y, learners={"outcome": LogisticRegression()}, **args)
    assert np.corrcoef(loss.target, by_hand.target)[0, 1] > 0.9
    orthogonal_loss("cate", data.X, y, learners={"outcome": Ridge()}, **args)  # a regressor serves as well
    assert is_classifier(default_learner(Nuisance("outcome", "outcome", y.astype(float), is_probability=True)))


@pytest.mark.parametrize("scheme", ["cross", "split", "three-way"])
def test_clusters_are_kept_and_never_divided(simulated, scheme):
    groups = np.arange(1200) // 6
    calibrator = CausalCalibrator(method=Histogram(3), scheme=scheme, learners=FAST, random_state=0)
    calibrator.fit(simulated.X, simulated.y, treatment=simulated.treatment, prediction=simulated.effect, groups=groups)
    own = groups[calibrator.rows_]
    np.testing.assert_array_equal(calibrator.loss_.groups, own)
    for g in np.unique(own):
        assert len(np.unique(calibrator.learnt_.fold[own == g])) == 1
        assert (own == g).sum() == 6  # all of a cluster's rows are on the same side


def test_a_held_out_verdict_keeps_clusters_whole(simulated):
    groups = np.arange(1200) // 6
    rows = observe(simulated.X, simulated.y, treatment=simulated.treatment, prediction=simulated.effect, groups=groups)
    done = verified("cate", "linear", rows, simulated.X, recipe=Recipe(FAST, random_state=0))
    assert (np.bincount(groups[done.judged], minlength=200) % 6 == 0).all()


@pytest.mark.parametrize("learner", [RandomForestRegressor(5, max_depth=3), GradientBoostingRegressor(n_estimators=5)])
def test_ensembles_serve_as_learners(simulated, learner):
    learners = {"outcome": learner, "propensity": LogisticRegression()}
    args = {"treatment": simulated.treatment, "random_state": 0}
    loss = orthogonal_loss("cate", simulated.X, simulated.y, learners=learners, **args)
    assert_finds_the_average(loss, simulated.effect)
    assert (loss.target != orthogonal_loss("cate", simulated.X, simulated.y, learners=FAST, **args).target).any()


def test_a_rare_third_level_does_no_harm(simulated):
    treatment = simulated.treatment.copy()
    treatment[:2] = 2
    loss = orthogonal_loss("cate", simulated.X, simulated.y, treatment=treatment, learners=FAST, random_state=0)
    assert len(loss) == 1200
    known = {"propensity": 0.8, "propensity_control": 0.8}
    with pytest.raises(OrthocalError, match="must not add to more than 1"):
        orthogonal_loss("cate", simulated.X, simulated.y, treatment=treatment, learners=FAST, nuisances=known)


def test_data_sorted_by_treatment_is_fine(simulated):
    order = np.argsort(simulated.treatment, kind="stable")
    loss = orthogonal_loss(
        "cate",
        simulated.X[order],
        simulated.y[order],
        treatment=simulated.treatment[order],
        learners=FAST,
        random_state=0,
    )
    assert abs(loss.target.mean()) < 0.3


def test_a_rare_outcome_is_learnt_without_setting_rows_aside():
    data = simulate_cate(200, random_state=0)
    y = (np.arange(200) < 4).astype(int)
    loss = orthogonal_loss("cate", data.X, y, treatment=data.treatment, random_state=0)
    assert np.isfinite(loss.numerator).all()


def test_a_constant_outcome_in_an_arm_needs_no_learner():
    data = simulate_cate(300, random_state=0)
    y = np.where(data.treatment == 1, (data.y > 0).astype(float), 0.0)
    loss = orthogonal_loss("cate", data.X, y, treatment=data.treatment, learners=FAST, random_state=0)
    assert np.isfinite(loss.numerator).all()


def test_missing_covariates_are_left_to_the_learner(simulated):
    X = simulated.X.copy()
    X[::7, 2] = np.nan
    args = {"treatment": simulated.treatment, "random_state": 0}
    assert np.isfinite(orthogonal_loss("cate", X, simulated.y, **args).numerator).all()
    with pytest.raises(
        OrthocalError, match="learner LogisticRegression of nuisance `propensity` failed: Input X contains NaN"
    ):
        orthogonal_loss("cate", X, simulated.y, learners=FAST, **args)


def test_fitted_propensities_are_clipped_reported_and_warned_about():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 1))
    treatment = (rng.random(2000) < 1 / (1 + np.exp(-4 * X[:, 0]))).astype(int)
    with pytest.warns(OverlapWarning, match=r"`propensity` was clipped at 0.05 in 4\d\.\d% of rows"):
        loss = orthogonal_loss("cate", X, X[:, 0], treatment=treatment, learners=FAST, clip=0.05, random_state=0)
    low, high = loss.overlap.propensity["treated"]
    assert (low, high) == pytest.approx((0.05, 0.95))
    assert loss.overlap.clipped["propensity"] > 0.4
    assert loss.overlap.effective_rows["treated"] < treatment.sum()


def call(data, **changes):
    columns = {"X": data.X, "y": data.y, "treatment": data.treatment, "learners": FAST, **changes}
    effect = columns.pop("effect", "cate")
    return orthogonal_loss(effect, columns.pop("X"), columns.pop("y"), **columns)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"effect": "cates"}, "`effect` must be one of 'cate'"),
        ({"effect": CATE(arm=2)}, "`arm`=2 must occur in the treatment column; its values are 0, 1"),
        ({"effect": CATE(control="no")}, "`control`='no' must occur"),
        ({"effect": CATE(arm=1, control=1)}, "`arm` and `control` must differ"),
        ({"treatment": np.ones(1200)}, "The treatment must have at least two values; every row is 1.0"),
        ({"nuisances": {"propensity": 0.0}}, "`propensity` as given must lie strictly inside (0, 1); row 0 is 0.0"),
        ({"nuisances": {"propensity": np.r_[np.full(1199, 0.5), 1.0]}}, "row 1199 is 1.0"),
        ({"nuisances": {"propensety": 0.5}}, "`nuisances` does not know 'propensety'; this effect has propensity"),
        ({"nuisances": {"propensity": np.ones(3)}}, "`propensity` must have one value per row; it has 3"),
        ({"learners": [Ridge()]}, "`learners` must map nuisances or roles to estimators; it is a list"),
        (
            {"learners": {"outcome": Ridge}},
            "`learners['outcome']` must be a scikit-learn estimator, such as Ridge(); it is the class Ridge",
        ),
        ({"learners": {"outcome": "ridge"}}, "it is 'ridge'"),
        ({"learners": {"propensity": RidgeClassifier()}}, "RidgeClassifier has no predict_proba"),
        ({"nuisances": {"propensity": "0.5"}}, "`propensity` as given must be a finite number"),
        ({"nuisances": {"outcome_treated": np.inf}}, "`outcome_treated` as given must be a finite number"),
        ({"effect": CATE}, "`effect` must be a name or an effect such as CATE()"),
        ({"folds": 2.5}, "`folds` must be a whole number or one label per row"),
        ({"folds": np.arange(1200) % 2, "groups": np.arange(1200) // 2}, "`folds` as given must keep clusters whole"),
        ({"learners": {"outcomes": Ridge()}}, "`learners` does not know 'outcomes'"),
        ({"learners": {**FAST, "outcome": LogisticRegression()}}, "LogisticRegression is a classifier"),
        ({"clip": 0.6}, "`clip` must lie strictly between 0 and 0.5; it is 0.6"),
        ({"folds": 1}, "`folds` must be at least 2"),
        ({"folds": np.r_[np.nan, np.arange(1199) % 2]}, "`folds` must be finite in every row; row 0 is nan"),
        ({"folds": np.ma.masked_equal(np.arange(1200) % 3, 2)}, "`folds` must be finite in every row; row 2 is nan"),
        (
            {"nuisances": {"propensity": np.ma.masked_less(np.full(1200, 0.5), 1)}},
            "`propensity` must be finite in every",
        ),
        ({"key": np.r_[np.nan, np.arange(1199)]}, "`key` must be finite in every row; row 0 is nan"),
        ({"folds": 1000}, "has 5"),
        ({"folds": np.zeros(1200)}, "outside fold 0 there is none"),
    ],
)
def test_bad_input_gets_one_sentence(simulated, changes, message):
    with pytest.raises(OrthocalError) as caught:
        call(simulated, **changes)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
