"""What a study of one contrast answers: verdicts, calibrations and comparisons of one prediction for each row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from orthocal.assessment import Comparison
from orthocal.assessment.effect_band import bins_of
from orthocal.assessment.parts import Check
from orthocal.assessment.records import Settings
from orthocal.calibrators import Calibrator, new_calibrator
from orthocal.calibrators.within import GroupsWithin
from orthocal.decisions import Policy
from orthocal.effects import Effect
from orthocal.engines.memory import require_scores
from orthocal.errors import OrthocalError, require_truth
from orthocal.formats import shown
from orthocal.study.arguments import effect_with_arms, named_predictions
from orthocal.study.calibrating import about_map, calibrated
from orthocal.study.calibration import Calibration
from orthocal.study.choice import Choice, choice_among
from orthocal.study.confounding import require_bounds
from orthocal.study.decisions import with_checks

if TYPE_CHECKING:
    from orthocal.study.definition import StudyDefinition


class OneContrast:
    """The answers of a study of one effect.

    Parameters
    ----------
    study : Study
    """

    def __init__(self, study: StudyDefinition) -> None:
        self.study = study

    @property
    def estimand(self) -> Effect:
        """The effect, with the arms that were named."""
        return effect_with_arms(self.study.effect, {"arm": self.study.arm, "control": self.study.control})

    def known_propensities(self, given: Any) -> dict[str, Any]:
        """Return a known propensity by the name that the nuisance has."""
        return {"propensity" if self.study.instrument is None else "instrument_propensity": given}

    def require_method(self, method: Any) -> None:
        """There is such a method."""
        self.study.rows.require_method(method)

    def checks(self) -> tuple[Check, ...]:
        """Return checks of the data, and of the predictions that the study names."""
        rows = self.study.rows
        named = named_predictions(self.study, None) if self.study.predictions else {}
        return (*rows.require_checks(), *(check for name in named for check in rows.checks_of(name)))

    def groups_named(self, within: Any) -> GroupsWithin:
        """Return the subgroups that `within` names."""
        return self.study.rows.groups_within(within)

    def assess(self, prediction: Any, settings: Settings, redraws: int) -> Any:
        """Judge predictions on all rows."""
        rows = self.study.rows
        rows.require_redraws(redraws)
        found = {}
        for name, given in named_predictions(self.study, prediction).items():
            own = rows.predicted(given, name)
            rows.warn_if_shipped(own)
            verdict = rows.engine.judge(own, settings)
            checks = (*rows.data_checks, *rows.checks_of(given, name), *rows.checks_of_verdict(verdict))
            again = (verdict.error, *rows.engine.judged_again(own, redraws)) if redraws else ()
            found[name] = replace(verdict, checks=checks, redraws=again if len(again) > 1 else ())
        return found if not isinstance(prediction, str) else found[prediction]

    def calibrate(
        self,
        prediction: Any,
        method: str | Calibrator,
        holdout: Any,
        settings: Settings,
        *,
        decisions: bool,
        redraws: int,
        within: GroupsWithin | None = None,
    ) -> Any:
        """Calibrate predictions and judge them before and after."""
        rows, held = self.study.rows, self.study.rows.held_out(holdout)
        require_truth(decisions, "decisions")
        if decisions:
            raise OrthocalError(
                "`decisions` must go with several arms to choose among; this study has one. Leave it out."
            )
        rows.require_method(method)
        rows.require_redraws(redraws)
        found = {}
        for name, given in named_predictions(self.study, prediction).items():
            own = rows.predicted(given, name)
            done = calibrated(
                rows.engine,
                own,
                method,
                held,
                settings,
                checks=(*rows.data_checks, *rows.checks_of(given, name)),
                more_checks=rows.checks_of_verdict,
                redraws=redraws,
                within=within,
            )
            about = about_map(self.study, name, done)
            edges = bins_of(new_calibrator(method), done["map"])
            done["checks"] += rows.checks_of_map(done["map"], own, edges, settings.level)
            more = {"about": about, "prediction": own, "study": self.study, "band_edges": edges}
            found[name] = Calibration(name=name, **more, **done)
            rows.remember(own, done["map"])
        return found if not isinstance(prediction, str) else found[prediction]

    def compare(self, one: Any, other: Any, settings: Settings) -> Comparison:
        """Compare two predictions as rivals."""
        names = tuple(
            given if isinstance(given, str) else place for given, place in ((one, "first"), (other, "second"))
        )
        if names[0] == names[1]:
            raise OrthocalError(f"Two different predictions must be compared; both are {shown(names[0])}.")
        rows = self.study.rows
        first, second = (rows.predicted(given, name) for given, name in zip((one, other), names, strict=True))
        return cast("Comparison", rows.engine.compare(first, second, settings, names))

    def policy(self, prediction: Any, method: Any, holdout: Any, settings: Mapping[str, Any]) -> Policy:
        """Value rules by predictions, as they are and calibrated, beside treating no one and everyone."""
        rows = self.study.rows
        rows.require_method(method)
        settings = self.costs_checked(settings)
        named = named_predictions(self.study, prediction)
        found = {name: rows.predicted(given, name) for name, given in named.items()}
        decision = rows.decided(found, method, holdout, settings)
        checks = [check for name, given in named.items() for check in rows.checks_of(given, name)]
        return with_checks(decision, (*rows.data_checks, *checks))

    def require_sensitivity(self) -> None:
        """What unmeasured confounding could change is known for the effect, and can be said of the rows."""
        require_bounds(self.study.estimand)
        self.study.rows.require_sensitivity()

    def costs_checked(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of a policy with costs and columns checked, before anything is learnt."""
        effect: Any = self.study.estimand
        require_scores(effect)
        return self.study.rows.costs_checked(effect.arm, settings)

    def require_redraws(self, redraws: int) -> None:
        """The whole job can be done again so many times."""
        self.study.rows.require_redraws(redraws)

    def require_predictions(self) -> None:
        """The predictions that the study names are there."""

    def choose(self, prediction: Any, method: Any, holdout: Any, settings: Settings) -> Choice:
        """Choose among predictions, each as it is and calibrated."""
        rows = self.study.rows
        rows.require_method(method)
        held, given = rows.held_out(holdout), named_predictions(self.study, prediction)
        found = {name: rows.predicted(one, name) for name, one in given.items()}
        for one in found.values():
            rows.warn_if_shipped(one)
        if settings.cost is None and hasattr(self.study.estimand, "scores"):
            settings = replace(settings, cost=0.0)  # what is the same for everyone is always among the rivals
        choice = choice_among(rows.engine, found, method, held, settings)
        checks = [check for name, one in given.items() for check in rows.checks_of(one, name)]
        return replace(choice, checks=(*rows.data_checks, *checks))
