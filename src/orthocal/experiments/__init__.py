"""The paper's experiments and one with known truth, each by one command, resumable."""

from orthocal.experiments.protocol import Claim, Experiment, Findings
from orthocal.experiments.registry import EXPERIMENTS, new_experiment
from orthocal.experiments.reproduce import reproduce

__all__ = ["EXPERIMENTS", "Claim", "Experiment", "Findings", "new_experiment", "reproduce"]
