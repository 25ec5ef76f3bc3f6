"""A dask.dataframe as an engine: rows are held out by a hash of what tells them apart, wherever they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from orthocal.arrays import Booleans, Integers
from orthocal.assessment import Assessment, Comparison
from orthocal.assessment.records import Settings
from orthocal.effects import Effect
from orthocal.engines.dask.calibrator import CausalCalibrator, judged_source
from orthocal.engines.dask.keys import folds_of, keys_of, sampled
from orthocal.engines.dask.partition_loss import observed
from orthocal.engines.dask.passes import partitions, reduced
from orthocal.engines.dask.preparation import chosen, prepared, seed_of_partitions
from orthocal.engines.dask.training import probe, require_defined
from orthocal.engines.dask.verdict import judged
from orthocal.engines.verification import require_both_sides, require_share
from orthocal.errors import OrthocalError, require_one_of
from orthocal.maps import Map
from orthocal.nuisances import Nuisance
from orthocal.nuisances.learners import Recipe
from orthocal.roles import Roles

OWN = 2**32
"""Added to the seed, so that rows set apart have nothing to do with folds and samples of the same seed."""
BUCKETS = 256
"""Into which keys are hashed in order to see how many rows share one."""


class Division(NamedTuple):
    """How many rows a division leaves on either side."""

    rows: int
    held: int
    buckets: Integers

    def merge(self, other: Division) -> Division:
        """Of both."""
        return Division(self.rows + other.rows, self.held + other.held, self.buckets + other.buckets)

    @property
    def alike(self) -> float:
        r"""Roughly how many rows share a key: 1 where no two do.

        Sets of m rows with one key make the chi-square statistic of their buckets m times as large.
        """
        expected = self.rows / BUCKETS
        return float(((self.buckets - expected) ** 2).sum() / expected / (BUCKETS - 1))


def division(frame: Any, by: Sequence[str], share: float, seed: int) -> Division:
    """Count the rows that `divided` will set apart, in one pass over the columns that tell rows apart."""
    return reduced(partitions(frame[list(by)]), _counts, Division.merge, tuple(by), share, seed)


def divided(frame: Any, by: Sequence[str], share: float, seed: int) -> tuple[Any, Any]:
    """Return the frame without about this share of its rows, and the frame of them.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
    by : sequence of str
        Columns that tell rows apart; rows alike in them stay together.
    share : float
    seed : int
    """
    kept, held = (
        frame.map_partitions(_side, tuple(by), share, seed, of_held, meta=frame, enforce_metadata=False)
        for of_held in (False, True)
    )
    return kept, held


def _held(part: Any, by: tuple[str, ...], share: float, seed: int) -> Booleans:
    return sampled(keys_of(part[list(by)]), share, seed + OWN)


def _side(part: Any, by: tuple[str, ...], share: float, seed: int, of_held: bool) -> Any:
    return part[_held(part, by, share, seed) == of_held]


def _counts(part: Any, by: tuple[str, ...], share: float, seed: int) -> Division:
    buckets = np.bincount(folds_of(keys_of(part[list(by)]), BUCKETS, seed + OWN), minlength=BUCKETS)
    return Division(len(part), int(_held(part, by, share, seed).sum()), buckets)


SUMMED_METHODS = {name: name for name in ("isotonic", "linear", "histogram", "identity")} | {"auto": "isotonic"}
"""Methods that sums are enough for, by what they are asked for as."""
MOST_PER_KEY = 10
"""Rows that may share one key, about: a hold-out of fewer and larger lumps would be unlike the other rows."""


@dataclass(frozen=True, eq=False, kw_only=True)
class DaskEngine:
    """Rows of a dask.dataframe.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
    roles : Roles
    effect : Effect
    folds : int
    recipe : Recipe
    holdout : float
        Share of the rows that no map sees; 0 for none.
    exact : bool
        Whether isotonic maps are those of all rows, or of a grid.
    """

    frame: Any
    roles: Roles
    effect: Effect
    folds: int = 5
    recipe: Recipe
    holdout: float = 0.3
    exact: bool = False

    def __post_init__(self) -> None:
        require_share(self.holdout)
        seed_of_partitions(self.folds, self.recipe)

    @cached_property
    def division(self) -> Division:
        """How many rows there are, and how many are held out."""
        return division(self.frame, self.roles.told_apart_by, self.holdout, self.recipe.random_state)

    @cached_property
    def to_learn(self) -> list[Nuisance]:
        """The nuisances that are not known, from a look at a few rows."""
        known = replace(self.roles, covariates=())
        few = probe(partitions(chosen(self.frame, known)), known, self.effect)
        wanted, _ = require_defined(self.effect, observed(few, known), known)
        return [nuisance for nuisance in wanted if not set(nuisance.names) <= set(known.nuisances)]

    @property
    def sides(self) -> tuple[int, int]:
        """How many rows maps are fitted on, and how many they are judged on; rows must be told apart to be held out."""
        found, roles = self.division, self.roles
        if self.holdout and not (roles.groups or roles.key) and found.alike > MOST_PER_KEY:
            raise OrthocalError(
                f"Rows must be told apart to be held out at random; about {found.alike:.0f} are alike in every column. Name a "
                "column that differs with --key, or use --holdout 0."
            )
        fitted, judging = found.rows - found.held, found.held if self.holdout else found.rows
        require_both_sides(self.holdout, found.rows, fitted, judging)
        return fitted, judging

    def trial(self, method: Any) -> DaskJudgedMap:
        """Fit a map on the rows that are not held out."""
        require_one_of(method, SUMMED_METHODS, "method")
        calibrator = CausalCalibrator(
            self.effect,
            SUMMED_METHODS[method],
            folds=self.folds,
            learners=self.recipe.learners,
            clip=self.recipe.clip,
            random_state=self.recipe.random_state,
            sample=self.recipe.sample,
            exact=self.exact,
        )
        kept, held = self.frame, self.frame
        if self.holdout:
            kept, held = divided(self.frame, self.roles.told_apart_by, self.holdout, self.recipe.random_state)
        calibrator.fit(kept, **self.roles.arguments)
        reason = "" if SUMMED_METHODS[method] == method else f"{meaning_of(method)}."
        return DaskJudgedMap(calibrator=calibrator, held=held, reason=reason, rows=self.sides[1], by=self.roles.by)

    def errors_again(self, method: Any, times: int) -> list[tuple[float, float]]:  # noqa: ARG002
        """Return nothing: on as many rows other draws of the folds hardly move the error, and passes are dear."""
        return []

    def judge(self, names: Sequence[str], settings: Settings) -> dict[str, Assessment]:
        """Judge columns of predictions on all rows."""
        settings = replace(settings, random_state=self.recipe.random_state)
        found = {}
        for name in names:
            roles = replace(self.roles, prediction=name)
            found[name] = judged(prepared(self.frame, roles, self.effect, self.folds, self.recipe), settings)
        return found


@dataclass(frozen=True, eq=False, kw_only=True)
class DaskJudgedMap:
    """A fitted map, and the frame of rows it is judged on."""

    calibrator: CausalCalibrator
    held: Any
    reason: str
    rows: int
    by: tuple[str, ...]

    @property
    def map(self) -> Map:
        """The map."""
        return self.calibrator.map_

    @property
    def bound(self) -> float:
        """How near an isotonic map on a grid is to that of all rows."""
        return self.calibrator.bound_

    @property
    def judged(self) -> range:
        """As many as the rows the verdicts rest on."""
        return range(self.rows)

    def assess(self, settings: Settings, *, calibrated: bool) -> Assessment:
        """Judge the prediction after the map, or as it was."""
        settings = replace(settings, random_state=self.calibrator.random_state)
        return judged(judged_source(self.calibrator, self.held, self.by, calibrated=calibrated), settings)

    def compare(self, settings: Settings) -> Comparison:
        """Say whether the map did good or harm."""
        return self.calibrator.compare(self.held, level=settings.level, cost=settings.cost)


def meaning_of(method: str) -> str:
    """Say what a method means here."""
    meant = SUMMED_METHODS[method]
    return meant if meant == method else f"{meant}, which {method} means on Dask"
