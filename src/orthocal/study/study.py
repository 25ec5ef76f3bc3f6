"""The front door: a table, the part each column plays, an effect, and the nuisances learnt for it once."""

from __future__ import annotations

from typing import Any

from orthocal.assessment import Comparison
from orthocal.calibrators import Calibrator
from orthocal.decisions import Policy
from orthocal.study.arguments import settings_of
from orthocal.study.calibration import Calibration
from orthocal.study.choice import Choice
from orthocal.study.definition import StudyDefinition


class Study(StudyDefinition):
    """A table, the role of each column, an effect, and the nuisances learnt for it once: what a user works with.

    Everything that is asked of a study is answered from one orthogonal loss, whose nuisances are learnt on first need and shared
    by every prediction. A study keeps references, not copies, and does not change.

    Parameters
    ----------
    data : table (pandas, polars, pyarrow), path, folder or pattern of files, DuckDB relation, Dask or Spark frame
        One row per person; files are .csv, .csv.gz, .parquet or .duckdb. Folders, patterns, relations and files larger than a
        quarter of the memory are read in chunks. There, on Dask and on Spark the same calls work; what has no summary form is
        refused.
    outcome, treatment : str
        Columns.
    covariates : list of str or "all"
        Columns measured **before** treatment; they are named, never guessed. ``"all"`` means every column without another part,
        and asks for `predictions` to be named. ``[]`` is allowed with a known propensity; covariates would narrow the intervals.
    exclude : list of str, optional
        Columns that are not covariates: all others are, but for `predictions`, which must then be named.
    predictions : list of str
        Columns of predictions, which are not covariates; of several arms as `assess` takes them.
    effect : str or Effect, default "cate"
    arm, control : object, optional
        Values of the treatment to compare; 1 and 0 by default.
    arms : "all" or list, optional
        Several values of the treatment, all compared with the control (0 by default) and with each other, by one set of
        nuisances. Every arm then has a prediction of its own.
    event : str, optional
        Where the outcome is a time: column of 1 if it is that of the event, 0 if follow-up ended then (censored).
    instrument : str, optional
        Column of the instrument (effect "late"); two values, of any type.
    propensity : number, str or callable, optional
        Known probability of the arm (of the instrument, where there is one): a number, a column, or a function of the covariates;
        of several arms, a mapping of arms to these.
    weight, groups, key : str, optional
        Columns of sample weights, of clusters (which are kept whole) and of what identifies rows, by which folds are drawn.
    nuisances : mapping, optional
        Other known nuisances by name: a number, a column, an array or a function of the covariates.
    learners : mapping or str, optional
        scikit-learn estimators by nuisance name or role; or one kind for all: "boosting" (the default), "linear",
        "forest", "stagewise" (outcomes by a lasso, then boosted trees on its residuals) or "polynomial" (the same, with powers
        and products of the lasso's eight largest columns).
    limits : (float, float), optional
        Between which the outcome always lies; 0 and 1 are found. Predictions beyond what they allow are reported.
    tolerance : float, optional
        The error that would matter, in units of the effect; see `Assessment`.
    level : float, default 0.95
        Confidence level.
    folds : int or str, default 5
        Number of folds of cross-fitting, or a column of fold labels.
    clip, random_state, n_jobs
        As in `orthogonal_loss`.
    sample, exact : int, bool, optional
        Where rows come in partitions: rows that nuisances are learnt on (200,000 by default), and whether isotonic maps and
        verdicts are those of all rows, or of a grid of the prediction.

    Examples
    --------
    >>> import pandas as pd
    >>> from orthocal.datasets import simulate_cate
    >>> data = simulate_cate(n=8000, confounding=0, random_state=0)
    >>> trial = pd.DataFrame({"age": data.X[:, 0], "spend": data.y, "mailed": data.treatment, "tau": 2 * data.effect})
    >>> study = Study(trial, outcome="spend", treatment="mailed", covariates=["age"], propensity=0.5)
    >>> study
    Study(effect of mailed on spend: CATE(arm=1, control=0); 8,000 rows; covariates: age)
    >>> verdict = study.assess("tau")
    >>> verdict.status, verdict.ranking
    ('miscalibrated', 'ranks')
    """

    def assess(
        self,
        prediction: Any = None,
        *,
        bins: int = 10,
        cost: float | None = None,
        by: Any = None,
        draws: int = 1000,
        redraws: int = 0,
    ) -> Any:
        """Judge predictions on all rows of the study, which no model that made them may have seen.

        Parameters
        ----------
        prediction : str, list of str, or mapping of names to columns, arrays or models; optional
            A column gives an `Assessment`; several give a dict. The study's `predictions` by default. Of several arms: a mapping
            of each arm to its column, array or model, or a matrix with a column for each arm, gives an `ArmsAssessment`; a
            mapping of names to such, a dict.
        bins, cost, draws
            As in `orthocal.assess`.
        by : str, list of str, or mapping of names to arrays, optional
            Columns of subgroups to judge apart; missing values are a subgroup.
        redraws : int, default 0
            The error is estimated again with this many other draws of the folds, to show how it varies.

        Returns
        -------
        Assessment, or dict of str to Assessment

        Examples
        --------
        >>> import pandas as pd
        >>> from orthocal.datasets import simulate_cate
        >>> data = simulate_cate(n=8000, confounding=0, random_state=0)
        >>> trial = pd.DataFrame({"y": data.y, "a": data.treatment, "tau": data.effect})
        >>> study = Study(trial, outcome="y", treatment="a", covariates=[], propensity=0.5)
        >>> both = study.assess({"tau": "tau", "twice": 2 * trial["tau"]})
        >>> {name: verdict.status for name, verdict in both.items()}
        {'tau': 'calibrated', 'twice': 'miscalibrated'}
        """
        return self.questions.assess(prediction, settings_of(self, bins=bins, cost=cost, by=by, draws=draws), redraws)

    def calibrate(
        self,
        prediction: Any = None,
        method: str | Calibrator = "auto",
        *,
        holdout: float | str | Any = 0.3,
        bins: int = 10,
        cost: float | None = None,
        by: Any = None,
        draws: int = 1000,
        within: Any = None,
        decisions: bool = False,
        redraws: int = 0,
    ) -> Any:
        """Calibrate predictions, judge them before and after on rows the map never saw, and recommend what to use.

        Parameters
        ----------
        prediction : str, list of str, or mapping of names to columns, arrays or models; optional
            A column gives a `Calibration`; several give a dict. The study's `predictions` by default.
        method : str or calibrator, default "auto"
        holdout : float or str, default 0.3
            Share of the rows kept for the verdict, or a boolean column (judge on later months); 0 keeps none.
        bins, cost, by, draws
            As in `assess`.
        within : list of str, optional
            Columns of subgroups that are corrected one by one, not only judged (multicalibration): their values, ranges of
            numbers; a list of columns inside the list means their intersections.
        decisions : bool, default False
            Of several arms: calibrate the gain predicted for the chosen arm, too (decision calibration).
        redraws : int, default 0
            The whole job is repeated with this many other draws of the folds, to show how the error varies.

        Returns
        -------
        Calibration, or dict of str to Calibration

        Examples
        --------
        >>> import pandas as pd
        >>> from orthocal.datasets import simulate_cate
        >>> data = simulate_cate(n=8000, confounding=0, random_state=0)
        >>> trial = pd.DataFrame({"y": data.y, "a": data.treatment, "tau": 1 + 2 * data.effect})
        >>> study = Study(trial, outcome="y", treatment="a", covariates=[], propensity=0.5)
        >>> done = study.calibrate("tau")
        >>> done.status, done.recommendation.action
        ('calibrated', 'use the calibrated prediction')
        """
        settings = settings_of(self, bins=bins, cost=cost, by=by, draws=draws)
        more: dict[str, Any] = {"decisions": decisions, "redraws": redraws}
        if within is not None:
            more["within"] = self.questions.groups_named(within)
        return self.questions.calibrate(prediction, method, holdout, settings, **more)

    def compare(self, one: Any, other: Any, *, cost: float | None = None) -> Comparison:
        """Compare two predictions as rivals, by their mean loss, row by row.

        Parameters
        ----------
        one, other : str, array or model
            A column, or anything that `assess` takes by name.
        cost : float, optional
            As in `orthocal.compare`.

        Examples
        --------
        >>> import pandas as pd
        >>> from orthocal.datasets import simulate_cate
        >>> data = simulate_cate(n=8000, confounding=0, random_state=0)
        >>> trial = pd.DataFrame({"y": data.y, "a": data.treatment, "forest": data.effect, "lasso": 2 * data.effect})
        >>> study = Study(trial, outcome="y", treatment="a", covariates=[], propensity=0.5)
        >>> study.compare("forest", "lasso").verdict
        'forest has the lower loss'
        """
        return self.questions.compare(one, other, settings_of(self, cost=cost, draws=1))

    def policy(
        self,
        prediction: Any = None,
        *,
        cost: Any = 0.0,
        budget: float | None = None,
        spend: str | None = None,
        method: str | Calibrator = "auto",
        holdout: float | str | Any = 0.3,
        draws: int = 200,
    ) -> Policy:
        """Say what deciding by predictions is worth, beside treating no one and treating everyone, and recommend one of these.

        Parameters
        ----------
        prediction : as in `assess`, optional
        cost : number, str, array, or mapping of arms to these, default 0
            What treating a person costs: the same for all, a column, or an array; in units of the outcome unless there is a
            budget.
        budget : float, optional
            Mean cost per person that may be spent.
        spend : str, optional
            Column of what was really spent on each person, an outcome like any other: for the return on spend.
        method, holdout
            Predictions are also calibrated on the rows not held out. Rules are valued on the held-out rows; where none are held
            out, on all rows and as they are.
        draws : int, default 200
            Behind the standard errors within a budget.

        Examples
        --------
        >>> import pandas as pd
        >>> from orthocal.datasets import simulate_cate
        >>> data = simulate_cate(n=8000, confounding=0, random_state=0)
        >>> trial = pd.DataFrame({"y": data.y, "a": data.treatment, "tau": data.effect})
        >>> study = Study(trial, outcome="y", treatment="a", covariates=[], propensity=0.5)
        >>> study.policy("tau", cost=0.1, method="linear").best_blanket
        'no one'
        """
        settings = {"cost": cost, "budget": budget, "spend": spend, "level": self.level, "draws": draws}
        return self.questions.policy(prediction, method, holdout, {**settings, "random_state": self.random_state})

    def choose(
        self,
        predictions: Any = None,
        *,
        method: str | Calibrator = "auto",
        holdout: float | str | Any = 0.3,
        cost: float | None = None,
        bins: int = 10,
        draws: int = 1000,
    ) -> Choice:
        """Choose among predictions, each as it is and calibrated, with the average effect and no effect among the rivals.

        Parameters
        ----------
        predictions : as in `assess`, optional
        method, holdout, bins, draws
            As in `calibrate`; rows must be held out.
        cost : float, optional
            At which decisions by each rival are valued, beside rules that are the same for everyone; 0 by default.

        Examples
        --------
        >>> import pandas as pd
        >>> from orthocal.datasets import simulate_cate
        >>> data = simulate_cate(n=4000, confounding=0, random_state=0)
        >>> trial = pd.DataFrame({"y": data.y, "a": data.treatment, "tau": 2 * data.effect})
        >>> study = Study(trial, outcome="y", treatment="a", covariates=[], propensity=0.5)
        >>> study.choose("tau", method="linear").confidence_set
        ('tau, calibrated',)
        """
        settings = settings_of(self, bins=bins, cost=cost, draws=draws)
        return self.questions.choose(predictions, method, holdout, settings)

    def with_calibrated(self, done: Calibration) -> Any:
        """Return the table with a column of calibrated predictions."""
        return self.rows.with_calibrated(done.name, done.map, done.prediction)
