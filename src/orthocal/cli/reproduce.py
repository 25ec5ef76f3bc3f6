"""The paper's experiments from the command line."""

from __future__ import annotations

from pathlib import Path

import typer

from orthocal.cli.options import ReproduceOptions
from orthocal.cli.screen import counting_repetitions
from orthocal.errors import require_whole
from orthocal.experiments import Findings, new_experiment
from orthocal.experiments import reproduce as run
from orthocal.experiments.reproduce import CLAIM_WORDS
from orthocal.nuisances.learners import Recipe


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
