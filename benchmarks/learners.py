"""Which learners should be the default for nuisances? Writes learners.md in about twelve minutes of one core.

Every learner meets the same data, folds and seeds. The prediction to calibrate is 1 + 2 * effect, so the truth is a
function of it, and the error of a calibrated prediction is measured against the true effect on fresh rows.
Run: OMP_NUM_THREADS=1 python benchmarks/learners.py
"""

import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from orthocal import CATE, Isotonic, Linear
from orthocal.datasets import SimulatedData, load_401ksubs, simulate_cate
from orthocal.nuisances.learners import SETTINGS, Recipe
from orthocal.observations import observe
from orthocal.orthogonal import learn_cross

SIZES, SEEDS, FRESH = (1000, 4000), range(100, 110), 100_000
CALIBRATORS = {"Linear": Linear(), "Isotonic": Isotonic()}
NUISANCES = ["propensity", "outcome_control", "outcome_treated"]
STOP = {"max_iter": 300, "early_stopping": True, "validation_fraction": 0.15, "n_iter_no_change": 10}
SHALLOW = {"learning_rate": 0.1, "max_depth": 3, "min_samples_leaf": 20, **STOP}
GRID = [{"max_depth": depth, "learning_rate": rate} for rate in (0.1, 0.05) for depth in (2, 3, 4)]
CHANGES = [*GRID, {"n_iter_no_change": 15}, {"min_samples_leaf": 5}, {"l2_regularization": 10.0}]
LEGEND = """# Learners for the nuisances, compared

Written by `benchmarks/learners.py`. First table, ratios to the default, +- paired standard error over {seeds} seeds:
true root-mean-square error after calibration, error of each nuisance, processor time. No truth is known for 401ksubs:
standard deviation of the pseudo-outcome. Second table: Linear / Isotonic error in standard deviations of the effect.

Boosted trees: `{shallow}` unless named. Default: `{default}`.
"""


def boosted(**settings):
    return HistGradientBoostingClassifier(**settings), HistGradientBoostingRegressor(**settings)


def candidates() -> dict[str, tuple | None]:
    """Learner of propensity and of outcome, by name. A variation equal to the default is left out."""
    every = {str(change).strip("{}").replace("'", ""): {**SHALLOW, **change} for change in CHANGES}
    found = {"default": boosted(**SETTINGS)} | {k: boosted(**v) for k, v in every.items() if v != SETTINGS}
    found["scikit-learn's own"] = boosted(early_stopping=False)
    try:
        from lightgbm import LGBMClassifier, LGBMRegressor

        found["LightGBM's own"] = LGBMClassifier(n_jobs=1, verbose=-1), LGBMRegressor(n_jobs=1, verbose=-1)
    except ImportError:
        print("LightGBM is not installed: skipped")
    found["linear"] = tuple(make_pipeline(StandardScaler(), m) for m in (LogisticRegression(), RidgeCV()))
    return found | {"true nuisances": None}


def confounded(X, rng):
    """Strong confounding, a jump and an interaction; an effect of standard deviation 0.44 under noise of 2."""
    propensity = expit(1.2 * X[:, 0] - 0.8 * X[:, 2] + 0.5 * X[:, 0] * X[:, 1])
    baseline = 2 * (X[:, 0] > 0) + X[:, 0] * X[:, 1] - X[:, 2]
    return propensity, baseline, 0.3 * X[:, 0] + 0.5 * np.tanh(X[:, 3]), 1.0, rng.normal(0, 2, len(X))


def skewed(X, rng):
    """Amounts of money: the outcome is its mean times lognormal noise; the effect is a share of the baseline."""
    baseline = np.exp(1 + X[:, 0] / 2 + 0.3 * np.abs(X[:, 2]))
    factor = rng.lognormal(-0.32, 0.8, len(X))
    return expit(0.7 * X[:, 0] - 0.5 * X[:, 1]), baseline, baseline * expit(X[:, 1]) / 2, factor, 0.0


def draw(design: str, n: int, seed: int) -> SimulatedData:
    if design == "smooth":
        return simulate_cate(n, random_state=seed)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 8))
    propensity, baseline, effect, factor, noise = {"confounded": confounded, "skewed": skewed}[design](X, rng)
    treatment = (rng.random(n) < propensity).astype(np.int64)
    truth = dict(zip(NUISANCES, (propensity, baseline, baseline + effect), strict=True))
    return SimulatedData(X, (baseline + treatment * effect) * factor + noise, treatment, effect, truth)


def learn(learners, data, seed=0):
    """All that `orthogonal_loss` does, keeping the nuisances, and the processor seconds it takes."""
    known = data.nuisances if learners is None else None
    recipe = Recipe(dict(zip(("propensity", "outcome"), learners or (), strict=False)), random_state=seed, n_jobs=1)
    start = time.process_time()
    observations = observe(data.X, data.y, treatment=data.treatment)
    return learn_cross(CATE(), observations, data.X, known, 5, recipe), time.process_time() - start


def measure(learners: tuple | None, data: SimulatedData, fresh: SimulatedData, seed: int) -> dict[str, float]:
    learnt, seconds = learn(learners, data, seed)
    row = {name: rms(learnt.nuisances[name] - data.nuisances[name]) for name in NUISANCES} | {"time": seconds}
    for name, calibrator in CALIBRATORS.items():
        calibrated = calibrator.fit(1 + 2 * data.effect, learnt.loss).predict(1 + 2 * fresh.effect)
        row[name] = rms(calibrated - fresh.effect) / fresh.effect.std()
    return row


def rms(error: np.ndarray) -> float:
    return float(np.sqrt(np.mean(error**2)))


def simulations(learners: dict) -> pd.DataFrame:
    rows = []
    for design in ("smooth", "confounded", "skewed"):
        fresh = draw(design, FRESH, 0)
        for n, seed in ((n, seed) for n in SIZES for seed in SEEDS):
            data, cell = draw(design, n, seed), {"cell": f"{design} {n}", "seed": seed}
            rows += [{**cell, "learner": k, **measure(v, data, fresh, seed)} for k, v in learners.items()]
    return pd.DataFrame(rows)


def relative(frame: pd.DataFrame, column: str) -> dict[str, str]:
    """Mean over cells of each learner's ratio to the default, with the paired standard error over seeds."""
    wide = frame.pivot(index=["cell", "seed"], columns="learner", values=column)
    gaps = wide.sub(wide["default"], axis=0).div(wide["default"].groupby("cell").mean(), axis=0, level="cell")
    cells = gaps.groupby("cell")
    ratio, error = 1 + cells.mean().mean(), np.sqrt((cells.sem() ** 2).sum()) / cells.ngroups
    return {name: f"{ratio[name]:.2f} +- {error[name]:.2f}" for name in wide.columns}


def table(columns: dict[str, dict], names: dict) -> str:
    """Markdown of a mapping from column to (mapping from learner to text)."""
    body = [[name, *(column.get(name, "") for column in columns.values())] for name in names]
    return "\n".join(f"| {' | '.join(row)} |" for row in [["", *columns], ["---"] * (len(columns) + 1), *body])


def main():
    warnings.simplefilter("ignore")  # overlap is poor on purpose in `confounded`
    learners = candidates()
    frame = simulations(learners)
    real = {name: learn(learner, load_401ksubs()) for name, learner in learners.items() if learner}
    summary = {column: relative(frame, column) for column in [*CALIBRATORS, *NUISANCES, "time"]}
    summary["401ksubs sd"] = {name: f"{learnt.loss.target.std():.1f}" for name, (learnt, _) in real.items()}
    summary["401ksubs time"] = {k: f"{seconds / real['default'][1]:.2f}" for k, (_, seconds) in real.items()}
    means = frame.groupby(["cell", "learner"], sort=False)[[*CALIBRATORS]].mean()
    text = means.apply(lambda row: " / ".join(f"{error:.3f}" for error in row), axis=1)
    cells = {cell: text[cell].to_dict() for cell in frame["cell"].unique()}
    legend = LEGEND.format(seeds=len(SEEDS), shallow=SHALLOW, default=SETTINGS)
    report = "\n".join([legend, table(summary, learners), "", table(cells, learners), ""])
    Path(__file__).with_suffix(".md").write_text(report, encoding="utf-8")


if __name__ == "__main__":
    main()
