"""How nuisances are learnt: everything that is not data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from orthocal.errors import OrthocalError, require_inside, require_whole
from orthocal.folds import REPEATS, seed_of


@dataclass(frozen=True)
class Recipe:
    """How nuisances are learnt: everything that is not data.

    Parameters
    ----------
    learners : mapping of str to scikit-learn estimator, optional
    clip : float
    random_state : int, Generator, RandomState or None
    n_jobs : int, optional
    sample : int, optional
        About how many rows teach, where they are too many for one place; all of them by default.
    """

    learners: Mapping[str, Any] | None = None
    clip: float = 0.01
    random_state: Any = None
    n_jobs: int | None = None
    sample: int | None = None

    def __post_init__(self) -> None:
        require_inside(self.clip, 0, 0.5, "clip")
        if self.n_jobs == 0:
            raise OrthocalError("`n_jobs` must not be 0. Use 1 for one fit at a time, -1 for all cores.")
        if self.sample is not None:
            require_whole(self.sample, 1, "sample")
        if isinstance(self.random_state, int | np.integer) and self.random_state < 0:
            raise OrthocalError(f"`random_state` must not be negative; it is {self.random_state}.")

    @property
    def seeded(self) -> Recipe:
        """The recipe with a whole number for a seed: drawn, where none was given."""
        return replace(self, random_state=seed_of(self.random_state))

    def again(self, time: int) -> Recipe:
        """Return the recipe for doing the whole job again, with other draws."""
        return replace(self, random_state=seed_of(np.random.default_rng([self.random_state, REPEATS, time])))
