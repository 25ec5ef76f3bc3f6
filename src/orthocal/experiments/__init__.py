"""The paper's experiments and one with known truth, each by one command, resumable."""

from __future__ import annotations

from typing import Any

from orthocal.errors import OrthocalError, require_one_of
from orthocal.experiments.acic import Challenge
from orthocal.experiments.protocol import Claim, Experiment, Findings, chosen_sizes
from orthocal.experiments.quantiles import Quantiles
from orthocal.experiments.reproduce import reproduce
from orthocal.experiments.retirement import Retirement

__all__ = ["EXPERIMENTS", "Claim", "Experiment", "Findings", "new_experiment", "reproduce"]

EXPERIMENTS: dict[str, Any] = {kind.name: kind for kind in (Retirement, Quantiles, Challenge)}


def new_experiment(name: str, seed: int = 0, learners: str | None = None) -> Experiment:
    """Return an experiment by name, with its own sizes of learners or those named, comma-separated."""
    require_one_of(name, EXPERIMENTS, "experiment")
    if seed < 0:
        raise OrthocalError(f"`seed` must not be negative; it is {seed}.")
    kind = EXPERIMENTS[name]
    experiment: Experiment = kind(seed, chosen_sizes(learners, kind.__dataclass_fields__["sizes"].default))
    return experiment
