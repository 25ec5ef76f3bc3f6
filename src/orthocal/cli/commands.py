"""Commands that work on data: the demonstration, calibrate, assess, and the experiments of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from orthocal.assessment.records import Settings
from orthocal.cli.in_memory import DRAWS, MemoryJob
from orthocal.cli.on_dask import DaskJob
from orthocal.cli.options import VERDICT, AssessOptions, CalibrateOptions, DemoOptions, Options, ReproduceOptions
from orthocal.cli.output import (
    announced,
    print_files,
    print_json,
    print_verdict,
    results_of_assess,
    results_of_calibrate,
    write_assessments,
    write_verdict,
)
from orthocal.cli.plan import only
from orthocal.cli.screen import counting_repetitions, learning
from orthocal.demo import run_demo
from orthocal.engines.verification import calibrate_and_verify
from orthocal.errors import require_one_of, require_whole
from orthocal.experiments import Findings, new_experiment
from orthocal.experiments import reproduce as run
from orthocal.experiments.reproduce import CLAIM_WORDS
from orthocal.nuisances.learners import Recipe

JOBS: Mapping[str, Any] = {"memory": MemoryJob, "dask": DaskJob}
"""By engine."""


def demo(options: DemoOptions) -> None:
    """Run the whole job on a real table: 9,275 households and their 401(k) plans."""
    out, method, seed = options.out, options.method, options.seed
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
            done = run_demo(method, seed, options.jobs)
        write_verdict(done, folder, "Effect of 401(k) eligibility on net financial assets, $1000", how)
    print_verdict(done)
    print_files(out)


def calibrate(options: CalibrateOptions) -> None:
    """Calibrate a column of predicted effects and judge it before and after, on rows the map never saw."""
    predicted, as_json = only(options.prediction), options.as_json
    draws = DRAWS if options.holdout else 1  # without rows to judge the map on, nothing is done again
    job = _job(options, options.holdout, draws)
    job.require_method(options.method)
    results = results_of_calibrate("calibrate", options.out, options.holdout, [job.table], job.files)
    with job.running():
        words = job.plan(options.method)
        if announced({**words, "output": str(options.out)}, options.dry_run, as_json):
            return
        with results.written() as folder:
            with learning(draws):
                done = calibrate_and_verify(job.engine, options.method, Settings(**options.of(VERDICT)), seeds=draws)
            words |= job.write_calibrated(done, folder)
            title = f"{predicted}: effect of {options.treatment} on {options.outcome}"
            write_verdict(done, folder, title, words)
    print_verdict(done, err=as_json)
    print_files(options.out, err=as_json)
    print_json(done.to_dict(), as_json)


def assess(options: AssessOptions) -> None:
    """Judge one or more columns of predicted effects."""
    as_json = options.as_json
    job = _job(options)
    results = results_of_assess(options.out, options.prediction, job.files)
    with job.running():
        words = job.plan()
        if announced({**words, "output": str(options.out)}, options.dry_run, as_json):
            return
        with results.written() as folder:
            with learning(job.draws):
                verdicts = job.engine.judge(options.prediction, Settings(**options.of(VERDICT)))
                notes = job.notes(verdicts)
            title = f"Effect of {options.treatment} on {options.outcome}"
            record = write_assessments(verdicts, folder, title, words)
    for name, verdict in verdicts.items():
        typer.echo("\n".join(filter(None, [name, verdict.summary(), notes[name]])) + "\n", err=as_json)
    print_files(options.out, err=as_json)
    print_json(record, as_json)


def _job(options: Options, *how: Any) -> Any:
    """Return the job on the engine that was asked for."""
    require_one_of(options.engine, JOBS, "engine")
    return JOBS[options.engine](options, *how)


def reproduce(options: ReproduceOptions) -> None:
    """Run an experiment of the paper."""
    experiment = new_experiment(options.name, options.seed, options.learners)
    repeats = experiment.repeats if options.repeats is None else options.repeats
    require_whole(repeats, 1, "repeats")
    Recipe(n_jobs=options.jobs)  # refuses a number of jobs that makes no sense
    folder = options.out or Path(f"orthocal-{options.name}")
    typer.echo(f"{experiment.title}: {len(experiment.keys(repeats))} repetitions, results in {folder}\n")
    with counting_repetitions() as advance:
        found = run(experiment, folder, repeats, options.jobs, advance)
    _print(found)
    typer.echo(f"Wrote {folder / 'page.html'}, with results.csv and claims.json beside it.")


def _print(found: Findings) -> None:
    for table in found.tables:
        typer.echo(f"{table.caption}\n{table.as_text()}\n")
    for claim in found.claims:
        typer.echo(f"{CLAIM_WORDS[claim.held][1].upper():<10}  {claim.text} Measured: {claim.measured}.")
    typer.echo("")
