"""The command that tests subgroups: named ones, or those found on half of the rows."""

from __future__ import annotations

import typer

from orthocal.cli.audit_options import AuditOptions
from orthocal.cli.commands import plan_of, require_prediction, source_of, within_of
from orthocal.cli.options import VERDICT, Options
from orthocal.cli.output import announced, print_files, print_json, write_json
from orthocal.cli.plan import only, study_of
from orthocal.cli.screen import learning
from orthocal.drawing import save_figure
from orthocal.errors import OrthocalError
from orthocal.files.atomic import Results

FILES = ("audit.json", "audit.png")
UNUSED = ("redraws", "fail_if", "by", "cost", "tolerance")


def audit(options: AuditOptions) -> None:
    """Test whether predicted effects are calibrated in every subgroup."""
    require_prediction(options)
    _require_unused(options)
    predicted, source = only(options), source_of(options)
    results = Results(options.out, "audit", FILES, tuple(source.files))
    results.require_free()
    study = study_of(options, source.data, source.kind)
    within = within_of(options.within, study.rows.columns)
    if within is not None:
        study.questions.groups_named(within)
    with source.running():
        words = {**plan_of(study, options, source, 1), "subgroups": options.within or "to be discovered"}
        if announced({**words, "output": str(options.out)}, options.dry_run, options.as_json):
            return
        with results.written() as folder:
            with learning(1):
                found = study.audit(predicted, within, discover=options.discover, **options.of(VERDICT))
            write_json(found.to_dict(), folder / FILES[0])
            drawn = found.plot()
            save_figure(drawn.figure, folder / FILES[1], dpi=150)
    typer.echo(f"{found}\n", err=options.as_json)
    print_files(options.out, err=options.as_json)
    print_json(found.to_dict(), options.as_json)


def _require_unused(options: Options) -> None:
    for name in UNUSED:
        if getattr(options, name):
            raise OrthocalError(f"`--{name.replace('_', '-')}` does not apply to audit; leave it out.")
