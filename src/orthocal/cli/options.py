"""What can be asked on the command line: an option is one field, with its help, of the record that commands receive."""

import ast
import pkgutil
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

COLUMNS, EFFECT, LEARNING, VERDICT, ENGINE = "Columns", "Effect", "Learning", "Verdict", "Larger than memory"
RESULTS = "Results"
"""Panels of the help. Options of an effect, of the verdict and of Dask go by their own names to these, and nowhere else."""


def _names(package: str, registry: str) -> str:
    """Return the names of a registry, read from its source: help must be quick, and true."""
    tree = ast.parse(pkgutil.get_data("orthocal", f"{package}/__init__.py") or b"")
    (found,) = [
        node.value for node in tree.body if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == registry
    ]
    *names, last = [ast.literal_eval(key) for key in found.keys]  # type: ignore[union-attr]
    return f"{', '.join(names)} or {last}"


def option(name: str, text: str, panel: str | None = None) -> Any:
    """Return how an option is written and explained."""
    return typer.Option(name, help=text, rich_help_panel=panel)


Out = Annotated[Path, option("--out", "Folder for the results.", RESULTS)]
Method = Annotated[
    str,
    option(
        "--method", f"{_names('calibrators', 'CALIBRATORS')}; of several arms auto, linear, separate, common or shift."
    ),
]
Prediction = Annotated[
    list[str] | None,
    option(
        "--prediction", "Column of predicted effects, by a model not trained on these rows; of several arms see --arm."
    ),
]
Holdout = Annotated[
    str, option("--holdout", "Share of rows kept for the verdict, or a column of 1 and 0; 0 turns it off.")
]
TextEncoding = Annotated[
    str | None, option("--encoding", "Encoding of a CSV table that is not UTF-8, such as latin-1.")
]
Within = Annotated[
    str | None,
    option(
        "--within",
        "Columns of subgroups, comma-separated; numbers become ranges, sex:age means intersections.",
        COLUMNS,
    ),
]
Seed = Annotated[int, option("--seed", "Seed of folds and learners.", LEARNING)]
Jobs = Annotated[int, option("--jobs", "Learner fits, or Dask processes, in parallel; -1 for all cores.", LEARNING)]


@dataclass(frozen=True, kw_only=True)
class Options:
    """What `calibrate` and `assess` are both asked."""

    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="Table, one row per person: .csv, .csv.gz or .parquet. Also a folder, a pattern in quotes, or a .duckdb file.",
            show_default=False,
        ),
    ]
    outcome: Annotated[str, option("--outcome", "Outcome column.")]
    treatment: Annotated[str, option("--treatment", "Treatment column.")]
    prediction: Annotated[
        list[str] | None,
        option("--prediction", "Column of predicted effects; may be repeated. Not with several arms."),
    ] = None
    encoding: TextEncoding = None
    covariates: Annotated[
        str | None,
        option(
            "--covariates",
            "Columns measured before treatment, comma-separated; all: every column without another role; none: with a known "
            "propensity. Never guessed.",
        ),
    ] = None
    exclude: Annotated[
        str | None, option("--exclude", "Columns that are not covariates, comma-separated; all others are.", COLUMNS)
    ] = None
    event: Annotated[
        str | None,
        option("--event", "Column of 1 where the outcome is the time of an event, 0 where it is censored.", COLUMNS),
    ] = None
    instrument: Annotated[str | None, option("--instrument", "Instrument column (effect late).", COLUMNS)] = None
    propensity: Annotated[
        str | None,
        option(
            "--propensity",
            "Known propensity of the arm: a number such as 1/3, or a column; of several arms call=1/4,mail=1/4.",
            COLUMNS,
        ),
    ] = None
    propensity_control: Annotated[
        str | None,
        option("--propensity-control", "Known propensity of the control, where there are more arms.", COLUMNS),
    ] = None
    weight: Annotated[str | None, option("--weight", "Column of sample weights.", COLUMNS)] = None
    groups: Annotated[str | None, option("--groups", "Column of clusters, which are kept whole.", COLUMNS)] = None
    by: Annotated[str | None, option("--by", "Columns of subgroups to judge separately, comma-separated.", COLUMNS)] = (
        None
    )
    key: Annotated[
        str | None,
        option("--key", "Column that identifies rows, by which folds are drawn; their contents if left out.", COLUMNS),
    ] = None
    drop_missing: Annotated[
        bool, option("--drop-missing", "Drop rows with missing values in needed columns, and say how many.", COLUMNS)
    ] = False
    effect: Annotated[str, option("--effect", f"{_names('effects', 'EFFECTS')}.")] = "cate"
    arm: Annotated[
        list[str] | None,
        option(
            "--arm",
            "Treatment value whose effect is judged; 1 if left out. Several arms: --arm call=tau_call --arm mail=tau_mail.",
            EFFECT,
        ),
    ] = None
    control: Annotated[
        str | None, option("--control", "Treatment value it is compared with; 0 if left out.", EFFECT)
    ] = None
    quantile: Annotated[
        float | None, option("--quantile", "Which quantile (effect quantile); 0.5 if left out.", EFFECT)
    ] = None
    tail: Annotated[
        float | None, option("--tail", "Share of outcomes in the upper tail (effect cvar); 0.1 if left out.", EFFECT)
    ] = None
    expectile: Annotated[
        float | None, option("--expectile", "Which expectile (effect expectile); 0.5 if left out.", EFFECT)
    ] = None
    time: Annotated[float | None, option("--time", "Time at which survival is compared (effect survival).", EFFECT)] = (
        None
    )
    horizon: Annotated[
        float | None, option("--horizon", "Horizon of the restricted mean time (effect rmst).", EFFECT)
    ] = None
    target: Annotated[str | None, option("--target", "population or compliers (effect late).", EFFECT)] = None
    correction: Annotated[
        str | None, option("--correction", "gaussian, shift or riesz (effect derivative).", EFFECT)
    ] = None
    cost: Annotated[float | None, option("--cost", "Cost of treating one person, in units of the effect.", VERDICT)] = (
        None
    )
    bins: Annotated[int | None, option("--bins", "Bins of the prediction; 10 if left out.", VERDICT)] = None
    tolerance: Annotated[
        float | None,
        option(
            "--tolerance", "Error that would matter, in units of the effect; half the predictions' spread if left out."
        ),
    ] = None
    level: Annotated[float | None, option("--level", "Confidence level; 0.95 if left out.")] = None
    fail_if: Annotated[
        list[str] | None,
        option(
            "--fail-if", "Exit with code 3 at this status, miscalibrated or inconclusive; may be repeated.", RESULTS
        ),
    ] = None
    since: Annotated[Path | None, option("--since", "Earlier assessment.json to compare with.", RESULTS)] = None
    learner: Annotated[
        str | None, option("--learner", "Kind of learner: boosting, linear, forest, stagewise or polynomial.", LEARNING)
    ] = None
    folds: Annotated[str, option("--folds", "Folds of cross-fitting: a number, or a column of labels.", LEARNING)] = "5"
    redraws: Annotated[
        int,
        option("--redraws", "Repeat with this many other draws of the folds, to show how the error varies.", LEARNING),
    ] = 0
    clip: Annotated[float, option("--clip", "Fitted propensities are clipped to [CLIP, 1 - CLIP].", LEARNING)] = 0.01
    seed: Seed = 0
    jobs: Jobs = -1
    engine: Annotated[str, option("--engine", "memory, local or dask; auto: local where files are large.")] = "auto"
    scheduler: Annotated[
        str | None,
        option("--scheduler", "Address of a Dask scheduler; processes of this machine if left out.", ENGINE),
    ] = None
    sample: Annotated[
        int | None, option("--sample", "Rows that nuisances are learnt on; 200000 if left out.", ENGINE)
    ] = None
    exact: Annotated[
        bool | None, option("--exact/--no-exact", "Isotonic maps and verdicts: of all rows, or on a fine grid.", ENGINE)
    ] = None
    out: Out = Path("orthocal-out")
    dry_run: Annotated[bool, option("--dry-run", "Check everything, say what would be done, and stop.", RESULTS)] = (
        False
    )
    as_json: Annotated[bool, option("--json", "Print the verdict as JSON; words go to standard error.", RESULTS)] = (
        False
    )

    @property
    def columns_by_arm(self) -> dict[str, str]:
        """The column of predictions of each of several arms; none where there is one arm."""
        pairs = [text.partition("=") for text in self.arm or ()]
        return {arm: column for arm, sign, column in pairs if sign}

    @property
    def predicted(self) -> list[str]:
        """The columns of predictions."""
        return list(self.columns_by_arm.values()) or list(self.prediction or ())

    def of(self, panel: str) -> dict[str, Any]:
        """Return the options of a panel that were given, by name."""
        named = get_type_hints(type(self), include_extras=True)
        found = {
            one.name: getattr(self, one.name)
            for one in fields(self)
            if get_args(named[one.name])[-1].rich_help_panel == panel
        }
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class CalibrateOptions(Options):
    """Calibrate a column of predicted effects and judge it before and after, on rows the map never saw."""

    prediction: Prediction = None
    method: Method = "auto"
    decisions: Annotated[
        bool, option("--decisions", "Several arms: also calibrate the gain predicted for the chosen arm.")
    ] = False
    holdout: Holdout = "0.3"
    within: Within = None


@dataclass(frozen=True, kw_only=True)
class AssessOptions(Options):
    """Judge one or more columns of predicted effects."""

    sensitivity: Annotated[
        bool, option("--sensitivity", "Add an analysis of sensitivity to unmeasured confounding.")
    ] = False
    out: Out = Path("orthocal-assess")


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """Run the whole job on a real table: 9,275 households and their 401(k) plans."""

    out: Out = Path("orthocal-demo")
    method: Method = "auto"
    seed: Seed = 0
    jobs: Jobs = -1


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions:
    """Run an experiment of the paper: figures, tables, and each claim held or not held by what was measured.

    Stopped at any moment, the same command goes on where it stopped and ends with the same figures.
    """

    name: Annotated[str, typer.Argument(metavar="EXPERIMENT", help="401k, quantile or acic.", show_default=False)]
    repeats: Annotated[int | None, option("--repeats", "Repetitions; the experiment's own number if left out.")] = None
    learners: Annotated[
        str | None, option("--learners", "Size of the trees: large, shallow or default, comma-separated.")
    ] = None
    seed: Seed = 0
    jobs: Jobs = -1
    out: Annotated[Path | None, option("--out", "Folder for the results; orthocal-EXPERIMENT if left out.")] = None
