import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from orthocal import OrthocalError
from orthocal.datasets import simulate_cate
from orthocal.folds import (
    CROSS,
    HOLDOUT,
    SPLIT,
    VALIDATION,
    assign_folds,
    draw_folds,
    generator,
    row_order,
    seed_of,
    split_rows,
)
from orthocal.hashing import hashed_labels, hashed_rows
from orthocal.observations import observe


def rows_of(n=600, seed=0, **changes):
    rng = np.random.default_rng(seed)
    columns = {
        "X": rng.standard_normal((n, 3)),
        "y": rng.standard_normal(n),
        "treatment": rng.integers(0, 2, n),
        **changes,
    }
    return observe(columns.pop("X"), columns.pop("y"), **columns)


def few_rows(n=600, seed=0, **changes):
    """Rows of few kinds: two binary covariates, a binary outcome, a binary treatment."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 2, (n, 2)), rng.integers(0, 2, n)
    return rows_of(**{"X": X, "y": y, "treatment": rng.integers(0, 2, n), **changes})


def kinds_by_fold(rows, fold):
    table = np.column_stack([rows.covariates, rows.treatment, rows.outcome, fold])
    return np.unique(table, axis=0, return_counts=True)


def test_every_stratum_is_spread_evenly_even_when_sorted():
    strata = np.repeat([0, 1], [103, 52])
    for fold in (assign_folds(5, strata, random_state=0), draw_folds(5, strata, rows_of(155), 0)):
        for level in (0, 1):
            sizes = np.bincount(fold[strata == level], minlength=5)
            assert sizes.max() - sizes.min() <= 1
        assert np.ptp(np.bincount(fold)) <= 1


@pytest.mark.parametrize("kind", [rows_of, few_rows])
def test_the_order_of_rows_changes_no_fold(kind):
    rows, mixed = kind(), np.random.default_rng(1).permutation(600)
    shuffled = rows[mixed]
    strata = rows.treatment
    for draw in (
        lambda some: draw_folds(5, some.treatment, some, 3),
        lambda some: split_rows(0.7, some.treatment, some, 3, HOLDOUT),
    ):
        one, other = draw(rows), draw(shuffled)
        if kind is rows_of:
            np.testing.assert_array_equal(one[mixed], other)
        # Of rows that are alike in everything it does not matter which is where, but how many of them are.
        for ours, theirs in zip(kinds_by_fold(rows, one), kinds_by_fold(shuffled, other), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert np.ptp(np.bincount(draw_folds(5, strata, rows, 3))) <= 1


def test_the_seed_decides():
    rows = rows_of()
    strata = np.zeros(600, dtype=int)
    same = [draw_folds(5, strata, rows, seed) for seed in (3, 3, 4)]
    np.testing.assert_array_equal(same[0], same[1])
    assert (same[0] == same[2]).mean() == pytest.approx(0.2, abs=0.06)


def test_what_is_drawn_for_one_purpose_says_nothing_of_another():
    rows, strata = rows_of(5000), np.zeros(5000, dtype=int)
    held = split_rows(0.5, strata, rows, 0, HOLDOUT)
    for other in (split_rows(0.5, strata, rows, 0, SPLIT), draw_folds(2, strata, rows, 0)):
        assert (held == other).mean() == pytest.approx(0.5, abs=0.03)
    assert len({CROSS, HOLDOUT, SPLIT, VALIDATION}) == 4


def test_outcome_prediction_and_weight_have_no_say_where_rows_differ_otherwise():
    rng, strata = np.random.default_rng(0), np.zeros(600, dtype=int)
    wanted = draw_folds(5, strata, rows_of(), 0)
    changes = {
        "y": 1e-9 * rng.standard_normal(600),
        "prediction": rng.standard_normal(600),
        "sample_weight": rng.random(600),
    }
    np.testing.assert_array_equal(draw_folds(5, strata, rows_of(**changes), 0), wanted)


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 7.0, 1e9])
def test_rescaling_draws_no_other_folds_even_of_rows_with_few_covariates(scale):
    rng = np.random.default_rng(0)
    X, y, prediction, weight = rng.integers(0, 2, (600, 1)), *rng.standard_normal((2, 600)), rng.random(600)
    strata = np.zeros(600, dtype=int)
    one = rows_of(X=X, y=y, prediction=prediction, sample_weight=weight)
    other = rows_of(X=X, y=scale * y, prediction=scale * prediction, sample_weight=weight)
    np.testing.assert_array_equal(draw_folds(5, strata, one, 0), draw_folds(5, strata, other, 0))


def test_rows_alike_but_for_the_prediction_are_told_apart_by_it():
    rng, mixed = np.random.default_rng(0), np.random.default_rng(1).permutation(600)
    X, y = np.zeros((600, 1)), np.zeros(600)
    rows = rows_of(X=X, y=y, treatment=np.arange(600) % 2, prediction=rng.standard_normal(600))
    strata = np.zeros(600, dtype=int)
    np.testing.assert_array_equal(draw_folds(5, strata, rows, 0)[mixed], draw_folds(5, strata, rows[mixed], 0))


def test_what_is_left_out_does_not_mirror_what_is_fitted():
    """Rows alike in key and outcome are not dealt out one to each fold: a fold's share of ones varies as chance has it."""
    spread = []
    for seed in range(200):
        rows = few_rows(200, X=np.zeros((200, 1)), treatment=np.zeros(200), y=np.arange(200) % 2)
        fold = draw_folds(5, np.zeros(200, dtype=int), rows, seed)
        spread.append(np.bincount(fold, rows.outcome) / 40)
    # Of 200 rows, half of them ones, 40 are drawn without replacement: variance .25 / 40 * 160 / 199.
    assert np.var(spread) == pytest.approx(0.25 / 40 * 160 / 199, rel=0.15)


def test_numbers_and_text_have_one_key_however_they_are_stored():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal(300).astype(np.float32), rng.integers(-3, 4, 300)]).astype(float)
    X[::7, 0], X[::11, 0] = np.nan, 0.0
    other = X.copy()
    other[::7, 0], other[::11, 0] = -np.nan, -0.0
    np.testing.assert_array_equal(hashed_rows(X), hashed_rows(other))
    np.testing.assert_array_equal(hashed_rows(X), hashed_rows(X.astype(np.float32)))
    assert len(np.unique(hashed_rows(X))) == len(np.unique(np.nan_to_num(X, nan=99.0), axis=0))
    kinds = [np.array([0, 1, 1, 0]), np.array([0.0, 1.0, 1.0, -0.0]), np.array([False, True, True, False])]
    for kind in (*kinds, kinds[0].astype(np.float32), kinds[0].astype(np.uint8)):
        np.testing.assert_array_equal(hashed_labels(kind), hashed_labels(kinds[0]))
    text = np.array(["a", "bb", "bb", "a"])
    np.testing.assert_array_equal(hashed_labels(text), hashed_labels(np.array(["a", "bb", "bb", "a", "ccccc"]))[:4])
    long = np.array([2**60, 2**60 + 1])
    assert len(np.unique(np.append(hashed_labels(long), hashed_labels(np.array([2.0**60]))))) == 2


def test_frames_of_all_kinds_have_the_same_folds():
    data = simulate_cate(300, random_state=0)
    site = np.array(["u", "v", "w"])[np.arange(300) % 3]
    columns = {f"x{j}": data.X[:, j] for j in range(5)} | {"site": site}
    tables = [pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)]
    tables.append(pd.DataFrame(columns).astype({"site": "category", "x0": np.float32}))
    found = []
    for X in tables:
        treatment = data.treatment.astype(float) if found else data.treatment
        rows = observe(X, data.y, treatment=treatment)
        found.append(draw_folds(5, data.treatment, rows, 0))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


def test_a_key_decides_alone():
    rng = np.random.default_rng(0)
    key, strata = rng.permutation(600) + 10**12, np.zeros(600, dtype=int)
    wanted = draw_folds(5, strata, rows_of(key=key), 0)
    assert (wanted != draw_folds(5, strata, rows_of(), 0)).any()
    changed = rows_of(seed=1, key=key.astype(float))
    np.testing.assert_array_equal(draw_folds(5, strata, changed, 0), wanted)
    by_text = draw_folds(5, strata, rows_of(key=np.array([f"p{k}" for k in key])), 0)
    assert (by_text != wanted).any()


def test_rows_of_one_key_are_told_apart_by_what_else_they_hold():
    rows = few_rows(key=np.zeros(600))
    shuffled = rows[np.random.default_rng(1).permutation(600)]
    strata = np.zeros(600, dtype=int)
    folds = [kinds_by_fold(some, draw_folds(5, strata, some, 0)) for some in (rows, shuffled)]
    for ours, theirs in zip(*folds, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
def test_clusters_are_never_divided_and_keyed_by_their_name(share):
    rng = np.random.default_rng(0)
    groups, strata = rng.integers(0, 40, 500), rng.integers(0, 2, 500)
    names = np.array([f"clinic {g}" for g in groups])
    for kind in (groups, groups.astype(float), names):
        rows = rows_of(500, groups=kind)
        mixed = rng.permutation(500)
        for draw in (lambda r, s: draw_folds(4, s, r, 0), lambda r, s: split_rows(share, s, r, 0, HOLDOUT)):
            part = draw(rows, strata)
            assert all(len(np.unique(part[groups == g])) == 1 for g in range(40))
            np.testing.assert_array_equal(part[mixed], draw(rows[mixed], strata[mixed]))
    part = assign_folds(4, strata, groups, 0)
    assert all(len(np.unique(part[groups == g])) == 1 for g in range(40))
    assert [draw_folds(4, strata, rows_of(500, groups=kind), 0)[0] for kind in (groups, groups.astype(float))] == [
        draw_folds(4, strata, rows_of(500, seed=9, groups=groups), 0)[0]
    ] * 2


def test_a_split_takes_its_share_of_every_stratum():
    strata = np.repeat([0, 1], [1000, 500])
    part = split_rows(0.3, strata, rows_of(1500), 0, SPLIT)
    assert (part[strata == 0] == 0).sum() in (299, 300, 301)
    assert (part[strata == 1] == 0).sum() in (149, 150, 151)


def test_given_folds_are_used_as_labels():
    np.testing.assert_array_equal(assign_folds(["b", "a", "b"], np.zeros(3)), [1, 0, 1])
    np.testing.assert_array_equal(draw_folds(pl.Series([2, 1, 2]), np.zeros(3), rows_of(3), 0), [1, 0, 1])
    with pytest.raises(OrthocalError, match="`folds` must have one value per row"):
        assign_folds([0, 1], np.zeros(3))


@pytest.mark.parametrize(
    "folds",
    [
        [0.0, np.nan, 1.0],
        np.ma.masked_equal([0, -999, 1], -999),
        pd.Series([0, None, 1], dtype="Int64"),
        ["a", None, "b"],
    ],
)
def test_a_fold_that_is_missing_is_an_error(folds):
    with pytest.raises(OrthocalError, match=r"`folds` must (be finite in every row|not be missing); row 1 is"):
        draw_folds(folds, np.zeros(3), rows_of(3), 0)


def test_too_few_rows_of_an_arm_are_refused():
    with pytest.raises(OrthocalError, match="as many rows as there are folds; the rarest has 3 for 5 folds"):
        draw_folds(5, np.array([0] * 10 + [1] * 3), rows_of(13), 0)
    with pytest.raises(OrthocalError, match="as many clusters as there are folds"):
        draw_folds(5, np.tile([0, 1], 10), rows_of(20, groups=np.arange(20) // 5), 0)
    with pytest.raises(OrthocalError, match="`folds` must be at least 2; it is 1"):
        draw_folds(1, np.zeros(5), rows_of(5), 0)


def test_older_random_states_are_taken():
    a, b = (generator(np.random.RandomState(0)).random() for _ in range(2))
    assert a == b
    assert seed_of(np.int64(3)) == seed_of(3) == 3
    assert seed_of(np.random.default_rng(0)) == seed_of(np.random.default_rng(0))
    assert seed_of(None) != seed_of(None)


def test_rows_in_their_drawn_order_are_all_of_them():
    for rows in (rows_of(1), rows_of(2), rows_of(17), few_rows(700)):
        np.testing.assert_array_equal(np.sort(row_order(rows, 0)), np.arange(len(rows)))
