"""Rows in partitions, on Dask, in DuckDB and in files: hostile columns and settings get a sentence, or a finite answer."""

import tempfile
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv, parquet

from orthocal import Study
from tests.fuzz.hostile import COLUMNS, NAMES, SETTINGS, N, chosen
from tests.fuzz.judgement import judged, not_finite
from tests.fuzz.questions import ASKED, QUESTIONS, answered
from tests.fuzz.studies import BASE, PLAUSIBLE, renamed

NAME = "engines"
USED = ("x", "y", "a", "tau", "other", "w", "g", "held", "segment")
GIVEN = {
    "outcome": "y",
    "treatment": "a",
    "covariates": ["x"],
    "propensity": 0.5,
    "weight": "w",
    "folds": 2,
    "nuisances": {"outcome_control": 0.0, "outcome_treated": 1.0},
    "learners": None,
}
ROLES = (
    *GIVEN,
    "groups",
    "key",
    "level",
    "tolerance",
    "clip",
    "random_state",
    "sample",
    "exact",
    "arms",
    "effect",
    "arm",
    "control",
    "event",
    "instrument",
    "predictions",
    "exclude",
    "limits",
    "n_jobs",
)
LIKELY = {
    "assess": 0.25,
    "calibrate": 0.2,
    "compare": 0.1,
    "policy": 0.05,
    "choose": 0.05,
    "audit": 0.05,
    "sensitivity": 0.05,
    "checks": 0.05,
    "repr": 0.2,
}


def _dask(columns, folder):
    import dask.dataframe as dd

    return dd.from_pandas(pd.DataFrame(columns, index=range(N)), npartitions=2)


def _relation(columns, folder):
    table = pa.Table.from_pandas(pd.DataFrame(columns, index=range(N)), preserve_index=False)
    return duckdb.connect().from_arrow(table)


def _files(columns, folder, write, ending):
    table = pa.Table.from_pandas(pd.DataFrame(columns, index=range(N)), preserve_index=False)
    for part, own in enumerate((table.slice(0, N // 2), table.slice(N // 2))):
        write(own, folder / f"{part}.{ending}")
    return folder


def _parquet(columns, folder):
    return _files(columns, folder, parquet.write_table, "parquet")


def _csv(columns, folder):
    return f"{_files(columns, folder, csv.write_csv, 'csv')}/*.csv"


KINDS = {"dask": _dask, "duckdb": _relation, "parquet": _parquet, "csv": _csv}


def mutations(rng):
    """Return where the rows are, a question, and hostile columns, names and settings."""
    found = [
        ("kind", str(rng.choice(list(KINDS), p=[0.25, 0.25, 0.25, 0.25]))),
        ("question", str(rng.choice(list(LIKELY), p=list(LIKELY.values())))),
    ]
    if rng.random() < 0.2:
        found.append(("learnt", 1))
    for _ in range(rng.integers(1, 3)):
        kind = rng.random()
        if kind < 0.4:
            found.append(("column", str(rng.choice(USED[:-1])), chosen(PLAUSIBLE, rng), int(rng.integers(1000))))
        elif kind < 0.5:
            found.append(("name", str(rng.choice(USED)), str(rng.choice(NAMES)), 0))
        else:
            asked = ASKED[found[1][1]]
            what, table = ("asked", asked) if asked and kind > 0.75 else ("role", ROLES)
            found.append((what, str(rng.choice(table)), chosen(SETTINGS, rng), int(rng.integers(1000))))
    return found


def attempt(mutations):
    """Return what is wrong with a case, or None."""
    import dask

    words = dict(one for one in mutations if len(one) == 2)
    columns, names, roles, asked = {name: BASE[name] for name in USED}, {}, dict(GIVEN), {}
    if "learnt" in words:
        roles |= {"nuisances": None, "learners": "linear"}
    for what, name, value, seed in (one for one in mutations if len(one) == 4):
        rng = np.random.default_rng(seed)
        if what == "column":
            columns[name] = COLUMNS[value](BASE[name], rng)
        elif what == "name":
            names[name] = value
        else:
            {"role": roles, "asked": asked}[what][name] = SETTINGS[value](rng)
    asked.setdefault("prediction", renamed("tau", names))
    asked.setdefault("rival", renamed("other", names))
    roles = {name: renamed(one, names) for name, one in roles.items()}
    with dask.config.set(scheduler="synchronous"), tempfile.TemporaryDirectory() as folder:
        named = {names.get(name, name): one for name, one in columns.items()}
        try:
            data = KINDS[words.get("kind", "dask")](named, Path(folder))
        except Exception:  # noqa: BLE001
            return None  # no such rows can be made
        call = lambda: answered(Study(data, **roles), words.get("question", "assess"), asked)  # noqa: E731
        return judged(call, [*roles.values(), *asked.values()], finite=not_finite)


assert set(LIKELY) == set(QUESTIONS)
