"""The front door: studies of hostile tables, columns and arguments, and everything that is asked of them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from orthocal import ExpectileUnderTreatment, RestrictedMeanTime, Study, SurvivalProbability
from tests.fuzz.api import COLUMN, EFFECTS, X
from tests.fuzz.hostile import COLUMNS, NAMES, SETTINGS, N, chosen
from tests.fuzz.judgement import judged, not_finite
from tests.fuzz.questions import ASKED, QUESTIONS, answered

NAME = "studies"
RNG = np.random.default_rng(1)
BASE = {
    "x": X[:, 0],
    "y": COLUMN["y"],
    "a": COLUMN["treatment"],
    "tau": COLUMN["prediction"],
    "other": X[:, 1],
    "w": COLUMN["sample_weight"],
    "g": COLUMN["groups"],
    "e": np.full(N, 0.5),
    "held": np.arange(N) % 3 == 0,
    "z": COLUMN["instrument"],
    "time": RNG.exponential(1.0, N),
    "died": RNG.integers(0, 2, N),
    "segment": np.array(["none", "call", "mail", "none"])[np.arange(N) % 4],
}
ROLES = {
    "outcome": "y",
    "treatment": "a",
    "covariates": ["x"],
    "propensity": 0.5,
    "weight": None,
    "groups": None,
    "key": None,
    "folds": 5,
    "exclude": None,
    "predictions": (),
    "effect": "cate",
    "arm": None,
    "control": None,
    "event": None,
    "instrument": None,
    "nuisances": {"outcome_control": 0.0, "outcome_treated": 1.0},
    "learners": None,
    "limits": None,
    "tolerance": None,
    "level": 0.95,
    "clip": 0.01,
    "random_state": 0,
    "n_jobs": None,
    "sample": None,
    "exact": False,
    "arms": None,
}
LEARNT = {"propensity": None, "nuisances": None, "learners": "linear", "folds": 2}
CENSORED = {**LEARNT, "outcome": "time", "event": "died"}
DESIGN = {"none": 0.5, "call": 0.25, "mail": 0.25}
SCENES = {
    "one contrast": {},
    "learnt": LEARNT,
    "survival": {**CENSORED, "effect": SurvivalProbability(time=0.5, grid=4)},
    "restricted time": {**CENSORED, "effect": RestrictedMeanTime(horizon=0.5, grid=4)},
    "several arms": {**LEARNT, "treatment": "segment", "arms": "all", "control": "none", "propensity": DESIGN},
    "late": {"effect": "late", "instrument": "z", "propensity": None, "nuisances": EFFECTS["late"]},
    "relative": {"effect": "relative", "propensity": None, "nuisances": EFFECTS["relative"]},
    "overlap": {"effect": "overlap", "nuisances": {"outcome": 0.5}},
    "catt": {"effect": "catt"},
    "derivative": {
        "effect": "derivative",
        "treatment": "other",
        "propensity": None,
        "nuisances": EFFECTS["derivative"],
    },
    "quantile": {**LEARNT, "effect": "quantile"},
    "cvar": {**LEARNT, "effect": "cvar"},
    "expectile": {**LEARNT, "effect": ExpectileUnderTreatment(0.6)},
}
"""What kind of study it is, so that every effect and several arms are attacked, with nuisances given or learnt."""
LIKELY = [0.44, 0.08, 0.06, 0.03, 0.15, 0.04, 0.04, 0.03, 0.03, 0.02, 0.03, 0.02, 0.03]
ARMS = {"call": "tau", "mail": "other"}
COLUMN_ROLES = ("outcome", "treatment", "weight", "groups", "key", "folds", "propensity", "event", "instrument")
KINDS = {
    "pandas": pd.DataFrame,
    "polars": lambda columns: pl.DataFrame(dict(columns)),
    "arrow": lambda columns: pa.table(dict(columns)),
}
PLAUSIBLE = [name for name in COLUMNS if name != "structured"]
"""Columns that a table can have; pandas itself stumbles over records."""


def mutations(rng):
    """Return a kind of table and of study, a question, and hostile columns, names, roles and arguments."""
    found = [
        ("kind", str(rng.choice(list(KINDS), p=[0.6, 0.2, 0.2]))),
        ("scene", str(rng.choice(list(SCENES), p=LIKELY))),
        ("question", str(rng.choice(list(QUESTIONS)))),
    ]
    for _ in range(rng.integers(1, 4)):
        kind = rng.random()
        if kind < 0.35:
            found.append(("column", str(rng.choice(list(BASE)[:-1])), chosen(PLAUSIBLE, rng), int(rng.integers(1000))))
        elif kind < 0.45:
            found.append(("name", str(rng.choice(list(BASE))), str(rng.choice(NAMES)), 0))
        elif kind < 0.6:
            found.append(("points to", str(rng.choice(COLUMN_ROLES)), str(rng.choice(list(BASE))), 0))
        elif kind < 0.8:
            found.append(("role", str(rng.choice(list(ROLES))), chosen(SETTINGS, rng), int(rng.integers(1000))))
        else:
            own = ASKED[found[2][1]] or ["prediction"]
            found.append(("asked", str(rng.choice(own)), chosen(SETTINGS, rng), int(rng.integers(1000))))
    return found


def attempt(mutations):
    """Return what is wrong with a case, or None."""
    words = dict(one for one in mutations if len(one) == 2)
    scene = words.get("scene", "one contrast")
    columns, names, roles, asked = dict(BASE), {}, {**ROLES, **SCENES[scene]}, {}
    for what, name, value, seed in (one for one in mutations if len(one) == 4):
        rng = np.random.default_rng(seed)
        if what == "column":
            columns[name] = COLUMNS[value](BASE[name], rng)
        elif what == "name":
            names[name] = value
        elif what == "points to":
            roles[name] = value
        else:
            {"role": roles, "asked": asked}[what][name] = SETTINGS[value](rng)
    try:
        table = KINDS[words.get("kind", "pandas")]({names.get(name, name): one for name, one in columns.items()})
    except Exception:  # noqa: BLE001
        return None  # no such table can be made
    roles = {name: renamed(one, names) for name, one in roles.items()}
    asked.setdefault("prediction", renamed(ARMS if scene == "several arms" else "tau", names))
    asked.setdefault("rival", renamed({"call": "other", "mail": "tau"} if scene == "several arms" else "other", names))
    call = lambda: answered(Study(table, **roles), words.get("question", "assess"), asked)  # noqa: E731
    return judged(call, [table, *roles.values(), *asked.values()], finite=not_finite)


def renamed(value, names):
    """Return a value that means the same where columns have other names."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, dict):
        return {key: renamed(one, names) for key, one in value.items()}
    return [renamed(one, names) for one in value] if isinstance(value, list) else value
