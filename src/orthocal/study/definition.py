"""What a study is: a table, the part each column plays, an effect, and where its rows are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

from orthocal.assessment.audit import AuditPlan
from orthocal.assessment.parts import Check
from orthocal.assessment.records import Settings
from orthocal.effects import Effect
from orthocal.engines.opening import opened
from orthocal.roles import Roles
from orthocal.study.arguments import named_predictions, require_limits, require_named, roles_of, settings_of
from orthocal.study.auditing import audits
from orthocal.study.confounding import sensitivities
from orthocal.study.memory_rows import MemoryStudyRows
from orthocal.study.one_contrast import OneContrast
from orthocal.study.partitioned_rows import PartitionedStudyRows
from orthocal.study.rows import StudyRows
from orthocal.study.several_arms import SeveralArms


@dataclass(frozen=True, eq=False, repr=False)
class StudyDefinition:
    """The fields of a `Study`, which says what they mean, and what follows from them alone."""

    data: Any
    _: KW_ONLY
    outcome: str
    treatment: str
    covariates: Sequence[str] | str | None = None
    exclude: Sequence[str] | None = None
    predictions: Sequence[str] | Mapping[Any, Any] = ()
    effect: str | Effect = "cate"
    arm: Any = None
    control: Any = None
    arms: Sequence[Any] | str | None = None
    event: str | None = None
    instrument: str | None = None
    propensity: Any = None
    weight: str | None = None
    groups: str | None = None
    key: str | None = None
    nuisances: Mapping[str, Any] | None = None
    learners: Mapping[str, Any] | str | None = None
    limits: tuple[float, float] | None = None
    tolerance: float | None = None
    level: float = 0.95
    folds: int | str = 5
    clip: float = 0.01
    random_state: int = 0
    n_jobs: int | None = None
    sample: int | None = None
    exact: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.predictions, str):
            object.__setattr__(self, "predictions", (self.predictions,))
        Settings(level=self.level, tolerance=self.tolerance)
        require_limits(self.limits)
        require_named(self.predictions)
        _ = self.questions, self.rows.engine

    def __repr__(self) -> str:
        names = ", ".join(self.roles.covariates) or "none"
        what = f"effect of {self.treatment} on {self.outcome}: {self.estimand!r}"
        return f"Study({what}; {self.rows.size}; covariates: {names})"

    @cached_property
    def questions(self) -> OneContrast | SeveralArms:
        """What answers for one contrast, or for several arms."""
        return OneContrast(self) if self.arms is None else SeveralArms(self)

    @cached_property
    def estimand(self) -> Effect:
        """The effect, with the arms that were named."""
        return self.questions.estimand  # type: ignore[return-value]

    @cached_property
    def rows(self) -> StudyRows:
        """The rows, wherever they are."""
        table = opened(self.data)
        return MemoryStudyRows(self) if table is None else PartitionedStudyRows(self, table)

    @cached_property
    def roles(self) -> Roles:
        """Which column plays which part."""
        return roles_of(self, self.rows.columns)

    def checks(self) -> tuple[Check, ...]:
        """Return named checks of the data, and of the predictions that the study names, before anything is believed.

        Examples
        --------
        >>> import pandas as pd
        >>> from orthocal import Study
        >>> from orthocal.datasets import simulate_cate
        >>> data = simulate_cate(n=2000, confounding=0, random_state=0)
        >>> trial = pd.DataFrame({"y": data.y, "a": data.treatment, "cents": 100 * data.y})
        >>> study = Study(trial, outcome="y", treatment="a", covariates=["cents"], propensity=0.5)
        >>> [check.name for check in study.checks() if check.result == "failed"]
        ['leakage', 'outcome among covariates']
        """
        return self.questions.checks()

    def sensitivity(
        self,
        prediction: Any = None,
        *,
        strengths: Sequence[float] = (1.25, 1.5, 2.0, 3.0),
        benchmarks: Sequence[str] | None = None,
        bins: int = 10,
        cost: float | None = None,
    ) -> Any:
        """Say how strong a confounder that was not measured would have to be to change the conclusions, and what it could hide.

        Parameters
        ----------
        prediction : as in `assess`, optional
            A column gives a `Sensitivity`; several give a dict. The study's `predictions` by default.
        strengths : sequence of float
            Of the marginal sensitivity model: factors by which the odds of treatment could be changed.
        benchmarks : list of str, optional
            Covariates to leave out in turn, all nuisances learnt again; all of them by default.
        bins, cost
            As in `assess`; with a cost, the value of treating those predicted above it is bounded, too.

        Returns
        -------
        Sensitivity, or dict of str to Sensitivity
            Where the propensity is known, as in an experiment, it says why there is no analysis.

        Examples
        --------
        >>> import pandas as pd
        >>> from orthocal import Study
        >>> from orthocal.datasets import simulate_cate
        >>> data = simulate_cate(n=2000, random_state=0)
        >>> table = pd.DataFrame(data.X, columns=list("abcde")).assign(y=data.y, got=data.treatment, tau=2 * data.effect)
        >>> study = Study(table, outcome="y", treatment="got", covariates=list("abcde"), learners="linear")
        >>> found = study.sensitivity("tau", benchmarks=["a"], strengths=[1.5])
        >>> bool(0 < found.robustness.error < 1)
        True
        """
        self.questions.require_sensitivity()
        settings = settings_of(self, bins=bins, cost=cost, draws=1)
        named = named_predictions(self, prediction)
        found = sensitivities(self.rows, named, strengths, benchmarks, settings)
        return found if not isinstance(prediction, str) else found[prediction]

    def audit(
        self,
        prediction: Any = None,
        within: Any = None,
        *,
        discover: bool = False,
        bins: int = 5,
        smallest: float = 30,
        draws: int = 9999,
    ) -> Any:
        """Test whether predictions are calibrated in every subgroup, by one test over all of them.

        Parameters
        ----------
        prediction : as in `assess`, optional
            A column gives an `Audit`; several give a dict.
        within : list of str, optional
            Columns of subgroups, as in `calibrate`.
        discover : bool, default False
            Find subgroups by a shallow tree of the residuals on half of the rows (clusters whole), and test those on the other
            half. Columns that are searched are those of `within`, or the covariates.
        bins, smallest, draws
            As in `orthocal.audit`; subgroups that were discovered are not divided into bins.

        Examples
        --------
        >>> import pandas as pd
        >>> from orthocal import Study
        >>> from orthocal.datasets import simulate_cate
        >>> data = simulate_cate(n=8000, confounding=0, random_state=0)
        >>> trial = pd.DataFrame({"y": data.y, "a": data.treatment, "age": data.X[:, 0], "tau": data.effect})
        >>> trial["tau"] += trial["age"] > 0.8
        >>> study = Study(trial, outcome="y", treatment="a", covariates=["age"], propensity=0.5)
        >>> print(study.audit("tau", discover=True).found[0].group)
        age > 0.799
        """
        plan = AuditPlan(bins, smallest, self.level, draws, self.random_state)
        return audits(self, prediction, within, plan, discover=discover)
