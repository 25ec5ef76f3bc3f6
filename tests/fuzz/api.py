"""The doors for arrays: losses, verdicts, comparisons and calibrators of hostile columns and settings."""

import numpy as np

import orthocal
from orthocal import CATE, Auto, CausalCalibrator, Histogram, Isotonic, Linear, Platt, Spline
from tests.fuzz.hostile import COLUMNS, MATRICES, SETTINGS, N, chosen
from tests.fuzz.judgement import judged, not_finite

NAME = "api"
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 2))
TREATMENT = np.tile([0, 1], N // 2)
COLUMN = {
    "y": RNG.standard_normal(N) + TREATMENT,
    "treatment": TREATMENT,
    "prediction": X[:, 0] + 0.1 * RNG.standard_normal(N),
    "sample_weight": RNG.uniform(0.5, 2.0, N),
    "groups": np.arange(N) // 2,
    "key": np.arange(N),
    "instrument": np.roll(TREATMENT, 1),
    "event": np.ones(N, dtype=int),
}
KNOWN = {"propensity": 0.5, "outcome_control": 0.0, "outcome_treated": 1.0}
EFFECTS = {
    "cate": KNOWN,
    "catt": KNOWN,
    "overlap": {"propensity": 0.5, "outcome": 0.5},
    "relative": {"propensity": 0.5, "outcome_control": 2.0, "outcome_treated": 3.0},
    "late": {
        "instrument_propensity": 0.5,
        "outcome_z0": 0.0,
        "outcome_z1": 0.5,
        "treatment_z0": 0.2,
        "treatment_z1": 0.8,
    },
    "derivative": {"outcome": 0.0, "outcome_derivative": 1.0, "score_correction": 0.5},
}
LEARN = ("folds", "clip", "random_state", "n_jobs", "learners", "nuisances", "nuisances[propensity]", "effect", "arm")
JUDGE = ("bins", "level", "tolerance", "cost", "by", "by[g]", "draws", "random_state of assess", "loss")
METHODS = ("identity", "constant", "shift", "linear", "isotonic", "histogram", "spline", "platt", "auto")
FIT = ("scheme", "split", "refinements", "method", "setting of method")
DOORS = ("loss", "assess", "compare", "calibrate", "fit a method", "map")
OPTIONAL = ("sample_weight", "groups", "key", "instrument", "event")


def mutations(rng):
    """Return a door, an effect, a method, and hostile values for a few arguments."""
    found = [
        ("door", str(rng.choice(DOORS, p=[0.2, 0.35, 0.1, 0.2, 0.1, 0.05]))),
        ("effect", str(rng.choice(list(EFFECTS), p=[0.6, 0.08, 0.08, 0.08, 0.08, 0.08]))),
        ("method", str(rng.choice(METHODS, p=[0.15, 0.15, 0.15, 0.15, 0.15, 0.15, 0.055, 0.04, 0.005]))),
    ]
    for _ in range(rng.integers(1, 4)):
        kind = rng.random()
        if kind < 0.15:
            found.append(("X", chosen(MATRICES, rng), int(rng.integers(1000))))
        elif kind < 0.6:
            found.append((str(rng.choice(list(COLUMN))), chosen(COLUMNS, rng), int(rng.integers(1000))))
        else:
            name = str(rng.choice([*LEARN, *JUDGE, *FIT]))
            found.append((name, chosen(SETTINGS, rng), int(rng.integers(1000))))
    return found


def attempt(mutations):
    """Return what is wrong with a case, or None."""
    words = dict(one for one in mutations if len(one) == 2)
    door, effect, method = (
        words.get(name, first) for name, first in (("door", "loss"), ("effect", "cate"), ("method", "linear"))
    )
    columns, settings = {name: COLUMN[name] for name in ("y", "treatment", "prediction")}, {}
    if effect == "late":
        columns["instrument"] = COLUMN["instrument"]
    if effect == "derivative":
        columns["treatment"] = COLUMN["prediction"]
    matrix = X
    for name, value, seed in (one for one in mutations if len(one) == 3):
        rng = np.random.default_rng(seed)
        if name == "X":
            matrix = MATRICES[value](X, rng)
        elif name in COLUMN:
            columns[name] = COLUMNS[value](COLUMN[name], rng)
        else:
            settings[name] = SETTINGS[value](rng)
    given = [matrix, *columns.values(), *settings.values()]
    return judged(lambda: DOOR[door](matrix, columns, settings, effect, method), given, finite=not_finite)


def _loss(matrix, columns, settings, effect, method):
    known = settings.get("nuisances", EFFECTS[effect])
    if "nuisances[propensity]" in settings and isinstance(known, dict) and "propensity" in known:
        known = {**known, "propensity": settings["nuisances[propensity]"]}
    if "arm" in settings and effect == "cate":
        effect = CATE(arm=settings["arm"])
    own = {name: settings[name] for name in ("folds", "clip", "n_jobs", "learners") if name in settings}
    return orthocal.orthogonal_loss(
        settings.get("effect", effect),
        matrix,
        **columns,
        nuisances=known,
        random_state=settings.get("random_state", 0),
        **own,
    )


def _of_loss(matrix, columns, settings, effect, method):
    loss = _loss(matrix, columns, settings, effect, method)
    return [loss.value(np.zeros(len(loss))), loss.derivative(np.zeros(len(loss)))]


def _assess(matrix, columns, settings, effect, method):
    loss = settings["loss"] if "loss" in settings else _loss(matrix, columns, settings, effect, method)
    own = {name: settings[name] for name in ("bins", "level", "tolerance", "cost", "by", "draws") if name in settings}
    if "by[g]" in settings:
        own["by"] = {"g": settings["by[g]"]}
    own.setdefault("draws", 20)
    found = orthocal.assess(columns["prediction"], loss, random_state=settings.get("random_state of assess", 0), **own)
    found.summary()
    return found.to_dict()


def _compare(matrix, columns, settings, effect, method):
    loss = settings["loss"] if "loss" in settings else _loss(matrix, columns, settings, effect, method)
    own = {name: settings[name] for name in ("level", "cost") if name in settings}
    return orthocal.compare(COLUMN["prediction"] * 2, columns["prediction"], loss, **own).to_dict()


def _method(settings, method):
    own = settings.get("setting of method")
    made = {
        "histogram": lambda: Histogram(bins=own),
        "isotonic": lambda: Isotonic(min_samples=own),
        "spline": lambda: Spline(pieces=own),
        "platt": lambda: Platt(lower=own),
        "auto": lambda: Auto(own),
    }
    return settings.get("method", made[method]() if "setting of method" in settings and method in made else method)


def _calibrate(matrix, columns, settings, effect, method):
    known = settings.get("nuisances", EFFECTS[effect])
    names = ("scheme", "split", "refinements", "folds", "clip", "n_jobs", "learners", "random_state")
    own = {"random_state": 0, **{name: settings[name] for name in names if name in settings}}
    calibrator = CausalCalibrator(settings.get("effect", effect), _method(settings, method), **own)
    calibrator.fit(matrix, **columns, nuisances=known)
    return [
        np.asarray(calibrator.calibrate(COLUMN["prediction"])),
        calibrator.score(X, **COLUMN_OF[effect], nuisances=EFFECTS[effect]),
    ]


COLUMN_OF = {
    effect: {
        name: COLUMN[name] for name in ("y", "treatment", "prediction", *(("instrument",) if effect == "late" else ()))
    }
    for effect in EFFECTS
}
COLUMN_OF["derivative"]["treatment"] = COLUMN["prediction"]


def _fit(matrix, columns, settings, effect, method):
    from orthocal.calibrators import new_calibrator

    loss = (
        settings["loss"]
        if "loss" in settings
        else orthocal.orthogonal_loss(effect, X, **COLUMN_OF[effect], nuisances=EFFECTS[effect])
    )
    return new_calibrator(_method(settings, method)).fit(columns["prediction"], loss).predict(COLUMN["prediction"])


def _map(matrix, columns, settings, effect, method):
    loss = orthocal.orthogonal_loss("cate", X, **COLUMN_OF["cate"], nuisances=KNOWN)
    return Linear().fit(COLUMN["prediction"], loss).map_.predict(columns["prediction"])


DOOR = {
    "loss": _of_loss,
    "assess": _assess,
    "compare": _compare,
    "calibrate": _calibrate,
    "fit a method": _fit,
    "map": _map,
}
