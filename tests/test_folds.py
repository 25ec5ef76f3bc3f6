import numpy as np
import pytest

from orthocal import OrthocalError
from orthocal.folds import assign_folds, generator, split_rows


def test_every_stratum_is_spread_evenly_even_when_sorted():
    strata = np.repeat([0, 1], [103, 52])
    fold = assign_folds(5, strata, random_state=0)
    for level in (0, 1):
        sizes = np.bincount(fold[strata == level], minlength=5)
        assert sizes.max() - sizes.min() <= 1
    assert np.ptp(np.bincount(fold)) <= 1


def test_the_seed_decides():
    strata = np.repeat([0, 1], 50)
    np.testing.assert_array_equal(assign_folds(5, strata, None, 3), assign_folds(5, strata, None, 3))
    assert (assign_folds(5, strata, None, 3) != assign_folds(5, strata, None, 4)).any()


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
def test_clusters_are_never_divided(share):
    rng = np.random.default_rng(0)
    groups, strata = rng.integers(0, 40, 500), rng.integers(0, 2, 500)
    for part in (assign_folds(4, strata, groups, 0), split_rows(share, strata, groups, 0)):
        assert all(len(np.unique(part[groups == g])) == 1 for g in range(40))


def test_a_split_takes_its_share_of_every_stratum():
    strata = np.repeat([0, 1], [1000, 500])
    part = split_rows(0.3, strata, random_state=0)
    assert (part[strata == 0] == 0).sum() in (299, 300, 301)
    assert (part[strata == 1] == 0).sum() in (149, 150, 151)


def test_given_folds_are_used_as_labels():
    np.testing.assert_array_equal(assign_folds(["b", "a", "b"], np.zeros(3)), [1, 0, 1])
    with pytest.raises(OrthocalError, match="`folds` must have one value per row"):
        assign_folds([0, 1], np.zeros(3))


def test_too_few_rows_of_an_arm_are_refused():
    with pytest.raises(OrthocalError, match="as many rows as there are folds; the rarest has 3 for 5 folds"):
        assign_folds(5, np.array([0] * 10 + [1] * 3))
    with pytest.raises(OrthocalError, match="as many clusters as there are folds"):
        assign_folds(5, np.tile([0, 1], 10), np.arange(20) // 5)
    with pytest.raises(OrthocalError, match="`folds` must be at least 2; it is 1"):
        assign_folds(1, np.zeros(5))


def test_older_random_states_are_taken():
    a, b = (generator(np.random.RandomState(0)).random() for _ in range(2))
    assert a == b
