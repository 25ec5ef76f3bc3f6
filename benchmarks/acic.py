"""Why does calibration do harm on ACIC 2016, and which nuisances end it? Prints the tables of acic.md in about seven minutes.

Every recipe meets the same rows, folds and seeds. The true outcome regressions are known; the true propensity is not.
Run: OMP_NUM_THREADS=1 python benchmarks/acic.py
"""

import time
import warnings

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

from learners import rms, table
from orthocal import CATE
from orthocal.calibration.schemes import fit_calibrator
from orthocal.experiments.acic import ACIC_DRAWS, MODELS, NUISANCES, SHARES, births, cross_fitted
from orthocal.nuisances.cross_fit import Fitted
from orthocal.nuisances.learners import SETTINGS

REPEATS, SIZE = range(2), "default"
SMALL = {"outcome": HistGradientBoostingRegressor(**{**SETTINGS, "min_samples_leaf": 5})}
RECIPES = {
    "boosting (library default)": (None, False),
    "boosting, leaves of 5": (SMALL, False),
    "linear": ("linear", False),
    "stagewise": ("stagewise", False),
    "boosting, training rows too": (None, True),
    "boosting, leaves of 5, training rows too": (SMALL, True),
    "stagewise, training rows too": ("stagewise", True),
    f"{NUISANCES}, training rows too (`reproduce acic`)": (NUISANCES, True),
}
TRUE = "true outcomes, boosted propensity"


def judged(data, own, fitted: Fitted, observations) -> dict[str, float]:
    """Distance of the doubly robust average from the true one, and the error of each outcome regression."""
    target, truth = CATE().loss(observations, fitted).target, data.effect[own]
    error = target.std() / np.sqrt(len(own))
    row = {name: rms(fitted[name] - data.nuisances[name][own]) for name in data.nuisances}
    distance = target.mean() - truth.mean()
    return {
        "truth": truth.mean(),
        "average": target.mean(),
        "se": error,
        "distance": distance,
        "z": distance / error,
        **row,
    }


def ratios(predictions, loss, truth) -> dict[str, float]:
    """True mean squared error on the test rows after `auto`, over that before."""
    return {
        name: float(
            np.mean((fit_calibrator("auto", own, loss).predict(test) - truth) ** 2) / np.mean((test - truth) ** 2)
        )
        for name, (own, test) in predictions.items()
    }


def measured(draw: int, repeat: int) -> list[dict]:
    """All recipes on one split of one draw; the split and the base models are those of `reproduce acic`."""
    data, rng = births(draw), np.random.default_rng([0, repeat, draw])
    train, own, test = np.split(rng.permutation(len(data.y)), (np.cumsum(SHARES) * len(data.y)).astype(int))
    seed, models = int(rng.integers(2**31)), {name: learn(data, train, SIZE, rng) for name, learn in MODELS.items()}
    predictions = {name: (model(data.X[own]), model(data.X[test])) for name, model in models.items()}
    rows = []

    def note(recipe, observations, fitted, seconds):
        found = ratios(predictions, CATE().loss(observations, fitted), data.effect[test])
        row = {"recipe": recipe, "draw": draw, "repeat": repeat, "time": seconds}
        rows.append({**row, **judged(data, own, fitted, observations), **found})

    for recipe, (learners, more) in RECIPES.items():
        start = time.process_time()
        observations, fitted = cross_fitted(data, own, train if more else train[:0], seed, learners)
        note(recipe, observations, fitted, time.process_time() - start)
    known = {**fitted.values, **{name: value[own] for name, value in data.nuisances.items()}}
    note(TRUE, observations, Fitted(known, fitted.clip, fitted.clipped, fitted.fold), np.nan)
    return rows


def overview(frame: pd.DataFrame) -> dict[str, dict[str, str]]:
    """By recipe, over draws and repetitions."""
    by, ratio = frame.groupby("recipe", sort=False), frame[[*MODELS]]
    most = ratio.max(axis=1)
    columns = {
        "rmse control": by["outcome_control"].mean(),
        "rmse treated": by["outcome_treated"].mean(),
        "distance, root mean square": by["distance"].apply(rms),
        "in standard errors": by["z"].apply(rms),
        "seconds": by["time"].mean(),
        "geometric mean of ratios": np.exp(np.log(ratio.clip(lower=0.01)).mean(axis=1).groupby(frame["recipe"]).mean()),
        "largest ratio": most.groupby(frame["recipe"]).max(),
    }
    shown = {name: {key: f"{value:.2f}" for key, value in column.items()} for name, column in columns.items()}
    share = (ratio > 1.03).mean(axis=1).groupby(frame["recipe"]).mean()
    return shown | {"ratio above 1.03": {key: f"{value:.0%}" for key, value in share.items()}}


def by_draw(frame: pd.DataFrame, repeat: int) -> str:
    """Each recipe's average and ratios by draw, of one repetition."""
    own = frame[frame["repeat"] == repeat]
    columns = {
        f"{draw} ({rows['truth'].iloc[0]:.2f})": {
            row["recipe"]: f"{row['average']:.2f} +- {row['se']:.2f}; {' '.join(f'{row[m]:.2f}' for m in MODELS)}"
            for _, row in rows.iterrows()
        }
        for draw, rows in own.groupby("draw")
    }
    return table(columns, dict.fromkeys(own["recipe"]))


def main():
    warnings.simplefilter("ignore")  # overlap is poor in draw 1
    frame = pd.DataFrame([row for repeat in REPEATS for draw in ACIC_DRAWS for row in measured(draw, repeat)])
    print(table(overview(frame), dict.fromkeys(frame["recipe"])))
    for repeat in REPEATS:
        print(f"\nRepetition {repeat}\n\n{by_draw(frame, repeat)}")


if __name__ == "__main__":
    main()
