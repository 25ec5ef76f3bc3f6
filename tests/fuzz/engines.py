"""Rows on Dask: hostile columns and settings get a sentence, or a verdict that is finite; few cases, for each takes long."""

import numpy as np
import pandas as pd

from orthocal import Study
from tests.fuzz.hostile import COLUMNS, SETTINGS, N, chosen
from tests.fuzz.judgement import judged, not_finite
from tests.fuzz.studies import BASE, PLAUSIBLE

NAME = "engines"
ROLES = (
    "outcome",
    "treatment",
    "weight",
    "groups",
    "key",
    "level",
    "tolerance",
    "clip",
    "random_state",
    "sample",
    "exact",
)
ASKED = ("bins", "cost", "by", "draws", "holdout")


def mutations(rng):
    """Return a question, and hostile columns and settings."""
    found = [("question", str(rng.choice(["assess", "calibrate", "repr"], p=[0.3, 0.1, 0.6])))]
    for _ in range(rng.integers(1, 3)):
        kind = rng.random()
        if kind < 0.5:
            found.append(
                (
                    "column",
                    str(rng.choice(["x", "y", "a", "tau", "w", "g"])),
                    chosen(PLAUSIBLE, rng),
                    int(rng.integers(1000)),
                )
            )
        else:
            table = ROLES if kind < 0.8 else ASKED
            found.append(("set", str(rng.choice(table)), chosen(SETTINGS, rng), int(rng.integers(1000))))
    return found


def attempt(mutations):
    """Return what is wrong with a case, or None."""
    import dask
    import dask.dataframe as dd

    columns = {name: BASE[name] for name in ("x", "y", "a", "tau", "w", "g")}
    settings, question = {}, "assess"
    for one in mutations:
        if one[0] == "question":
            question = one[1]
            continue
        what, name, value, seed = one
        rng = np.random.default_rng(seed)
        if what == "column":
            columns[name] = COLUMNS[value](BASE[name], rng)
        else:
            settings[name] = SETTINGS[value](rng)
    with dask.config.set(scheduler="synchronous"):
        try:
            frame = dd.from_pandas(pd.DataFrame(columns, index=range(N)), npartitions=2)
        except Exception:  # noqa: BLE001
            return None  # no such frame can be made
        return judged(lambda: answered(frame, question, settings), settings.values(), finite=not_finite)


def answered(frame, question, settings):
    """Ask a study on Dask."""
    given = {"outcome": "y", "treatment": "a", "covariates": [], "propensity": 0.5, "weight": "w", "folds": 2}
    study = Study(frame, **{**given, **{name: settings[name] for name in ROLES if name in settings}})
    asked = {"draws": 20, **{name: settings[name] for name in ASKED if name in settings}}
    if question == "assess":
        asked.pop("holdout", None)
        return study.assess("tau", **asked).to_dict()
    return study.calibrate("tau", "linear", **asked).to_dict() if question == "calibrate" else repr(study)
