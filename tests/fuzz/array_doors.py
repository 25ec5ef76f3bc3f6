"""Every other door for arrays: audits, bands, policies, calibrators of subgroups and of several arms, losses, saved models."""

import numpy as np
from sklearn.linear_model import LinearRegression

import orthocal
from orthocal import ArmScores, QuadraticLoss, maps
from tests.fuzz.api import COLUMN, EFFECTS, TREATMENT, X
from tests.fuzz.hostile import COLUMNS, MATRICES, SETTINGS, N, chosen
from tests.fuzz.judgement import judged, not_finite

NAME = "array doors"
RNG = np.random.default_rng(2)
PREDICTION, TARGET = COLUMN["prediction"], COLUMN["prediction"] + RNG.standard_normal(N)
TOWN = np.arange(N) % 3
LOSS = QuadraticLoss(TARGET, np.ones(N))
SCORES = ArmScores(arms=("none", "call", "mail"), values=RNG.standard_normal((N, 3)), weight=np.ones(N))
KNOWN = EFFECTS["cate"]


def _audit(prediction, town, groups=None, loss=LOSS, **own):
    own = {"draws": 50, "smallest": 5, **own}
    found = orthocal.audit(prediction, loss, {"town": town} if groups is None else groups, **own)
    return found.to_dict(), str(found)


def _band(prediction, new, loss=LOSS, **own):
    band = orthocal.effect_band(prediction, loss, **{"draws": 50, **own})
    return repr(band.to_dict()), repr(band.interval(new)), band.outside(PREDICTION, PREDICTION)


def _policy(predictions, spend=None, scores=SCORES, **own):
    found = orthocal.policy(scores, {"tau": predictions}, **{"draws": 20, **own})
    return found.to_dict(), found.summary()


def _multicalibrate(prediction, town, new, groups=None, loss=LOSS, **own):
    fitted = orthocal.Multicalibrator(**{"smallest": 5, **own})
    fitted.fit(prediction, loss, {"town": town} if groups is None else groups)
    return fitted.map_.predict(PREDICTION, {"town": new})


def _boost(prediction, X, new, loss=LOSS, **own):
    fitted = orthocal.BoostedMulticalibrator(**{"max_steps": 3, "min_samples_leaf": 5, "folds": 2, **own})
    return np.asarray(fitted.fit(prediction, loss, X).predict(PREDICTION, new))


def _joint(predictions, new, method="linear", scores=SCORES, **own):
    return np.asarray(orthocal.JointCalibrator(method, **own).fit(predictions, scores).predict(new))


def _quadratic(numerator, denominator):
    loss = QuadraticLoss(numerator, denominator)
    v = np.resize(PREDICTION, len(loss))
    return (
        np.asarray(loss.value(v)),
        np.asarray(loss.derivative(v)),
        orthocal.assess(PREDICTION, loss, draws=20).to_dict(),
    )


def _cross(X, y, treatment, new, **own):
    own = {"method": "linear", "folds": 2, "repeats": 1, "random_state": 0, **own}
    model = orthocal.CrossCalibratedModel(own.pop("estimator", Difference()), **own)
    return np.asarray(model.fit(X, y, treatment=treatment, nuisances={"propensity": 0.5}).predict(new))


def _interval(prediction, y, new, **own):
    own = {"method": "linear", "folds": 2, "random_state": 0, **own}
    fitted = orthocal.CausalCalibrator(**own).fit(X, y, treatment=TREATMENT, prediction=prediction, nuisances=KNOWN)
    return np.asarray(fitted.calibrate(new)), repr(fitted.interval(new)), fitted.guarantee()


def _maps(edges, values, new):
    return maps.StepMap(edges, values).predict(new)


class Difference:
    """An effect model: the difference of two lines."""

    def fit(self, X, y, treatment):
        self.lines = [LinearRegression().fit(np.asarray(X)[treatment == k], y[treatment == k]) for k in (0, 1)]
        return self

    def effect(self, X):
        return self.lines[1].predict(np.asarray(X)) - self.lines[0].predict(np.asarray(X))

    def get_params(self, deep=True):
        return {}


PAIR = np.column_stack([PREDICTION, X[:, 1]])
ONE = {"prediction": PREDICTION, "new": PREDICTION}
DOORS = {
    "audit": (
        _audit,
        {"prediction": PREDICTION, "town": TOWN},
        {},
        ("groups", "loss", "bins", "smallest", "level", "draws"),
    ),
    "band": (_band, ONE, {}, ("loss", "bins", "level", "draws", "random_state")),
    "policy": (
        _policy,
        {},
        {"predictions": PAIR},
        ("scores", "cost", "budget", "spend", "level", "draws", "random_state"),
    ),
    "multicalibrate": (
        _multicalibrate,
        {"prediction": PREDICTION, "town": TOWN, "new": TOWN},
        {},
        ("groups", "loss", "tolerance", "bins", "max_steps", "smallest"),
    ),
    "boost": (
        _boost,
        {"prediction": PREDICTION},
        {"X": X, "new": X},
        ("loss", "learning_rate", "max_steps", "max_leaf_nodes", "min_samples_leaf", "folds", "random_state"),
    ),
    "joint": (_joint, {}, {"predictions": PAIR, "new": PAIR}, ("method", "scores", "decisions", "costs", "rounds")),
    "quadratic": (_quadratic, {"numerator": TARGET, "denominator": np.ones(N)}, {}, ()),
    "cross": (
        _cross,
        {"y": COLUMN["y"], "treatment": TREATMENT},
        {"X": X, "new": X},
        ("estimator", "method", "folds", "repeats", "combine", "learners", "clip", "random_state", "n_jobs"),
    ),
    "interval": (_interval, {**ONE, "y": COLUMN["y"]}, {}, ("method", "folds", "clip", "estimator")),
    "maps": (_maps, {"edges": np.arange(3.0), "values": np.arange(4.0), "new": PREDICTION}, {}, ()),
}
"""What is called, its columns and matrices, and its settings."""
LIKELY = [0.15, 0.1, 0.15, 0.12, 0.05, 0.12, 0.08, 0.08, 0.1, 0.05]


def mutations(rng):
    """Return a door, and hostile values for a few of its arguments."""
    door = str(rng.choice(list(DOORS), p=LIKELY))
    _, columns, matrices, settings = DOORS[door]
    found = [("door", door)]
    for _ in range(rng.integers(1, 3)):
        name = str(rng.choice([*columns, *matrices, *settings]))
        table = COLUMNS if name in columns else MATRICES if name in matrices else SETTINGS
        found.append((name, chosen(table, rng), int(rng.integers(1000))))
    return found


def attempt(mutations):
    """Return what is wrong with a case, or None."""
    door = dict(one for one in mutations if len(one) == 2).get("door", "audit")
    call, columns, matrices, settings = DOORS[door]
    given = {**columns, **matrices}
    for name, value, seed in (one for one in mutations if len(one) == 3):
        rng = np.random.default_rng(seed)
        if name in columns:
            given[name] = COLUMNS[value](columns[name], rng)
        elif name in matrices:
            given[name] = MATRICES[value](matrices[name], rng)
        elif name in settings:
            given[name] = SETTINGS[value](rng)
    return judged(lambda: call(**given), given.values(), finite=not_finite)
