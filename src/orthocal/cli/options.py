"""What can be asked on the command line: one name per option, with its help."""

from pathlib import Path
from typing import Annotated

import typer

Tables = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Table, one row per person: .csv, .csv.gz or .parquet. With --engine dask also a folder of them or a pattern.",
        show_default=False,
    ),
]
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
Method = Annotated[
    str, typer.Option("--method", help="auto, identity, constant, shift, linear, isotonic, histogram, spline or platt.")
]
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
Jobs = Annotated[
    int, typer.Option("--jobs", help="Learner fits, or processes of Dask, that run at once; -1 for all cores.")
]
Engine = Annotated[str, typer.Option("--engine", help="memory, or dask for tables larger than memory.")]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler", help="Address of a Dask scheduler; processes of this machine if left out (engine dask)."
    ),
]
Sample = Annotated[
    int | None,
    typer.Option("--sample", help="Rows that nuisances are learnt on; 200000 if left out (engine dask)."),
]
Key = Annotated[
    str | None,
    typer.Option("--key", help="Column that tells rows apart, by which folds are drawn; their contents if left out."),
]
Exact = Annotated[
    bool | None,
    typer.Option("--exact/--no-exact", help="Isotonic maps: of all rows, or on a fine grid (engine dask)."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check everything, say what would be done, and stop.")]
Json = Annotated[bool, typer.Option("--json", help="Print the verdict as JSON; words go to standard error.")]
Out = Annotated[Path, typer.Option("--out", help="Folder for the results.")]
