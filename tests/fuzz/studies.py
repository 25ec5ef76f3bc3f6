"""The front door: studies of hostile tables, columns and arguments, and everything that is asked of them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from orthocal import Study
from tests.fuzz.api import COLUMN, X
from tests.fuzz.hostile import COLUMNS, NAMES, SETTINGS, N, chosen
from tests.fuzz.judgement import judged, not_finite

NAME = "studies"
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
QUESTIONS = ("assess", "calibrate", "compare", "policy", "choose", "checks", "repr", "audit", "sensitivity")
ASKED = (
    "prediction",
    "method",
    "holdout",
    "bins",
    "cost",
    "by",
    "draws",
    "redraws",
    "budget",
    "spend",
    "within",
    "strengths",
    "benchmarks",
    "smallest",
    "discover",
)
COLUMN_ROLES = ("outcome", "treatment", "weight", "groups", "key", "folds", "propensity", "event", "instrument")
KINDS = {
    "pandas": pd.DataFrame,
    "polars": lambda columns: pl.DataFrame(dict(columns)),
    "arrow": lambda columns: pa.table(dict(columns)),
}


PLAUSIBLE = [name for name in COLUMNS if name != "structured"]
"""Columns that a table can have; pandas itself stumbles over records."""


def mutations(rng):
    """Return a kind of table, a question, and hostile columns, names, roles and arguments."""
    found = [
        ("kind", str(rng.choice(list(KINDS), p=[0.6, 0.2, 0.2]))),
        ("question", str(rng.choice(QUESTIONS, p=[0.3, 0.12, 0.08, 0.08, 0.04, 0.08, 0.14, 0.08, 0.08]))),
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
            found.append(("asked", str(rng.choice(ASKED)), chosen(SETTINGS, rng), int(rng.integers(1000))))
    return found


def attempt(mutations):
    """Return what is wrong with a case, or None."""
    words = dict(one for one in mutations if len(one) == 2)
    columns, names, roles, asked = dict(BASE), {}, dict(ROLES), {}
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
    roles = {name: _renamed(one, names) for name, one in roles.items()}
    asked.setdefault("prediction", names.get("tau", "tau"))
    call = lambda: _answer(Study(table, **roles), words.get("question", "assess"), asked)  # noqa: E731
    return judged(call, [table, *roles.values(), *asked.values()], finite=not_finite)


def _renamed(value, names):
    if isinstance(value, str):
        return names.get(value, value)
    return [names.get(one, one) if isinstance(one, str) else one for one in value] if isinstance(value, list) else value


def _some(asked, *names, **usual):
    return {**usual, **{name: asked[name] for name in names if name in asked}}


def _answer(study, question, asked):  # noqa: PLR0911
    prediction = asked["prediction"]
    if question == "assess":
        found = study.assess(prediction, **_some(asked, "bins", "cost", "by", "draws", "redraws", draws=20))
        return {name: one.to_dict() for name, one in found.items()} if isinstance(found, dict) else found.to_dict()
    if question == "calibrate":
        found = study.calibrate(
            prediction,
            **_some(
                asked,
                "method",
                "holdout",
                "bins",
                "cost",
                "by",
                "draws",
                "redraws",
                "within",
                draws=20,
                method="linear",
            ),
        )
        many = found.values() if isinstance(found, dict) else [found]
        return [(one.to_dict(), one.summary()) for one in many]
    if question == "audit":
        own = _some(asked, "within", "discover", "bins", "smallest", "draws", within=["x"], draws=50, smallest=5)
        return repr(study.audit(prediction, **own))
    if question == "sensitivity":
        return repr(study.sensitivity(prediction, **_some(asked, "strengths", "benchmarks", "bins", "cost")))
    if question == "compare":
        return study.compare(prediction, "other", **_some(asked, "cost")).to_dict()
    if question == "policy":
        own = _some(asked, "cost", "budget", "spend", "method", "holdout", "draws", draws=20, method="linear")
        return study.policy(prediction, **own).to_dict()
    if question == "choose":
        return study.choose(
            prediction, **_some(asked, "cost", "method", "holdout", "draws", draws=20, method="linear")
        ).to_dict()
    return repr(study) if question == "repr" else repr(study.checks())
