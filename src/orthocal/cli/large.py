"""calibrate and assess on Dask: the commands in memory, for tables larger than it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from orthocal.cli.cluster import (
    PARTS,
    Cluster,
    connected,
    files_read,
    read_frame,
    readable,
    words_of_engine,
    write_calibrated,
)
from orthocal.cli.columns import (
    SPOKEN,
    chosen_effect,
    covariate_names,
    level_of,
    number_or,
    propensity_name,
    roles_of,
    split_names,
)
from orthocal.cli.output import (
    announced,
    draw,
    pictures,
    print_files,
    print_json,
    print_verdict,
    record_of,
    results_of_assess,
    results_of_calibrate,
    write_json,
    write_verdict,
)
from orthocal.cli.planning import words_of_data, words_of_fit, words_of_learners
from orthocal.errors import OrthocalError, require_one_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orthocal.calibration.holdout import Verified
    from orthocal.cli.planning import Asked
    from orthocal.engines.dask.division import Division
    from orthocal.engines.dask.partition_loss import Columns

METHODS = {name: name for name in ("isotonic", "linear", "histogram", "identity")} | {"auto": "isotonic"}
"""Methods that sums are enough for, by what they are asked for as."""
MOST_ALIKE = 10
"""Rows that may share one key, about: a hold-out of fewer and larger lumps would be unlike the other rows."""


@dataclass(frozen=True)
class Fit:
    """What `calibrate` alone is asked."""

    method: str
    holdout: float
    cost: float | None


@dataclass(frozen=True)
class Output:
    """Where answers go."""

    out: Path
    dry_run: bool
    as_json: bool


@dataclass(frozen=True, eq=False)
class Table:
    """A table whose columns have been found.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
        The columns that are needed.
    columns : Columns
    effect : Effect
    by : tuple of str
        Columns of subgroups.
    """

    frame: Any
    columns: Columns
    effect: Any
    by: tuple[str, ...]

    @property
    def key(self) -> list[str]:
        """Columns that tell rows apart: the clusters', the key, or all that a row is."""
        own = self.columns.groups or self.columns.key
        roles = [name for name in self.columns.roles.values() if name is not None]
        return [own] if own else [*roles, *self.columns.covariates]

    @property
    def as_arguments(self) -> dict[str, Any]:
        """The columns as `orthocal.distributed` wants them."""
        c = self.columns
        return {
            "outcome": c.y,
            "treatment": c.treatment,
            "prediction": c.prediction,
            "covariates": c.covariates,
            "instrument": c.instrument,
            "sample_weight": c.sample_weight,
            "groups": c.groups,
            "key": c.key,
            "nuisances": c.given,
        }


def calibrate_on_dask(asked: Asked, cluster: Cluster, fit: Fit, output: Output) -> None:
    """Fit a map on some rows, judge it on the others, write verdicts and the calibrated table."""
    from orthocal.calibration.holdout import require_share

    require_one_of(fit.method, METHODS, "method")
    require_share(fit.holdout)
    files = files_read(asked.data, output.out)
    results = results_of_calibrate("calibrate", output.out, fit.holdout, [f"{PARTS}/"], files)
    table = _checked(asked, cluster)
    with connected(cluster, asked.jobs), readable(asked.data):
        words, division = _plan(asked, cluster, table, fit.holdout)
        words |= _words_of_map(cluster, fit, division)
        if announced({**words, "output": str(output.out)}, output.dry_run, output.as_json):
            return
        with results.written() as folder:
            calibrator, done = _verified(asked, cluster, table, fit, division)
            write_calibrated(calibrator, asked.data, folder, asked.predictions[0], division.rows)
            title = f"{asked.predictions[0]}: effect of {asked.treatment} on {asked.outcome}"
            write_verdict(done, folder, title, {**words, **_words_of_bound(calibrator.bound_)})
    print_verdict(done, err=output.as_json)
    print_files(output.out, err=output.as_json)
    print_json(record_of(done), output.as_json)


def assess_on_dask(asked: Asked, cluster: Cluster, cost: float | None, output: Output) -> None:
    """Judge columns of predicted effects."""
    from orthocal.distributed import assess
    from orthocal.reporting.page import report

    results = results_of_assess(output.out, asked.predictions, files_read(asked.data, output.out))
    table = _checked(asked, cluster)
    with connected(cluster, asked.jobs), readable(asked.data):
        words, _ = _plan(asked, cluster, table, 0.0)
        if announced({**words, "output": str(output.out)}, output.dry_run, output.as_json):
            return
        with results.written() as folder:
            verdicts = {}
            for name in asked.predictions:
                columns = {**table.as_arguments, "prediction": name}
                how: dict[str, Any] = {
                    "folds": asked.folds,
                    "clip": asked.clip,
                    "sample": cluster.sample,
                    "random_state": asked.seed,
                }
                verdicts[name] = assess(table.frame, effect=table.effect, **columns, **how, cost=cost, by=table.by)
            record = {name: verdict.to_dict() for name, verdict in verdicts.items()}
            title = f"Effect of {asked.treatment} on {asked.outcome}"
            report(verdicts, folder / "report.html", title=title, how=words)
            write_json(record, folder / "assessment.json")
            for file, (name, verdict) in zip(pictures(verdicts), verdicts.items(), strict=True):
                draw(verdict, folder / file, name)
    for name, verdict in verdicts.items():
        typer.echo(f"{name}\n{verdict.summary()}\n", err=output.as_json)
    print_files(output.out, err=output.as_json)
    print_json(record, output.as_json)


def _checked(asked: Asked, cluster: Cluster) -> Table:
    """Check all that can be checked before anything is started, and find every column."""
    import pyarrow as pa
    from dask.dataframe.utils import make_meta

    from orthocal.engines.dask.preparation import Learning
    from orthocal.nuisances.recipe import Recipe

    Recipe(None, asked.clip, asked.seed, asked.jobs)
    Learning(None, asked.folds, asked.clip, asked.seed, cluster.sample)
    if cluster.scheduler is not None and asked.jobs != -1:
        raise OrthocalError("`--jobs` must be left out with `--scheduler`, whose workers are counted where they start.")
    frame = read_frame(asked.data)
    columns = _columns(asked, list(frame.columns))
    empty = pa.Table.from_pandas(make_meta(frame))
    levels = {name: level_of(getattr(asked, name), empty, asked.treatment) for name in ("arm", "control")}
    effect = chosen_effect(asked.effect, **levels, **asked.settings)
    by = tuple(split_names(asked.by)) if asked.by else ()
    needed = dict.fromkeys([*columns.needed, *asked.predictions, *by])
    return Table(frame[list(needed)], columns, effect, by)


def _columns(asked: Asked, there: Sequence[str]) -> Columns:
    """Return which column plays which part, each found by its name."""
    from orthocal.engines.dask.partition_loss import Columns
    from orthocal.files.tables import require_column

    def found(role: str, name: str) -> str:
        require_column(there, name, role)
        return name

    roles = roles_of(asked.outcome, asked.treatment, asked.predictions[0], asked.instrument, asked.weight, asked.groups)
    for role, name in {**roles, "key": asked.key}.items():
        if name is not None:
            found(SPOKEN.get(role, role), name)
    for name in asked.predictions[1:]:
        found("prediction", name)
    for name in split_names(asked.by) if asked.by else ():
        found("subgroup", name)
    names = covariate_names(there, roles, asked.covariates, (*asked.predictions, asked.propensity, asked.key))
    covariates = tuple(found("covariate", name) for name in names)
    text = asked.propensity
    given = (
        {} if text is None else {propensity_name(roles): number_or(text, lambda column: found("propensity", column))}
    )
    return Columns(**roles, key=asked.key, covariates=covariates, given=given)  # type: ignore[arg-type]


def _plan(asked: Asked, cluster: Cluster, table: Table, holdout: float) -> tuple[dict[str, str], Division]:
    """Look at a few rows and count all of them, and say what will be done."""
    from orthocal.engines.dask.division import division
    from orthocal.engines.dask.partition_loss import observed
    from orthocal.engines.dask.passes import partitions
    from orthocal.engines.dask.preparation import chosen
    from orthocal.engines.dask.training import probe, require_defined

    known = replace(table.columns, covariates=())
    few = probe(partitions(chosen(table.frame, known)), known, table.effect)
    wanted, _ = require_defined(table.effect, observed(few, known), known)
    found = division(table.frame, table.key, holdout, asked.seed)
    given = list(known.given)
    learnt = [nuisance for nuisance in wanted if not set(nuisance.names) <= set(given)]
    taught = min(cluster.sample, found.rows - found.held)
    words = {
        **words_of_data(asked, table.effect, found.rows, table.columns.covariates),
        "data": f"{asked.data}, {found.rows:,} rows in {table.frame.npartitions:,} partitions",
        "engine": words_of_engine(cluster, asked.jobs),
        "key": _words_of_key(table.columns),
        "learners": words_of_learners(learnt, given),
        "sample": f"nuisances are learnt on about {taught:,} rows",
        "folds": f"{asked.folds}, by a hash of the key: {len(learnt) * asked.folds * len(asked.predictions)} learner fits",
        "clip": f"fitted propensities are kept inside [{asked.clip:g}, {1 - asked.clip:g}]",
        "seed": str(asked.seed),
    }
    if holdout:
        _require_told_apart(table.columns, found)
    return words, found


def _words_of_key(columns: Columns) -> str:
    return columns.groups or columns.key or "the contents of a row"


def _require_told_apart(columns: Columns, division: Division) -> None:
    if not (columns.groups or columns.key) and division.alike > MOST_ALIKE:
        raise OrthocalError(
            f"Rows must be told apart to be held out at random; about {division.alike:.0f} are alike in every column. Name a "
            "column that differs with --key, or use --holdout 0."
        )


def _words_of_map(cluster: Cluster, fit: Fit, division: Division) -> dict[str, str]:
    from orthocal.calibration.holdout import require_both_sides
    from orthocal.engines.dask.summaries import CELLS

    fitted, judged = division.rows - division.held, division.held if fit.holdout else division.rows
    require_both_sides(fit.holdout, division.rows, fitted, judged)
    words = words_of_fit(_words_of_method(fit.method), fitted, judged, fit.holdout)
    grid = "no" if cluster.exact else f"yes: of {CELLS:,} cells of the prediction"
    return {**words, "isotonic on a grid": grid}


def _words_of_method(asked: str) -> str:
    meant = METHODS[asked]
    return meant if meant == asked else f"{meant}, which {asked} means on Dask"


def _words_of_bound(bound: float) -> dict[str, str]:
    if not bound:
        return {}
    return {
        "bound of the grid": f"{bound:.3g}: means of the map up to any prediction are as near those of the exact map"
    }


def _verified(asked: Asked, cluster: Cluster, table: Table, fit: Fit, division: Division) -> tuple[Any, Verified]:
    """Fit the map and judge it before and after; without rows held out only before."""
    from orthocal.calibration.holdout import Verified
    from orthocal.distributed import CausalCalibrator
    from orthocal.engines.dask.division import divided

    calibrator = CausalCalibrator(
        table.effect,
        METHODS[fit.method],
        folds=asked.folds,
        clip=asked.clip,
        random_state=asked.seed,
        sample=cluster.sample,
        exact=cluster.exact,
    )
    kept, held = table.frame, table.frame
    if fit.holdout:
        kept, held = divided(table.frame, table.key, fit.holdout, asked.seed)
    calibrator.fit(kept, **table.as_arguments)
    settings: dict[str, Any] = {"cost": fit.cost, "by": table.by, "random_state": asked.seed}
    before = calibrator.assess(held, calibrated=False, **settings)
    if not fit.holdout:
        return calibrator, Verified(calibrator.map_, before, None, None, range(division.rows))
    after = calibrator.assess(held, **settings)
    comparison = calibrator.compare(held, cost=fit.cost)
    reason = "" if METHODS[fit.method] == fit.method else f"{_words_of_method(fit.method)}."
    return calibrator, Verified(calibrator.map_, before, after, comparison, range(division.held), (), reason)
