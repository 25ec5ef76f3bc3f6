"""Nuisances: regressions learnt on other folds, and the learners that learn them."""

from orthocal.nuisances.cross_fit import Fitted, cross_fit
from orthocal.nuisances.learners import default_learner
from orthocal.nuisances.nuisance import Nuisance

__all__ = ["Fitted", "Nuisance", "cross_fit", "default_learner"]
