"""A verdict does not depend on the pieces its rows come in, nor on the order of tied rows."""

import numpy as np
import pytest

from orthocal import ExpectileLoss, QuadraticLoss, assess
from orthocal.assessment import decomposition, sweeps
from orthocal.assessment.pieces import Piece
from orthocal.assessment.sweeps import SortedRows, answer, piece_ends


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

    from orthocal.assessment.bin_table import minimisers as sweeps_minimisers

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


def direct_rates(prediction, numerator, denominator, weight):
    """AUTOC and Qini as integrals over u of what the top share u gains above the average, times 1 or u.

    Within a run of tied predictions the gain of the top grows along a straight line.
    """
    average = numerator.sum() / denominator.sum()
    autoc = qini = at = gained = 0.0
    for one in np.unique(prediction)[::-1]:
        own = prediction == one
        end = at + weight[own].sum() / weight.sum()
        slope = (numerator[own] - average * denominator[own]).sum() / denominator.sum() / (end - at)
        start = gained - slope * at  # the line at u = 0; G(u) / u = slope + start / u
        autoc += slope * (end - at) + (start * np.log(end / at) if at > 0 else 0.0)
        qini += start * (end - at) + slope * (end**2 - at**2) / 2
        gained, at = start + slope * end, end
    return np.array([autoc, qini])


@pytest.mark.parametrize("levels", [2, 5, 10, 30, 1000])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("kind", ["effect", "treated", "clusters"])
def test_ranks_are_what_direct_integration_gives(monkeypatch, levels, weights, kind):
    monkeypatch.setattr(sweeps, "PIECE", 50)
    monkeypatch.setattr(sweeps, "FEWEST", 1)
    rng = np.random.default_rng(levels)
    prediction = rng.integers(0, levels, 120) / levels
    weight = rng.exponential(size=120) + 0.1 if weights else np.ones(120)
    mass = weight * (rng.random(120) < 0.4) if kind == "treated" else weight
    numerator = mass * prediction + weight * rng.standard_normal(120)
    groups = rng.integers(0, 30, 120) if kind == "clusters" else None
    found = assess(prediction, QuadraticLoss(numerator, mass, weight, groups), bins=2, draws=1).rate
    wanted = direct_rates(prediction, numerator, mass, weight)
    assert [found.autoc.value, found.qini.value] == pytest.approx(wanted, rel=1e-12, abs=1e-12)
    step = 1e-5

    def moved(row, by):
        scale = np.ones(120)
        scale[row] += by
        return direct_rates(prediction, numerator * scale, mass * scale, weight * scale)

    # The infinitesimal jackknife, by differences: a row's influence is what its weight moves.
    influence = np.array([moved(row, step) - moved(row, -step) for row in range(120)]) / (2 * step)
    units = np.arange(120) if groups is None else np.unique(groups, return_inverse=True)[1]
    many = units.max() + 1
    summed = np.array([np.bincount(units, one) for one in influence.T])
    errors = np.sqrt((summed**2).sum(axis=1) * many / (many - 1))
    assert [found.autoc.standard_error, found.qini.standard_error] == pytest.approx(errors, rel=1e-5)
