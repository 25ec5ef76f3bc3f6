"""Calibration against known effects: ten draws of the ACIC 2016 challenge, three kinds of base model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from orthocal.arrays import Floats, Integers
from orthocal.calibration.schemes import fit_calibrator
from orthocal.calibrators import Histogram
from orthocal.datasets import SimulatedData, load_acic16
from orthocal.effects import CATE
from orthocal.experiments.changes import change_table, harm_claims, in_deviations
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
    true_calibration_error,
)
from orthocal.folds import draw_folds
from orthocal.losses import QuadraticLoss
from orthocal.nuisances.cross_fit import Fitted, cross_fit
from orthocal.nuisances.learners import Recipe
from orthocal.observations import Observations, observe
from orthocal.orthogonal import learn_cross
from orthocal.reporting.page.document import Table

ACIC_DRAWS = tuple(range(1, 11))
SHARES = (0.50, 0.25)
"""Rows to train on and to calibrate on; the rest is the test set."""
FOLDS, CLIP, BINS = 5, 0.01, 20
NUISANCES = "polynomial"
"""Learners of the nuisances that calibrate; why these, and from which rows, is measured in benchmarks/acic.md."""
METHODS: dict[str, Any] = {"isotonic": "isotonic", "histogram": Histogram(bins=20), "linear": "linear", "auto": "auto"}
SMALLEST = 1e-3
"""Where an error not distinguishable from 0 is drawn on a log scale."""
FIGURES = {"error": "true calibration error", "mse": "true mean squared error"}


@dataclass(frozen=True)
class Challenge:
    """ACIC 2016: true calibration error and true mean squared error before and after each method."""

    seed: int = 0
    sizes: tuple[str, ...] = ("large", "default")
    name: ClassVar[str] = "acic"
    title: ClassVar[str] = "Calibration against known effects: ACIC 2016"
    question: ClassVar[str] = (
        "Does calibration bring predictions nearer to effects that are known, and does it ever do harm?"
    )
    repeats: ClassVar[int] = 5

    def settings(self) -> Mapping[str, Any]:
        """Seed, learners of the base models and of the nuisances."""
        return {"seed": self.seed, "learners": list(self.sizes), "nuisances": NUISANCES}

    def keys(self, repeats: int) -> list[Key]:
        """Each repetition of each draw with each size of learners."""
        return [
            {"repeat": repeat, "draw": draw, "learners": size}
            for repeat in range(repeats)
            for draw in ACIC_DRAWS
            for size in self.sizes
        ]

    def run(self, key: Key) -> Row:
        """Split, train three models, calibrate each and compare with the true effects of the test rows."""
        data, rng = births(key["draw"]), np.random.default_rng([self.seed, key["repeat"], key["draw"]])
        train, own, test = np.split(rng.permutation(len(data.y)), (np.cumsum(SHARES) * len(data.y)).astype(int))
        size, truth = key["learners"], data.effect[test]
        loss = CATE().loss(*cross_fitted(data, own, train, int(rng.integers(2**31))))
        row: Row = {"outcome_deviation": float(np.std(data.y))}
        for name, learn in MODELS.items():
            model = learn(data, train, size, rng)
            before, after = model(data.X[own]), model(data.X[test])
            row.update(_judged(f"{name}_base", after, truth))
            for method, calibrator in METHODS.items():
                fitted = fit_calibrator(calibrator, before, loss)
                row.update(_judged(f"{name}_{method}", fitted.predict(after), truth))
        return row

    def findings(self, rows: Sequence[Row]) -> Findings:
        """Errors in deviations of the outcome, shares of runs that got better, and what is claimed."""
        by_size = rows_by_size(rows, self.sizes)
        sizes = list(by_size)
        tables = tuple(
            table for size, own in by_size.items() for table in (_table(size, own), change_table(size, own, MODELS))
        )
        panels = {
            f"{model}-learner, {size} trees": {
                method: np.maximum(in_deviations(by_size[size], model, method, "error"), SMALLEST)
                for method in ("base", *METHODS)
            }
            for size in sizes
            for model in MODELS
        }
        drawn = box_plots(
            panels,
            of="true calibration error",
            label="true calibration error",
            columns=len(MODELS),
            caption="True calibration error on the test rows in standard deviations of the outcome, over draws and repetitions.",
        )
        claims = tuple(
            claim for size, own in by_size.items() for claim in (*_claims(size, own), *harm_claims(size, own, MODELS))
        )
        return Findings(
            tables=tables,
            claims=claims,
            blocks=(drawn,),
            notes=_notes(rows, sizes),
            answer=" ".join(_answer(size, by_size[size]) for size in sizes),
        )


@lru_cache(maxsize=len(ACIC_DRAWS))
def births(draw: int) -> SimulatedData:
    """Return one of the ten draws."""
    return load_acic16(draw)


def t_learner(data: SimulatedData, rows: Integers, size: str, rng: np.random.Generator) -> Callable[[Floats], Floats]:
    """Return the difference of two regressions, one per arm."""
    arms = [
        regressor(size, random_state=int(rng.integers(2**31))).fit(data.X[own], data.y[own])
        for own in (rows[data.treatment[rows] == arm] for arm in (0, 1))
    ]
    return lambda X: np.asarray(arms[1].predict(X) - arms[0].predict(X))


def s_learner(data: SimulatedData, rows: Integers, size: str, rng: np.random.Generator) -> Callable[[Floats], Floats]:
    """Return the change of one regression when the treatment among its covariates changes."""
    model = regressor(size, random_state=int(rng.integers(2**31)))
    model.fit(np.column_stack([data.X[rows], data.treatment[rows]]), data.y[rows])

    def effect(X: Floats) -> Floats:
        at = [np.column_stack([X, np.full(len(X), float(arm))]) for arm in (0, 1)]
        return np.asarray(model.predict(at[1]) - model.predict(at[0]))

    return effect


def dr_learner(data: SimulatedData, rows: Integers, size: str, rng: np.random.Generator) -> Callable[[Floats], Floats]:
    """Return the regression of cross-fitted pseudo-outcomes on the covariates."""
    target = _loss(data, rows, size, rng).target
    model = regressor(size, random_state=int(rng.integers(2**31))).fit(data.X[rows], target)
    return lambda X: np.asarray(model.predict(X))


def cross_fitted(
    data: SimulatedData, own: Integers, others: Integers, seed: int, learners: Any = NUISANCES
) -> tuple[Observations, Fitted]:
    """Return the rows a model is calibrated on and their nuisances, learnt from their other folds and all `others`."""
    rows = np.concatenate([own, others])
    observations = observe(data.X[rows], data.y[rows], treatment=data.treatment[rows])
    judged = observations[np.arange(len(own))]
    fold = np.full(len(rows), FOLDS)  # a fold that is learnt from and never predicted
    fold[: len(own)] = draw_folds(FOLDS, CATE().strata(judged), judged, seed)
    wanted, folds = CATE().nuisances(observations), range(FOLDS)
    return judged, cross_fit(
        wanted, data.X[rows], fold, learners=learners, clip=CLIP, evaluate=folds, random_state=seed
    )


MODELS = {"T": t_learner, "S": s_learner, "DR": dr_learner}


def _loss(data: SimulatedData, rows: Integers, size: str, rng: np.random.Generator) -> QuadraticLoss:
    learners = {"propensity": classifier(size), "outcome": regressor(size)}
    recipe = Recipe(learners, CLIP, int(rng.integers(2**31)))
    observations = observe(data.X[rows], data.y[rows], treatment=data.treatment[rows])
    return learn_cross(CATE(), observations, data.X[rows], None, FOLDS, recipe).loss  # type: ignore[return-value]


def _judged(name: str, prediction: Floats, truth: Floats) -> Row:
    return {
        f"{name}_error": true_calibration_error(prediction, truth - prediction, BINS),
        f"{name}_mse": float(np.mean((truth - prediction) ** 2)),
    }


def _table(size: str, rows: Sequence[Row]) -> Table:
    lines = []
    for model in MODELS:
        base = {figure: in_deviations(rows, model, "base", figure) for figure in FIGURES}
        for method in ("base", *METHODS):
            cells = []
            for figure in FIGURES:
                own = in_deviations(rows, model, method, figure)
                better = "" if method == "base" else f"{np.mean(own < base[figure]):.0%}"
                cells += [f"{np.mean(own):.3f}", f"{np.median(own):.3f}", better]
            lines.append((f"{model}-learner, {method}", *cells))
    header = ("", *(f"{words}: {part}" for words in FIGURES.values() for part in ("mean", "median", "lower than base")))
    return Table(
        f"{size.capitalize()} trees, {len(rows)} runs, in deviations of the outcome (squared for the squared error)",
        header,
        tuple(lines),
    )


def _answer(size: str, rows: Sequence[Row]) -> str:
    """How often calibration by the default method brought predictions nearer, over runs and base models."""
    nearer = {
        figure: np.mean(
            [in_deviations(rows, m, "auto", figure) < in_deviations(rows, m, "base", figure) for m in MODELS]
        )
        for figure in FIGURES
    }
    farther = np.mean([in_deviations(rows, m, "auto", "mse") > in_deviations(rows, m, "base", "mse") for m in MODELS])
    return (
        f"{size.capitalize()} trees, method auto: the true calibration error falls in {nearer['error']:.0%} of cases; the true "
        f"mean squared error falls in {nearer['mse']:.0%} and rises in {farther:.0%}."
    )


def _claims(size: str, rows: Sequence[Row]) -> list[Claim]:
    """What the theory leads one to expect, by the true figures of this run."""
    claims = []
    for method in METHODS:
        for figure, words in FIGURES.items():
            pairs = [(float(np.mean(in_deviations(rows, m, "base", figure))), m) for m in MODELS]
            after = {m: float(np.mean(in_deviations(rows, m, method, figure))) for m in MODELS}
            claims.append(
                Claim(
                    f"{method.capitalize()} calibration lowers the mean {words} of every base model ({size} trees).",
                    all(after[m] < base for base, m in pairs),
                    ", ".join(f"{m} {base:.3f} to {after[m]:.3f}" for base, m in pairs),
                )
            )
    return claims


def _notes(rows: Sequence[Row], sizes: Sequence[str]) -> tuple[str, ...]:
    draws = len({row["draw"] for row in rows})
    return (
        (
            f"Data: {draws} draws of the ACIC 2016 challenge as shipped in causallib: real covariates of 4,802 births, "
            "simulated treatment and outcome, true effects known (Dorie, Hill, Shalit, Scott & Cervone 2019, Statistical "
            "Science 34)."
        ),
        "Each run: 50% of the rows train the base models, 25% calibrate, 25% test; other rows in every repetition.",
        (
            f"True calibration error: known effect minus prediction, averaged in {BINS} bins of the prediction, sampling "
            "noise taken off, root mean square; 0 where it is not distinguishable from noise. True mean squared error: "
            "against the same effects."
        ),
        *(f"{size.capitalize()} trees: {WORDS[size]}, for the base models." for size in sizes),
        (
            "Nuisances of the calibration: outcomes by a lasso of cubic terms (of the eight columns that matter most to a lasso "
            "without them) and then boosted trees on its residuals, propensity by boosted "
            f"trees; a row's are learnt from the rows of the {FOLDS - 1} other folds and those that train the base models."
        ),
        f"Fitted propensities are clipped to [{CLIP}, {1 - CLIP}].",
        "The paper has no experiment with known average effects; these claims are what its theory leads one to expect.",
    )
