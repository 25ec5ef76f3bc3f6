"""What checks look at where there are several arms: one contrast with the control at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from orthocal.assessment.parts import Check
from orthocal.effects import CATE
from orthocal.effects.arm_means import outcome_of, propensity_of
from orthocal.observations import Observations
from orthocal.orthogonal import Orthogonal
from orthocal.study.arms_assessment import ArmsAssessment
from orthocal.study.checks import checks_of_verdict


@dataclass(frozen=True, eq=False)
class ContrastOfArms:
    """An engine of several arms as checks see it: what was learnt of one contrast."""

    engine: Any
    learnt: Orthogonal

    @property
    def observations(self) -> Observations:
        """The rows."""
        found: Observations = self.engine.observations
        return found


def learnt_of(learnt: Orthogonal, effect: CATE) -> Orthogonal:
    """Return what was learnt of one contrast, under the names that it has for two arms."""
    scores: Any = learnt.loss
    names = {
        "propensity": propensity_of(effect.arm),
        "propensity_control": propensity_of(effect.control),
        "outcome_treated": outcome_of(effect.arm),
        "outcome_control": outcome_of(effect.control),
    }
    own = {name: learnt.nuisances[other] for name, other in names.items()}
    return replace(learnt, loss=scores.contrast(effect.arm), nuisances=own)


def checks_of_verdicts(verdict: ArmsAssessment) -> tuple[Check, ...]:
    """Checks of each contrast with the control that did not pass, and one that did."""
    found: dict[tuple[str, str], Check] = {}
    for arm in verdict.arms[1:]:
        for check in checks_of_verdict(verdict.of(arm)):
            passed = check.result == "passed"
            own = check if passed else replace(check, sentence=f"{arm}: {check.sentence}")
            found.setdefault((own.name, "" if passed else own.sentence), own)
    return tuple(found.values())
