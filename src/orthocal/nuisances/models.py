"""Trained nuisances: models that are kept, to be asked about rows of the folds they never saw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from orthocal.arrays import Floats, Integers
from orthocal.nuisances.cross_fit import Learnt
from orthocal.nuisances.nuisance import Nuisance


@dataclass(frozen=True, eq=False, kw_only=True)
class Trained:
    """A nuisance with its fitted models.

    Parameters
    ----------
    nuisance : Nuisance
        Without rows: what is left says how answers become what the loss works with.
    models : sequence of Learnt
        For each fold, features to answers, by a model that never saw the fold.
    has_features : bool
        Its features are not the covariates alone, and must be asked of the effect.
    """

    nuisance: Nuisance
    models: Sequence[Learnt]
    has_features: bool = False

    def answers(self, features: Any, fold: Integers) -> Floats:
        """Return what the models say of rows, each asked of the model that never saw its fold."""
        found: Any = None
        for k, model in enumerate(self.models):
            rows = fold == k
            if rows.any():
                answer = np.asarray(model(features[rows]))
                found = np.empty((len(fold), *answer.shape[1:])) if found is None else found
                found[rows] = answer
        return np.asarray(found)


def trained(nuisance: Nuisance, models: Sequence[Any]) -> Trained:
    """Return a nuisance with its models and without its rows, light enough to be sent about."""
    bare = replace(nuisance, target=np.empty(0), rows=None, features=None)
    return Trained(nuisance=bare, models=tuple(models), has_features=nuisance.features is not None)
