"""Commands about decisions: which model to use, and what deciding by it is worth."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import typer

from orthocal import plots
from orthocal.cli.commands import plan_of, require_prediction, source_of
from orthocal.cli.decide_options import ChooseOptions, PolicyOptions
from orthocal.cli.options import VERDICT
from orthocal.cli.output import announced, print_files, print_json, write_json
from orthocal.cli.plan import arm_of, number_or_name, one_of, study_of, words_of_map
from orthocal.cli.screen import learning
from orthocal.decisions import Policy
from orthocal.drawing import save_figure
from orthocal.errors import OrthocalError
from orthocal.files.atomic import Results
from orthocal.study import Study

PAGE, TABLE = "report.html", "top-shares.csv"
"""The page, and people from the most promising down, rule by rule."""


def choose(options: ChooseOptions) -> None:
    """Choose among columns of predicted effects."""

    def answered(study: Study, kind: Any, holdout: Any) -> Any:
        del kind
        return study.choose(method=options.method, holdout=holdout, **options.of(VERDICT))

    def written(found: Any, folder: Path, words: Mapping[str, str]) -> None:
        title = f"Which model of the effect of {options.treatment} on {options.outcome} to use"
        found.report(folder / PAGE, title=title, how=words)
        write_json(found.to_dict(), folder / "choice.json")
        _draw(found.plot(), folder / "leaderboard.png")

    names = (PAGE, "choice.json", "leaderboard.png")
    _run(options, Task("choose", names, ("by",), lambda *_: None, answered, written))


def policy(options: PolicyOptions) -> None:
    """Say what deciding by predicted effects is worth."""

    def settings(kind: Any) -> dict[str, Any]:
        return {"cost": costs_given(options.cost, kind), "budget": options.budget, "spend": options.spend}

    def checked(study: Study, kind: Any) -> None:
        study.rows.require_shares()
        study.questions.costs_checked(settings(kind))

    def answered(study: Study, kind: Any, holdout: Any) -> Any:
        return study.policy(**settings(kind), method=options.method, holdout=holdout)

    def written(found: Any, folder: Path, words: Mapping[str, str]) -> None:
        found.report(folder / PAGE, title=f"Whom to treat: {options.treatment} for {options.outcome}", how=words)
        write_json(found.to_dict(), folder / "policy.json")
        write_shares(found, folder / TABLE)
        _draw(found.plot(), folder / "policy.png")
        if options.budget is not None:
            _draw(plots.budget_curve(found), folder / "budget.png")

    drawn = ("policy.png", *(() if options.budget is None else ("budget.png",)))
    _run(
        options,
        Task("policy", (PAGE, "policy.json", TABLE, *drawn), ("by", "bins", "tolerance"), checked, answered, written),
    )


class Task(NamedTuple):
    """What a command does: the files it writes, options it does not use, and how it checks, answers and writes."""

    command: str
    names: tuple[str, ...]
    unused: tuple[str, ...]
    checked: Callable[[Study, Any], None]
    answered: Callable[[Study, Any, Any], Any]
    written: Callable[[Any, Path, Mapping[str, str]], None]


def _run(options: Any, job: Task) -> None:
    """Check everything, say what will be done, do it, and write what was found."""
    require_prediction(options)
    for name in ("redraws", "fail_if", "since", *job.unused):
        if getattr(options, name):
            raise OrthocalError(f"`--{name.replace('_', '-')}` does not apply to {job.command}; leave it out.")
    holdout, source = number_or_name(options.holdout), source_of(options)
    results = Results(options.out, job.command, job.names, tuple(source.files))
    results.require_free()
    study = study_of(options, source.data, source.kind)
    study.questions.require_method(options.method)
    study.questions.require_predictions()
    job.checked(study, source.kind)
    with source.running():
        words = plan_of(study, options, source, 1)
        words |= words_of_map(options.method, study.rows.counted(holdout), holdout)
        if announced({**words, "output": str(options.out)}, options.dry_run, options.as_json):
            return
        with results.written() as folder:
            with learning(1):
                found = job.answered(study, source.kind, holdout)
            job.written(found, folder, words)
    typer.echo(f"{found.summary()}\n", err=options.as_json)
    print_files(options.out, err=options.as_json)
    print_json(found.to_dict(), options.as_json)


def costs_given(texts: Sequence[str] | None, kind: Any) -> Any:
    """Return the cost of treating a person: a number, a column, or one of these for each arm; `kind` is the treatment's type."""
    pairs = [text.partition("=") for text in texts or ("0",)]
    if not any(sign for _, sign, _ in pairs):
        return number_or_name(one_of(texts or ("0",), "cost"))
    if not all(sign for _, sign, _ in pairs):
        raise OrthocalError("`--cost` must be given once, or for every arm as in --cost call=0.5; here it is both.")
    return {arm_of(arm, kind): number_or_name(cost) for arm, _, cost in pairs}


def write_shares(found: Policy, path: Path) -> None:
    """Write the table of people from the most promising down, of every prediction, as CSV."""
    tables: Mapping[str, Mapping[str, Any]] = {name: found.table(name) for name in found.predictions}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["rule", *next(iter(tables.values()))])
        for name, table in tables.items():
            writer.writerows([name, *row] for row in zip(*table.values(), strict=True))


def _draw(ax: Any, path: Path) -> None:
    save_figure(ax.figure, path, dpi=150)
