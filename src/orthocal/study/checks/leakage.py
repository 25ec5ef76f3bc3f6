"""Checks of columns: covariates that give the answer away, stand for rows, or name clusters; outcomes that are censored."""

from __future__ import annotations

import re

import numpy as np
from scipy.stats import rankdata

from orthocal.arrays import Floats, Labels
from orthocal.assessment.parts import Check
from orthocal.formats import listed
from orthocal.study.checks.evidence import FAILED, WARNING, StudyEvidence, looks_at_rows, passed
from orthocal.study.checks.sums import correlation_of

GIVEN_AWAY = 0.99
"""Out-of-fold R2 or AUC of one covariate, above which it gives outcome or treatment away."""
SAME = 1 - 1e-9
"""Correlation of columns that hold the same."""
FEWEST_OF_A_CLASS, FEWEST_ROWS, FEWEST_PAIRS, FEWEST_VALUES = 10, 50, 20, 5
MOST_ROWS = 200_000
ID_WORDS = re.compile(r"(^|_|\b)(id|uuid|guid|key|index|number|no)(_|\b|$)|Id$|ID$", re.IGNORECASE)
TIME_WORDS = re.compile(r"time|days?|weeks?|months?|years?|duration|surviv|tenure|follow.?up|lifetime", re.IGNORECASE)
EVENT_WORDS = re.compile(r"event|status|censor|died|dead|death|churn|fail|relapse|surviv", re.IGNORECASE)


@looks_at_rows
def giveaway(evidence: StudyEvidence) -> Check | None:
    """No covariate gives the outcome or the treatment away."""
    if not evidence.names:
        return None
    some = evidence.some
    rows, covariates = evidence.rows[some], evidence.rows.covariates[some]
    targets = {"outcome": rows.outcome}
    overlap = evidence.overlap
    if overlap is not None and overlap.levels:
        got, _ = next(iter(overlap.levels.values()))
        targets["treatment"] = got[some].astype(float)
    scores = {
        (name, target): score_of_covariate(column, values)
        for target, values in targets.items()
        for name, column in zip(evidence.names, covariates.T, strict=True)
    }
    (name, target), best = max(scores.items(), key=lambda pair: pair[1])
    wrong = [f"{name} ({target})" for (name, target), score in scores.items() if score > GIVEN_AWAY]
    figure = f"largest out-of-fold R2 or AUC of one covariate {best:.3f} ({name}, of the {target})"
    if not wrong:
        return passed("leakage", figure, "No covariate gives outcome or treatment away.")
    sentence = f"{listed(wrong)}: predicts it almost perfectly, as a copy of it or a column measured later would."
    return Check("leakage", FAILED, figure, sentence, "Leave it out of the covariates.")


def score_of_covariate(column: Floats, values: Floats) -> float:
    """Return the out-of-fold R2 (of ranks) or, of a binary target, AUC of a small tree on one covariate."""
    from sklearn.metrics import roc_auc_score
    from sklearn.tree import DecisionTreeRegressor

    is_binary = bool(np.isin(values, (0.0, 1.0)).all())
    if not np.ptp(values) > 0 or (is_binary and min(values.sum(), len(values) - values.sum()) < FEWEST_OF_A_CLASS):
        return 0.0
    target = values if is_binary else rankdata(values)
    filled = np.where(np.isnan(column), np.nanmin(column, initial=0.0) - 1, column)[:, None]
    guess, fold = np.empty(len(target)), np.arange(len(target)) % 2
    for k in (0, 1):
        tree = DecisionTreeRegressor(max_leaf_nodes=64, min_samples_leaf=5, random_state=0)
        guess[fold == k] = tree.fit(filled[fold != k], target[fold != k]).predict(filled[fold == k])
    if is_binary:
        return float(roc_auc_score(target, guess))
    return 1 - float(((target - guess) ** 2).sum() / ((target - target.mean()) ** 2).sum())


def outcome_among_covariates(evidence: StudyEvidence) -> Check | None:
    """The outcome is not among the covariates, under whatever name or unit."""
    if not evidence.names:
        return None
    found = [correlation_of(one) for one in evidence.sums.likeness]
    place = int(np.argmax(found))
    name, figure = "outcome among covariates", f"largest correlation {found[place]:.3f} ({evidence.names[place]})"
    if found[place] <= SAME:
        return passed(name, figure, "No covariate is the outcome.")
    return Check(name, FAILED, figure, f"{evidence.names[place]} is the outcome in other units.", "Leave it out.")


@looks_at_rows
def identifiers(evidence: StudyEvidence) -> Check | None:
    """No covariate only numbers the rows: whole numbers that rise or fall row by row, or differ and leave none out or say so."""
    sums = evidence.sums
    if not evidence.names or sums.covariates is None or len(evidence.rows) < FEWEST_ROWS:
        return None
    columns = dict(zip(evidence.names, evidence.rows.covariates.T, strict=True))
    moves = sums.covariates.rises | sums.covariates.falls
    fills = sums.covariates.high - sums.covariates.low == sums.rows - 1
    wrong = [
        name
        for (name, column), one_way, without_gaps in zip(columns.items(), moves, fills, strict=True)
        if _is_whole(column) and (one_way or (_are_different(column) and (without_gaps or ID_WORDS.search(name))))
    ]
    if not wrong:
        return passed("identifiers", f"{len(columns)} columns", "No covariate is a row number or an identifier.")
    sentence = f"{listed(wrong)}: a different whole number in each row, like a row number or an identifier."
    return Check(
        "identifiers", WARNING, listed(wrong), sentence, "Leave it out of the covariates, or pass it as `key`."
    )


def _is_whole(column: Floats) -> bool:
    return bool(np.isfinite(column).all() and (column == np.round(column)).all())


def _are_different(column: Floats) -> bool:
    return len(np.unique(column)) == len(column)


@looks_at_rows
def hidden_clusters(evidence: StudyEvidence) -> Check | None:
    """Treatment varies among the rows that share a value: it was not given by cluster."""
    rows = evidence.rows
    if rows.groups is not None or len(rows) > MOST_ROWS:
        return None
    wrong = [name for name, column in evidence.plain_columns().items() if _never_varies(column, rows.treatment)]
    if not wrong:
        return passed("hidden clusters", "", "Treatment varies among the rows that share a value of any column.")
    sentence = (
        f"Treatment never varies among rows with the same {listed(wrong)}: it seems to have been given by cluster."
    )
    return Check("hidden clusters", WARNING, listed(wrong), sentence, f"Pass groups={wrong[0]!r}.")


def _never_varies(column: Labels, treatment: Labels) -> bool:
    known = [str(value) for value in column.tolist()] if column.dtype.kind == "O" else column
    values, codes = np.unique(known, return_inverse=True)
    n = len(codes)
    is_cluster = np.bincount(codes).max() <= n / 2  # a value that most rows have, as no amount, is none
    if not (is_cluster and FEWEST_VALUES <= len(values) <= n / 2) or n - len(values) < FEWEST_PAIRS:
        return False
    arms = np.unique(treatment, return_inverse=True)[1]
    return len(np.unique(codes * (int(arms.max()) + 1) + arms)) == len(values)


@looks_at_rows
def censoring(evidence: StudyEvidence) -> Check | None:
    """The outcome is no time to an event that some rows have not lived to see."""
    outcome, study = evidence.rows.outcome, evidence.study
    if evidence.rows.event is not None or outcome.min() < 0 or len(np.unique(outcome[evidence.some])) <= 2:
        return None
    for name in evidence.table.columns:
        if name in (study.outcome, study.treatment, study.instrument) or name in study.predictions:
            continue
        series = evidence.table.frame[name]
        if not (series.dtype.is_numeric() or str(series.dtype) == "Boolean") or series.null_count():
            continue
        flag = np.asarray(series.to_numpy()).astype(float)
        if np.isin(flag, (0.0, 1.0)).all() and np.ptp(flag) > 0 and _looks_censored(study.outcome, name, outcome, flag):
            sentence = f"{study.outcome} looks like a time to an event, and {name} like whether it was seen."
            advice = (
                f"Pass event={name!r} and the effect SurvivalProbability(time=...) or RestrictedMeanTime(horizon=...)."
            )
            return Check("censoring", WARNING, name, sentence, advice)
    return passed("censoring", "", "The outcome does not look like a censored time.")


def _looks_censored(outcome_name: str, name: str, outcome: Floats, flag: Floats) -> bool:
    """By their names; or all rows at the largest outcome, one in twenty, have the same flag and others differ."""
    if TIME_WORDS.search(outcome_name) and EVENT_WORDS.search(name):
        return True
    last = outcome == outcome.max()
    return bool(
        last.mean() > 0.05 and np.ptp(flag[last]) == 0 and np.ptp(flag[~last]) > 0 and TIME_WORDS.search(outcome_name)
    )
