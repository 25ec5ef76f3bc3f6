"""The paper's experiments from the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orthocal.cli.options import Jobs, Seed
from orthocal.cli.screen import counting_repetitions
from orthocal.experiments import Findings

Name = Annotated[str, typer.Argument(metavar="EXPERIMENT", help="401k, quantile or acic.", show_default=False)]
Repeats = Annotated[
    int | None,
    typer.Option("--repeats", help="Repetitions; the experiment's own number if left out.", show_default=False),
]
Learners = Annotated[
    str | None,
    typer.Option(
        "--learners", help="Size of the trees: large, shallow or default, several by comma.", show_default=False
    ),
]
Folder = Annotated[
    Path | None,
    typer.Option("--out", help="Folder for the results; orthocal-EXPERIMENT if left out.", show_default=False),
]


def reproduce(
    name: Name, repeats: Repeats = None, learners: Learners = None, seed: Seed = 0, jobs: Jobs = -1, out: Folder = None
) -> None:
    """Run an experiment of the paper: figures, tables, and each claim held or not held by what was measured.

    Stopped at any moment, the same command goes on where it stopped and ends with the same figures.
    """
    from orthocal.errors import require_whole
    from orthocal.experiments import new_experiment
    from orthocal.experiments import reproduce as run
    from orthocal.nuisances.recipe import Recipe

    experiment = new_experiment(name, seed, learners)
    repeats = experiment.repeats if repeats is None else repeats
    require_whole(repeats, 1, "repeats")
    Recipe(n_jobs=jobs)  # refuses a number of jobs that makes no sense
    folder = out or Path(f"orthocal-{name}")
    typer.echo(f"{experiment.title}: {len(experiment.keys(repeats))} repetitions, results in {folder}\n")
    with counting_repetitions() as advance:
        found = run(experiment, folder, repeats, jobs, advance)
    _print(found)
    typer.echo(f"Wrote {folder / 'page.html'}, with results.csv and claims.json beside it.")


def _print(found: Findings) -> None:
    from orthocal.experiments.reproduce import WORDS

    for table in found.tables:
        typer.echo(f"{table.caption}\n{table.as_text()}\n")
    for claim in found.claims:
        typer.echo(f"{WORDS[claim.held][1].upper():<10}  {claim.text} Measured: {claim.measured}.")
    typer.echo("")
