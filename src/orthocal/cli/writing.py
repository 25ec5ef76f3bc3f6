"""From verdicts to files, pictures and words on the screen."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyarrow import Table

    from orthocal.assessment import Assessment
    from orthocal.observations import Observations
    from orthocal.orthogonal import Recipe
    from orthocal.verified import Verified


def spread_over_seeds(
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


def write_verdict(done: Verified, folder: Path, title: str) -> None:
    """Write the map, the verdict as JSON, and the pictures."""
    from orthocal import plots
    from orthocal.mapfile import save

    save(done.map, folder / "map.json")
    record = {
        "before": done.before.to_dict(),
        "after": None if done.after is None else done.after.to_dict(),
        "comparison": None if done.comparison is None else done.comparison.to_dict(),
        "verified_on_unseen_rows": done.after is not None,
    }
    write_json(record, folder / "assessment.json")
    draw(done.before, folder / "before.png", title)
    if done.after is not None:
        draw(done.after, folder / "after.png", title)
        plots.before_and_after(done.before, done.after, title=_plain(title)).savefig(
            folder / "before-after.png", dpi=150
        )


def print_verdict(done: Verified) -> None:
    """Print the verdict before and after, and what calibration did."""
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


def draw(verdict: Assessment, path: Path, title: str) -> None:
    """Draw one reliability picture to a file."""
    from matplotlib import pyplot as plt

    figure, ax = plt.subplots(figsize=(5.6, 5.8), layout="constrained")
    verdict.plot(ax).set_title(_plain(title))
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _plain(title: str) -> str:
    """Return a title in which a dollar is a dollar, not the start of a formula."""
    return title.replace("$", r"\$")


def write_json(record: dict[str, Any], path: Path) -> None:
    """Write a record as JSON that any reader accepts."""
    from orthocal.mapfile import write_text

    write_text(path, json.dumps(record, indent=1, allow_nan=False) + "\n")


def print_files(out: Path, patterns: Sequence[str]) -> None:
    """Name the files a run has written."""
    names = sorted({file.name for pattern in patterns for file in out.glob(pattern)})
    typer.echo(f"Wrote to {out}: {', '.join(names)}")
