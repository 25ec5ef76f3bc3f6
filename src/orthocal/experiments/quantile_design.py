"""The design of the quantile experiment, and what is compared in it."""

from __future__ import annotations

from typing import Any

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
