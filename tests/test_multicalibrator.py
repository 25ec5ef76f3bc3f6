"""Multicalibration: shifts of groups and bins, their maps, and the audit."""

import json
import sqlite3
from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student

import orthocal
from orthocal import ExpectileLoss, HingeLoss, Multicalibrator, OrthocalError, QuadraticLoss, audit
from orthocal.assessment.audit_records import AuditedCell
from orthocal.calibrators.cells import CellFamily, CellMoments, Residuals, families
from orthocal.calibrators.skewness import Skewed, clearly_skewed, skewed_all, unskewed_all
from orthocal.files.applied import calibrated_columns
from orthocal.group_columns import DerivedGroups, GroupPart
from orthocal.group_maps import GroupMap, GroupShifts
from orthocal.maps import AffineMap, StepMap
from tests.command_line import run


def opposite(rng, n, noise=1.0):
    """Return predictions that are .8 too high for women and .8 too low for men, and by .5 by age where they are positive."""
    sex, age, truth = rng.choice(["f", "m"], n), rng.integers(0, 4, n), rng.standard_normal(n)
    by_age = 0.5 * np.array([1, -1, -1, 1])[age] * (truth > 0)
    prediction = truth + np.where(sex == "f", 0.8, -0.8) + by_age
    loss = QuadraticLoss(truth + noise * rng.standard_normal(n), np.ones(n))
    return prediction, truth, loss, {"sex": sex, "age": age}


def worst_group(prediction, truth, groups):
    gap = prediction - truth
    return max(abs(gap[column == one].mean()) for column in groups.values() for one in np.unique(column))


def test_groups_off_in_opposite_directions_are_put_right():
    rng = np.random.default_rng(0)
    prediction, _, loss, groups = opposite(rng, 5000)
    fitted = Multicalibrator().fit(prediction, loss, groups)
    fresh, truth, _, own = opposite(rng, 20000)
    after = fitted.predict(fresh, own)
    assert worst_group(after, truth, own) < 0.3 * worst_group(fresh, truth, own)
    assert ((after - truth) ** 2).mean() < 0.6 * ((fresh - truth) ** 2).mean()
    assert abs((after - truth).mean()) < 0.05
    assert 0 < fitted.steps_ <= fitted.bound_


def test_hand_arithmetic():
    # Residuals 1 in group a and -2 in group b, all rows alike: a is moved by 1 and b by -2, and then nothing is left.
    prediction = np.tile([0.0, 1.0], 200)
    groups = {"g": np.repeat(["a", "b"], 200)}
    loss = QuadraticLoss(prediction + np.repeat([1.0, -2.0], 200), np.ones(400))
    fitted = Multicalibrator(tolerance=0.1, bins=2, smallest=2).fit(prediction, loss, groups)
    (shifts,) = fitted.map_.rounds
    assert shifts.values == ("a", "b")
    np.testing.assert_allclose(shifts.shifts[:2, 0], [1.0, -2.0])
    assert fitted.steps_ == np.count_nonzero(shifts.shifts)
    # R0 = mean r^2 / 2 = (1 + 4) / 4, so 2 R0 / alpha^2 = 2.5 / .01
    assert fitted.bound_ == pytest.approx(250.0)
    assert fitted.tolerance_ == pytest.approx(0.1)


def test_moments_by_hand():
    # Cell 0: r = 1, 3, m = 1, 1: mean 2, squares about it 1 + 1. As one cluster: the sum is all, and nothing is about it.
    loss = QuadraticLoss(np.array([1.0, 3.0, 5.0]), np.ones(3))
    family = CellFamily("g", ("a",), np.array([0, 0, 1]), np.empty(0))
    ((_, plain),) = Residuals.of(np.zeros(3), loss, family.edges).moments(family)
    np.testing.assert_allclose(plain.mean, [2.0, 5.0])
    np.testing.assert_allclose(plain.variance, [2.0, 0.0])
    np.testing.assert_allclose(plain.units, [2.0, 1.0])
    together = replace(loss, groups=np.array([0, 0, 1]))
    ((_, clustered),) = Residuals.of(np.zeros(3), together, family.edges).moments(family)
    np.testing.assert_allclose(clustered.mean, [2.0, 5.0])
    np.testing.assert_allclose(clustered.variance, [0.0, 0.0])
    np.testing.assert_allclose(clustered.units, [1.0, 1.0])


def test_rows_that_are_clusters_of_one_are_rows():
    prediction, _, loss, groups = opposite(np.random.default_rng(12), 1000)
    edges = np.array([-1.0, 0.5])
    for family in families(groups, 1000, edges):
        rows = Residuals.of(prediction, loss, edges).moments(family)
        clusters = Residuals.of(prediction, replace(loss, groups=np.arange(1000)), edges).moments(family)
        for (_, one), (_, other) in zip(rows, clusters, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-9)


@pytest.mark.parametrize("smallest", [50, 100])
def test_every_cell_is_within_its_tolerance_at_the_end(smallest):
    prediction, _, loss, groups = opposite(np.random.default_rng(1), 4000)
    fitted = Multicalibrator(tolerance=0.05, smallest=smallest).fit(prediction, loss, groups)
    again = Multicalibrator(tolerance=0.05, smallest=smallest, max_steps=0).fit(prediction, loss, groups)
    assert again.map_.rounds == ()
    after = fitted.predict(prediction, groups)
    for column in groups.values():
        for one in np.unique(column):
            rows = column == one
            assert rows.mean() * (loss.target - after)[rows].mean() ** 2 <= 0.05**2 * (1 + 1e-9)
    assert loss.value(after).mean() < loss.value(prediction).mean() - fitted.steps_ * 0.05**2 / 2 + 1e-12


def test_a_multicalibrated_model_is_left_as_it_is():
    changed = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        prediction = rng.standard_normal(2000)
        loss = QuadraticLoss(prediction + 2 * rng.standard_normal(2000), np.ones(2000))
        groups = {"a": rng.integers(0, 5, 2000), "b": rng.random(2000) < 0.3}
        changed += Multicalibrator().fit(prediction, loss, groups).steps_ > 0
    assert changed <= 10


def test_clusters_are_the_units_of_noise():
    """200 clusters of 20 rows that share their noise: rows counted as independent would see effects everywhere."""
    changed = {True: 0, False: 0}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        cluster = np.repeat(np.arange(200), 20)
        prediction, noise = rng.standard_normal(4000), rng.standard_normal(200)[cluster]
        groups = {"g": (np.arange(200) % 2)[cluster]}
        for clustered in changed:
            loss = QuadraticLoss(prediction + noise, np.ones(4000), groups=cluster if clustered else None)
            changed[clustered] += Multicalibrator(smallest=50).fit(prediction, loss, groups).steps_ > 0
    assert changed[True] <= 3
    assert changed[False] >= 15


def test_laws():
    """Row order has no say, rows of weight 0 are no evidence, and units only change units."""
    prediction, _, loss, groups = opposite(np.random.default_rng(2), 3000)
    wanted = Multicalibrator().fit(prediction, loss, groups).predict(prediction, groups)
    order = np.random.default_rng(3).permutation(3000)
    mixed = Multicalibrator().fit(prediction[order], loss[order], {k: v[order] for k, v in groups.items()})
    np.testing.assert_allclose(mixed.predict(prediction, groups), wanted)
    weight = np.r_[np.ones(3000), np.zeros(100)]
    longer = QuadraticLoss(np.r_[loss.numerator, np.full(100, 99.0)], weight, weight)
    more = {k: np.r_[v, v[:100]] for k, v in groups.items()}
    padded = Multicalibrator().fit(np.r_[prediction, prediction[:100]], longer, more)
    np.testing.assert_allclose(padded.predict(prediction, groups), wanted)
    large = Multicalibrator().fit(1000 * prediction, QuadraticLoss(1000 * loss.numerator, np.ones(3000)), groups)
    np.testing.assert_allclose(large.predict(1000 * prediction, groups), 1000 * wanted)


def test_a_ratio_effect_is_shifted_by_the_ratio_of_its_sums():
    rng = np.random.default_rng(4)
    group, mass = rng.integers(0, 2, 4000), rng.normal(0.5, 0.7, 4000)
    effect = np.where(group == 1, 2.0, 0.0)
    loss = QuadraticLoss(effect * mass + 0.1 * rng.standard_normal(4000), mass, np.ones(4000), is_ratio=True)
    fitted = Multicalibrator(bins=1).fit(np.zeros(4000), loss, {"g": group})
    assert fitted.bound_ == np.inf
    np.testing.assert_allclose(fitted.predict(np.zeros(2), {"g": [0, 1]}), [0.0, 2.0], atol=0.05)


def random_map(base=()):
    rng = np.random.default_rng(5)
    by_sex = GroupShifts("sex of person", ("f", "it's"), [-0.5, 0.5], rng.standard_normal((3, 3)))
    by_age = GroupShifts("age", (1, 2, 7), [0.1], rng.standard_normal((4, 2)))
    everyone = GroupShifts("", (), [0.0], rng.standard_normal((1, 2)))
    return GroupMap((by_sex, by_age, everyone, by_sex), base)


def derived_map(base=()):
    """Return a map whose groups are ranges of income, and their intersections with sex."""
    rng = np.random.default_rng(17)
    sex = GroupPart("sex of person", ("f", "it's"), [], ("sex = f", "sex = it's"))
    income = GroupPart("income", (), [1.5, 3.0], ("income up to 1.5", "income 1.5 to 3", "income over 3"))
    ranges, both = DerivedGroups("income", (income,)), DerivedGroups("sex and income", (sex, income))
    by_income = GroupShifts("income", tuple(sorted(income.words[::2])), [0.2], rng.standard_normal((3, 2)))
    by_both = GroupShifts("sex and income", tuple(sorted(both.words)[:-1]), [], rng.standard_normal((6, 1)))
    return GroupMap((by_income, random_map().rounds[0], by_both), base, (ranges, both))


@pytest.mark.parametrize("make", [random_map, derived_map])
@pytest.mark.parametrize("base", [(), (AffineMap(0.1, 2.0), StepMap([0.0], [-0.2, 0.7]))])
def test_every_form_of_a_group_map_gives_the_same_numbers(tmp_path, base, make):
    fitted, rng = make(base), np.random.default_rng(6)
    table = pd.DataFrame({"tau": rng.standard_normal(200), "age": rng.integers(0, 4, 200)})
    table["income"] = rng.choice([0.0, 1.5, 2.0, 3.0, 4.0, np.nan], 200)
    table.loc[:9, "tau"], table.loc[10:19, "tau"] = -0.5, 0.5  # on the edges
    table["sex of person"] = rng.choice(np.array(["f", "it's", "new", None], dtype=object), 200)
    wanted = fitted.predict(table["tau"], table)
    sql = orthocal.to_sql(fitted, "tau")
    found = duckdb.from_df(table).project(f"{sql} AS calibrated").df()["calibrated"]
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    lite = sqlite3.connect(":memory:")
    table.to_sql("t", lite, index=False)
    np.testing.assert_allclose(np.ravel(lite.execute(f"SELECT {sql} FROM t").fetchall()), wanted, atol=1e-12)
    space = {}
    exec(orthocal.to_python(fitted), space)
    by_row = [space["calibrate"](row["tau"], row) for row in table.to_dict("records")]
    np.testing.assert_allclose(by_row, wanted, atol=1e-12)
    assert space["calibrate"](None, {}) is None
    orthocal.save(fitted, tmp_path / "map.json")
    np.testing.assert_array_equal(orthocal.load(tmp_path / "map.json").predict(table["tau"], table), wanted)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"column": None}, "`column` of a map file must hold numbers; it holds None"),
        ({"column": 3.0}, "must have a column's name"),
        ({"shifts": [[1.0]]}, "one row for each group"),
        ({"values": [["a"]]}, "`values` of a map file must hold"),
        ({"values": ["b", "a"], "shifts": [[1.0], [2.0], [0.0]]}, "must increase, none of them twice"),
        ({"edges": ["a"]}, "`edges` of a map file must hold numbers"),
    ],
)
def test_a_bad_file_of_a_group_map_gets_one_sentence(tmp_path, change, message):
    shifts = {"shape": "group shifts", "column": "g", "values": ["a"], "edges": [], "shifts": [[1.0], [0.0]]}
    record = {
        "format": "orthocal-map",
        "version": 1,
        "shape": "groups",
        "rounds": [shifts | change],
        "base": [],
        "derived": [],
    }
    (tmp_path / "map.json").write_text(json.dumps(record))
    with pytest.raises(OrthocalError, match=message):
        orthocal.load(tmp_path / "map.json")


def test_derived_groups_by_hand():
    # f with income 1.5 (closed on the right: up to 1.5): by income, then by sex, then by both; missing income: by sex alone.
    fitted = derived_map()
    assert fitted.columns == ("income", "sex of person")
    by_income, by_sex, by_both = fitted.rounds
    own = by_both.values.index("sex = f and income 1.5 to 3")
    first = 0.0 + by_income.shifts[-1, 0]  # 2 is in no group of this round
    second = first + by_sex.shifts[0, np.searchsorted(by_sex.edges, first)]
    found = fitted.predict([0.0, 0.0], {"sex of person": ["f", None], "income": [2.0, np.nan]})
    assert found[0] == pytest.approx(second + by_both.shifts[own, 0])
    third = first + by_sex.shifts[-1, np.searchsorted(by_sex.edges, first)]
    assert found[1] == pytest.approx(third + by_both.shifts[-1, 0])


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"words": ["a"]}, "words for each; there are 0 values, 1 cuts and 1 words"),
        ({"cuts": [2.0, 1.0], "words": ["a", "b", "c"]}, "must be finite and increase"),
        ({"words": ["a", "a"]}, "must increase, none of them twice"),
        ({"words": ["a", 1.0]}, "must have the column's name and words"),
    ],
)
def test_a_bad_file_of_derived_groups_gets_one_sentence(tmp_path, part, message):
    own = {"shape": "group part", "column": "x", "values": [], "cuts": [1.0], "words": ["low", "high"]} | part
    derived = {"shape": "derived groups", "name": "x", "parts": [own]}
    record = {"format": "orthocal-map", "version": 1, "shape": "groups", "rounds": [], "base": [], "derived": [derived]}
    (tmp_path / "map.json").write_text(json.dumps(record))
    with pytest.raises(OrthocalError, match=message):
        orthocal.load(tmp_path / "map.json")


def test_steps_are_limited_and_the_strongest_come_first():
    prediction, _, loss, groups = opposite(np.random.default_rng(15), 4000)
    for most in (0, 1, 3):
        fitted = Multicalibrator(max_steps=most).fit(prediction, loss, groups)
        assert fitted.steps_ == most == sum(np.count_nonzero(one.shifts) for one in fitted.map_.rounds)
    first = Multicalibrator(max_steps=1).fit(prediction, loss, groups).map_.rounds[0]
    assert first.column == "sex"


def test_truth_values_are_groups(tmp_path):
    rng = np.random.default_rng(16)
    table = pd.DataFrame({"tau": rng.standard_normal(2000), "old": rng.random(2000) < 0.5})
    loss = QuadraticLoss(table["tau"].to_numpy() + table["old"] - rng.standard_normal(2000) / 2, np.ones(2000))
    fitted = Multicalibrator().fit(table["tau"], loss, table[["old"]])
    assert fitted.map_.rounds[0].values == (False, True)
    orthocal.save(fitted, tmp_path / "map.json")
    again, wanted = orthocal.load(tmp_path / "map.json"), fitted.predict(table["tau"], table)
    np.testing.assert_array_equal(again.predict(table["tau"], table), wanted)
    found = duckdb.from_df(table).project(f"{orthocal.to_sql(again, 'tau')} AS c").df()["c"]
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_the_command_line_exports_and_applies_a_group_map(tmp_path, capsys):
    orthocal.save(random_map(), tmp_path / "map.json")
    assert run("export", tmp_path / "map.json", "--format", "sql", "--prediction", "tau") == 0
    assert capsys.readouterr().out.rstrip("\n") == orthocal.to_sql(random_map(), "tau")
    pd.DataFrame({"tau": [0.0, 1.0]}).to_csv(tmp_path / "data.csv", index=False)
    words = [
        "apply",
        tmp_path / "map.json",
        tmp_path / "data.csv",
        "--prediction",
        "tau",
        "--out",
        tmp_path / "out.csv",
    ]
    assert run(*words) == 2
    assert "'sex of person' is not. There are tau." in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out.csv").exists()
    pd.DataFrame({"tau": [0.0, 1.0], "sex of person": ["f", ""], "age": [2, 9]}).to_csv(
        tmp_path / "data.csv", index=False
    )
    assert run(*words) == 0
    wanted = random_map().predict([0.0, 1.0], {"sex of person": ["f", None], "age": [2, 9]})
    np.testing.assert_allclose(pd.read_csv(tmp_path / "out.csv")["tau_calibrated"], wanted)
    plain = GroupMap((GroupShifts("", (), [], [[1.0]]),))
    np.testing.assert_array_equal(calibrated_columns(plain, np.zeros((2, 1)), {}), [[1.0], [1.0]])


@pytest.mark.parametrize("loss", [HingeLoss, ExpectileLoss])
def test_quantiles_and_expectiles_are_refused(loss):
    rng = np.random.default_rng(7)
    outcome, ones = rng.standard_normal(300), np.ones(300)
    made = loss(outcome, ones, 0.3 * ones)
    with pytest.raises(OrthocalError, match=f"a {loss.__name__} is not one. Quantiles and expectiles"):
        Multicalibrator().fit(np.zeros(300), made, {"g": np.arange(300) % 2})


@pytest.mark.parametrize(
    ("settings", "groups", "message"),
    [
        ({"bins": 0}, {}, "`bins` must be a whole number"),
        ({"tolerance": -1.0}, {}, "`tolerance` must be a positive number"),
        ({"max_steps": 1.5}, {}, "`max_steps` must be a whole number"),
        ({"smallest": 1}, {}, "`smallest` must be at least 2"),
        ({}, {"g": [1, 2]}, "must have one value per row"),
        ({}, {"g": np.arange(2000)}, "Cut it into ranges first"),
        ({}, {"g": np.full(2000, np.nan)}, "Cut it into ranges first"),
        ({}, {"g": np.arange(2000).astype("datetime64[D]")}, "Convert it to text first"),
    ],
)
def test_bad_settings_get_one_sentence(settings, groups, message):
    with pytest.raises(OrthocalError, match=message):
        Multicalibrator(**settings).fit(np.zeros(2000), QuadraticLoss(np.zeros(2000), np.ones(2000)), groups)


def test_groups_that_are_missing_or_of_another_kind_get_one_sentence():
    with pytest.raises(OrthocalError, match="must have the column 'sex of person'"):
        random_map().predict([0.0])
    with pytest.raises(OrthocalError, match="must have values like those the map was fitted with, such as 'f'"):
        random_map().predict([0.0], {"sex of person": [1], "age": [1]})
    with pytest.raises(OrthocalError, match="must hold numbers, whose ranges are groups"):
        derived_map().predict([0.0], {"sex of person": ["f"], "income": ["much"]})


def test_an_audit_finds_the_group_that_is_off_and_says_so():
    prediction, _, loss, groups = opposite(np.random.default_rng(8), 4000)
    found = audit(prediction, loss, groups)
    assert found.p_value == 1 / 10000
    assert found.cells[0].column == "sex"
    assert "sex = f: too high by 0.8" in str(found)
    assert "sex = m: too low by 0.8" in str(found)
    low, high = next(cell.interval for cell in found.cells if cell.name == "sex = m")
    assert low < -0.8 < high < 0
    fitted = Multicalibrator().fit(prediction, loss, groups)
    fresh, _, other, own = opposite(np.random.default_rng(9), 4000)
    after = audit(fitted.predict(fresh, own), other, own, bins=1)
    assert len(after.found) < len(audit(fresh, other, own, bins=1).found)


def test_the_audit_of_one_group_is_a_t_test():
    """All rows alone, one bin: the p-value is Student's, and so is the interval."""
    rng = np.random.default_rng(10)
    half = rng.standard_normal(6)
    noise = 0.5 + np.r_[half, -half]  # not skewed
    loss = QuadraticLoss(-noise, np.ones(12))
    found = audit(np.zeros(12), loss, {}, bins=1, smallest=2, draws=200_000)
    scale = noise.std() / np.sqrt(12)
    assert found.p_value == pytest.approx(2 * student.sf(abs(noise.mean()) / scale, 11), abs=0.003)
    (cell,) = found.cells
    assert cell.name == "all rows"
    wanted = noise.mean() + student.ppf([0.025, 0.975], 11) * scale
    np.testing.assert_allclose(cell.interval, wanted, atol=0.01)


def test_cells_that_say_the_same_are_not_counted_twice():
    """Each cluster has a row in each of eight groups, with one noise: all cells are one test."""
    rng = np.random.default_rng(13)
    cluster, group = np.divmod(np.arange(3200), 8)
    noise, prediction = 0.1 + rng.standard_normal(400), np.zeros(3200)
    loss = QuadraticLoss(-noise[cluster], np.ones(3200), groups=cluster)
    found = audit(prediction, loss, {"g": group}, draws=100_000)
    once = 2 * student.sf(abs(noise.mean()) / noise.std() * 20, 399)
    assert len(found.cells) == 9
    assert found.p_value == pytest.approx(once, abs=0.005)


def test_rows_without_a_group_are_left_as_they_are():
    rng = np.random.default_rng(14)
    group = rng.choice(np.array(["a", "b", None], dtype=object), 3000)
    off = np.array([{"a": 2.0, "b": -2.0}.get(one, 0.0) for one in group]) + (group == None)  # noqa: E711
    loss = QuadraticLoss(off - off.mean() + rng.standard_normal(3000), np.ones(3000))
    fitted = Multicalibrator(bins=1).fit(np.zeros(3000), loss, {"g": group})
    assert fitted.map_.rounds[0].column == "g"
    assert all((one.shifts[-1] == 0).all() for one in fitted.map_.rounds if one.values)


def test_audit_clusters_are_units():
    rng = np.random.default_rng(11)
    cluster = np.repeat(np.arange(150), 20)
    noise, prediction = 0.2 + rng.standard_normal(150), rng.standard_normal(3000)
    loss = QuadraticLoss(prediction + noise[cluster], np.ones(3000), groups=cluster)
    (cell,) = audit(prediction, loss, {}, bins=1).cells
    assert cell.rows == pytest.approx(150)
    half = (cell.interval[1] - cell.interval[0]) / 2
    assert half == pytest.approx(student.ppf(0.975, 149) * noise.std() / np.sqrt(150), rel=0.03)


def test_a_size_of_the_audit():
    rejected = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        prediction = rng.standard_normal(1000)
        loss = QuadraticLoss(prediction + 2 * rng.standard_normal(1000), np.ones(1000))
        groups = {"a": rng.integers(0, 5, 1000), "b": rng.integers(0, 2, 1000)}
        rejected += audit(prediction, loss, groups, draws=499, random_state=seed).p_value <= 0.05
    assert 0.02 < rejected / 300 < 0.085


def test_skewed_residuals_do_not_mislead_the_audit():
    """Exponential noise, cells of 120 rows: 15% would be rejected without taking out skewness."""
    rejected = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        prediction = rng.standard_normal(3000)
        loss = QuadraticLoss(prediction + rng.exponential(1, 3000), np.ones(3000))
        groups = {"a": rng.integers(0, 5, 3000), "b": rng.integers(0, 2, 3000)}
        rejected += audit(prediction + 1, loss, groups, draws=499, random_state=seed).p_value <= 0.05
    assert rejected / 200 < 0.085


def test_rare_outcomes_do_not_mislead_the_fit():
    """Scores of a rare outcome of 0 and 1: a cell without events would seem to be sure that it is off."""
    changed = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        prediction, treated, event = rng.standard_normal(3000), rng.random(3000) < 0.2, rng.random(3000) < 0.1
        noise = 10 * (event - 0.1) * np.where(treated, 5, -1.25)
        loss = QuadraticLoss(prediction + noise, np.ones(3000))
        changed += Multicalibrator().fit(prediction, loss, {"a": rng.integers(0, 3, 3000)}).steps_ > 0
    assert changed <= 10


def test_variance_is_drawn_to_that_of_all_rows_by_hand():
    # One cell of 30 units, each with residual 0 and mass 1, so of variance 0; 30 units of all rows are added, of variance 4:
    # (0 + 30 * 4) / 60 = 2 for a unit, and the error of the mean of 30 is the root of 2 / 30.
    found = CellMoments(np.zeros(1), np.full(1, 30.0), np.zeros(1), np.full(1, 30.0))
    np.testing.assert_allclose(Skewed(4.0, 1.0).errors(found), np.sqrt(2 / 30))
    # A cell with a variance of 9 for a unit keeps it.
    np.testing.assert_allclose(Skewed(4.0, 1.0).errors(found._replace(variance=np.full(1, 270.0))), np.sqrt(9 / 30))


@pytest.mark.parametrize(
    ("noise", "wanted"), [("exponential", True), ("standard_normal", False), ("standard_cauchy", False)]
)
def test_what_is_clearly_skewed(noise, wanted):
    """Heavy tails alone are not."""
    values = getattr(np.random.default_rng(1), noise)(size=2000)
    loss = QuadraticLoss(values, np.ones(2000))
    found = clearly_skewed(Residuals.of(np.zeros(2000), loss, np.empty(0)))
    assert (found is not None) == wanted
    if found is not None:
        assert found.skewness == pytest.approx(2, abs=0.6)
        assert found.variance == pytest.approx(1, abs=0.2)


def test_skewness_is_taken_out_and_put_back():
    t, skewness = np.linspace(-4, 4, 9), np.full(9, 0.2)
    np.testing.assert_allclose(skewed_all(unskewed_all(t, skewness), skewness), t)
    np.testing.assert_array_equal(skewed_all(t, 0 * t), t)
    # Hand: t = 1, skewness .3: 1 + .1 + .09 / 27 + .05
    np.testing.assert_allclose(unskewed_all(np.ones(1), np.full(1, 0.3)), 1.15 + 0.09 / 27)


def test_bad_audits_get_one_sentence():
    loss = QuadraticLoss(np.zeros(20), np.ones(20))
    with pytest.raises(OrthocalError, match="No cell has enough rows"):
        audit(np.zeros(20), loss, {})
    with pytest.raises(OrthocalError, match="`level` must lie strictly between 0 and 1"):
        audit(np.zeros(20), loss, {}, level=1.0)


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        (None, "g = a"),
        ((-np.inf, 1.0), "g = a, predictions up to 1"),
        ((0.5, 1.0), "g = a, predictions above 0.5, up to 1"),
        ((0.5, np.inf), "g = a, predictions above 0.5"),
    ],
)
def test_a_cell_in_words(ends, words):
    cell = AuditedCell(column="g", group="g = a", range=ends, rows=9.0, excess=-1.0, interval=(-3.0, 1.0), p_value=0.2)
    assert str(cell) == f"{words}: too low by 1 (-1 to 3)"
