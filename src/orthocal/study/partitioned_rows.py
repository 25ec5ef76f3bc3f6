"""The rows of a study in partitions: nothing is computed before it is needed; what has no summary form is refused."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.arrays import Floats
from orthocal.assessment import Assessment
from orthocal.assessment.effect_band import EffectBand, effect_band
from orthocal.assessment.parts import Check
from orthocal.calibrators import Calibrator
from orthocal.calibrators.within import GroupsWithin
from orthocal.decisions import Policy
from orthocal.engines.protocol import PartitionedTable, require_share
from orthocal.errors import OrthocalError, is_whole
from orthocal.formats import listed, shown
from orthocal.maps import Map
from orthocal.nuisances.learners import Recipe
from orthocal.study.arm_predictions import columns_named
from orthocal.study.checks import checks_of_data, checks_of_map, checks_of_verdict
from orthocal.study.columns import require_columns_in, require_no_covariate
from orthocal.study.decisions import checked_costs_in_partitions, decided_in_partitions
from orthocal.study.partitioned_checks import PartitionedEvidence, looked_at

if TYPE_CHECKING:
    from orthocal.study.definition import StudyDefinition

SAMPLE = 200_000
"""Rows that nuisances are learnt on where there are too many for memory, if nothing else is asked for."""


class PartitionedStudyRows:
    """Rows of a table in partitions."""

    def __init__(self, study: StudyDefinition, table: PartitionedTable) -> None:
        self.study, self.table = study, table
        self.columns = [str(name) for name in table.columns]
        self._asked = columns_named(study.predictions)
        self._looked: list[PartitionedEvidence] = []

    @property
    def size(self) -> str:
        """How many partitions there are, in words."""
        return f"{len(self.table.names):,} partitions"

    @property
    def count(self) -> int:
        """How many rows there are, in a pass over them."""
        return int(self.engine.count)

    @cached_property
    def engine(self) -> Any:
        """The table; nothing is computed yet."""
        from orthocal.engines.partitioned.engine import PartitionedEngine

        study = self.study
        sample = SAMPLE if study.sample is None else study.sample
        return PartitionedEngine(
            table=self.table,
            roles=study.roles,
            effect=study.estimand,
            folds=study.folds,
            recipe=Recipe(study.learners, study.clip, study.random_state, study.n_jobs, sample),
            exact=study.exact,
        )

    def predicted(self, given: Any, name: str) -> str:
        """Return a column by its name; a model's predictions become one, partition by partition."""
        if isinstance(given, str):
            require_columns_in(self.columns, {given: "prediction"})
            self._asked = list(dict.fromkeys([*self._asked, given]))
            return given
        raise OrthocalError(
            f"Predictions must be a column {self.table.place}; {shown(name)} is a {type(given).__name__}. Add them to the table "
            "first, for a model of Dask by frame.assign(tau=frame[names].map_partitions(model.predict))."
        )

    def subgroups(self, by: Any) -> dict[str, str]:
        """Return columns of subgroups."""
        if isinstance(by, Mapping):
            raise OrthocalError(
                f"`by` must name columns {self.table.place}; it is a mapping. Add the subgroups to the table."
            )
        if not isinstance(by, list | tuple):
            raise OrthocalError(f"`by` must name columns; it is {shown(by)}. Pass a list.")
        require_columns_in(self.columns, dict.fromkeys(by, "subgroup"))
        return {name: name for name in by}

    def groups_within(self, within: Any) -> GroupsWithin:
        """Refuse: groups are shifted and tested in memory."""
        raise OrthocalError(
            f"`within` must have rows in memory; it is {shown(within)}, and this study's are {self.table.place}. Take a "
            f"sample: Study({self.table.sampling}, ...)."
        )

    def held_out(self, holdout: Any) -> float | str:
        """Return the share of rows held out, or the column that says which."""
        if isinstance(holdout, str):
            require_columns_in(self.columns, {holdout: "holdout"})
            require_no_covariate(holdout, self.study.roles.covariates)
            return holdout
        if np.ndim(holdout) > 0:
            raise OrthocalError(
                f"`holdout` must be a share or a column {self.table.place}; it is an array. Add it to the table."
            )
        require_share(holdout)
        return float(holdout)

    def counted(self, holdout: Any) -> tuple[int, int]:
        """Return how many rows a map is fitted on, and how many it is judged on."""
        found: tuple[int, int] = self.engine.sides(self.held_out(holdout))
        return found

    def require_method(self, method: str | Calibrator) -> None:
        """Sums are enough for the method."""
        from orthocal.engines.partitioned.engine import require_summed

        require_summed(method)

    def evidence(self, *predictions: str) -> PartitionedEvidence:
        """Return all that checks look at, from one pass for the predictions known by then, and one for each that comes later."""
        known = next((one for one in self._looked if set(predictions) <= one.predictions.keys()), None)
        if known is not None:
            return known
        names = list(dict.fromkeys([*predictions, *([] if self._looked else self._asked)]))
        source = self.engine.source(names[0] if names else self.study.outcome)
        self._looked.append(looked_at(self.study, source, self.columns, names, self.count))
        return self._looked[-1]

    @cached_property
    def data_checks(self) -> tuple[Check, ...]:
        """Checks of the data: what is counted in all rows, what is looked at in a sample of them."""
        return checks_of_data(self.evidence().evidence)

    def require_checks(self) -> tuple[Check, ...]:
        """Return the checks of the data."""
        return self.data_checks

    def checks_of(self, given: Any, name: str | None = None) -> tuple[Check, ...]:
        """Checks of a prediction."""
        column = self.predicted(given, name or str(given))
        return self.evidence(column).checks_of(column, name or column)

    def checks_of_verdict(self, verdict: Assessment) -> tuple[Check, ...]:
        """Checks of what a verdict found."""
        return checks_of_verdict(verdict)

    def checks_of_map(self, map_: Map, prediction: str, bins: Floats | None, level: float) -> tuple[Check, ...]:
        """Checks of a map against the band of the sample; none where there is no band."""
        found = self.evidence(prediction)
        own = found.prediction(prediction)
        try:
            band = effect_band(own, found.evidence.engine.learnt.loss, bins=bins, level=level)
        except OrthocalError:
            return ()
        return tuple(found.evidence.as_seen(check) for check in checks_of_map(map_, own, band))

    def warn_if_shipped(self, prediction: str) -> None:
        """Say nothing: a column does not tell where it comes from."""

    def remember(self, prediction: str, map_: Map) -> None:
        """Remember nothing."""

    def costs_checked(self, arm: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of a policy with the cost as a number or a column, before anything is learnt."""
        return checked_costs_in_partitions(self, arm, settings)

    def decided(self, predictions: Mapping[str, str], method: Any, holdout: Any, settings: Mapping[str, Any]) -> Policy:
        """Value rules by predictions, as they are and calibrated, from sums."""
        return decided_in_partitions(self, predictions, method, holdout, settings)

    def require_shares(self) -> None:
        """Refuse: people are listed one by one."""
        raise OrthocalError(
            f"Tables of people from the most promising down must have rows in memory; this study's are {self.table.place}. "
            f"Take a sample: Study({self.table.sampling}, ...); `Study.policy` values rules on all rows without them."
        )

    def require_sensitivity(self) -> None:
        """Refuse: nuisances are learnt again, and tails beside them."""
        raise OrthocalError(
            f"Sensitivity to unmeasured confounding must have rows in memory; this study's are {self.table.place}. Take a "
            f"sample: Study({self.table.sampling}, ...)."
        )

    def require_redraws(self, redraws: int) -> None:
        """None: on as many rows other draws of the folds hardly move the error, and passes are dear."""
        if not (is_whole(redraws) and redraws == 0):
            raise OrthocalError(
                f"`redraws` must be 0 {self.table.place}; it is {shown(redraws)}. Draw other folds with another `random_state`."
            )

    def band(self, prediction: str, bins: Floats | None, level: float) -> EffectBand:
        """Refuse: neighbouring rows are compared."""
        del prediction, bins, level
        raise OrthocalError(
            f"A band must have rows in memory; this study's are {self.table.place}. Make it of a sample: "
            f"Study({self.table.sampling}, ...)."
        )

    def with_calibrated(self, name: str, map_: Map, prediction: str, band: EffectBand | None = None) -> Any:
        """Return the table with a column of calibrated predictions."""
        del band  # in partitions there is none
        from orthocal.engines.partitioned.verdict import calibrated_values

        return self.table.with_column(f"{name}_calibrated", calibrated_values, prediction, map_)

    def with_columns(self, columns: Mapping[str, Any]) -> Any:
        """Refuse: columns of several arms are computed in memory."""
        raise OrthocalError(f"{listed(columns)} must be computed in memory; this study's rows are {self.table.place}.")

    @property
    def treatment_values(self) -> list[Any]:
        """Refuse: several arms are judged in memory."""
        raise OrthocalError(
            f"`arms` must go with a table in memory; this study's rows are {self.table.place}. Judge one arm at a time with "
            f"`arm` and `control`, or a sample: Study({self.table.sampling}, ...)."
        )
