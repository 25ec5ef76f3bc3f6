"""Hostile values at the other doors for arrays: audits, bands, policies, calibrators of groups and arms, losses, maps, pages."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import orthocal
from orthocal import OrthocalError, maps
from orthocal.engines.local.table import LocalTable
from orthocal.files.tables import read_table
from orthocal.joint_maps import DecisionShifts, JointMap
from tests.fuzz.judgement import sentence_problem
from tests.test_hostile_inputs import FRAME, RNG, TAU, TREATMENT, Learner, N, X, Y, judge, study


def failing(X):
    raise ValueError("out of luck")


KNOWN = {"propensity": 0.5, "outcome_control": 0.0, "outcome_treated": 0.0}
LOSS = orthocal.QuadraticLoss(TAU + RNG.standard_normal(N), np.ones(N))
SCORES = orthocal.ArmScores(arms=(0, 1), values=RNG.standard_normal((N, 2)), weight=np.ones(N))
SENTENCES = {
    "audit without loss": (lambda: orthocal.audit(TAU, 2.5, {"a": TREATMENT}), "`loss` must be a loss"),
    "audit of no groups": (
        lambda: orthocal.audit(TAU, LOSS, 1j),
        "`groups` must map names to labels of groups; it is 1j",
    ),
    "audit by seed 1.5": (
        lambda: orthocal.audit(TAU, LOSS, {"a": TREATMENT}, random_state=1.5),
        "`random_state` must be a whole number",
    ),
    "band at a Series": (
        lambda: orthocal.effect_band(TAU, LOSS, level=FRAME["x"]),
        "`level` must lie strictly between 0 and 1",
    ),
    "band in -1 bins": (lambda: orthocal.effect_band(TAU, LOSS, bins=-1), "`bins` must be one column"),
    "band in bins that fall": (
        lambda: orthocal.effect_band(TAU, LOSS, bins=[1.0, 0.0]),
        "`bins` must be inner edges of bins that increase; they are [1.0, 0.0]",
    ),
    "band of 0 draws": (
        lambda: orthocal.effect_band(TAU, LOSS, draws=0),
        "`draws` must be a whole number of at least 1",
    ),
    "multicalibrated to a class": (
        lambda: orthocal.Multicalibrator(tolerance=int).fit(TAU, LOSS, {"a": TREATMENT}),
        "`tolerance` must be a positive number; it is <class 'int'>",
    ),
    "multicalibrated without loss": (lambda: orthocal.Multicalibrator().fit(TAU, 3, {}), "`loss` must be a loss"),
    "boosted at ''": (
        lambda: orthocal.BoostedMulticalibrator(learning_rate="").fit(TAU, LOSS, X),
        "`learning_rate` must be above 0 and at most 1; it is ''",
    ),
    "boosted of other rows": (
        lambda: orthocal.BoostedMulticalibrator().fit(TAU, LOSS, X[:0]),
        "`X` must have one value per row; it has 0 for 60 rows",
    ),
    "boosted in 10**5000 folds": (
        lambda: orthocal.BoostedMulticalibrator(folds=10**5000).fit(TAU, LOSS, X),
        "`folds` must be at most 60; it is a very long int",
    ),
    "boosted in leaves of 10**10": (
        lambda: orthocal.BoostedMulticalibrator(min_samples_leaf=10**10).fit(TAU, LOSS, X),
        "`min_samples_leaf` must be at most 2,147,483,647; it is 10000000000",
    ),
    "policy of True": (lambda: orthocal.policy(True, {"tau": TAU}), "`scores` must be an ArmScores"),
    "policy of no predictions": (
        lambda: orthocal.policy(SCORES, 3),
        "`predictions` must map names to at least one prediction",
    ),
    "policy by words": (
        lambda: orthocal.policy(SCORES, {"tau": ["a"] * N}),
        "`predictions['tau']` must be an array of numbers",
    ),
    "joint of a date": (
        lambda: orthocal.JointCalibrator("linear").fit(X, np.datetime64("2020")),
        "`scores` must be an",
    ),
    "joint of words": (
        lambda: orthocal.JointCalibrator("linear").fit("a", SCORES),
        "`predictions` must be an array of",
    ),
    "joint of Int128": (
        lambda: orthocal.JointCalibrator("linear").fit(
            pl.DataFrame({"u": pl.Series(range(N), dtype=pl.Int128)}), SCORES
        ),
        "`predictions` must be an array of numbers",
    ),
    "a loss of dates": (
        lambda: orthocal.QuadraticLoss(pd.date_range("2020", periods=3).to_numpy(), np.ones(3)),
        "`numerator` must be an array of numbers",
    ),
    "a loss of one huge row": (
        lambda: orthocal.QuadraticLoss(np.ones(3), np.array([1.0, 1.0, 1e49])),
        "`denominator` must not exceed 1e+09 times its median",
    ),
    "a loss of tiny rows": (
        lambda: orthocal.QuadraticLoss(np.ones(3), np.full(3, 1e-320)),
        "`denominator` must reach 1e-50 in size somewhere",
    ),
    "a loss two columns wide": (
        lambda: orthocal.QuadraticLoss(X, X),
        "`numerator` must be one column; its shape is (60, 2)",
    ),
    "a tilted loss of words": (
        lambda: orthocal.HingeLoss(outcome=["a"], slope=[1.0], tilt=[1.0]),
        "`outcome` must be an array of numbers",
    ),
    "steps of words": (lambda: maps.StepMap(["a"], [0.0, 1.0]), "`edges` must be an array of numbers; it is ['a']"),
    "steps of dates": (
        lambda: maps.StepMap([0.0], pd.date_range("2020", periods=2).to_numpy()),
        "`values` must be an array of numbers",
    ),
    "steps of two numbers": (lambda: maps.StepMap(0.0, 1.0), "A step map must have one value more than edges"),
    "shifts of two numbers": (
        lambda: DecisionShifts(0.0, 1.0, 2.0),
        "Shifts of decisions must have costs, edges and shifts",
    ),
    "a joint map of words": (lambda: JointMap("a", "b"), "`intercept` must be an array of numbers; it is 'a'"),
    "repeats 10**10": (
        lambda: orthocal.CrossCalibratedModel(Learner(), repeats=10**10).fit(X, Y, treatment=TREATMENT),
        "`repeats` must be at most 1,000",
    ),
    "n_jobs 10**5000": (
        lambda: orthocal.CrossCalibratedModel(Learner(), n_jobs=10**5000).fit(X, Y, treatment=TREATMENT),
        "`n_jobs` must be a whole number other than 0; it is a very long int",
    ),
    "a model that fails": (
        lambda: study().assess({"model": failing}),
        "The effect model function must predict on rows like these; it failed: out of luck.",
    ),
    "since 3": (lambda: orthocal.report(judge(), "page.html", since=3), "`since` must be the path of an earlier"),
    "since a record that was changed": (
        lambda: orthocal.report(judge(), "page.html", since={**judge().to_dict(), "error": [1]}),
        "`since` must hold verdicts as orthocal wrote them; this record does not",
    ),
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


def test_new_rows_of_different_lengths_are_refused():
    model = orthocal.CrossCalibratedModel(Learner(np.zeros), method="linear", folds=2, repeats=1)
    model.fit(X, Y, treatment=TREATMENT, nuisances={"propensity": 0.5})
    with pytest.raises(OrthocalError, match="`X` must have rows and columns; its rows have different lengths"):
        model.predict([[1.0], [1.0, 2.0]])


def test_a_covariate_without_any_value_is_no_help_and_no_error():
    fitted = orthocal.BoostedMulticalibrator(max_steps=3, min_samples_leaf=5).fit(TAU, LOSS, np.full((N, 1), np.nan))
    assert np.isfinite(fitted.predict(TAU, X[:, :1])).all()


def test_what_another_library_holds_is_a_loss():
    loss = orthocal.QuadraticLoss(pd.Series([1.0, 2.0]), [1, 2])
    assert loss.target.tolist() == [1.0, 1.0]


def test_what_is_masked_is_missing():
    with pytest.raises(OrthocalError, match="`numerator` must be finite in every row; row 1 is nan"):
        orthocal.QuadraticLoss(np.ma.masked_array([1.0, 2.0], [False, True]), np.ones(2))


@pytest.mark.parametrize("name", ["a\ud800b", "$\\bad$", "<script>alert(1)</script>", "a\x1bb", "{{ 7 * 7 }}", "🦉"])
def test_hostile_names_stay_text_on_a_page_and_in_its_pictures(name, tmp_path):
    """Two predictions, so that the table and the picture of all verdicts are there."""
    verdict = judge(by={name: np.where(TREATMENT > 0, name, "b")})
    orthocal.report({name: verdict, "other": judge()}, tmp_path / "page.html", title=name, how={name: name})
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert ("{{ 7 * 7 }}" in page) == (name == "{{ 7 * 7 }}")


def test_labels_in_half_precision_are_labels():
    """The largest number allowed is none of half precision; comparing with it must not overflow."""
    labels = TREATMENT.astype(np.float16)
    loss = orthocal.orthogonal_loss("cate", X, Y, treatment=labels, nuisances=KNOWN)
    plain = orthocal.orthogonal_loss("cate", X, Y, treatment=TREATMENT, nuisances=KNOWN)
    np.testing.assert_array_equal(loss.numerator, plain.numerator)
    labels[3] = np.inf
    with pytest.raises(OrthocalError, match="`treatment` must be finite in every row; row 3 is inf"):
        orthocal.orthogonal_loss("cate", X, Y, treatment=labels, nuisances=KNOWN)


def test_an_interval_of_no_width_has_no_best_line():
    loss = orthocal.HingeLoss(TAU + RNG.standard_normal(N), np.ones(N), np.full(N, 0.5))
    assert orthocal.assess(TAU, loss, level=1e-300).linear_predictor is None


def test_weights_that_are_lists_are_refused_in_a_partition(tmp_path):
    pytest.importorskip("duckdb")
    frame = pd.DataFrame({"y": Y, "a": TREATMENT, "tau": TAU, "w": [[1.0], [1.0, 2.0]] * (N // 2)})
    frame.to_parquet(tmp_path / "rows.parquet")
    asked = orthocal.Study(
        LocalTable.of_files(tmp_path / "rows.parquet"),
        outcome="y",
        treatment="a",
        covariates=[],
        propensity=0.5,
        weight="w",
    )
    with pytest.raises(OrthocalError, match="`sample_weight` must hold numbers"):
        asked.assess("tau")


def test_boosting_does_not_depend_on_the_unit():
    """Trees sum in single precision, whose largest number is 3e38."""
    rng = np.random.default_rng(0)
    columns, noise = rng.standard_normal((2, 3000)), rng.standard_normal(3000)
    effects = []
    for unit in (1.0, 2.0**150):
        loss = orthocal.QuadraticLoss(unit * (np.sign(columns[0]) + noise), np.ones(3000))
        boosted = orthocal.BoostedMulticalibrator().fit(np.zeros(3000), loss, columns.T)
        effects.append(boosted.predict(np.zeros(3000), columns.T) / unit)
    assert np.ptp(effects[0]) > 1
    np.testing.assert_array_equal(*effects)


def test_folds_beyond_counting_are_refused_in_partitions(tmp_path):
    pd.DataFrame({"y": Y, "a": TREATMENT, "tau": TAU, "x": X[:, 0]}).to_parquet(tmp_path / "rows.parquet")
    table = LocalTable.of_files(tmp_path / "rows.parquet")
    with pytest.raises(OrthocalError, match="`folds` must be at most 10,000; it is"):
        orthocal.Study(table, outcome="y", treatment="a", covariates=["x"], folds=10**400).assess("tau")


def test_names_of_columns_that_are_no_text_are_refused(tmp_path):
    file = tmp_path / "rows.parquet"
    pd.DataFrame({"outcome": Y, "a": TREATMENT}).to_parquet(file)
    file.write_bytes(file.read_bytes().replace(b"outcome", b"o\xe9tcome"))
    with pytest.raises(OrthocalError, match="cannot be read: .* Check the file"):
        read_table(file)


def test_names_of_columns_in_another_encoding_are_refused_in_chunks(tmp_path):
    (tmp_path / "rows.csv").write_bytes("y,a,\u00e9t\u00e9\n1,0,2\n".encode("latin-1"))
    with pytest.raises(OrthocalError, match="must be a whole table; it cannot be read"):
        LocalTable.of_files(tmp_path / "rows.csv")
