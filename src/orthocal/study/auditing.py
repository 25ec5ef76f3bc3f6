"""Audits of a study: named subgroups on all rows, or subgroups found on half of the rows and tested on the others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.arrays import Floats
from orthocal.assessment.audit import AuditPlan, audited
from orthocal.assessment.audit_records import Audit
from orthocal.assessment.discovery import discovered
from orthocal.errors import OrthocalError
from orthocal.folds import AUDIT, split_rows
from orthocal.formats import shown
from orthocal.study.arguments import named_predictions

if TYPE_CHECKING:
    from orthocal.study.definition import StudyDefinition


def audits(study: StudyDefinition, prediction: Any, within: Any, plan: AuditPlan, *, discover: bool) -> Any:
    """Test predictions in subgroups; one where one prediction is named, else by name."""
    plan.require_sense()
    if not isinstance(discover, bool):
        raise OrthocalError(f"`discover` must be True or False; it is {shown(discover)}.")
    if within is None and not discover:
        raise OrthocalError("`within` must name columns of subgroups, or `discover` be True; neither was given.")
    named = within if within is not None else list(study.roles.covariates)
    if within is None and not named:
        raise OrthocalError("`within` must name columns to discover subgroups by where the study has no covariates.")
    groups, rows = study.questions.groups_named(named), study.rows
    found = {}
    for name, given in named_predictions(study, prediction).items():
        own = rows.predicted(given, name)
        rows.warn_if_shipped(own)
        if discover:
            found[name] = discovery(study, own, groups.given, plan)
        else:
            found[name] = audited(own, rows.engine.learnt.loss, groups.labels, plan._replace(phrased=groups.phrased))
    return found if not isinstance(prediction, str) else found[prediction]


def discovery(study: StudyDefinition, prediction: Floats, columns: Any, plan: AuditPlan) -> Audit:
    """Find subgroups on one half of the rows, clusters whole, and test them on the other."""
    engine = study.rows.engine
    strata = engine.effect.strata(engine.observations)
    half = split_rows(0.5, strata, engine.observations, engine.recipe.random_state, AUDIT)
    loss, fresh = engine.learnt.loss, np.flatnonzero(half == 1)
    groups = discovered(prediction, loss, columns, np.flatnonzero(half == 0), engine.recipe.random_state)
    own = {name: labels[fresh] for name, labels in groups.items()}
    plan = plan._replace(bins=1, phrased=frozenset(groups))
    return replace(audited(prediction[fresh], loss[fresh], own, plan), searched=tuple(columns))
