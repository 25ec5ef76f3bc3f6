"""The design of the quantile experiment, and what its rows say: tables, the paper's figures and claims (l.862-866)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import t

from orthocal.arrays import Floats
from orthocal.experiments.protocol import WORDS, Claim, Findings, Row, lines, rows_by_size
from orthocal.reporting.page.document import Table
from orthocal.reporting.page.render import picture

SIZES, QUANTILES = (500, 1000, 1500, 2000, 2500, 3000), (0.5, 0.6, 0.75, 0.9)
COVARIATES, ACTIVE, CLIP, FOLDS = 100, 20, 0.05, 5
FRESH, BINS = 10_000, 30
"""Rows on which the truth is computed, and bins of the prediction there."""
TREE_BINS = 64
NUISANCES: dict[str, Any] = {"max_bins": TREE_BINS, "learning_rate": 0.2}
"""Coarser and quicker than the default: 100 covariates and few rows make bins and trees dear."""
METHODS = {
    "base": "base",
    "linear": "calibrated (Algorithm 4)",
    "refined": "calibrated, refined",
    "uncorrected": "calibrated, uncorrected loss",
    "double": "trained on 2N",
}
PANELS = {"error": "Calibration error", "loss": "Loss"}
COMPARABLE = 1.05
"""A loss within 5% of another is called comparable."""


def findings_of(rows: Sequence[Row], wanted: Sequence[str]) -> Findings:
    """Return means over repetitions with intervals, pictures and claims, for each size of learners that has rows."""
    by_size = rows_by_size(rows, wanted)
    tables, blocks, claims = [], [], []
    for size, own in by_size.items():
        tables += [_table(own, quantile, size) for quantile in QUANTILES]
        blocks.append(_picture(own, size))
        claims += _claims(own, size)
    answer = " ".join(_answer(own, size) for size, own in by_size.items())
    return Findings(
        tables=tuple(tables), claims=tuple(claims), blocks=tuple(blocks), notes=_notes(list(by_size)), answer=answer
    )


def _values(rows: Sequence[Row], n: int, quantile: float, method: str, figure: str) -> Floats:
    return np.array([row[f"q{quantile}_{method}_{figure}"] for row in rows if row["n"] == n])


def _mean(values: Floats) -> tuple[float, float]:
    """Mean over repetitions and half the width of its 95% interval, NaN where one repetition has none."""
    n = len(values)
    if n < 2:
        return float(np.mean(values)), float("nan")
    return float(np.mean(values)), float(t.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n))


def _cell(values: Floats) -> str:
    mean, half = _mean(values)
    return f"{mean:.3f}" if np.isnan(half) else f"{mean:.3f} ± {half:.3f}"


def _drawn(rows: Sequence[Row]) -> list[int]:
    return sorted({row["n"] for row in rows})


def _table(rows: Sequence[Row], quantile: float, size: str) -> Table:
    cells = [
        (f"{words}: {figure}", *(_cell(_values(rows, n, quantile, method, figure)) for n in _drawn(rows)))
        for figure in PANELS
        for method, words in METHODS.items()
    ]
    count = max(sum(row["n"] == n for row in rows) for n in _drawn(rows))
    return Table(
        f"Q = {quantile}, {size} trees: true calibration error and expected loss, mean over {count} repetitions ± half a "
        "95% interval",
        ("", *(f"N = {n}" for n in _drawn(rows))),
        tuple(cells),
    )


def _picture(rows: Sequence[Row], size: str) -> Any:
    panels = {}
    drawn = np.array(_drawn(rows), dtype=float)
    for quantile in QUANTILES:
        for figure, title in PANELS.items():
            found = {m: [_mean(_values(rows, n, quantile, m, figure)) for n in _drawn(rows)] for m in METHODS}
            panels[f"{title}, Q = {quantile}"] = {
                METHODS[m]: (drawn, np.array([mean for mean, _ in cells]), np.array([half for _, half in cells]))
                for m, cells in found.items()
            }
    last = _drawn(rows)[-1]
    words = "; ".join(
        f"Q = {q}, N = {last}: base {_mean(_values(rows, last, q, 'base', 'error'))[0]:.3f}, calibrated "
        f"{_mean(_values(rows, last, q, 'linear', 'error'))[0]:.3f}"
        for q in QUANTILES
    )
    return picture(
        lines(panels, "N", ("true calibration error", "expected loss")),
        f"Lines of the true calibration error and the loss against N for each quantile. Error, {words}.",
        f"{size.capitalize()} trees. Left: true calibration error, right: expected pinball loss at the true nuisances; "
        "mean over repetitions with 95% pointwise intervals.",
        f"lines-{size}",
    )


def _answer(rows: Sequence[Row], size: str) -> str:
    """The error before and after, averaged over all cells."""
    error, loss = (
        [np.mean([row[f"q{q}_{method}_{figure}"] for row in rows for q in QUANTILES]) for method in ("base", "linear")]
        for figure in PANELS
    )
    return (
        f"{size.capitalize()} trees, mean over all N and Q: the true error goes from {error[0]:.3f} to {error[1]:.3f}, "
        f"the loss from {loss[0]:.3f} to {loss[1]:.3f}."
    )


def _claims(rows: Sequence[Row], size: str) -> list[Claim]:
    """The claims of l.862-866, each by the figures of this run."""
    cells = [(n, quantile) for n in _drawn(rows) for quantile in QUANTILES]
    falls, losses, ratios, gains = [], [], [], []
    for n, quantile in cells:
        error = {m: _values(rows, n, quantile, m, "error") for m in METHODS}
        loss = {m: _values(rows, n, quantile, m, "loss") for m in METHODS}
        mean, half = _mean(error["linear"] - error["base"])
        falls.append(mean + half < 0)
        losses.append(_mean(loss["linear"] - loss["base"])[0] < 0)
        ratios.append(float(np.mean(loss["linear"]) / np.mean(loss["double"])))
        gains.append(_mean(error["linear"] - error["uncorrected"])[0] < 0)
    return [
        Claim(
            f"Calibration lowers the error whatever N and Q ({size} trees; 95% interval of the paired difference below 0).",
            all(falls) if len(rows) > len(_drawn(rows)) else None,
            f"in {sum(falls)} of {len(cells)} cells",
        ),
        Claim(
            f"Calibration typically decreases the loss ({size} trees; in most cells).",
            sum(losses) > len(cells) / 2,
            f"in {sum(losses)} of {len(cells)} cells",
        ),
        Claim(
            f"The loss with N rows to train and N to calibrate is comparable to that of training on 2N ({size} trees; "
            f"in every cell at most {COMPARABLE - 1:.0%} higher).",
            max(ratios) <= COMPARABLE,
            f"{min(ratios) - 1:+.1%} to {max(ratios) - 1:+.1%}",
        ),
        Claim(
            f"The corrected loss calibrates better than the uncorrected one ({size} trees; implied, not measured in the "
            "paper; in most cells).",
            sum(gains) > len(cells) / 2,
            f"in {sum(gains)} of {len(cells)} cells",
        ),
    ]


def _notes(sizes: Sequence[str]) -> tuple[str, ...]:
    return (
        (
            f"Design of the paper: {COVARIATES} standard normal covariates, {ACTIVE} of which move treatment and outcome, "
            f"noise standard normal, propensities clipped at {CLIP}, so that about half of all rows sit at a clip: overlap "
            "is poor by design. New slopes in every repetition, the same for all N. The text says Q in {0.5, 0.75, 0.9}, "
            "the figures {0.6, 0.75, 0.9}: all four are run."
        ),
        (
            f"True calibration error: F(prediction | x) is known, so on {FRESH:,} fresh rows its mean in {BINS} bins of the "
            "prediction is compared with Q, sampling noise taken off; root mean square. Loss: pinball loss with noise and "
            "treatment integrated out exactly. The paper does not say how it measured either."
        ),
        (
            "Base model: boosted quantile regression of the treated rows, weighted by cross-fitted inverse propensities. "
            "Trained on 2N: the same, on training and calibration rows together."
        ),
        *(
            f"{size.capitalize()} trees: {WORDS[size]}; {TREE_BINS} bins, "
            f"and for nuisances learning rate {NUISANCES['learning_rate']}."
            for size in sizes
        ),
        (
            f"Nuisances of the calibration rows: propensity (kept inside [{CLIP}, {1 - CLIP}]) and the whole conditional "
            "distribution of the outcome, learnt once for all quantiles; Algorithm 4 as printed takes it at the base prediction, "
            "refinement takes it twice more at the calibrated one."
        ),
    )
