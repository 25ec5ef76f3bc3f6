"""Commands that work on data: the demonstration, calibrate, assess, and the experiments of the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from orthocal.assessment.records import Settings
from orthocal.assessment.status import INCONCLUSIVE, MISCALIBRATED
from orthocal.cli.options import VERDICT, AssessOptions, CalibrateOptions, DemoOptions, Options, ReproduceOptions
from orthocal.cli.output import (
    AFTER,
    BEFORE,
    CONTRASTS,
    announced,
    found_in_words,
    print_files,
    print_json,
    results_of_assess,
    results_of_calibrate,
    statuses_of,
    write_assessments,
    write_verdict,
)
from orthocal.cli.plan import (
    number_or_name,
    only,
    split_names,
    study_of,
    time_of,
    words_of_learning,
    words_of_map,
    words_of_study,
)
from orthocal.cli.screen import counting_repetitions, learning, say
from orthocal.cli.sources import DaskSource, LocalSource, MemorySource
from orthocal.demo import run_demo
from orthocal.engines.opening import why_local
from orthocal.errors import OrthocalError, require_one_of, require_whole
from orthocal.experiments import Findings, new_experiment
from orthocal.experiments import reproduce as run
from orthocal.experiments.reproduce import CLAIM_WORDS
from orthocal.nuisances.learners import Recipe
from orthocal.reporting.page.since import earlier_record
from orthocal.study import Study
from orthocal.study.arms_assessment import contrast_name, contrasts_of

SOURCES: Mapping[str, Any] = {"memory": MemorySource, "local": LocalSource, "dask": DaskSource}
"""By engine."""
AUTO = "auto"
"""The engine that follows from the data."""
AT_STATUS = 3
"""Exit code where the status is one that --fail-if names."""


def demo(options: DemoOptions) -> None:
    """Run the whole job on a real table: 9,275 households and their 401(k) plans."""
    out, method, seed = options.out, options.method, options.seed
    results = results_of_calibrate("demo", out, AFTER, (), ())
    typer.echo(
        "Data: 9,275 households (401ksubs). Effect: of eligibility for a 401(k) plan on having more than $10,000 saved."
    )
    typer.echo("A boosted T-learner is trained on a third of the rows, calibrated on another and judged on the last.\n")
    how = {
        "data": "401ksubs, 9,275 rows",
        "method": method,
        "seed": str(seed),
        "again": f"orthocal demo --seed {seed} --method {method}",
    }
    with results.written() as folder:
        with learning(1):
            done = run_demo(method, seed, options.jobs)
        write_verdict(done, folder, "Effect of 401(k) eligibility on having saved more than $10,000", how)
    typer.echo(f"{done.summary()}\n")
    print_files(out)


def calibrate(options: CalibrateOptions) -> None:
    """Calibrate a column of predicted effects and judge it before and after, on rows the map never saw."""
    require_prediction(options)
    predicted, as_json = only(options), options.as_json
    require_statuses(options.fail_if)
    Settings(**options.of(VERDICT))
    since = None if options.since is None else earlier_record(options.since)
    holdout = number_or_name(options.holdout)
    source = source_of(options)
    drawn = CONTRASTS if options.columns_by_arm else AFTER if holdout != 0 else BEFORE
    results = results_of_calibrate("calibrate", options.out, drawn, [source.table], source.files)
    study = study_of(options, source.data, source.kind)
    study.questions.require_method(options.method)
    study.rows.held_out(holdout)
    study.questions.require_redraws(options.redraws)
    study.questions.require_predictions()
    by_named(study, options)
    within = within_of(options.within, study.rows.columns)
    if within is not None:
        study.questions.groups_named(within)
    with source.running():
        words = {
            **plan_of(study, options, source, 1 + options.redraws),
            **({} if options.within is None else {"subgroups corrected": options.within}),
            **words_of_map(options.method, study.rows.counted(holdout), holdout),
        }
        if announced({**words, "output": str(options.out)}, options.dry_run, as_json):
            return
        with results.written() as folder:
            with learning(1 + options.redraws):
                done = study.calibrate(
                    predicted,
                    options.method,
                    holdout=holdout,
                    by=by_of(options),
                    within=within,
                    decisions=options.decisions,
                    redraws=options.redraws,
                    **options.of(VERDICT),
                )
            words |= source.write_calibrated(done, folder)
            title = f"{', '.join(options.predicted)}: effect of {options.treatment} on {options.outcome}"
            write_verdict(done, folder, title, words, since)
    typer.echo(f"{done.summary()}\n", err=as_json)
    print_files(options.out, err=as_json)
    print_json(done.to_dict(), as_json)
    fail_if([done.status], options.fail_if)


def assess(options: AssessOptions) -> None:
    """Judge one or more columns of predicted effects."""
    as_json = options.as_json
    require_statuses(options.fail_if)
    Settings(**options.of(VERDICT))
    since = None if options.since is None else earlier_record(options.since)
    require_prediction(options)
    source = source_of(options)
    results = results_of_assess(options.out, judged_names(options), source.files)
    study = study_of(options, source.data, source.kind)
    study.questions.require_redraws(options.redraws)
    study.questions.require_predictions()
    if options.sensitivity:
        study.questions.require_sensitivity()
    by_named(study, options)
    with source.running():
        words = plan_of(study, options, source, 1 + options.redraws)
        if announced({**words, "output": str(options.out)}, options.dry_run, as_json):
            return
        with results.written() as folder:
            with learning(1 + options.redraws):
                verdicts = study.assess(by=by_of(options), redraws=options.redraws, **options.of(VERDICT))
                strengths = study.sensitivity(**options.of(VERDICT)) if options.sensitivity else {}
            title = f"Effect of {options.treatment} on {options.outcome}"
            record = write_assessments(verdicts, folder, title, words, strengths, since)
    typer.echo(found_in_words(verdicts), err=as_json)
    for name, one in strengths.items():
        typer.echo(f"{name}: sensitivity to unmeasured confounding\n{one}\n", err=as_json)
    print_files(options.out, err=as_json)
    print_json(record, as_json)
    fail_if(statuses_of(verdicts), options.fail_if)


def require_prediction(options: Options) -> None:
    """Predictions are named, as columns or by arm."""
    if not options.predicted:
        raise OrthocalError(
            "`--prediction` must be given, or for several arms --arm VALUE=COLUMN for each; neither was."
        )


def judged_names(options: Options) -> list[str]:
    """Return what verdicts will be called: the columns, or every contrast of several arms."""
    if not options.columns_by_arm:
        return options.predicted
    return [contrast_name(*pair) for pair in contrasts_of([options.control or "0", *options.columns_by_arm])]


def source_of(options: Options) -> Any:
    """Return where rows come from, by the engine that was asked for, or that follows from the data, which is then said."""
    require_one_of(options.engine, [*SOURCES, AUTO], "engine")
    if options.engine != AUTO:
        return SOURCES[options.engine](options)
    reason = why_local(options.data)
    if reason:
        say(f"{reason}: read in chunks (--engine local).")
    return SOURCES["local" if reason else "memory"](options)


def plan_of(study: Study, options: Options, source: Any, draws: int) -> dict[str, str]:
    """Say what will be done, having checked all that can be checked."""
    time = {"time": time_of(study, draws)} if isinstance(source, MemorySource) else {}
    return {
        **words_of_study(study, options, source.size),
        **source.words(study),
        **words_of_learning(study, options, draws),
        **time,
    }


def by_of(options: Options) -> list[str] | None:
    """Return the columns of subgroups."""
    return None if options.by is None else split_names(options.by)


def within_of(text: str | None, there: Sequence[str]) -> list[str | list[str]] | None:
    """Return columns of subgroups that were given comma-separated; those joined by a colon mean their intersections."""
    if text is None:
        return None
    return [name if name in there or ":" not in name else name.split(":") for name in split_names(text)]


def by_named(study: Study, options: Options) -> None:
    """Columns of subgroups are there."""
    study.rows.subgroups(by_of(options) or ())


def require_statuses(names: Sequence[str] | None) -> None:
    """What a command fails at is a status that is no success."""
    for name in names or ():
        require_one_of(name, [MISCALIBRATED, INCONCLUSIVE], "--fail-if")


def fail_if(found: Sequence[str], named: Sequence[str] | None) -> None:
    """Leave with a code of its own where a status is one that was named."""
    if set(found) & set(named or ()):
        raise typer.Exit(AT_STATUS)


def reproduce(options: ReproduceOptions) -> None:
    """Run an experiment of the paper."""
    experiment = new_experiment(options.name, options.seed, options.learners)
    repeats = experiment.repeats if options.repeats is None else options.repeats
    require_whole(repeats, 1, "repeats")
    Recipe(n_jobs=options.jobs)  # refuses a number of jobs that makes no sense
    folder = options.out or Path(f"orthocal-{options.name}")
    typer.echo(f"{experiment.title}: {len(experiment.keys(repeats))} repetitions, results in {folder}")
    for name, value in experiment.settings().items():
        typer.echo(f"{name:<10}  {', '.join(value) if isinstance(value, list) else value}")
    typer.echo("")
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
