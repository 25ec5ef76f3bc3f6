"""How often checks alarm on clean data, and how often they find what they are for, over simulated studies."""

import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import RidgeCV

from orthocal import Study

CAN_FAIL = {
    "positivity",
    "balance",
    "leakage",
    "outcome among covariates",
    "outcome as prediction",
    "in-sample",
    "ranking",
}


def logistic(x):
    return 1 / (1 + np.exp(-x))


DESIGNS = {
    "linear": (5, lambda X: X[:, 2] + X[:, 3], lambda X: X[:, 0] + 0.5 * X[:, 1], False, 1.0),
    "noisy": (5, lambda X: X[:, 2], lambda X: 0.5 + 0.3 * X[:, 0], False, 3.0),
    "confounded": (5, lambda X: X[:, 1] + 0.5 * X[:, 2] ** 2, lambda X: 2 * logistic(3 * X[:, 0]), True, 1.0),
    "steps": (12, lambda X: X[:, 2] + X[:, 3], lambda X: 2.0 * (X[:, 0] > 0) - (X[:, 1] > 0.5), False, 1.0),
    "many": (12, lambda X: X[:, :5].sum(1), lambda X: X[:, 0] + X[:, 6] - X[:, 7], True, 2.0),
    "binary": (5, lambda X: logistic(X[:, 0] - 1), lambda X: 0.2 * logistic(2 * X[:, 1]), False, None),
}


def draw(name, n, rng):
    """A table, the true effect, and whether its propensity is known."""
    p, base, effect, confounded, noise = DESIGNS[name]
    X = rng.standard_normal((n, p))
    chance = np.clip(logistic(X[:, 0] + 0.5 * X[:, 1]), 0.08, 0.92) if confounded else np.full(n, 0.5)
    a = (rng.random(n) < chance).astype(int)
    mean = base(X) + a * effect(X)
    y = (rng.random(n) < mean).astype(float) if noise is None else mean + noise * rng.standard_normal(n)
    names = [f"x{j}" for j in range(p)]
    table = pd.DataFrame(X, columns=names).assign(a=a, y=y, **everyday(n, rng))
    return table, effect(X), not confounded, [*names, "age", "region", "owner", "customers"]


def everyday(n, rng):
    """Columns as tables have them: whole numbers, words, flags, counts, weights, and households of one to four."""
    return {
        "age": rng.integers(18, 90, n),
        "region": rng.choice(["north", "south", "east", "west"], n),
        "owner": rng.integers(0, 2, n),
        "customers": rng.poisson(300, n),
        "shop": rng.integers(0, n // 8, n),
        "weight": rng.lognormal(0, 0.5, n),
        "status": rng.integers(0, 2, n),
    }


def t_learner(make, table, names):
    names = [name for name in names if name != "region"]
    arms = [make().fit(table.loc[table["a"] == k, names], table.loc[table["a"] == k, "y"]) for k in (0, 1)]
    return lambda rows: arms[1].predict(rows[names]) - arms[0].predict(rows[names])


LEARNERS = {
    "boosting": lambda: HistGradientBoostingRegressor(random_state=0),
    "forest": lambda: RandomForestRegressor(40, random_state=0),
    "ridge": lambda: RidgeCV(np.logspace(-2, 3, 8)),
}


def checked(table, known, names, predictions, **more):
    """Checks of each prediction, all from one study."""
    roles = {"outcome": "y", "treatment": "a", "covariates": names, "n_jobs": 1, **more}
    study = Study(table, **roles, propensity=0.5 if known else None)
    return {name: verdict.checks for name, verdict in study.assess(predictions, draws=50).items()}


def alarms(draws, sizes, seed=3):
    """Return counts of checks made, of alarms, and of samples with a failed one, on clean data with honest predictions."""
    made, alarmed, failed, samples = Counter(), Counter(), 0, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in sizes:
            for place, name in enumerate(DESIGNS):
                for number in range(draws):
                    rng = np.random.default_rng([seed, n, place, number])
                    other, _, _, names = draw(name, n, rng)
                    table, effect, known, _ = draw(name, n, rng)
                    predictions = {key: t_learner(make, other, names)(table) for key, make in LEARNERS.items()}
                    predictions |= {"truth": effect, "shrunken": 0.3 * effect}
                    more = [{}, {"weight": "weight"}, {"groups": "shop"}][number % 3]
                    for key, checks in checked(table, known, names, predictions, **more).items():
                        samples += 1
                        failed += any(check.result == "failed" for check in checks)
                        for check in checks:
                            if (
                                check.name == "possible values"
                            ):  # no statistic: it alarms exactly where one is impossible
                                impossible = bool((np.abs(predictions[key]) > 1).any())
                                assert (check.result == "warning") == impossible
                                continue
                            made[check.name] += 1
                            alarmed[check.name] += check.result != "passed"
                            assert check.result != "failed" or check.name in CAN_FAIL
    return made, alarmed, failed, samples


def alarms_of_instruments(draws, n=1000, seed=6):
    """Return counts of checks made and of alarms with a sound instrument, half of the people compliers, and amounts spent."""
    made, alarmed = Counter(), Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(draws):
            rng = np.random.default_rng([seed, number])
            x, z = rng.standard_normal((n, 3)), rng.integers(0, 2, n)
            taken = np.where(rng.random(n) < 0.5, z, rng.integers(0, 2, n))
            spent = np.exp(0.3 * x[:, 0] + 0.2 * taken + 0.5 * rng.standard_normal(n))
            table = pd.DataFrame(x, columns=["x0", "x1", "x2"]).assign(z=z, a=taken, y=spent, **everyday(n, rng))
            checks = checked(
                table, True, ["x0", "x1", "x2", "age"], {"tau": 0.2 + 0.1 * x[:, 0]}, effect="late", instrument="z"
            )["tau"]
            for check in checks:
                made[check.name] += 1
                alarmed[check.name] += check.result != "passed"
    return made, alarmed


def hits(draws, sizes, seed=4):
    """Return how many models judged on the rows they were trained on are found out, by learner."""
    found = {name: [] for name in ("boosting", "forest")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in sizes:
            for place, name in enumerate(DESIGNS):
                for number in range(draws):
                    table, _, known, names = draw(name, n, np.random.default_rng([seed, n, place, number]))
                    predictions = {key: t_learner(LEARNERS[key], table, names)(table) for key in found}
                    for key, checks in checked(table, known, names, predictions).items():
                        (check,) = [check for check in checks if check.name == "in-sample"]
                        found[key].append(check.result == "failed")
    return found


def visits_found(draws, n=10_000, seed=5):
    """Return how often visits after a mailing, taken for a covariate, are found out."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(draws):
            rng = np.random.default_rng([seed, number])
            a, age = rng.integers(0, 2, n), rng.normal(45, 12, n)
            visit = (rng.random(n) < 0.106 + 0.04 * a).astype(int)
            spend = np.where(visit & (rng.random(n) < 0.1), rng.lognormal(4, 0.7, n), 0.0)
            table = pd.DataFrame({"age": age, "visit": visit, "a": a, "y": spend})
            checks = checked(table, True, ["age", "visit"], {"tau": 0.01 * age})["tau"]
            found += [check.result == "failed" for check in checks if check.name == "balance"]
    return found


def test_false_alarms_in_short():
    _, _, failed, samples = alarms(1, [600])
    assert failed <= 1
    assert samples == 30


@pytest.mark.slow
def test_checks_seldom_alarm_on_clean_data():
    made, alarmed, failed, samples = alarms(12, [500, 1000, 4000])
    for counted, more in zip((made, alarmed), alarms_of_instruments(200), strict=True):
        counted.update(more)
    for name, count in made.items():
        print(f"{name}: {alarmed[name]} alarms of {count} ({alarmed[name] / count:.4f})")
        assert alarmed[name] <= 0.01 * count + 2.6 * np.sqrt(0.01 * count)
    print(f"any failed: {failed} of {samples} ({failed / samples:.4f})")
    assert failed <= 0.02 * samples


@pytest.mark.slow
def test_models_judged_on_their_own_rows_are_found_out():
    found = hits(8, [500, 1000, 4000])
    for name, flags in found.items():
        print(f"in-sample, {name}: {np.mean(flags):.3f} of {len(flags)}")
        assert np.mean(flags) >= 0.8


@pytest.mark.slow
def test_visits_after_a_mailing_are_found_out():
    found = visits_found(100)
    print(f"visits of 10,000 customers: {np.mean(found):.2f}")
    assert np.mean(found) >= 0.8
