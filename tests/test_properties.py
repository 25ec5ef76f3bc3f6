"""Properties of maps, calibrators and summaries, on inputs that hypothesis makes up."""

import itertools
import tempfile
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orthocal
from orthocal import QuadraticLoss
from orthocal.assessment.sweeps import cluster_sums, merged
from orthocal.calibrators import new_calibrator
from orthocal.files.applied import Added
from orthocal.mapfile import to_record
from orthocal.maps import AffineMap, IdentityMap, MixtureMap, SigmoidMap, SplineMap, StepMap

FEW = settings(max_examples=40, deadline=None)
numbers = st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: 0.0 if abs(value) < 1e-6 else value)


@st.composite
def step_maps(draw):
    edges = sorted(set(draw(st.lists(numbers, max_size=8))))
    return StepMap(edges, draw(st.lists(numbers, min_size=len(edges) + 1, max_size=len(edges) + 1)))


@st.composite
def spline_maps(draw):
    low, wide = draw(numbers), draw(st.floats(0.1, 10))
    inner = sorted(draw(st.lists(st.floats(0.05, 0.95), max_size=3)))
    knots = [low] * 4 + [low + wide * share for share in inner] + [low + wide] * 4
    return SplineMap(knots, draw(st.lists(st.floats(-10, 10), min_size=len(knots) - 4, max_size=len(knots) - 4)))


sigmoid_maps = st.builds(
    lambda low, wide, a, b: SigmoidMap(low, low + wide, a, b), numbers, st.floats(0.1, 10), numbers, numbers
)
simple_maps = st.one_of(
    st.just(IdentityMap()), st.builds(AffineMap, numbers, numbers), step_maps(), spline_maps(), sigmoid_maps
)


@st.composite
def mixtures(draw):
    parts = draw(st.lists(simple_maps, min_size=1, max_size=3))
    raw = np.array(draw(st.lists(st.floats(0.1, 1), min_size=len(parts), max_size=len(parts))))
    return MixtureMap(raw / raw.sum(), parts)


every_map = st.one_of(simple_maps, mixtures())
predictions = st.lists(numbers, min_size=1, max_size=12)


def size_of(record):
    """Return the largest number of a record, in whose rounding forms of a map may differ."""
    if isinstance(record, dict):
        return max([0.0, *map(size_of, record.values())])
    if isinstance(record, list):
        return max([0.0, *map(size_of, record)])
    return abs(float(record)) if isinstance(record, int | float) else 0.0


def close(one, other, size=0.0):
    scale = np.abs(one).max() + np.abs(other).max() + size + 1e-300
    return bool(np.abs(np.asarray(one) - np.asarray(other)).max() <= 1e-9 * scale)


@FEW
@given(every_map, predictions)
def test_a_map_is_the_same_saved_and_loaded_to_the_last_bit(fitted, values):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "map.json"
        orthocal.save(fitted, path)
        loaded = orthocal.load(path)
    assert to_record(loaded) == to_record(fitted)
    np.testing.assert_array_equal(loaded.predict(values), fitted.predict(values))


@FEW
@given(every_map, predictions)
def test_exports_compute_the_map(fitted, values):
    """Up to rounding, of cubics in powers beside B-splines."""
    wanted, size, space = fitted.predict(values), size_of(to_record(fitted)), {}
    exec(orthocal.to_python(fitted), space)
    assert close([space["calibrate"](value) for value in values], wanted, size)
    rows = ", ".join(f"({k}, CAST('{value!r}' AS DOUBLE))" for k, value in enumerate(values))
    query = f"SELECT {orthocal.to_sql(fitted, 'tau', dialect='duckdb')} FROM (VALUES {rows}) AS t(k, tau) ORDER BY k"
    assert close([row[0] for row in duckdb.execute(query).fetchall()], wanted, size)


@st.composite
def scored_rows(draw):
    n = draw(st.integers(8, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    prediction = np.round(rng.standard_normal(n), draw(st.integers(0, 3)))
    return prediction, prediction * draw(st.floats(-2, 2)) + rng.standard_normal(n), rng.integers(1, 4, n)


@FEW
@given(scored_rows())
def test_isotonic_maps_never_fall(rows):
    prediction, target, weight = rows
    fitted = new_calibrator("isotonic").fit(prediction, QuadraticLoss(weight * target, weight.astype(float)))
    assert (np.diff(fitted.predict(np.sort(prediction))) >= 0).all()


@pytest.mark.parametrize("method", ["constant", "shift", "linear", "isotonic", "histogram"])
@FEW
@given(scored_rows())
def test_weights_are_repeats(method, rows):
    prediction, target, weight = rows
    weighted = new_calibrator(method).fit(prediction, QuadraticLoss(weight * target, weight.astype(float)))
    again = np.repeat(np.arange(len(prediction)), weight)
    repeated = new_calibrator(method).fit(prediction[again], QuadraticLoss(target[again], np.ones(len(again))))
    assert close(weighted.predict(prediction), repeated.predict(prediction))


@FEW
@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.integers(0, 40), st.integers(0, 40))
def test_sums_of_clusters_do_not_depend_on_how_rows_are_divided(groups, first, second):
    groups = np.array(groups)
    values = np.random.default_rng(len(groups)).integers(-9, 9, (2, len(groups))).astype(float)  # sums are exact
    cuts = sorted({0, min(first, len(groups)), min(second, len(groups)), len(groups)})
    parts = [cluster_sums(groups[a:b], list(values[:, a:b])) for a, b in itertools.pairwise(cuts)]
    names, sums = merged(parts)
    whole_names, whole_sums = cluster_sums(groups, list(values))
    np.testing.assert_array_equal(names, whole_names)
    np.testing.assert_array_equal(sums, whole_sums)


counts = st.builds(Added, *(st.integers(0, 10**9) for _ in range(3)))


@FEW
@given(counts, counts, counts)
def test_counts_of_copied_rows_merge_in_any_order(one, two, three):
    assert one.merge(two).merge(three) == three.merge(one.merge(two)) == one.merge(two.merge(three))
    assert one.merge(Added()) == one


@FEW
@given(scored_rows(), st.integers(1, 7))
def test_a_loss_divided_and_joined_is_the_same(rows, cut):
    from orthocal.losses.protocol import joined

    prediction, target, weight = rows
    loss = QuadraticLoss(weight * target, weight.astype(float))
    both = joined([loss[:cut], loss[cut:]])
    np.testing.assert_array_equal(both.value(prediction), loss.value(prediction))
    np.testing.assert_array_equal(both.weight, loss.weight)
