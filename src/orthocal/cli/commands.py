"""Commands that judge: the demonstration, calibrate, assess."""

from __future__ import annotations

from pathlib import Path

import typer

from orthocal.cli.cluster import chosen_engine
from orthocal.cli.columns import only
from orthocal.cli.large import Fit, Output, assess_on_dask, calibrate_on_dask
from orthocal.cli.options import (
    Arm,
    By,
    Clip,
    Control,
    Correction,
    Cost,
    Covariates,
    DryRun,
    EffectName,
    Engine,
    Exact,
    Folds,
    Groups,
    Holdout,
    Instrument,
    Jobs,
    Json,
    Key,
    Level,
    Method,
    OnePrediction,
    Out,
    Outcome,
    Predictions,
    Propensity,
    Quantile,
    Sample,
    Scheduler,
    Seed,
    Tables,
    Target,
    Treatment,
    Weight,
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
    spread_over_seeds,
    write_json,
    write_verdict,
)
from orthocal.cli.planning import DRAWS, Asked, plan_of, words_of_fit
from orthocal.cli.screen import learning


def demo(out: Out = Path("orthocal-demo"), method: Method = "auto", seed: Seed = 0, jobs: Jobs = -1) -> None:
    """Run the whole job on a real table: 9,275 households and their 401(k) plans."""
    from orthocal.demo import run_demo

    results = results_of_calibrate("demo", out, 0.5, (), ())
    typer.echo(
        "Data: 9,275 households (401ksubs). Effect: eligibility for a 401(k) plan on net financial assets, in $1000."
    )
    typer.echo("A boosted T-learner is trained on a third of the rows, calibrated on another and judged on the last.\n")
    how = {
        "data": "401ksubs, 9,275 rows",
        "method": method,
        "seed": str(seed),
        "again": f"orthocal demo --seed {seed} --method {method}",
    }
    with results.written() as folder:
        with learning(DRAWS):
            done = run_demo(method, seed, jobs)
        write_verdict(done, folder, "Effect of 401(k) eligibility on net financial assets, $1000", how)
    print_verdict(done)
    print_files(out)


def calibrate(
    data: Tables,
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
    engine: Engine = "memory",
    scheduler: Scheduler = None,
    sample: Sample = None,
    key: Key = None,
    exact: Exact = None,
    out: Out = Path("orthocal-out"),
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Calibrate a column of predicted effects and judge it before and after, on rows the map never saw."""
    from orthocal.calibration.holdout import calibrate_and_verify, hold_out
    from orthocal.calibrators import new_calibrator
    from orthocal.files.streams import FORMATS, add_calibrated
    from orthocal.files.tables import ending

    predicted = only(prediction)
    draws = DRAWS if holdout else 1  # without rows to judge the map on, nothing is done again
    settings = {"quantile": quantile, "level": level, "target": target, "correction": correction}
    asked = Asked(
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
        key=key,
        folds=folds,
        clip=clip,
        by=by,
        seed=seed,
        jobs=jobs,
    )
    cluster = chosen_engine(engine, scheduler=scheduler, sample=sample, exact=exact)
    if cluster is not None:
        calibrate_on_dask(asked, cluster, Fit(method, holdout, cost), Output(out, dry_run, as_json))
        return
    table = f"calibrated{ending(Path(data), FORMATS)}"
    results = results_of_calibrate("calibrate", out, holdout, [table], [Path(data)])
    plan = plan_of(asked, draws)
    new_calibrator(method)
    fitted, judged = hold_out(holdout, plan.effect, plan.observations, seed)
    words = {**plan.words, **words_of_fit(method, len(fitted), len(judged), holdout)}
    if announced({**words, "output": str(out)}, dry_run, as_json):
        return
    with results.written() as folder:
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
        add_calibrated(done.map, Path(data), folder / table, predicted)
        write_verdict(done, folder, f"{predicted}: effect of {treatment} on {outcome}", words)
    print_verdict(done, err=as_json)
    print_files(out, err=as_json)
    print_json(record_of(done), as_json)


def assess(
    data: Tables,
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
    engine: Engine = "memory",
    scheduler: Scheduler = None,
    sample: Sample = None,
    key: Key = None,
    out: Out = Path("orthocal-assess"),
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Judge one or more columns of predicted effects."""
    from orthocal.assessment import assess as judge
    from orthocal.orthogonal import learn_cross
    from orthocal.reporting.page import report

    settings = {"quantile": quantile, "level": level, "target": target, "correction": correction}
    asked = Asked(
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
        key=key,
        folds=folds,
        clip=clip,
        by=by,
        seed=seed,
        jobs=jobs,
    )
    cluster = chosen_engine(engine, scheduler=scheduler, sample=sample)
    if cluster is not None:
        assess_on_dask(asked, cluster, cost, Output(out, dry_run, as_json))
        return
    results = results_of_assess(out, prediction, [Path(data)])
    plan = plan_of(asked)
    if announced({**plan.words, "output": str(out)}, dry_run, as_json):
        return
    with results.written() as folder:
        with learning(DRAWS):
            learnt = learn_cross(plan.effect, plan.observations, plan.X, plan.known, folds, plan.recipe)
            verdicts = judge(plan.predictions, learnt.loss, cost=cost, by=plan.by, random_state=seed)
            spread = spread_over_seeds(plan, verdicts, DRAWS)
        record = {name: verdict.to_dict() for name, verdict in verdicts.items()}
        report(verdicts, folder / "report.html", title=f"Effect of {treatment} on {outcome}", how=plan.words)
        write_json(record, folder / "assessment.json")
        for file, (name, verdict) in zip(pictures(verdicts), verdicts.items(), strict=True):
            draw(verdict, folder / file, name)
    for name, verdict in verdicts.items():
        typer.echo(f"{name}\n{verdict.summary()}\n{spread[name]}\n", err=as_json)
    print_files(out, err=as_json)
    print_json(record, as_json)
