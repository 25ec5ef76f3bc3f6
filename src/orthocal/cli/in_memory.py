"""A job on a table that fits into memory."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any

from orthocal.assessment import Assessment
from orthocal.calibrators import new_calibrator
from orthocal.cli.options import ENGINE, Options
from orthocal.cli.plan import effect_of, roles_of, words_of_data, words_of_learning, words_of_map
from orthocal.engines.memory import MemoryEngine
from orthocal.engines.verification import Verified
from orthocal.errors import OrthocalError
from orthocal.files.streams import FORMATS, add_calibrated
from orthocal.files.tables import column, ending, read_table, select
from orthocal.nuisances.learners import Recipe
from orthocal.observations import as_labels, as_numbers, observe

DRAWS = 3
"""The folds are drawn anew and the error estimated again, this many times in all: a loss is one draw."""


class MemoryJob:
    """A job that can begin: the table is read, every column found, and nothing learnt yet."""

    def __init__(self, options: Options, holdout: float = 0.0, draws: int = DRAWS) -> None:
        for name in options.of(ENGINE):
            raise OrthocalError(
                f"`--{name}` must go with `--engine dask`; the engine is 'memory'. Add that, or leave `--{name}` out."
            )
        self.options, self.holdout, self.draws = options, holdout, draws
        self.path = Path(options.data)
        self.files = [self.path]
        self.table = f"calibrated{ending(self.path, FORMATS)}"

    @cached_property
    def engine(self) -> MemoryEngine:
        """The rows, checked as far as they can be without learning anything."""
        options, table = self.options, read_table(self.path)
        self.roles = roles_of(options, table.column_names)
        effect = effect_of(options, table)
        X = select(table, self.roles.covariates, "covariate")
        found = self.roles.of(table, key=True)
        return MemoryEngine(
            effect=effect,
            observations=observe(X, found.pop("y"), **found),
            X=X,
            nuisances={
                name: column(table, value, "propensity") if isinstance(value, str) else value
                for name, value in self.roles.nuisances.items()
            },
            holdout=self.holdout,
            folds=options.folds,
            recipe=Recipe(clip=options.clip, random_state=options.seed, n_jobs=options.jobs),
            predictions={name: as_numbers(column(table, name, "prediction"), name) for name in options.prediction},
            by={name: as_labels(column(table, name, "subgroup"), name) for name in self.roles.by},
        )

    def require_method(self, method: str) -> None:
        """There is such a method."""
        new_calibrator(method)

    def running(self) -> AbstractContextManager[Any]:
        """Return what must be open while the job works."""
        return nullcontext()

    def plan(self, method: str | None = None) -> dict[str, str]:
        """Say what will be done, having checked all that can be checked."""
        engine, options = self.engine, self.options
        learnt, given = engine.to_learn
        key = {} if options.key is None else {"key": options.key}
        fits = len(learnt) * options.folds * self.draws
        words = {
            **words_of_data(options, engine.effect, f"{options.data}, {len(engine.observations):,} rows", self.roles),
            **key,
            **words_of_learning(
                options, learnt, given, f"{options.folds}, draws of them {self.draws}: {fits} learner fits"
            ),
        }
        if method is None:
            return words
        fitted, judged = engine.sides
        return {**words, **words_of_map(method, (len(fitted), len(judged)), self.holdout)}

    def write_calibrated(self, done: Verified, folder: Path) -> dict[str, str]:
        """Write the table with a column of calibrated predictions; return what else is to be said of the map."""
        add_calibrated(done.map, self.path, folder / self.table, self.options.prediction[0])
        return {}

    def notes(self, verdicts: Mapping[str, Assessment]) -> dict[str, str]:
        """Say how far the error of each prediction moves with other draws of the folds."""
        more = self.engine.errors_by_seed(self.draws - 1)
        errors = {name: [verdict.error, *more[name]] for name, verdict in verdicts.items()}
        return {
            name: f"error over {self.draws} seeds   {', '.join(f'{e:.4g}' for e in found)}"
            for name, found in errors.items()
        }
