"""The paper's first experiment: effects of 401(k) eligibility and participation on net financial assets (l.768-812)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from orthocal.arrays import Floats, Integers
from orthocal.assessment import assess
from orthocal.calibration.schemes import fit_calibrator
from orthocal.calibrators import Histogram
from orthocal.datasets import RealData, load_401k, load_reduced_401k
from orthocal.effects import CATE, LATE
from orthocal.errors import UnavailableError
from orthocal.experiments.protocol import (
    WORDS,
    Claim,
    Findings,
    Key,
    Row,
    box_plots,
    classifier,
    regressor,
    rows_by_size,
)
from orthocal.losses import QuadraticLoss
from orthocal.nuisances.learners import Recipe
from orthocal.observations import observe
from orthocal.orthogonal import learn_cross
from orthocal.reporting.page.document import Table

EFFECTS = {"cate": "CATE of eligibility", "late": "LATE of participation"}
METHODS: dict[str, Any] = {"isotonic": "isotonic", "histogram": Histogram(bins=20), "linear": "linear"}
"""Of the paper."""
FURTHER: dict[str, Any] = {"constant": "constant", "auto": "auto"}
"""Of ours: the average effect for everybody, and the default."""
ALL_METHODS = METHODS | FURTHER
CLEARLY_BETTER = {"cate": ("isotonic", "linear"), "late": ("histogram", "linear")}
"""Methods of which the paper says that their third quartile lies below the base model's first."""
SHARES = (0.60, 0.25)
"""Rows to train on and to calibrate on; the rest is the test set."""
FOLDS, CLIP, MILLION = 5, 0.01, 1e6
TABLES = {"full": load_401k, "reduced": load_reduced_401k}


@lru_cache(maxsize=len(TABLES))
def households(table: str) -> RealData:
    """Return a table by name, read once per process."""
    return TABLES[table]()


def _table_to_be_had() -> str:
    """Return the full table's name, or the reduced one's where the full one cannot be had."""
    try:
        households("full")
    except UnavailableError:
        return "reduced"
    return "full"


@dataclass(frozen=True)
class Retirement:
    """401(k): base, isotonic, histogram and linear calibration, the average and `auto`, over random splits of the households."""

    seed: int = 0
    sizes: tuple[str, ...] = ("large", "shallow")
    table: str = field(default_factory=_table_to_be_had)  # decided once, for all workers
    name: ClassVar[str] = "401k"
    title: ClassVar[str] = "Effects of 401(k) eligibility and participation on net financial assets"
    question: ClassVar[str] = "Does calibration make estimates of these effects better calibrated?"
    repeats: ClassVar[int] = 100

    def settings(self) -> Mapping[str, Any]:
        """Seed, learners, and which table it was."""
        return {"seed": self.seed, "learners": list(self.sizes), "data": households(self.table).source}

    def keys(self, repeats: int) -> list[Key]:
        """Each split with each size of learners."""
        return [{"split": split, "learners": size} for split in range(repeats) for size in self.sizes]

    def run(self, key: Key) -> Row:
        """Split, train, calibrate and judge both effects; the split is the same for every size of learners."""
        data, rng = households(self.table), np.random.default_rng([self.seed, key["split"]])
        order = rng.permutation(len(data.y))  # the file is sorted by eligibility
        train, calibration, test = np.split(order, (np.cumsum(SHARES) * len(order)).astype(int))
        losses = [_losses(data, rows, key["learners"], rng) for rows in (train, calibration, test)]
        row: Row = {}
        for effect in EFFECTS:
            fitted, own, judged = (loss[effect] for loss in losses)
            model = regressor(key["learners"], random_state=int(rng.integers(2**31)))
            model.fit(data.X[train], fitted.target)
            before = {"calibration": model.predict(data.X[calibration]), "test": model.predict(data.X[test])}
            row.update(_judged(f"{effect}_base", before, judged))
            for method, calibrator in ALL_METHODS.items():
                fit = fit_calibrator(calibrator, before["calibration"], own)
                after = {part: fit.predict(values) for part, values in before.items()}
                row.update(_judged(f"{effect}_{method}", after, judged))
        return row

    def findings(self, rows: Sequence[Row]) -> Findings:
        """Quartiles over splits, the paper's box plots and claims."""
        by_size = rows_by_size(rows, self.sizes)
        sizes = list(by_size)
        tables = tuple(_table(effect, size, by_size[size]) for size in sizes for effect in EFFECTS)
        panels = {
            f"{EFFECTS[effect]}, {size} trees": {
                method: _column(by_size[size], effect, method, "quartile") / MILLION
                for method in ("base", *ALL_METHODS)
            }
            for size in sizes
            for effect in EFFECTS
        }
        drawn = box_plots(
            panels,
            of="quartile error",
            label="quartile error / 10^6",
            columns=2,
            caption="The paper's quartile error as printed, mean squared gap in dollars over four bins, divided by a million. "
            "Box: quartiles over splits; whiskers to 1.5 box heights beyond them.",
        )
        claims = tuple(claim for size in sizes for claim in _claims(size, by_size[size]))
        answer = " ".join(_answer(title, methods) for title, methods in panels.items())
        return Findings(
            tables=tables,
            claims=claims,
            blocks=(drawn,),
            notes=_notes(households(self.table), len(by_size[sizes[0]]), sizes),
            answer=answer,
        )


def _losses(data: RealData, rows: Integers, size: str, rng: np.random.Generator) -> dict[str, QuadraticLoss]:
    """Cross-fit once for both effects: the LATE's nuisances of the instrument are the CATE's of eligibility."""
    X, y = data.X[rows], data.y[rows]
    takes_part, eligible = data.treatment[rows], np.asarray(data.instrument)[rows]
    learners = {"propensity": classifier(size), "outcome": regressor(size), "treatment": classifier(size)}
    recipe = Recipe(learners, CLIP, int(rng.integers(2**31)))
    late = learn_cross(LATE(), observe(X, y, treatment=takes_part, instrument=eligible), X, None, FOLDS, recipe)
    known = {
        "propensity": late.nuisances["instrument_propensity"],
        "outcome_control": late.nuisances["outcome_z0"],
        "outcome_treated": late.nuisances["outcome_z1"],
    }
    cate = learn_cross(CATE(), observe(X, y, treatment=eligible), X, known, late.fold, Recipe())
    return {"cate": cate.loss, "late": late.loss}  # type: ignore[dict-item]


def quartile_error(calibration: Floats, test: Floats, pseudo_outcome: Floats) -> float:
    """Return the paper's error (l.794) as printed: bins at the quartiles of the calibration rows, mean of squared gaps.

    No root and no weight of a bin, as printed (mathematics 12.8 says why both are due); a bin that holds no test row is left out.
    """
    n = len(calibration)
    edges = np.sort(calibration)[[i * n // 4 - 1 for i in (1, 2, 3)]]
    index = np.searchsorted(edges, test, side="left")
    gaps = [np.mean(pseudo_outcome[index == b] - test[index == b]) for b in np.unique(index)]
    return float(np.mean(np.square(gaps)))


def _judged(name: str, prediction: Mapping[str, Floats], loss: QuadraticLoss) -> Row:
    """The paper's figure and ours, on the test rows."""
    verdict = assess(prediction["test"], loss, draws=1)
    return {
        f"{name}_quartile": quartile_error(prediction["calibration"], prediction["test"], loss.target),
        f"{name}_loss": float(np.mean(loss.value(prediction["test"]))),
        f"{name}_error_squared": verdict.error_squared,
        f"{name}_error": verdict.error,
        f"{name}_lower": verdict.interval[0],
        f"{name}_upper": verdict.interval[1],
    }


def _column(rows: Sequence[Row], effect: str, method: str, figure: str) -> Floats:
    return np.array([row[f"{effect}_{method}_{figure}"] for row in rows])


def _table(effect: str, size: str, rows: Sequence[Row]) -> Table:
    base, average = _column(rows, effect, "base", "quartile"), _column(rows, effect, "constant", "loss")
    lines = []
    for method in ("base", *ALL_METHODS):
        own = _column(rows, effect, method, "quartile")
        low, middle, high = np.quantile(own, [0.25, 0.5, 0.75]) / MILLION
        squared = float(np.median(_column(rows, effect, method, "error_squared"))) / MILLION
        ours = [float(np.median(_column(rows, effect, method, name))) for name in ("lower", "upper")]
        wrong = float(np.mean(_column(rows, effect, method, "lower") > 0))
        better = "" if method == "base" else f"{np.mean(own < base):.0%}"
        above = (_column(rows, effect, method, "loss") - average) / MILLION
        lines.append(
            (
                method,
                f"{low:.0f}",
                f"{middle:.0f}",
                f"{high:.0f}",
                better,
                f"{np.mean(above):+.1f} ({np.std(above) / np.sqrt(len(above)):.1f})",
                f"{squared:.0f}",
                f"{ours[0]:,.0f} to {ours[1]:,.0f}",
                f"{wrong:.0%}",
            )
        )
    return Table(
        f"{EFFECTS[effect]}, {size} trees, {len(rows)} splits",
        (
            "method",
            "Q1",
            "median",
            "Q3",
            "lower than base",
            "loss above the average effect's (standard error)",
            "debiased squared error",
            "95% interval of the error, $",
            "miscalibration shown",
        ),
        tuple(lines),
    )


def _answer(title: str, methods: Mapping[str, Floats]) -> str:
    medians = {method: float(np.median(values)) for method, values in methods.items()}
    best = min(ALL_METHODS, key=lambda method: medians[method])
    moved = "falls" if medians[best] < medians["base"] else "does not fall"
    return (
        f"{title}: the median error {moved} from {medians['base']:.0f} to {medians[best]:.0f} with {best} calibration."
    )


def _claims(size: str, rows: Sequence[Row]) -> list[Claim]:
    """The claims of l.807-812, each by the figures of this run."""
    claims = []
    for effect, words in EFFECTS.items():
        errors = {method: _column(rows, effect, method, "quartile") / MILLION for method in ("base", *METHODS)}
        base = float(np.median(errors["base"]))
        medians = {method: float(np.median(errors[method])) for method in METHODS}
        claims.append(
            Claim(
                f"{words}, {size} trees: every method has a smaller median error than the base model.",
                all(median < base for median in medians.values()),
                f"base {base:.0f}, " + ", ".join(f"{method} {median:.0f}" for method, median in medians.items()),
            )
        )
        first = float(np.quantile(errors["base"], 0.25))
        for method in CLEARLY_BETTER[effect]:
            third = float(np.quantile(errors[method], 0.75))
            claims.append(
                Claim(
                    f"{words}, {size} trees: the third quartile of {method} lies below the first quartile of the base "
                    f"model.",
                    third < first,
                    f"{third:.0f} against {first:.0f}",
                )
            )
    return claims


def _notes(data: RealData, splits: int, sizes: Sequence[str]) -> tuple[str, ...]:
    return (
        (
            f"Data: {data.source}; {len(data.y):,} households, {len(data.covariates)} covariates, net financial assets in "
            f"dollars; {splits} random splits into 60% training, 25% calibration and 15% test rows; {FOLDS} folds in each."
        ),
        "Base model: pseudo-outcomes of the training rows, regressed on the covariates by boosted trees.",
        *(
            f"{size.capitalize()} trees: {WORDS[size]}, for base model and nuisances of training, calibration and test rows."
            for size in sizes
        ),
        f"Fitted propensities are clipped to [{CLIP}, {1 - CLIP}]. The paper does not say how it clips.",
        (
            "The LATE's pseudo-outcome is the corrected one: in print its sign and its divisor are wrong, which is the "
            "covariance of treatment and instrument. Nobody takes part without being eligible, so that nuisance is 0 and is "
            "not learnt; propensity and outcome models serve both effects."
        ),
        (
            "Quartile error: as printed, without a root and without the bins' weights, so that figures compare with the "
            "paper's; it holds the noise of the test rows, about the variance of a bin's mean, whatever the model. Beside it the "
            "debiased squared error in ten bins of the same test rows, also divided by a million, medians of its 95% interval "
            "(of the root, in dollars), and the share of splits whose interval excludes 0."
        ),
        (
            "Loss: mean half squared distance from the pseudo-outcomes of the test rows, above that of predicting the average "
            "effect for everybody, divided by a million; its standard error over splits."
        ),
        "Splits overlap, so their spread says how much a result depends on the split, not how far it is from the truth.",
    )
