"""The rows of a study in memory: columns found, engine made, predictions and subgroups looked up."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from orthocal.arrays import Booleans, Floats, Labels
from orthocal.assessment import Assessment
from orthocal.assessment.effect_band import EffectBand, effect_band
from orthocal.assessment.parts import Check
from orthocal.calibrators import Calibrator, new_calibrator
from orthocal.calibrators.within import GroupsWithin, groups_within, require_within
from orthocal.decisions import Policy
from orthocal.engines.memory import MemoryEngine
from orthocal.engines.protocol import held_out, require_share
from orthocal.errors import HonestyWarning, OrthocalError, require_mapping, require_whole
from orthocal.formats import shown
from orthocal.group_maps import GroupMap, predict_within
from orthocal.maps import Map
from orthocal.nuisances.learners import Recipe, choose_learners
from orthocal.observations import as_groups, as_labels, as_numbers, observe, warn_of_other_order
from orthocal.study.checks import StudyEvidence, checks_of_data, checks_of_map, checks_of_prediction, checks_of_verdict
from orthocal.study.columns import MemoryTable, require_columns_in, require_name, require_no_covariate
from orthocal.study.decisions import checked_costs, decided

if TYPE_CHECKING:
    from orthocal.study.definition import StudyDefinition

MOST_REDRAWS = 1000


class MemoryStudyRows:
    """Rows in memory."""

    def __init__(self, study: StudyDefinition) -> None:
        if study.sample is not None or study.exact is not False:
            raise OrthocalError("`sample` and `exact` must be left out in memory, where all rows are used, exactly.")
        self.study, self.table = study, MemoryTable(study.data)
        self.columns, self.count = self.table.columns, len(self.table)
        self.size = f"{self.count:,} rows"
        self._shipped: set[bytes] = set()
        self._bands: dict[tuple[Any, ...], EffectBand] = {}

    @cached_property
    def treatment_values(self) -> list[Any]:
        """The different values of the treatment."""
        name = self.study.treatment
        require_name(name, "treatment")
        require_columns_in(self.columns, {name: "treatment"})
        found: list[Any] = np.unique(as_labels(self.table.column(name), name, self.count)).tolist()
        return found

    @cached_property
    def engine(self) -> MemoryEngine:
        """The rows, checked as far as they can be without learning anything."""
        return self._engine_of(self.study.roles.covariates)

    def engine_without(self, covariate: str) -> MemoryEngine:
        """Return the rows as if a covariate had not been measured; nothing is learnt yet."""
        return self._engine_of([name for name in self.study.roles.covariates if name != covariate])

    def _engine_of(self, covariates: Sequence[str]) -> MemoryEngine:
        study, roles, table, n = self.study, self.study.roles, self.table, self.count
        X = table.covariates(covariates)
        labels = {
            name: None if column is None else as_labels(table.column(column), column, n)
            for name, column in (("groups", roles.groups), ("key", roles.key), ("event", roles.event))
        }
        weight = (
            None
            if roles.sample_weight is None
            else as_numbers(table.column(roles.sample_weight), study.weight or "", n)
        )
        treatment = as_labels(table.column(roles.treatment), roles.treatment, n)
        engine = MemoryEngine(
            effect=study.estimand,
            observations=observe(
                X,
                as_numbers(table.column(roles.outcome), roles.outcome, n),
                treatment=treatment,
                instrument=self._instrument,
                sample_weight=weight,
                **labels,
            ),
            X=X,
            nuisances={name: self._known(value) for name, value in roles.nuisances.items()},
            folds=study.folds if roles.fold is None else as_labels(table.column(roles.fold), roles.fold, n),
            recipe=Recipe(study.learners, study.clip, study.random_state, study.n_jobs),
        )
        learnt, given = engine.to_learn  # what is wrong with the columns is said now
        choose_learners(learnt, study.learners)
        if roles.instrument is not None and not any(
            "instrument" in name for name in (*(n.name for n in learnt), *given)
        ):
            raise OrthocalError(
                f"`instrument` must go with an effect that uses it; {shown(study.estimand)} has none. Use effect='late', or "
                "leave it out."
            )
        return engine

    @property
    def _instrument(self) -> Labels | None:
        """The instrument as 0 and 1: where nothing is known of it, which of two labels is called 1 does not change the effect."""
        name = self.study.roles.instrument
        if name is None:
            return None
        labels = as_labels(self.table.column(name), name, self.count)
        values = np.unique(labels)
        if len(values) == 2 and not set(values.tolist()) <= {0, 1} and self.study.roles.nuisances:
            raise OrthocalError(
                f"`instrument` must be 0 and 1 where nuisances are known, so that it is clear of what; {shown(name)} has "
                f"{shown(values.tolist()[0])} and {shown(values.tolist()[1])}. Recode it."
            )
        return (
            labels
            if len(values) != 2 or set(values.tolist()) <= {0, 1}
            else np.asarray(labels == values[1]).astype(int)
        )

    def _known(self, value: Any) -> Any:
        return as_numbers(self.table.column(value), value, self.count) if isinstance(value, str) else value

    def predicted(self, given: Any, name: str) -> Floats:
        """Return a column, an array or what a model predicts, as predictions of these rows."""
        if isinstance(given, str):
            require_columns_in(self.columns, {given: "prediction"})
            return as_numbers(self.table.column(given), given, self.count)
        if any(callable(one) for one in (given, getattr(given, "effect", None), getattr(given, "predict", None))):
            return self.engine.predicted(given)
        warn_of_other_order(data=nw.to_native(self.table.frame), **{str(name): given})
        return as_numbers(given, name, self.count)

    def subgroups(self, by: Any) -> dict[str, Labels]:
        """Return subgroups by name."""
        if not isinstance(by, Mapping | list | tuple):
            raise OrthocalError(
                f"`by` must name columns, or map names to labels; it is {shown(by)}. Pass a list or a dict."
            )
        if not isinstance(by, Mapping):
            require_columns_in(self.columns, dict.fromkeys(by, "subgroup"))
            by = {name: self.table.column(name) for name in by}
        require_mapping(by, "by", "labels of subgroups")
        return {name: as_groups(values, name, self.count) for name, values in by.items()}

    def groups_within(self, within: Any) -> GroupsWithin:
        """Return the subgroups that `within` names."""
        entries = require_within(within)
        named = [name for one in entries for name in ([one] if isinstance(one, str) else one)]
        require_columns_in(self.columns, dict.fromkeys(named, "within"))
        return groups_within(entries, self.table.column, self.engine.observations.weight)

    def held_out(self, holdout: Any) -> float | Booleans:
        """Return the share of rows held out, or which rows."""
        if isinstance(holdout, str):
            require_columns_in(self.columns, {holdout: "holdout"})
            require_no_covariate(holdout, self.study.roles.covariates)
            return held_out(self.table.column(holdout), holdout, self.count)
        if np.ndim(holdout) > 0:
            return held_out(holdout, "holdout", self.count)
        require_share(holdout)
        return float(holdout)

    def counted(self, holdout: Any) -> tuple[int, int]:
        """Return how many rows a map is fitted on, and how many it is judged on."""
        fitted, judged = self.engine.sides(self.held_out(holdout))
        return len(fitted), len(judged)

    def require_method(self, method: str | Calibrator) -> None:
        """There is such a method."""
        new_calibrator(method)

    @cached_property
    def evidence(self) -> StudyEvidence:
        """All that checks look at."""
        return StudyEvidence(self.study, self.table, self.engine)

    @cached_property
    def data_checks(self) -> tuple[Check, ...]:
        """Checks of the data."""
        return checks_of_data(self.evidence)

    def require_checks(self) -> tuple[Check, ...]:
        """Return the checks of the data."""
        return self.data_checks

    def checks_of(self, given: Any, name: str | None = None) -> tuple[Check, ...]:
        """Checks of a prediction."""
        return checks_of_prediction(self.evidence, self.predicted(given, name or str(given)), name or str(given))

    def checks_of_verdict(self, verdict: Assessment) -> tuple[Check, ...]:
        """Checks of what a verdict found."""
        return checks_of_verdict(verdict)

    def checks_of_map(self, map_: Map, prediction: Floats, bins: Floats | None, level: float) -> tuple[Check, ...]:
        """Checks of a map against the band of these rows; none where there is no band, or where subgroups have shifts."""
        if isinstance(map_, GroupMap):
            return ()
        try:
            band = self.band(prediction, bins, level)
        except OrthocalError:
            return ()
        return checks_of_map(map_, prediction, band)

    def warn_if_shipped(self, prediction: Floats) -> None:
        """Warn where predictions are what a map made of them that was fitted on these rows."""
        if _digest(prediction) in self._shipped:
            warnings.warn(
                "These predictions were calibrated by a map that was fitted on the rows of this study, where they look too good. "
                "Judge them on other rows; the verdict of `calibrate` rests on rows that the map had not seen.",
                HonestyWarning,
                stacklevel=3,
            )

    def remember(self, prediction: Floats, map_: Map) -> None:
        """Remember what a map that ships makes of these rows."""
        self._shipped.add(_digest(self.mapped(map_, prediction)))

    def mapped(self, map_: Map, prediction: Floats) -> Floats:
        """Return what a map makes of these rows; a map of groups finds its columns in the table."""
        groups = map_.columns if isinstance(map_, GroupMap) else ()
        return predict_within(map_, prediction, {name: self.table.column(name) for name in groups})

    def costs_checked(self, arm: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of a policy with costs and columns checked, before anything is learnt."""
        return checked_costs(self, (arm,), settings)

    def decided(
        self, predictions: Mapping[str, Floats], method: Any, holdout: Any, settings: Mapping[str, Any]
    ) -> Policy:
        """Value rules by predictions, as they are and calibrated."""
        engine, sides = self.engine, self.engine.sides(self.held_out(holdout))
        held = np.isin(np.arange(self.count), sides[1])

        def calibrated_column(values: Floats) -> Floats:
            trial = engine.trial(values[:, 0], method, held, {})
            return np.asarray(trial.map.predict(values[:, 0]))[:, None]

        found = {name: values[:, None] for name, values in predictions.items()}
        return decided(engine, engine.scores, found, calibrated_column, sides, settings)

    def require_shares(self) -> None:
        """Rows in memory always allow it."""

    def require_sensitivity(self) -> None:
        """Rows in memory always allow it."""

    def require_redraws(self, redraws: int) -> None:
        """A number of further draws."""
        require_whole(redraws, 0, "redraws", MOST_REDRAWS)

    def band(self, prediction: Floats, bins: Floats | None, level: float) -> EffectBand:
        """Return the band of the average effect of people with the same prediction; one made before is kept."""
        key = (_digest(prediction), None if bins is None else _digest(bins), level)
        if key not in self._bands:
            self._bands[key] = effect_band(prediction, self.engine.learnt.loss, bins=bins, level=level)
        return self._bands[key]

    def with_calibrated(self, name: str, map_: Map, prediction: Floats, band: EffectBand | None = None) -> Any:
        """Return the table with a column of calibrated predictions, and columns of the ends of a band."""
        columns = {f"{name}_calibrated": self.mapped(map_, prediction)}
        if band is not None:
            columns[f"{name}_lower"], columns[f"{name}_upper"] = band.interval(prediction)
        return self.with_columns(columns)

    def with_columns(self, columns: Mapping[str, Floats]) -> Any:
        """Return the table with further columns."""
        return self.table.with_columns(columns)


def _digest(values: Floats) -> bytes:
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).digest()
