"""A verdict does not depend on the pieces its rows come in, nor on the order of tied rows."""

import numpy as np
import pytest

from orthocal import ExpectileLoss, QuadraticLoss, assess
from orthocal.assessment import decomposition, sweeps
from orthocal.assessment.sweeps import Piece, SortedRows, answer, piece_ends


def rows(n=3000, *, ties=False, weights=False, clusters=False, negative=False, seed=0):
    rng = np.random.default_rng(seed)
    prediction = rng.standard_normal(n)
    prediction = np.round(prediction * 5) / 5 if ties else prediction
    weight = rng.uniform(0.5, 2, n) if weights else np.ones(n)
    mass = weight * (1 + 1.2 * rng.standard_normal(n)) if negative else weight
    groups = rng.integers(0, n // 5, n) if clusters else None
    return prediction, QuadraticLoss(mass * (prediction + 0.2) + rng.standard_normal(n), mass, weight, groups)


def numbers(verdict):
    """Every number of a verdict, by its path."""
    found = {}

    def walk(path, value):
        if isinstance(value, dict):
            for key, inner in value.items():
                walk(f"{path}.{key}", inner)
        elif isinstance(value, list):
            for place, inner in enumerate(value):
                walk(f"{path}[{place}]", inner)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found[path] = value

    walk("", verdict.to_dict())
    return found


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("clusters", [False, True])
@pytest.mark.parametrize("negative", [False, True])
def test_pieces_change_nothing(monkeypatch, ties, weights, clusters, negative):
    prediction, loss = rows(ties=ties, weights=weights, clusters=clusters, negative=negative)
    by = {"third": np.arange(3000) % 3}
    monkeypatch.setattr(sweeps, "FEWEST", 10**6)
    monkeypatch.setattr(sweeps, "PIECE", 10**6)
    whole = numbers(assess(prediction, loss, cost=0.1, by=by, random_state=0))
    monkeypatch.setattr(sweeps, "PIECE", 117)
    pieces = numbers(assess(prediction, loss, cost=0.1, by=by, random_state=0))
    assert whole.keys() == pieces.keys()
    assert len(whole) > 150
    for path, value in whole.items():
        assert pieces[path] == pytest.approx(value, rel=1e-8, abs=1e-10), path


def test_the_order_of_tied_rows_changes_no_test_and_no_rank(monkeypatch):
    monkeypatch.setattr(sweeps, "PIECE", 117)
    prediction, loss = rows(ties=True)
    shuffled = np.random.default_rng(1).permutation(3000)
    one, two = assess(prediction, loss, random_state=0), assess(prediction[shuffled], loss[shuffled], random_state=0)
    assert one.tests["range"].statistic == pytest.approx(two.tests["range"].statistic)
    assert one.tests["range"].p_value == pytest.approx(two.tests["range"].p_value)
    assert one.rate.autoc.standard_error == pytest.approx(two.rate.autoc.standard_error)


def test_a_general_loss_is_solved_by_bisection_where_its_rows_are_in_pieces(monkeypatch):
    rng = np.random.default_rng(0)
    y, prediction = rng.standard_normal(400), rng.standard_normal(400)
    loss = ExpectileLoss(y, np.ones(400), np.zeros(400), weight=np.ones(400), expectile=0.7)
    order = np.argsort(prediction)
    edges = np.array([-0.5, 0.5])

    def bins(longest):
        monkeypatch.setattr(sweeps, "longest_piece", lambda _: longest)
        there = SortedRows(prediction[order], loss[order])
        return answer(there, sweeps_minimisers(there, edges))

    from orthocal.assessment.minimisers import minimisers as sweeps_minimisers

    np.testing.assert_allclose(bins(50), bins(400), atol=1e-9)


def test_the_verdict_on_a_general_loss_does_not_depend_on_pieces(monkeypatch):
    rng = np.random.default_rng(0)
    y, prediction = rng.standard_normal(3000), rng.standard_normal(3000)
    loss = ExpectileLoss(y, np.ones(3000), np.zeros(3000), weight=np.ones(3000), expectile=0.7)
    whole = numbers(assess(prediction, loss, random_state=0))
    monkeypatch.setattr(sweeps, "longest_piece", lambda _: 700)
    pieces = numbers(assess(prediction, loss, random_state=0))
    assert max(abs(pieces[path] - value) for path, value in whole.items()) < 1e-8


def test_few_rows_of_many_pieces_stand_for_all(monkeypatch):
    monkeypatch.setattr(sweeps, "longest_piece", lambda _: 700)
    monkeypatch.setattr(decomposition, "MOST_GATHERED", 500)
    rng = np.random.default_rng(0)
    prediction = rng.standard_normal(3000)
    y = 2 * prediction + rng.standard_normal(3000)
    loss = ExpectileLoss(y, np.ones(3000), np.zeros(3000), weight=np.ones(3000), expectile=0.5)
    found = assess(prediction, loss, random_state=0).decomposition
    assert found.miscalibration == pytest.approx(0.25, abs=0.06)  # (2 - 1)^2 / 2, halved by the expectile's 1/2
    assert found.discrimination == pytest.approx(1.0, abs=0.1)


def test_pieces_end_where_a_level_ends():
    prediction = np.array([0.0, 0, 0, 1, 2, 2, 3, 4, 4, 4])
    np.testing.assert_array_equal(piece_ends(prediction, 2), [3, 4, 6, 10])
    np.testing.assert_array_equal(piece_ends(prediction, 100), [10])
    assert [len(piece) for piece in SortedRows(prediction, QuadraticLoss(prediction, np.ones(10))).pieces] == [10]
    assert len(Piece(prediction, QuadraticLoss(prediction, np.ones(10)))) == 10


@pytest.mark.parametrize("ties", [False, True])
def test_errors_of_ranks_are_the_derivative_in_each_rows_weight(ties):
    """The infinitesimal jackknife, by differences: a row's influence is what its weight moves."""
    rng = np.random.default_rng(0)
    prediction = rng.standard_normal(60)
    prediction = np.round(prediction * 3) / 3 if ties else prediction
    chi = prediction + rng.standard_normal(60)
    block = np.unique(prediction, return_inverse=True)[1]

    def measures(weight):
        held = np.bincount(block, weight)
        share = (1 - (np.cumsum(held) - held / 2) / held.sum())[block]
        gain = weight * (chi - weight @ chi / weight.sum())
        return np.array([(-np.log(share) - 1) @ gain, (0.5 - share) @ gain]) / weight.sum()

    step = 1e-5 * np.eye(60)
    influence = np.array([measures(1 + row) - measures(1 - row) for row in step]) / 2e-5
    found = assess(prediction, QuadraticLoss(chi, np.ones(60))).rate
    assert (found.autoc.value, found.qini.value) == pytest.approx(tuple(measures(np.ones(60))))
    errors = np.sqrt((influence**2).sum(axis=0))
    assert (found.autoc.standard_error, found.qini.standard_error) == pytest.approx(tuple(errors), rel=1e-6)
