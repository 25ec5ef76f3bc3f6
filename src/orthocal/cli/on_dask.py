"""A job on a table larger than memory, by Dask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from orthocal.assessment import Assessment
from orthocal.cli.cluster import (
    PARTS_FOLDER,
    connected,
    files_read,
    read_frame,
    readable,
    require_installed,
    words_of_engine,
    write_parts,
)
from orthocal.cli.options import ENGINE, Options
from orthocal.cli.plan import effect_of, roles_of, words_of_data, words_of_learning, words_of_map
from orthocal.engines.dask.engine import SUMMED_METHODS, DaskEngine, meaning_of
from orthocal.engines.dask.summaries import CELLS
from orthocal.engines.verification import Verified
from orthocal.errors import OrthocalError, require_one_of
from orthocal.nuisances.learners import Recipe

if TYPE_CHECKING:
    from pathlib import Path

SAMPLE = 200_000
"""Rows that nuisances are learnt on, if nothing else is asked for."""


class DaskJob:
    """A job that can begin: every column is found, and nothing is started yet."""

    def __init__(self, options: Options, holdout: float = 0.0, draws: int = 1) -> None:
        require_installed()
        asked = options.of(ENGINE)
        self.scheduler, self.sample = asked.get("scheduler"), asked.get("sample", SAMPLE)
        self.exact = bool(asked.get("exact"))
        self.options, self.holdout, self.draws = options, holdout, draws
        if self.scheduler is not None and options.jobs != -1:
            raise OrthocalError(
                "`--jobs` must be left out with `--scheduler`, whose workers are counted where they start."
            )
        self.files = files_read(options.data, options.out)
        self.table = f"{PARTS_FOLDER}/"

    @cached_property
    def engine(self) -> DaskEngine:
        """The frame, its columns found; nothing is computed yet."""
        import pyarrow as pa
        from dask.dataframe.utils import make_meta

        options, frame = self.options, read_frame(self.options.data)
        roles = roles_of(options, list(frame.columns))
        effect = effect_of(options, pa.Table.from_pandas(make_meta(frame)))
        needed = dict.fromkeys([*roles.needed, *options.prediction])
        recipe = Recipe(None, options.clip, options.seed, options.jobs, self.sample)
        return DaskEngine(
            frame=frame[list(needed)],
            roles=roles,
            effect=effect,
            folds=options.folds,
            recipe=recipe,
            holdout=self.holdout,
            exact=self.exact,
        )

    def require_method(self, method: str) -> None:
        """Sums are enough for the method."""
        require_one_of(method, SUMMED_METHODS, "method")

    @contextmanager
    def running(self) -> Iterator[None]:
        """Check what can be checked without Dask, then have it work where it was asked to."""
        _ = self.engine
        with connected(self.scheduler, self.options.jobs), readable(self.options.data):
            yield

    def plan(self, method: str | None = None) -> dict[str, str]:
        """Look at a few rows and count all of them, and say what will be done."""
        options, engine = self.options, self.engine
        learnt, found, roles = engine.to_learn, engine.division, engine.roles
        fits = len(learnt) * options.folds * len(options.prediction)
        data = f"{options.data}, {found.rows:,} rows in {engine.frame.npartitions:,} partitions"
        learning = words_of_learning(
            options, learnt, roles.nuisances, f"{options.folds}, by a hash of the key: {fits} learner fits"
        )
        words = {
            **words_of_data(options, engine.effect, data, roles),
            "engine": words_of_engine(self.scheduler, options.jobs),
            "key": roles.groups or roles.key or "the contents of a row",
            "learners": learning["learners"],
            "sample": f"nuisances are learnt on about {min(self.sample, found.rows - found.held):,} rows",
            **learning,
        }
        return words if method is None else {**words, **self._words_of_map(method)}

    def _words_of_map(self, method: str) -> dict[str, str]:
        grid = "no" if self.exact else f"yes: of {CELLS:,} cells of the prediction"
        return {**words_of_map(meaning_of(method), self.engine.sides, self.holdout), "isotonic on a grid": grid}

    def write_calibrated(self, done: Verified, folder: Path) -> dict[str, str]:
        """Write the table with a column of calibrated predictions; return what else is to be said of the map."""
        write_parts(done.map, self.options.data, folder, self.options.prediction[0], self.engine.division.rows)
        if not done.bound:
            return {}
        near = "means of the map up to any prediction are as near those of the exact map"
        return {"bound of the grid": f"{done.bound:.3g}: {near}"}

    def notes(self, verdicts: Mapping[str, Assessment]) -> dict[str, str]:
        """Say nothing more: other draws of the folds would be passes over all rows."""
        return dict.fromkeys(verdicts, "")
