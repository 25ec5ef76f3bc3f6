"""What a study is: a table, the part each column plays, an effect, and where its rows are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

from orthocal.assessment.records import Settings
from orthocal.effects import Effect
from orthocal.engines.opening import opened
from orthocal.roles import Roles
from orthocal.study.arguments import require_limits, roles_of
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
