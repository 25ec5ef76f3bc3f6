"""How often a choice among models is right: 2,000 draws of losses with true nuisances, and some through a whole study."""

import numpy as np
import pandas as pd
import pytest

from orthocal import QuadraticLoss, Study
from orthocal.assessment.records import Settings
from orthocal.assessment.rivals import Entry, leaderboard_of
from orthocal.datasets import simulate_cate
from tests.simulation import reaches

DRAWS = 2000
AVERAGE = 0.2
NOISES = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "lognormal": lambda rng, n: (np.exp(rng.standard_normal(n)) - np.exp(0.5)) / np.sqrt((np.e - 1) * np.e),
}
"""Mean 0 and standard deviation 1; the skewness of the second is 6.2."""


def entries_of(effect, errors, forms):
    """Constants, and models with independent errors of these sizes, as they are and by their true calibration map.

    The effect is standard normal about its average. Given a prediction with an error of size s, its mean is 1/(1 + s^2) of the
    prediction, so calibrated models are better, and of two the one with the smaller error.
    """
    n = len(effect)
    entries = [Entry("average effect", np.full(n, AVERAGE)), Entry("no effect", np.zeros(n))]
    for name, (size, noise) in errors.items():
        prediction = effect + size * noise
        calibrated = AVERAGE + (prediction - AVERAGE) / (1 + size**2)
        both = [Entry(name, prediction, name), Entry(f"{name}, calibrated", calibrated, name, True)]
        entries += [entry for entry in both if entry.is_calibrated in forms]
    return entries


def board(rng, n, sizes, noise="normal", clusters=None, forms=(False, True)):
    """A leaderboard of models with errors of these sizes; half of the variance of all that is random is shared in a cluster."""
    groups = None if clusters is None else np.sort(rng.integers(0, clusters, n))

    def shared(draw):
        return draw(n) if groups is None else np.sqrt(0.5) * (draw(clusters)[groups] + draw(n))

    effect = AVERAGE + shared(rng.standard_normal)
    errors = {name: (size, shared(rng.standard_normal)) for name, size in sizes.items()}
    chi = effect + 2 * shared(lambda count: NOISES[noise](rng, count))
    loss = QuadraticLoss(chi, np.ones(n), groups=groups)
    return leaderboard_of(entries_of(effect, errors, forms), loss, Settings(random_state=0))


def models_in_set(found):
    return {rival.model for rival in found.rivals if rival.is_in_set}


def names_in_set(found):
    return {rival.name for rival in found.rivals if rival.is_in_set}


SETTINGS = {
    "rows": {"n": 1000},
    "clusters": {"n": 1000, "clusters": 100},
    "skewed": {"n": 1000, "noise": "lognormal"},
}


LARGER = {"clusters": {"n": 3000, "clusters": 300}}
"""Where a difference is to be clear: half of the noise is shared in clusters of ten."""


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_of_two_equally_good_models_neither_is_declared_better(name):
    """Models whose errors are of one size, but not the same."""
    rng, declared, kept = np.random.default_rng(1), [], []
    for _ in range(DRAWS):
        found = board(rng, sizes={"a": 0.7, "b": 0.7}, **SETTINGS[name])
        models = models_in_set(found)
        declared.append(("a" in models) != ("b" in models))
        kept.append({"a, calibrated", "b, calibrated"} <= names_in_set(found))
    print(name, "declared", np.mean(declared), "both best in the set", np.mean(kept))
    assert reaches(np.mean(declared), DRAWS, 0.0, 0.05)
    assert reaches(np.mean(kept), DRAWS, 0.95, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_a_clearly_better_model_is_found(name):
    rng, declared, kept = np.random.default_rng(2), [], []
    for _ in range(DRAWS):
        found = board(rng, sizes={"a": 0.3, "b": 1.5}, **SETTINGS[name] | LARGER.get(name, {}))
        models = models_in_set(found)
        declared.append("a" in models and "b" not in models)
        kept.append("a, calibrated" in names_in_set(found))
    print(name, "found", np.mean(declared), "best in the set", np.mean(kept))
    assert np.mean(declared) >= 0.95
    assert np.mean(kept) >= 0.94


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_the_set_contains_all_of_six_equally_good_rivals(name):
    """The least favourable case: every rival is among the best, none is much worse."""
    rng, kept = np.random.default_rng(3), []
    for _ in range(DRAWS):
        found = board(rng, sizes=dict.fromkeys("abcdef", 0.7), forms=(True,), **SETTINGS[name])
        kept.append({f"{model}, calibrated" for model in "abcdef"} <= names_in_set(found))
    print(name, "all six in the set", np.mean(kept))
    assert reaches(np.mean(kept), DRAWS, 0.95, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_the_set_contains_the_best_of_six_that_are_nearly_as_good(name):
    rng, kept = np.random.default_rng(4), []
    sizes = dict(zip("abcdef", (0.6, 0.65, 0.7, 0.75, 0.8, 1.0), strict=True))
    for _ in range(DRAWS):
        found = board(rng, sizes=sizes, forms=(True,), **SETTINGS[name])
        kept.append("a, calibrated" in names_in_set(found))
    print(name, "best in the set", np.mean(kept))
    assert np.mean(kept) >= 0.94


FEWER = 300


def chosen_end_to_end(seed, sizes):
    """A choice in a study of 3,000 rows with known nuisances between models that differ from the effect by independent errors."""
    data, rng = simulate_cate(3000, confounding=0, random_state=seed), np.random.default_rng(seed)
    models = {name: data.effect + size * rng.standard_normal(3000) for name, size in zip("ab", sizes, strict=True)}
    table = pd.DataFrame({"y": data.y, "treated": data.treatment, **data.nuisances, **models})
    study = Study(
        table,
        outcome="y",
        treatment="treated",
        covariates=[],
        nuisances={name: name for name in data.nuisances},
        random_state=seed,
    )
    return study.choose(["a", "b"], method="linear", draws=20)


@pytest.mark.slow
def test_of_equally_good_models_of_a_study_neither_is_declared_better():
    found = [chosen_end_to_end(seed, (0.6, 0.6)) for seed in range(FEWER)]
    declared = np.mean([one.better_than("a", "b") or one.better_than("b", "a") for one in found])
    print("study: declared", declared)
    assert reaches(declared, FEWER, 0.0, 0.05)


@pytest.mark.slow
def test_a_clearly_better_model_of_a_study_is_found():
    found = [chosen_end_to_end(seed, (0.2, 1.2)) for seed in range(FEWER)]
    declared = np.mean([one.better_than("a", "b") for one in found])
    kept = np.mean([{"a", "a, calibrated"} & set(one.confidence_set) != set() for one in found])
    print("study: found", declared, "best in the set", kept)
    assert declared >= 0.95
    assert kept >= 0.94
