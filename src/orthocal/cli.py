"""The command line: parse, call public names, print."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from orthocal import __version__
from orthocal.errors import OrthocalError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyarrow import Table

    from orthocal.assessment import Assessment
    from orthocal.observations import Observations
    from orthocal.orthogonal import Recipe
    from orthocal.verified import Verified

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
CALIBRATE_FILES = ("before.png", "after.png", "before-after.png", "map.json", "assessment.json", "calibrated.*")
ASSESS_FILES = ("reliability-*.png", "assessment.json")
"""What a run may write into its folder."""
to_person = Console(stderr=True, highlight=False)

Data = Annotated[Path, typer.Argument(help="Table with one row per person: .csv or .parquet.", show_default=False)]
Outcome = Annotated[str, typer.Option("--outcome", help="Outcome column.")]
Treatment = Annotated[str, typer.Option("--treatment", help="Treatment column.")]
OnePrediction = Annotated[
    list[str],
    typer.Option("--prediction", help="Column of predicted effects, by a model not trained on these rows."),
]
Predictions = Annotated[list[str], typer.Option("--prediction", help="Column of predicted effects; may be repeated.")]
EffectName = Annotated[
    str,
    typer.Option("--effect", help="cate, late, derivative, quantile, overlap, catt, relative, cvar or expectile."),
]
Method = Annotated[str, typer.Option("--method", help="auto, identity, linear, isotonic, histogram, spline or platt.")]
Instrument = Annotated[str | None, typer.Option("--instrument", help="Instrument column (effect late).")]
Quantile = Annotated[
    float | None, typer.Option("--quantile", help="Which quantile (effect quantile); 0.5 if left out.")
]
Level = Annotated[float | None, typer.Option("--level", help="Which level (effects cvar and expectile).")]
Target = Annotated[str | None, typer.Option("--target", help="population or compliers (effect late).")]
Correction = Annotated[str | None, typer.Option("--correction", help="gaussian, shift or riesz (effect derivative).")]
Arm = Annotated[str | None, typer.Option("--arm", help="Treatment level whose effect is judged; 1 if left out.")]
Control = Annotated[str | None, typer.Option("--control", help="Treatment level it is compared with; 0 if left out.")]
Propensity = Annotated[str | None, typer.Option("--propensity", help="Known propensity: a number or a column.")]
Covariates = Annotated[
    str | None,
    typer.Option("--covariates", help="Covariate columns, by comma; all columns without another role if left out."),
]
Cost = Annotated[float | None, typer.Option("--cost", help="Cost of treating one person, in units of the effect.")]
By = Annotated[str | None, typer.Option("--by", help="Columns of subgroups to judge apart, by comma.")]
Weight = Annotated[str | None, typer.Option("--weight", help="Column of sample weights.")]
Groups = Annotated[str | None, typer.Option("--groups", help="Column of clusters, which are kept whole.")]
Holdout = Annotated[float, typer.Option("--holdout", help="Share of rows kept for the verdict; 0 turns it off.")]
Folds = Annotated[int, typer.Option("--folds", help="Folds of cross-fitting.")]
Clip = Annotated[float, typer.Option("--clip", help="Fitted propensities are kept inside [clip, 1 - clip].")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of folds and learners.")]
Jobs = Annotated[int, typer.Option("--jobs", help="Learner fits that run at once; -1 for all cores.")]
Out = Annotated[Path, typer.Option("--out", help="Folder for the results.")]


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
        _write_verdict(done, folder, "Effect of 401(k) eligibility on net financial assets, $1000")
    _print_verdict(done)
    _print_files(out, CALIBRATE_FILES)


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
    predicted = _only(prediction)
    table = read_table(data)
    levels = {"arm": _level(arm, table, treatment), "control": _level(control, table, treatment)}
    chosen = _effect(effect, **levels, **settings)
    roles = _roles(outcome, treatment, predicted, instrument, weight, groups)
    X, observations, known = _observe(table, roles, covariates, propensity)
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
                by=_by(table, by),
            )
        calibrated = with_column(table, f"{predicted}_calibrated", done.map.predict(observations.prediction))
        write_table(calibrated, folder / f"calibrated{data.suffix}")
        save(done.map, folder / "map.json")
        _write_verdict(done, folder, f"{predicted}: effect of {treatment} on {outcome}")
    _print_verdict(done)
    _print_files(out, CALIBRATE_FILES)


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
    levels = {"arm": _level(arm, table, treatment), "control": _level(control, table, treatment)}
    chosen = _effect(effect, **levels, **settings)
    roles = _roles(outcome, treatment, prediction[0], instrument, weight, groups)
    X, observations, known = _observe(table, roles, covariates, propensity, prediction)
    columns = {name: as_numbers(column(table, name, "prediction"), name) for name in prediction}
    with all_or_nothing(out, ASSESS_FILES) as folder:
        with to_person.status(f"Learning nuisances on {table.num_rows:,} rows, judging ..."):
            recipe = Recipe(clip=clip, random_state=seed, n_jobs=jobs)
            learnt = learn_cross(chosen, observations, X, known, folds, recipe)
            verdicts = judge(columns, learnt.loss, cost=cost, by=_by(table, by), random_state=seed)
            spread = _spread(chosen, observations, X, known, folds, recipe, columns, seed)
        _write_json({name: verdict.to_dict() for name, verdict in verdicts.items()}, folder / "assessment.json")
        for name, verdict in verdicts.items():
            _draw(verdict, folder / f"reliability-{file_name(name)}.png", name)
    for name, verdict in verdicts.items():
        typer.echo(f"{name}\n{verdict.summary()}\n{spread[name]}\n")
    _print_files(out, ASSESS_FILES)


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

    fitted, name = load(map_file), _only(prediction)
    if out.is_dir() or out.resolve() == data.resolve():
        raise OrthocalError(f"`--out` must name a new file; {out} is the data itself or a folder. Choose another name.")
    table = read_table(data)
    values = fitted.predict(column(table, name, "prediction"))
    with all_or_nothing(out.parent) as folder:
        write_table(with_column(table, f"{name}_calibrated", values), folder / out.name)
    typer.echo(f"Wrote {out}: {table.num_rows:,} rows, new column {name}_calibrated.")


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


def _roles(
    outcome: str, treatment: str, prediction: str, instrument: str | None, weight: str | None, groups: str | None
) -> dict[str, str | None]:
    """Name the column of each role; the keys are what `observe` calls them."""
    names = {"y": outcome, "treatment": treatment, "prediction": prediction, "instrument": instrument}
    return {**names, "sample_weight": weight, "groups": groups}


def _observe(
    table: Table,
    roles: dict[str, str | None],
    covariates: str | None,
    propensity: str | None,
    predictions: Sequence[str] = (),
) -> tuple[Table, Observations, dict[str, Any]]:
    """Return covariates, checked observations and known nuisances, each column found by its name."""
    from orthocal.observations import observe
    from orthocal.tables import column, select

    taken = {*roles.values(), *predictions, propensity}
    names = covariates.split(",") if covariates else [name for name in table.column_names if name not in taken]
    X = select(table, names, "covariate")
    spoken = {"y": "outcome", "sample_weight": "weight"}
    found = {
        role: None if name is None else column(table, name, spoken.get(role, role)) for role, name in roles.items()
    }
    known = {} if propensity is None else {_propensity_name(roles): _number_or_column(table, propensity)}
    return X, observe(X, found.pop("y"), **found), known


def _propensity_name(roles: dict[str, str | None]) -> str:
    """With an instrument, its propensity is the one that can be known."""
    return "propensity" if roles["instrument"] is None else "instrument_propensity"


def _by(table: Table, by: str | None) -> dict[str, Any]:
    from orthocal.tables import column

    return {name: column(table, name, "subgroup") for name in (by.split(",") if by else [])}


def _spread(
    effect: Any,
    observations: Observations,
    X: Table,
    known: dict[str, Any],
    folds: int,
    recipe: Recipe,
    columns: dict[str, Any],
    seed: int,
) -> dict[str, str]:
    """Judge again with two other draws of the folds, and say how far the error moves: a loss is one draw."""
    from dataclasses import replace

    from orthocal.assessment import assess as judge
    from orthocal.orthogonal import learn_cross

    errors: dict[str, list[float]] = {name: [] for name in columns}
    for other in (seed, seed + 1, seed + 2):
        learnt = learn_cross(effect, observations, X, known, folds, replace(recipe, random_state=other))
        for name, values in columns.items():
            errors[name].append(judge(values, learnt.loss, draws=1, random_state=0).error)
    return {name: f"error over 3 seeds   {', '.join(f'{e:.4g}' for e in found)}" for name, found in errors.items()}


def _number_or_column(table: Table, text: str) -> Any:
    from orthocal.tables import column

    try:
        return float(text)
    except ValueError:
        return column(table, text, "propensity")


def _effect(name: str, **settings: Any) -> Any:
    """Return the effect with the settings that were given; one it has no use for is an error."""
    from dataclasses import fields

    from orthocal.effects import EFFECTS
    from orthocal.errors import require_one_of

    require_one_of(name, EFFECTS, "effect")
    given = {key: value for key, value in settings.items() if value is not None}
    known = [field.name for field in fields(EFFECTS[name])]
    for key in given:
        if key not in known:
            raise OrthocalError(
                f"`--{key}` must belong to the effect; {name!r} has {', '.join(known) or 'no settings'}."
            )
    return EFFECTS[name](**given)


def _only(names: Sequence[str]) -> str:
    if len(names) != 1:
        raise OrthocalError(f"`--prediction` must be given once here; it was given {len(names)} times.")
    return names[0]


def _level(text: str | None, table: Table, treatment: str) -> Any:
    """Return a treatment level as the type of the treatment column."""
    import pyarrow as pa

    from orthocal.tables import column

    if text is None:
        return None
    kind = column(table, treatment, "treatment").type
    if pa.types.is_boolean(kind):
        return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        try:
            return int(text) if pa.types.is_integer(kind) else float(text)
        except ValueError:
            return text
    return text


def _write_verdict(done: Verified, folder: Path, title: str) -> None:
    from orthocal import plots
    from orthocal.mapfile import save

    save(done.map, folder / "map.json")
    record = {
        "before": done.before.to_dict(),
        "after": None if done.after is None else done.after.to_dict(),
        "comparison": None if done.comparison is None else done.comparison.to_dict(),
        "verified_on_unseen_rows": done.after is not None,
    }
    _write_json(record, folder / "assessment.json")
    _draw(done.before, folder / "before.png", title)
    if done.after is not None:
        _draw(done.after, folder / "after.png", title)
        plots.before_and_after(done.before, done.after, title=_plain(title)).savefig(
            folder / "before-after.png", dpi=150
        )


def _print_verdict(done: Verified) -> None:
    from orthocal.assessment.wording import story

    typer.echo(f"BEFORE ({len(done.judged):,} rows)\n{done.before.summary()}\n")
    if done.after is None or done.comparison is None:
        typer.echo("AFTER: not verified on unseen rows (--holdout 0).\n")
        return
    typer.echo(f"AFTER (the same {len(done.judged):,} rows, which the map never saw)\n{done.after.summary()}\n")
    if done.reason:
        typer.echo(f"Method: {done.reason}")
    typer.echo(story(done.before, done.after, done.comparison))
    seeds = ", ".join(f"{before:.4g} to {after:.4g}" for before, after in done.by_seed)
    typer.echo(f"Error before to after, over 3 draws of the folds: {seeds}\n")


def _draw(verdict: Assessment, path: Path, title: str) -> None:
    from matplotlib import pyplot as plt

    figure, ax = plt.subplots(figsize=(5.6, 5.8), layout="constrained")
    verdict.plot(ax).set_title(_plain(title))
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _plain(title: str) -> str:
    """Return a title in which a dollar is a dollar, not the start of a formula."""
    return title.replace("$", r"\$")


def _write_json(record: dict[str, Any], path: Path) -> None:
    from orthocal.mapfile import write_text

    write_text(path, json.dumps(record, indent=1, allow_nan=False) + "\n")


def _print_files(out: Path, patterns: Sequence[str]) -> None:
    names = sorted({file.name for pattern in patterns for file in out.glob(pattern)})
    typer.echo(f"Wrote to {out}: {', '.join(names)}")
