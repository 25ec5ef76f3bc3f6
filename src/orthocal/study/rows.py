"""What a study asks of its rows, wherever they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from orthocal.arrays import Floats
from orthocal.assessment import Assessment
from orthocal.assessment.effect_band import EffectBand
from orthocal.assessment.parts import Check
from orthocal.calibrators import Calibrator
from orthocal.calibrators.within import GroupsWithin
from orthocal.decisions import Policy
from orthocal.maps import Map


class StudyRows(Protocol):
    """What a study asks of its rows."""

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        ...

    @property
    def count(self) -> int:
        """How many rows there are."""
        ...

    @property
    def size(self) -> str:
        """How many rows there are, in words, as far as that is known without looking."""
        ...

    @property
    def engine(self) -> Any:
        """What learns, fits and judges."""
        ...

    @property
    def data_checks(self) -> tuple[Check, ...]:
        """Checks of the data."""
        ...

    def require_checks(self) -> tuple[Check, ...]:
        """Return the checks of the data, or say why there are none."""
        ...

    def predicted(self, given: Any, name: str) -> Any:
        """Return a column, an array or what a model predicts, as predictions of these rows."""
        ...

    def subgroups(self, by: Any) -> Mapping[str, Any]:
        """Return subgroups by name."""
        ...

    def groups_within(self, within: Any) -> GroupsWithin:
        """Return the subgroups that `within` names."""
        ...

    def held_out(self, holdout: Any) -> Any:
        """Return the share of rows held out, or which rows."""
        ...

    def counted(self, holdout: Any) -> tuple[int, int]:
        """Return how many rows a map is fitted on, and how many it is judged on."""
        ...

    def require_method(self, method: str | Calibrator) -> None:
        """There is such a method, and it works on these rows."""
        ...

    def checks_of(self, given: Any, name: str | None = None) -> tuple[Check, ...]:
        """Checks of a prediction."""
        ...

    def checks_of_verdict(self, verdict: Assessment) -> tuple[Check, ...]:
        """Checks of what a verdict found."""
        ...

    def checks_of_map(self, map_: Map, prediction: Any, bins: Floats | None, level: float) -> tuple[Check, ...]:
        """Checks of a map against the band of these rows; none where there is no band."""
        ...

    def warn_if_shipped(self, prediction: Any) -> None:
        """Warn where predictions are what a map made of them that was fitted on these rows."""
        ...

    def remember(self, prediction: Any, map_: Map) -> None:
        """Remember what a map that ships makes of these rows."""
        ...

    def costs_checked(self, arm: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of a policy of one arm with costs and columns checked, before anything is learnt."""
        ...

    def decided(self, predictions: Mapping[str, Any], method: Any, holdout: Any, settings: Mapping[str, Any]) -> Policy:
        """Value rules by predictions, as they are and calibrated, beside treating no one and everyone."""
        ...

    def require_shares(self) -> None:
        """People can be listed from the most promising down."""
        ...

    def require_sensitivity(self) -> None:
        """What unmeasured confounding could change can be said of these rows."""
        ...

    def require_redraws(self, redraws: int) -> None:
        """The whole job can be done again so many times."""
        ...

    def band(self, prediction: Any, bins: Floats | None, level: float) -> EffectBand:
        """Return the band of the average effect of people with the same prediction."""
        ...

    def with_calibrated(self, name: str, map_: Map, prediction: Any, band: EffectBand | None = None) -> Any:
        """Return the table with a column of calibrated predictions, and columns of the ends of a band."""
        ...

    def with_columns(self, columns: Mapping[str, Any]) -> Any:
        """Return the table with further columns."""
        ...

    @property
    def treatment_values(self) -> list[Any]:
        """The different values of the treatment."""
        ...
