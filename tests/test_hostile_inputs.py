"""Hostile values at every door of the Python API: one sentence that names argument, value and way out, or a finite answer."""

import decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

import orthocal
from orthocal import (
    CATE,
    AlignmentWarning,
    Auto,
    CausalCalibrator,
    ExpectileUnderTreatment,
    Histogram,
    OrthocalError,
    QuantileUnderTreatment,
    Study,
    maps,
)
from tests.fuzz.judgement import sentence_problem

N = 60
RNG = np.random.default_rng(0)
X, TREATMENT = RNG.standard_normal((N, 2)), np.tile([0, 1], N // 2)
Y, TAU = RNG.standard_normal(N) + TREATMENT, X[:, 0]
KNOWN = {"propensity": 0.5, "outcome_control": 0.0, "outcome_treated": 1.0}
FRAME = pd.DataFrame({"x": X[:, 0], "y": Y, "a": TREATMENT, "tau": TAU})


def learn(effect="cate", X=X, y=Y, **changes):
    given = {"treatment": TREATMENT, "nuisances": KNOWN, "random_state": 0, **changes}
    return orthocal.orthogonal_loss(effect, X, y, **given)


def calibrate(method="linear", **changes):
    settings = {
        name: changes.pop(name) for name in ("scheme", "folds", "clip", "n_jobs", "learners") if name in changes
    }
    given = {"X": X, "y": Y, "treatment": TREATMENT, "prediction": TAU, "nuisances": KNOWN, **changes}
    return CausalCalibrator(method=method, random_state=0, **settings).fit(**given)


def judge(prediction=TAU, loss=None, **changes):
    return orthocal.assess(prediction, learn() if loss is None else loss, draws=20, random_state=0, **changes)


def study(**changes):
    known = {name: KNOWN[name] for name in ("outcome_control", "outcome_treated")}
    given = {"outcome": "y", "treatment": "a", "covariates": ["x"], "propensity": 0.5, "nuisances": known, **changes}
    return Study(given.pop("data", FRAME), **given)


class Learner(RegressorMixin, BaseEstimator):
    """A regressor that answers as it is told."""

    def __init__(self, answer=None):
        self.answer = answer

    def fit(self, X, y, sample_weight=None):
        return self

    def predict(self, X):
        return self.answer(len(X))


class OneClass(ClassifierMixin, BaseEstimator):
    """A classifier that knows one class."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.array([0])
        return self

    def predict_proba(self, X):
        return np.ones((len(X), 1))


def learnt_by(answer):
    return lambda: learn(nuisances={"propensity": 0.5}, learners={"outcome": Learner(answer)})


SENTENCES = {
    "X a Series": (lambda: learn(X=FRAME["x"]), "`X` must have rows and columns; it is a Series"),
    "X a list": (lambda: learn(X=TAU.tolist()), "`X` must have rows and columns; it is a list"),
    "X None": (lambda: learn(X=None), "`X` must have rows and columns; it is None"),
    "X words": (lambda: learn(X=["a"] * N), "`X` must have rows and columns; it is a list"),
    "X a word": (lambda: learn(X="hello"), "`X` must have rows and columns; it is a str"),
    "X ragged": (lambda: learn(X=[[1.0], [1.0, 2.0]] * (N // 2)), "`X` must have rows and columns; its shape is"),
    "X huge": (lambda: learn(X=[[10**400]] * N), "`X` must not be infinite; row 0, column 0"),
    "clip text": (lambda: learn(clip="a"), "`clip` must lie strictly between 0 and 0.5; it is 'a'"),
    "clip None": (lambda: calibrate(clip=None), "`clip` must lie strictly between 0 and 0.5; it is None"),
    "level text": (lambda: judge(level="a"), "`level` must lie strictly between 0 and 1; it is 'a'"),
    "level None": (lambda: study(level=None), "`level` must lie strictly between 0 and 1; it is None"),
    "quantile text": (
        lambda: learn(QuantileUnderTreatment(quantile="0.5")),
        "`quantile` must lie strictly between 0 and 1",
    ),
    "expectile None": (
        lambda: learn(ExpectileUnderTreatment(expectile=None)),
        "`expectile` must lie strictly between 0 and 1",
    ),
    "seed 1.5": (lambda: learn(random_state=1.5), "`random_state` must be a whole number, a numpy Generator, or None"),
    "seed of assess": (
        lambda: orthocal.assess(TAU, learn(), random_state="a"),
        "`random_state` must be a whole number",
    ),
    "n_jobs text": (lambda: learn(n_jobs="a"), "`n_jobs` must be a whole number other than 0; it is 'a'"),
    "n_jobs 2.5": (lambda: study(n_jobs=2.5), "`n_jobs` must be a whole number other than 0; it is 2.5"),
    "nuisances a list": (lambda: learn(nuisances=[0.5]), "`nuisances` must map names to numbers"),
    "nuisances a Series": (lambda: learn(nuisances=pd.Series([0.5])), "`nuisances` must map names to numbers"),
    "nuisances a frame": (lambda: study(nuisances=FRAME), "`nuisances` must map names to numbers"),
    "by a list": (lambda: judge(by=["x"]), "`by` must map names to labels of subgroups; it is ['x']"),
    "by a Series": (lambda: judge(by=FRAME["a"]), "`by` must map names to labels of subgroups"),
    "by a frame": (lambda: study().assess("tau", by=FRAME), "`by` must name columns, or map names to labels"),
    "by 0": (lambda: judge(by={0: TREATMENT}), "`by` must map names to labels of subgroups"),
    "three ways, two clusters": (
        lambda: calibrate("histogram", scheme="three-way", groups=TREATMENT),
        "scheme='three-way' must have rows, or whole clusters, for three parts",
    ),
    "y ragged": (lambda: learn(y=[[1], [1, 2]] * (N // 2)), "`y` must be one column; its rows have different lengths"),
    "folds ragged": (lambda: calibrate(folds=[[1], [1, 2]] * (N // 2)), "`folds` must be one column"),
    "y 10**400": (lambda: learn(y=[10**400] * N), "`y` must be finite in every row; row 0 is inf"),
    "y a decimal": (lambda: learn(y=[decimal.Decimal("1e400")] * N), "`y` must be finite in every row; row 0 is inf"),
    "y 1e155": (lambda: learn(y=Y * 1e155), "`y` must not exceed 1e+50 in size; row 0 is"),
    "weight 1e200": (lambda: learn(sample_weight=np.full(N, 1e200)), "`sample_weight` must not exceed 1e+50 in size"),
    "prediction 1e300": (lambda: judge(TAU * 1e300), "`prediction` must not exceed 1e+50 in size; row 0 is"),
    "prediction 1e-320": (lambda: judge(TAU * 1e-320), "`prediction` must reach 1e-50 in size somewhere"),
    "treatment objects": (
        lambda: learn(treatment=[object()] * N),
        "`treatment` must hold numbers, text or booleans",
    ),
    "y 0 of a ratio": (
        lambda: judge(loss=learn("relative", y=np.zeros(N), nuisances=KNOWN | {"outcome_treated": 0.0})),
        "The summed mass of the loss must be positive; it is 0",
    ),
    "scheme a dict": (lambda: calibrate(scheme={}), "`scheme` must be one of 'cross', 'split', 'three-way'; it is {}"),
    "arm a list": (lambda: learn(CATE(arm=[1])), "`arm` must be one value of the treatment; it is [1]"),
    "control a frame": (lambda: study(control=FRAME).assess("tau"), "`control` must be one value of the treatment"),
    "bins 10**10": (lambda: judge(bins=10**10), "`bins` must be at most 100,000; it is 10000000000"),
    "histogram 10**10": (lambda: calibrate(Histogram(bins=10**10)), "`bins` must be at most 100,000"),
    "draws 10**10": (lambda: orthocal.assess(TAU, learn(), draws=10**10), "`draws` must be at most 1,000,000"),
    "short answers": (learnt_by(lambda n: np.zeros(n - 1)), "it returned the shape"),
    "wide answers": (learnt_by(lambda n: np.zeros((n, 2))), "it returned the shape"),
    "one answer": (learnt_by(lambda n: 1.0), "it returned the shape ()"),
    "no answers": (learnt_by(lambda n: None), "The learner Learner of nuisance `outcome_control` failed"),
    "NaN answers": (learnt_by(lambda n: np.full(n, np.nan)), "it returned numbers that are not finite"),
    "one class": (
        lambda: learn(
            nuisances={name: KNOWN[name] for name in ("outcome_control", "outcome_treated")},
            learners={"propensity": OneClass()},
        ),
        "it must give probabilities of two classes; their shape is",
    ),
    "no shapes": (lambda: calibrate(Auto([])), "`shapes` must map names to calibrators; it is []"),
    "a shape that is none": (lambda: calibrate(Auto({"a": 1})), "`shapes['a']` must be a calibrator"),
    "assess without loss": (lambda: orthocal.assess(TAU, None), "`loss` must be a loss, as `orthogonal_loss` returns"),
    "compare without loss": (
        lambda: orthocal.compare(TAU, TAU, 3),
        "`loss` must be a loss, as `orthogonal_loss` returns",
    ),
    "cost an array": (lambda: judge(cost=TAU), "`cost` must be a finite number, in units of the effect; it is array("),
    "cost NaN": (lambda: study().assess("tau", cost=np.nan), "`cost` must be a finite number"),
    "cost 10**400": (lambda: judge(cost=10**400), "`cost` must be a finite number"),
    "cost of compare": (lambda: orthocal.compare(TAU, TAU + 1, learn(), cost=np.inf), "`cost` must be a finite number"),
    "cost of choose": (lambda: study().choose("tau", cost="a"), "`cost` must be a finite number"),
    "cost of policy": (
        lambda: study().policy("tau", cost=np.nan),
        "`cost` must be at least 0, finite and without gaps",
    ),
    "outcome None": (lambda: study(outcome=None), "`outcome` must be the name of a column; it is None"),
    "weight a frame": (lambda: study(weight=FRAME), "`weight` must be the name of a column"),
    "covariates 3": (lambda: study(covariates=3), "`covariates` must be a list of columns; it is 3"),
    "no covariates of many": (
        lambda: Study(
            FRAME.assign(**{f"column {k}": 0 for k in range(40)}), outcome="y", treatment="a", propensity=0.5
        ),
        "`covariates` must be named: a column measured after treatment",
    ),
    "limits a frame": (lambda: study(limits=FRAME), "`limits` must be two numbers, the lower first"),
    "load None": (lambda: orthocal.load(None), "`path` must be the path of a file; it is None"),
    "about an object": (
        lambda: orthocal.save(maps.IdentityMap(), "map.json", about={"a": object()}),
        "`about` must hold plain values that JSON has",
    ),
    "decisions a column": (lambda: study().calibrate("tau", decisions=TAU), "`decisions` must be True or False"),
    "redraws 10**10": (lambda: study().assess("tau", redraws=10**10), "`redraws` must be at most 1,000"),
    "folds 10**5000": (
        lambda: study(folds=10**5000, nuisances=None).assess("tau"),
        "for a very long int folds",
    ),
    "benchmarks a Series": (
        lambda: study(propensity=None, nuisances=None, learners="linear").sensitivity("tau", benchmarks=FRAME["x"]),
        "`benchmarks` must be a list of covariates",
    ),
    "control of arms a frame": (
        lambda: study(arms="all", control=FRAME, nuisances=None),
        "`control` must be one value of the treatment",
    ),
    "control of arms 10**5000": (
        lambda: study(arms="all", control=10**5000, nuisances=None),
        "Every arm must occur in the treatment; a very long int does not",
    ),
    "effect of arms a column": (lambda: study(arms="all", effect=TAU), "`effect` must be 'cate' where there are"),
    "redraws of arms a column": (
        lambda: study(arms="all", propensity=0.5, nuisances=None).assess({1: "tau"}, redraws=TAU),
        "`redraws` must be 0 where there are several arms",
    ),
    "arms predicted by 10**400": (
        lambda: study(arms="all", propensity=0.5, nuisances=None).assess(10**400),
        "must hold numbers, a column for each arm, or map each arm to its column",
    ),
    "a map of 1e200": (lambda: maps.AffineMap(1e200, 1.0), "`intercept` must be a finite number that a map can have"),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_hostile_values_get_one_sentence(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call, fragment = SENTENCES[case]
    with pytest.raises(OrthocalError) as caught:
        call()
    assert fragment in str(caught.value)
    assert sentence_problem(str(caught.value)) is None
    assert list(tmp_path.iterdir()) == []


def test_saving_to_a_folder_is_refused(tmp_path):
    with pytest.raises(OrthocalError, match="`path` must name a file; .* is a folder"):
        orthocal.save(maps.IdentityMap(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_categories_of_0_and_1_are_0_and_1():
    as_categories = learn(treatment=pd.Series(TREATMENT).astype("category"), y=pd.Series(Y > 0).astype("category"))
    plain = learn(y=(Y > 0).astype(float))
    np.testing.assert_array_equal(as_categories.numerator, plain.numerator)


def test_whole_numbers_of_128_bits_are_numbers():
    weight = pl.Series(range(1, N + 1), dtype=pl.Int128)
    np.testing.assert_array_equal(learn(sample_weight=weight).weight, np.arange(1.0, N + 1))
    assert len(learn(groups=pl.Series([2**100 + k // 2 for k in range(N)], dtype=pl.Int128))) == N


def test_a_warning_where_indexes_disagree():
    with pytest.warns(AlignmentWarning, match="`X` and `y` have different indexes; rows are aligned by their order"):
        learn(X=FRAME[["x"]], y=FRAME["y"].iloc[::-1])
    with pytest.warns(AlignmentWarning, match="`data` and `twice` have different indexes"):
        study().assess({"twice": 2 * FRAME["tau"].iloc[::-1]}, draws=20)
