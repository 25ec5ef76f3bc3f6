"""Small random samples of every effect, and what must be true of every number of a verdict on them."""

import math
import warnings

import numpy as np
import pytest
from scipy.special import expit, ndtr
from sklearn.linear_model import LinearRegression, LogisticRegression

from orthocal import LATE, OrthocalError, orthogonal_loss
from orthocal.effects import EFFECTS
from tests.effects_by_name import AT_A_TIME, effect_by_name

FAST = {
    "propensity": LogisticRegression(),
    "outcome": LinearRegression(),
    "treatment": LogisticRegression(),
    "below": LogisticRegression(),
    "event": LogisticRegression(),
    "censoring": LogisticRegression(),
}
CASES = {**{name: effect_by_name(name, 3.0) for name in EFFECTS}, "late, compliers": LATE(target="compliers")}
RATIOS = ("overlap", "catt", "relative", "late, compliers")


def small_sample(case, seed, folds=5, **settings):
    """Rows, 60 to 400 of them with 5% to 95% treated, and their loss; None where too few of an arm are there to learn from.

    The effect of treatment is 1 + x_1 on an outcome that averages 3 without it, the instrument moves six in ten, and
    predictions are 1 + x_1 plus noise, sometimes rounded so that there are ties.
    """
    prediction, X, y, columns = small_table(case, seed)
    arm = columns.get("instrument", columns["treatment"])
    learnt = not settings.get("nuisances")  # with all nuisances given no folds are drawn, and nothing is refused
    too_few = learnt and case != "derivative" and min(arm.sum(), len(arm) - arm.sum()) < folds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learners = _learners(case) if learnt else None
        settings = {**columns, "learners": learners, "folds": folds, "random_state": seed, **settings}
        if too_few:
            with pytest.raises(OrthocalError, match="must occur in at least as many rows as there are folds"):
                orthogonal_loss(CASES[case], X, y, **settings)
            return None
        return prediction, orthogonal_loss(CASES[case], X, y, **settings)


def small_share(seed):
    """Share of the treated, or of those with the instrument, at the middle of the covariates."""
    return float(np.random.default_rng((seed, 1)).uniform(0.05, 0.95))


def small_table(case, seed):
    """Predictions, covariates, outcome and the other columns of a small sample."""
    rng = np.random.default_rng(seed)
    n, share = int(rng.integers(60, 401)), small_share(seed)
    X = rng.standard_normal((n, 2))
    treatment = (rng.random(n) < expit(np.log(share / (1 - share)) + 0.5 * X[:, 0])).astype(int)
    prediction = 1 + X[:, 0] + rng.normal(0, 0.5, n)
    prediction = np.round(prediction) if rng.random() < 0.2 else prediction
    columns = {"treatment": treatment}
    if case.startswith("late"):
        taken = np.where(rng.random(n) < 0.6, treatment, (rng.random(n) < 0.3).astype(int))
        columns = {"treatment": taken, "instrument": treatment}
    if case == "derivative":
        columns = {"treatment": treatment + rng.standard_normal(n)}
    if case in {"quantile", "expectile"}:
        columns["prediction"] = prediction
    y = 3 + X[:, 1] + columns["treatment"] * (1 + X[:, 0]) + rng.standard_normal(n)
    if case in AT_A_TIME:  # positive, and censored in one row of ten
        y, columns["event"] = np.logaddexp(0, y), rng.random(n) < 0.9
    return prediction, X, y, columns


class TreatedMean:
    """P(Y(1) <= v | X = x) of the small samples."""

    def __call__(self, X, v):
        return ndtr(v - 4 - X[:, 0] - X[:, 1])


def event_free(X, time):
    """A curve that is near enough to the one of the arm without treatment."""
    return ndtr(3 + X[:, 1] - np.log(np.expm1(time)))


def uncensored(X, time):
    """A curve that is near enough to that of censoring."""
    return np.full(len(X), 1.0) - 0.02 * time


def known_nuisances(case, seed):
    """The true nuisances of a small sample; of the derivative's one that is near enough."""
    _, X, _, columns = small_table(case, seed)
    baseline, gain = 3 + X[:, 1], 1 + X[:, 0]
    share = small_share(seed)
    propensity = expit(np.log(share / (1 - share)) + 0.5 * X[:, 0])
    arms = {"propensity": propensity, "outcome_control": baseline, "outcome_treated": baseline + gain}
    stages = {"treatment_z0": np.full(len(X), 0.12), "treatment_z1": np.full(len(X), 0.72)}
    late = {"instrument_propensity": propensity, **stages}
    late |= {f"outcome_z{z}": baseline + stages[f"treatment_z{z}"] * gain for z in (0, 1)}
    treated_mean = {"propensity": propensity, "below": TreatedMean()}
    score = columns["treatment"] - propensity
    slopes = {"outcome": baseline + columns["treatment"] * gain, "outcome_derivative": gain, "score_correction": score}
    curves = {f"{role}_survival_{arm}": curve for arm in ("control", "treated") for role, curve in CURVES.items()}
    return {
        "derivative": slopes,
        "quantile": treated_mean,
        "expectile": treated_mean,
        "cvar": {
            "propensity": propensity,
            "tail_quantile": baseline + gain + 1.2816,
            "tail_mean": baseline + gain + 1.755,
        },
        "cate": arms,
        "bound": arms  # of normal noise, beyond a third: quantile 0.4307, mean 1.0908
        | {"quantile_treated": baseline + gain + 0.4307, "tail_treated": baseline + gain + 1.0908}
        | {"quantile_control": baseline - 0.4307, "tail_control": baseline - 1.0908},
        "relative": arms,
        "catt": {name: arms[name] for name in ("propensity", "outcome_control")},
        "overlap": {"propensity": propensity, "outcome": baseline + propensity * gain},
        **dict.fromkeys(AT_A_TIME, curves | {"propensity": propensity}),
        "late": late,
        "late, compliers": late,
    }[case]


CURVES = {"event": event_free, "censoring": uncensored}
LEARNERS = {
    "late": ("propensity", "outcome", "treatment"),
    "derivative": ("outcome",),
    "quantile": ("propensity", "below"),
    "cvar": ("propensity",),
    "expectile": ("propensity", "below"),
    **dict.fromkeys(AT_A_TIME, ("propensity", "event", "censoring")),
}


def _learners(case):
    return {role: FAST[role] for role in LEARNERS.get(case.split(",")[0], ("propensity", "outcome"))}


def numbers_in(value, path=""):
    """Yield (where, number) of everything in nested dicts and lists."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from numbers_in(entry, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for place, entry in enumerate(value):
            yield from numbers_in(entry, f"{path}[{place}]")
    elif isinstance(value, float | int):
        yield path, value


def infinite_numbers(verdict):
    """Return where a verdict has a number that is infinite or none, its words included."""
    found = [where for where, number in numbers_in(verdict.to_dict()) if not math.isfinite(number)]
    text = verdict.summary().lower().replace("\n", " ")
    return found + [word for word in text.replace("(", " ").replace(",", " ").split() if word in {"nan", "inf", "-inf"}]
