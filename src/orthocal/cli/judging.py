"""Commands that judge: the demonstration, calibrate, assess."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from orthocal.cli.options import (
    Arm,
    By,
    Clip,
    Control,
    Correction,
    Cost,
    Covariates,
    Data,
    DryRun,
    EffectName,
    Folds,
    Groups,
    Holdout,
    Instrument,
    Jobs,
    Json,
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
from orthocal.cli.planning import DRAWS, Asked, plan_of, words_of_fit
from orthocal.cli.reading import only
from orthocal.cli.screen import learning, show_plan
from orthocal.cli.writing import (
    draw,
    print_files,
    print_verdict,
    record_of,
    spread_over_seeds,
    to_text,
    write_json,
    write_verdict,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

CALIBRATE_FILES = (
    "report.html",
    "before.png",
    "after.png",
    "before-after.png",
    "map.json",
    "assessment.json",
    "calibrated.*",
)
ASSESS_FILES = ("report.html", "reliability-*.png", "assessment.json")
"""What a run may write into its folder."""


def demo(out: Out = Path("orthocal-demo"), method: Method = "auto", seed: Seed = 0, jobs: Jobs = -1) -> None:
    """Run the whole job on a real table: 9,275 households and their 401(k) plans."""
    from orthocal.demo import run_demo
    from orthocal.tables import all_or_nothing

    typer.echo(
        "Data: 9,275 households (401ksubs). Effect: eligibility for a 401(k) plan on net financial assets, in $1000."
    )
    typer.echo("A boosted T-learner is trained on a third of the rows, calibrated on another and judged on the last.\n")
    how = {"data": "401ksubs, 9,275 rows", "method": method, "seed": str(seed), "again": f"orthocal demo --seed {seed}"}
    with all_or_nothing(out, CALIBRATE_FILES) as folder:
        with learning(DRAWS):
            done = run_demo(method, seed, jobs)
        write_verdict(done, folder, "Effect of 401(k) eligibility on net financial assets, $1000", how)
    print_verdict(done)
    print_files(out, CALIBRATE_FILES)


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
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Calibrate a column of predicted effects and judge it before and after, on rows the map never saw."""
    from orthocal.calibrators import new_calibrator
    from orthocal.folds import generator
    from orthocal.streams import FORMATS, add_calibrated
    from orthocal.tables import all_or_nothing, ending
    from orthocal.verified import calibrate_and_verify, hold_out

    predicted = only(prediction)
    draws = DRAWS if holdout else 1  # without rows to judge the map on, nothing is done again
    settings = {"quantile": quantile, "level": level, "target": target, "correction": correction}
    plan = plan_of(
        Asked(
            data=data,
            outcome=outcome,
            treatment=treatment,
            predictions=[predicted],
            effect=effect,
            settings=settings,
            instrument=instrument,
            arm=arm,
            control=control,
            propensity=propensity,
            covariates=covariates,
            weight=weight,
            groups=groups,
            folds=folds,
            clip=clip,
            by=by,
            seed=seed,
            jobs=jobs,
        ),
        draws,
    )
    new_calibrator(method)
    fitted, judged = hold_out(holdout, plan.effect, plan.observations, generator(seed))
    words = {**plan.words, **words_of_fit(method, len(fitted), len(judged), holdout)}
    if _announced({**words, "output": str(out)}, dry_run, as_json):
        return
    with all_or_nothing(out, CALIBRATE_FILES) as folder:
        with learning(draws):
            done = calibrate_and_verify(
                plan.effect,
                method,
                plan.observations,
                plan.X,
                nuisances=plan.known,
                holdout=holdout,
                folds=folds,
                recipe=plan.recipe,
                cost=cost,
                by=plan.by,
                seeds=draws,
            )
        add_calibrated(done.map, data, folder / f"calibrated{ending(data, FORMATS)}", predicted)
        write_verdict(done, folder, f"{predicted}: effect of {treatment} on {outcome}", words)
    print_verdict(done, err=as_json)
    print_files(out, CALIBRATE_FILES, err=as_json)
    _print_json(record_of(done), as_json)


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
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Judge one or more columns of predicted effects."""
    from orthocal.assessment import assess as judge
    from orthocal.orthogonal import learn_cross
    from orthocal.page import report
    from orthocal.tables import all_or_nothing, file_name

    settings = {"quantile": quantile, "level": level, "target": target, "correction": correction}
    plan = plan_of(
        Asked(
            data=data,
            outcome=outcome,
            treatment=treatment,
            predictions=prediction,
            effect=effect,
            settings=settings,
            instrument=instrument,
            arm=arm,
            control=control,
            propensity=propensity,
            covariates=covariates,
            weight=weight,
            groups=groups,
            folds=folds,
            clip=clip,
            by=by,
            seed=seed,
            jobs=jobs,
        )
    )
    if _announced({**plan.words, "output": str(out)}, dry_run, as_json):
        return
    with all_or_nothing(out, ASSESS_FILES) as folder:
        with learning(DRAWS):
            learnt = learn_cross(plan.effect, plan.observations, plan.X, plan.known, folds, plan.recipe)
            verdicts = judge(plan.predictions, learnt.loss, cost=cost, by=plan.by, random_state=seed)
            spread = spread_over_seeds(plan, verdicts, DRAWS)
        record = {name: verdict.to_dict() for name, verdict in verdicts.items()}
        report(verdicts, folder / "report.html", title=f"Effect of {treatment} on {outcome}", how=plan.words)
        write_json(record, folder / "assessment.json")
        for name, verdict in verdicts.items():
            draw(verdict, folder / f"reliability-{file_name(name)}.png", name)
    for name, verdict in verdicts.items():
        typer.echo(f"{name}\n{verdict.summary()}\n{spread[name]}\n", err=as_json)
    print_files(out, ASSESS_FILES, err=as_json)
    _print_json(record, as_json)


def _announced(words: Mapping[str, str], dry_run: bool, as_json: bool) -> bool:
    """Say what will be done, and whether that was all that was asked for."""
    show_plan(words)
    if dry_run:
        _print_json({"plan": dict(words)}, as_json)
    return dry_run


def _print_json(record: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        typer.echo(to_text(record), nl=False)
