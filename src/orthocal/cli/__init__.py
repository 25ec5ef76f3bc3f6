"""The command line: parse, call public names, print."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from orthocal import __version__
from orthocal.cli.options import (
    Arm,
    By,
    Clip,
    Control,
    Correction,
    Cost,
    Covariates,
    Data,
    EffectName,
    Folds,
    Groups,
    Holdout,
    Instrument,
    Jobs,
    Level,
    Method,
    OnePrediction,
    Out,
    Outcome,
    Predictions,
    Propensity,
    Quantile,
    Seed,
    Target,
    Treatment,
    Weight,
)
from orthocal.cli.reading import chosen_effect, level_of, observe_table, only, roles_of, subgroups
from orthocal.cli.reproduce import reproduce
from orthocal.cli.writing import draw, print_files, print_verdict, spread_over_seeds, write_json, write_verdict
from orthocal.errors import OrthocalError

if TYPE_CHECKING:
    from collections.abc import Sequence

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
CALIBRATE_FILES = ("before.png", "after.png", "before-after.png", "map.json", "assessment.json", "calibrated.*")
ASSESS_FILES = ("reliability-*.png", "assessment.json")
"""What a run may write into its folder."""
to_person = Console(stderr=True, highlight=False)


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Can this model of causal effects be believed, and if not, can it be fixed?"""
    if version:
        typer.echo(__version__)
        raise typer.Exit


@app.command()
def demo(out: Out = Path("orthocal-demo"), method: Method = "auto", seed: Seed = 0, jobs: Jobs = -1) -> None:
    """Run the whole job on a real table: 9,275 households and their 401(k) plans."""
    from orthocal.demo import run_demo
    from orthocal.tables import all_or_nothing

    typer.echo(
        "Data: 9,275 households (401ksubs). Effect: eligibility for a 401(k) plan on net financial assets, in $1000."
    )
    typer.echo("A boosted T-learner is trained on a third of the rows, calibrated on another and judged on the last.\n")
    with all_or_nothing(out, CALIBRATE_FILES) as folder:
        with to_person.status("Learning nuisances, calibrating, judging ..."):
            done = run_demo(method, seed, jobs)
        write_verdict(done, folder, "Effect of 401(k) eligibility on net financial assets, $1000")
    print_verdict(done)
    print_files(out, CALIBRATE_FILES)


@app.command()
def calibrate(
    data: Data,
    outcome: Outcome,
    treatment: Treatment,
    prediction: OnePrediction,
    effect: EffectName = "cate",
    method: Method = "auto",
    instrument: Instrument = None,
    arm: Arm = None,
    control: Control = None,
    quantile: Quantile = None,
    level: Level = None,
    target: Target = None,
    correction: Correction = None,
    propensity: Propensity = None,
    covariates: Covariates = None,
    weight: Weight = None,
    groups: Groups = None,
    holdout: Holdout = 0.3,
    folds: Folds = 5,
    clip: Clip = 0.01,
    cost: Cost = None,
    by: By = None,
    seed: Seed = 0,
    jobs: Jobs = -1,
    out: Out = Path("orthocal-out"),
) -> None:
    """Calibrate a column of predicted effects and judge it before and after, on rows the map never saw.

    Example: orthocal calibrate trial.csv --outcome y --treatment a --prediction tau --propensity 0.5
    """
    from orthocal.mapfile import save
    from orthocal.orthogonal import Recipe
    from orthocal.tables import all_or_nothing, read_table, with_column, write_table
    from orthocal.verified import calibrate_and_verify

    settings = {"quantile": quantile, "level": level, "target": target, "correction": correction}
    predicted = only(prediction)
    table = read_table(data)
    levels = {"arm": level_of(arm, table, treatment), "control": level_of(control, table, treatment)}
    chosen = chosen_effect(effect, **levels, **settings)
    roles = roles_of(outcome, treatment, predicted, instrument, weight, groups)
    X, observations, known = observe_table(table, roles, covariates, propensity)
    with all_or_nothing(out, CALIBRATE_FILES) as folder:
        with to_person.status(f"Learning nuisances on {table.num_rows:,} rows, calibrating, judging ..."):
            done = calibrate_and_verify(
                chosen,
                method,
                observations,
                X,
                nuisances=known,
                holdout=holdout,
                folds=folds,
                recipe=Recipe(clip=clip, random_state=seed, n_jobs=jobs),
                cost=cost,
                by=subgroups(table, by),
            )
        calibrated = with_column(table, f"{predicted}_calibrated", done.map.predict(observations.prediction))
        write_table(calibrated, folder / f"calibrated{data.suffix}")
        save(done.map, folder / "map.json")
        write_verdict(done, folder, f"{predicted}: effect of {treatment} on {outcome}")
    print_verdict(done)
    print_files(out, CALIBRATE_FILES)


@app.command()
def assess(
    data: Data,
    outcome: Outcome,
    treatment: Treatment,
    prediction: Predictions,
    effect: EffectName = "cate",
    instrument: Instrument = None,
    arm: Arm = None,
    control: Control = None,
    quantile: Quantile = None,
    level: Level = None,
    target: Target = None,
    correction: Correction = None,
    propensity: Propensity = None,
    covariates: Covariates = None,
    weight: Weight = None,
    groups: Groups = None,
    folds: Folds = 5,
    clip: Clip = 0.01,
    cost: Cost = None,
    by: By = None,
    seed: Seed = 0,
    jobs: Jobs = -1,
    out: Out = Path("orthocal-out"),
) -> None:
    """Judge one or more columns of predicted effects.

    Example: orthocal assess trial.csv --outcome y --treatment a --prediction tau1 --prediction tau2
    """
    from orthocal.assessment import assess as judge
    from orthocal.observations import as_numbers
    from orthocal.orthogonal import Recipe, learn_cross
    from orthocal.tables import all_or_nothing, column, file_name, read_table

    settings = {"quantile": quantile, "level": level, "target": target, "correction": correction}
    table = read_table(data)
    levels = {"arm": level_of(arm, table, treatment), "control": level_of(control, table, treatment)}
    chosen = chosen_effect(effect, **levels, **settings)
    roles = roles_of(outcome, treatment, prediction[0], instrument, weight, groups)
    X, observations, known = observe_table(table, roles, covariates, propensity, prediction)
    columns = {name: as_numbers(column(table, name, "prediction"), name) for name in prediction}
    with all_or_nothing(out, ASSESS_FILES) as folder:
        with to_person.status(f"Learning nuisances on {table.num_rows:,} rows, judging ..."):
            recipe = Recipe(clip=clip, random_state=seed, n_jobs=jobs)
            learnt = learn_cross(chosen, observations, X, known, folds, recipe)
            verdicts = judge(columns, learnt.loss, cost=cost, by=subgroups(table, by), random_state=seed)
            spread = spread_over_seeds(chosen, observations, X, known, folds, recipe, columns, seed)
        write_json({name: verdict.to_dict() for name, verdict in verdicts.items()}, folder / "assessment.json")
        for name, verdict in verdicts.items():
            draw(verdict, folder / f"reliability-{file_name(name)}.png", name)
    for name, verdict in verdicts.items():
        typer.echo(f"{name}\n{verdict.summary()}\n{spread[name]}\n")
    print_files(out, ASSESS_FILES)


@app.command()
def apply(
    map_file: Annotated[Path, typer.Argument(metavar="MAP", help="Map file written by calibrate.", show_default=False)],
    data: Data,
    prediction: OnePrediction,
    out: Annotated[Path, typer.Option("--out", help="Table to write: .csv or .parquet.")],
) -> None:
    """Add a column of calibrated predictions to a table.

    Example: orthocal apply orthocal-out/map.json new.csv --prediction tau --out calibrated.csv
    """
    from orthocal.mapfile import load
    from orthocal.tables import all_or_nothing, column, read_table, with_column, write_table

    fitted, name = load(map_file), only(prediction)
    if out.is_dir() or out.resolve() == data.resolve():
        raise OrthocalError(f"`--out` must name a new file; {out} is the data itself or a folder. Choose another name.")
    table = read_table(data)
    values = fitted.predict(column(table, name, "prediction"))
    with all_or_nothing(out.parent) as folder:
        write_table(with_column(table, f"{name}_calibrated", values), folder / out.name)
    typer.echo(f"Wrote {out}: {table.num_rows:,} rows, new column {name}_calibrated.")


app.command()(reproduce)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line: exit code 0 done, 2 bad input (one line, nothing written), 1 failure."""
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    try:
        app(args=None if arguments is None else list(arguments), standalone_mode=True)
    except OrthocalError as error:
        to_person.print(f"Error: {error}", soft_wrap=True, markup=False)
        sys.exit(2)


def _show_warning(message: Warning | str, *_: Any) -> None:
    to_person.print(f"Warning: {message}", soft_wrap=True, markup=False)
