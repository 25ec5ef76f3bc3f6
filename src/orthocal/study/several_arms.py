"""What a study of several arms answers: every contrast from one set of nuisances, calibrated together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.arrays import Floats
from orthocal.assessment import Comparison
from orthocal.assessment.parts import Check
from orthocal.assessment.records import Settings
from orthocal.calibrators.joint import JointCalibrator, require_method
from orthocal.calibrators.within import GroupsWithin
from orthocal.decisions import Policy
from orthocal.effects.arm_means import ArmMeans
from orthocal.errors import OrthocalError, is_whole
from orthocal.formats import shown
from orthocal.losses import ArmScores
from orthocal.study.arm_predictions import (
    arms_in_order,
    columns_named,
    known_propensities,
    matrix_of_arms,
    predictions_by_model,
)
from orthocal.study.arms_assessment import assess_arms
from orthocal.study.arms_calibration import ArmsCalibration, about_arms, calibrated_arms, compare_arms
from orthocal.study.arms_checks import ContrastOfArms, checks_of_verdicts, learnt_of
from orthocal.study.arms_choice import choice_among_arms
from orthocal.study.checks import StudyEvidence, checks_of_prediction
from orthocal.study.choice import Choice
from orthocal.study.decisions import checked_costs, decided, with_checks

if TYPE_CHECKING:
    from orthocal.study.definition import StudyDefinition


class SeveralArms:
    """The answers of a study of several arms.

    Parameters
    ----------
    study : Study
    """

    def __init__(self, study: StudyDefinition) -> None:
        self.study = study
        for name in ("arm", "instrument"):
            if getattr(study, name) is not None:
                raise OrthocalError(
                    f"`{name}` must be left out where there are several arms; it is {shown(getattr(study, name))}."
                )
        if not (isinstance(study.effect, str) and study.effect == "cate"):
            raise OrthocalError(f"`effect` must be 'cate' where there are several arms; it is {shown(study.effect)}.")

    @cached_property
    def estimand(self) -> ArmMeans:
        """The mean outcome of each arm."""
        return ArmMeans(arms_in_order(self.study.arms, self.study.control, self.study.rows.treatment_values))

    @property
    def arms(self) -> tuple[Any, ...]:
        """The arms but for the control."""
        return self.estimand.arms[1:]

    @property
    def scores(self) -> ArmScores:
        """The doubly robust scores of all rows, learnt on first need."""
        found: ArmScores = self.study.rows.engine.learnt.loss
        return found

    def known_propensities(self, given: Any) -> dict[str, Any]:
        """Return known propensities by the names that nuisances have."""
        return known_propensities(given, self.estimand, len(self.study.rows.treatment_values))

    def require_method(self, method: Any) -> None:
        """There is such a method."""
        require_method(method)

    def checks(self) -> tuple[Check, ...]:
        """Return checks of the data, and of the predictions that the study names."""
        rows = self.study.rows
        if not isinstance(self.study.predictions, Mapping):
            return rows.require_checks()
        named, _ = predictions_by_model(self.study.predictions, self.arms)
        return (
            *rows.require_checks(),
            *(check for name, given in named.items() for check in self.checks_of(given, name)),
        )

    def checks_of(self, given: Any, name: str) -> tuple[Check, ...]:
        """Checks of the predictions of every arm, each against the control; those that passed are named once."""
        predictions = matrix_of_arms(given, self.estimand, self.study.rows, name)
        found: dict[tuple[str, str], Check] = {}
        for k, effect in enumerate(self.estimand.effects):
            for check in checks_of_prediction(self._evidence[k], predictions[:, k], f"the prediction of {effect.arm}"):
                key = (check.name, "" if check.result == "passed" else check.sentence)
                found.setdefault(key, check)
        return tuple(found.values())

    def groups_named(self, within: Any) -> GroupsWithin:
        """Refuse: subgroups are tested and shifted for one contrast."""
        raise OrthocalError(
            f"`within` must go with one contrast; it is {shown(within)}, and there are several arms. Study each with `arm`."
        )

    def assess(self, prediction: Any, settings: Settings, redraws: int) -> Any:
        """Judge predictions of all arms on all rows."""
        _require_no_redraws(redraws)
        named, is_only = self._named(prediction)
        own = replace(settings, random_state=self.study.random_state)
        found = {}
        for name, given in named.items():
            matrix = matrix_of_arms(given, self.estimand, self.study.rows, name)
            self.study.rows.warn_if_shipped(matrix)
            verdict = assess_arms(matrix, self.scores, own)
            checks = (*self.study.rows.data_checks, *self.checks_of(given, name), *checks_of_verdicts(verdict))
            found[name] = replace(verdict, checks=checks)
        return next(iter(found.values())) if is_only else found

    def calibrate(
        self, prediction: Any, method: Any, holdout: Any, settings: Settings, *, decisions: bool, redraws: int
    ) -> Any:
        """Calibrate predictions of all arms together and judge them before and after."""
        _require_no_redraws(redraws)
        require_method(method)
        rows, (named, is_only) = self.study.rows, self._named(prediction)
        sides = rows.engine.sides(rows.held_out(holdout))
        own = replace(settings, random_state=self.study.random_state, by={})
        found = {}
        for name, given in named.items():
            matrix = matrix_of_arms(given, self.estimand, rows, name)
            done = calibrated_arms(
                matrix,
                self.scores,
                JointCalibrator(method, decisions=decisions, costs=self._costs(settings.cost)),
                sides,
                own,
                settings.by,
                (*rows.data_checks, *self.checks_of(given, name)),
            )
            columns = self._columns(given, name)
            fitted = sides[0] if done["map"] is done["verified_map"] else np.arange(len(matrix))
            counted = matrix[fitted[self.scores.weight[fitted] > 0]]
            about = about_arms(self.study, name, columns, counted, done)
            rows.remember(matrix, done["map"])
            found[name] = ArmsCalibration(
                name=name,
                arms=self.estimand.arms,
                columns=columns,
                about=about,
                predictions=matrix,
                study=self.study,
                **done,
            )
        return next(iter(found.values())) if is_only else found

    def compare(self, one: Any, other: Any, settings: Settings) -> Comparison:
        """Compare two predictions of all arms by their losses, summed over the contrasts with the control."""
        if settings.cost is not None:
            raise OrthocalError(
                "`cost` must be left out where there are several arms; `policy` values decisions by them."
            )
        names = [given if isinstance(given, str) else place for given, place in ((one, "first"), (other, "second"))]
        first, second = (
            matrix_of_arms(self._by_name(given), self.estimand, self.study.rows, name)
            for given, name in zip((one, other), names, strict=True)
        )
        return compare_arms(first, second, self.scores, settings.level, (names[0], names[1]))

    def require_sensitivity(self) -> None:
        """Refuse: bounds are those of one contrast."""
        raise OrthocalError(
            "Sensitivity to unmeasured confounding must be that of one contrast; this study has several arms. Leave out `arms`, "
            "and name `arm` and `control`."
        )

    def policy(self, prediction: Any, method: Any, holdout: Any, settings: Mapping[str, Any]) -> Policy:
        """Value rules by predictions of all arms, as they are and calibrated, beside treating no one and everyone."""
        require_method(method)
        rows, (named, _) = self.study.rows, self._named(prediction)
        settings = self.costs_checked(settings)
        sides = rows.engine.sides(rows.held_out(holdout))

        def calibrated_arms_of(values: Floats) -> Floats:
            return JointCalibrator(method).fit(values[sides[0]], self.scores[sides[0]]).predict(values)

        found = {name: matrix_of_arms(given, self.estimand, rows, name) for name, given in named.items()}
        checks = [check for name, given in named.items() for check in self.checks_of(given, name)]
        decision = decided(rows.engine, self.scores, found, calibrated_arms_of, sides, settings)
        return with_checks(decision, (*rows.data_checks, *checks))

    def costs_checked(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of a policy with costs and columns checked, before anything is learnt."""
        return checked_costs(self.study.rows, self.arms, settings)

    def require_redraws(self, redraws: int) -> None:
        """None: the whole job is done once."""
        _require_no_redraws(redraws)

    def require_predictions(self) -> None:
        """The predictions that the study names are there, one for each arm."""
        for name, given in self._named(None)[0].items():
            matrix_of_arms(given, self.estimand, self.study.rows, name)

    def _costs(self, cost: float | None) -> list[float] | None:
        return None if cost is None else [float(cost)] * len(self.arms)

    def _by_name(self, given: Any) -> Any:
        """Return the predictions of a model that the study names, or what was given."""
        known = self.study.predictions
        return known[given] if isinstance(given, str) and isinstance(known, Mapping) and given in known else given

    def choose(self, prediction: Any, method: Any, holdout: Any, settings: Settings) -> Choice:
        """Choose among models of all arms, each as it is and calibrated."""
        require_method(method)
        rows, (named, _) = self.study.rows, self._named(prediction)
        sides = rows.engine.sides(rows.held_out(holdout))
        found = {name: matrix_of_arms(given, self.estimand, rows, name) for name, given in named.items()}
        own = replace(settings, random_state=self.study.random_state, by={}, cost=settings.cost or 0.0)
        choice = choice_among_arms(self.scores, found, JointCalibrator(method), sides, own)
        checks = [check for name, given in named.items() for check in self.checks_of(given, name)]
        return replace(choice, checks=(*rows.data_checks, *checks))

    def _named(self, prediction: Any) -> tuple[dict[str, Any], bool]:
        given = self.study.predictions if prediction is None else prediction
        if isinstance(given, str) and self._by_name(given) is not given:
            return {given: self._by_name(given)}, True
        if given is None or (isinstance(given, list | tuple) and not len(given)):
            raise OrthocalError(
                f"`prediction` must be given where the study names none. Pass {{{shown(self.arms[0])}: a column, ...}}."
            )
        if isinstance(given, list | tuple) and all(isinstance(one, str) for one in given):
            raise OrthocalError(
                f"Predictions of several arms must say which column is of which arm, as in {{{shown(self.arms[0])}: "
                f"{shown(given[0])}, ...}}; they are a list."
            )
        return predictions_by_model(given, self.arms)

    def _columns(self, given: Any, name: str) -> tuple[str, ...]:
        """Return what the predictions are called: their columns, or the model and the arm."""
        named = [given[arm] for arm in self.arms] if isinstance(given, Mapping) else []
        if named and all(isinstance(one, str) for one in named):
            return tuple(columns_named(named))
        return tuple(f"{name}_{arm}" for arm in self.arms)

    @cached_property
    def _evidence(self) -> list[StudyEvidence]:
        """What checks of a prediction look at, one for each arm against the control."""
        rows: Any = self.study.rows
        learnt = rows.engine.learnt
        return [
            StudyEvidence(self.study, rows.table, ContrastOfArms(rows.engine, learnt_of(learnt, effect)), effect)
            for effect in self.estimand.effects
        ]


def _require_no_redraws(redraws: int) -> None:
    if not (is_whole(redraws) and redraws == 0):
        raise OrthocalError(f"`redraws` must be 0 where there are several arms; it is {shown(redraws)}.")
