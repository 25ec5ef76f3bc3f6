"""Checks of the design: who could have had which treatment, by what, and how many rows that is."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm, rankdata

from orthocal.arrays import Booleans, Floats, Integers, group_sums
from orthocal.assessment.parts import Check
from orthocal.effects import OverlapCATE
from orthocal.effects.censored import CURVES, MOST_LOST, WELL_FOLLOWED, share_lost
from orthocal.formats import listed, number
from orthocal.study.checks.evidence import FAILED, WARNING, StudyEvidence, looks_at_rows, passed

MOST_CLIPPED = {FAILED: 0.2, WARNING: 0.05}
LEAST_EFFECTIVE = {FAILED: 0.1, WARNING: 0.3}
"""Shares of rows with a clipped propensity, and of rows that an arm is worth by its weights."""
SEE_COVARIATES = (
    "See first that no covariate is a consequence of the treatment, which would predict it; then leave such rows out"
)
OR_OVERLAP = ", or judge the effect 'overlap'."
SHARE = "the share of the arm"
UNBALANCED = 0.001
"""Adjusted p-value below which a covariate is out of balance."""
STRONG, FEWEST_CLUSTERS, LEAST_WEIGHTED, HEAVIEST = 10.0, 30.0, 0.1, 0.1


def positivity(evidence: StudyEvidence) -> Check | None:
    """Every row could have had either treatment (overlap)."""
    overlap, name = evidence.sums.overlap, "positivity"
    if overlap is None or not overlap.rows:
        return None
    clipped = max((share for name, share in overlap.clipped.items() if "propensity" in name), default=0.0)
    worth = {level: overlap.effective_rows[level] / max(overlap.rows[level], 1) for level in overlap.rows}
    level = min(worth, key=lambda one: worth[one])
    figure = f"{clipped:.1%} clipped, effective sample size {worth[level]:.0%} of rows ({level})"
    for result in (FAILED, WARNING):
        if clipped > MOST_CLIPPED[result] or worth[level] < LEAST_EFFECTIVE[result]:
            sentence = "Some rows had hardly any chance of one treatment, so their effect rests on extrapolation."
            is_overlap = isinstance(evidence.study.estimand, OverlapCATE)
            return Check(name, result, figure, sentence, SEE_COVARIATES + ("." if is_overlap else OR_OVERLAP))
    return passed(name, figure, "Every row could have had either treatment.")


@looks_at_rows
def balance(evidence: StudyEvidence) -> Check | None:
    """With a known propensity, covariates are alike in all arms, and arms are as common as it says."""
    overlap, known = evidence.overlap, evidence.engine.to_learn[1]
    if overlap is None or not any("propensity" in name for name in known):
        return None
    columns = {SHARE: np.ones(len(evidence.rows))}
    if evidence.names:
        ranks = _ranks(evidence.rows.covariates)
        columns |= dict(zip(evidence.names, (ranks - ranks.mean(axis=0)).T, strict=True))
    found = [
        (_imbalance(column, surprise, evidence.rows.groups), name)
        for surprise in _surprises(list(overlap.levels.values()))
        for name, column in columns.items()
    ]
    largest = {name: max(abs(one) for one, other in found if other == name) for name in columns}
    adjusted = {name: min(2 * float(norm.sf(size)) * len(found), 1.0) for name, size in largest.items()}
    wrong = [name for name, p_value in adjusted.items() if p_value < UNBALANCED]
    least = min(adjusted, key=lambda name: adjusted[name])
    figure = f"smallest adjusted p-value {adjusted[least]:.2g} ({least})"
    if not wrong:
        return passed("balance", figure, "Arms and covariates are distributed as the known propensity says.")
    sentence = f"{listed(wrong)}: not distributed as the known propensity says."
    sentence = f"{sentence[0].upper()}{sentence[1:]}" if wrong[0] == SHARE else sentence
    advice = "A covariate was measured after treatment, and must go, or the propensity is wrong."
    return Check("balance", FAILED, figure, sentence, advice)


def _surprises(levels: list[tuple[Booleans, Floats]]) -> list[Floats]:
    """Return what has mean 0 where propensities are right: each arm less its propensity; with more arms, their contrasts too."""
    single = [got - propensity for got, propensity in levels]
    is_all = bool(np.logical_or.reduce([got for got, _ in levels]).all())
    if len(levels) < 2 or (is_all and len(levels) == 2):
        return single[:1]  # the other follows
    first, of_first = levels[0]
    contrasts = [first / of_first - got / propensity for got, propensity in levels[1:]]
    return [*(single[1:] if is_all else single), *contrasts]


def _ranks(covariates: Floats) -> Floats:
    """Return ranks of each covariate, so that no few rows decide; missing values rank in the middle."""
    missing = np.isnan(covariates)
    ranks = rankdata(np.where(missing, np.inf, covariates), axis=0)
    known = np.maximum((~missing).sum(axis=0), 1)
    return np.where(missing, np.where(missing, 0.0, ranks).sum(axis=0) / known, ranks)


def _imbalance(column: Floats, surprise: Floats, groups: Integers | None) -> float:
    """Return the standardised sum of (treatment - propensity) times the covariate; clusters count as one."""
    own = surprise * column
    if groups is not None:
        own = group_sums(groups, own, int(groups.max()) + 1)
    size = float(np.sqrt(own @ own))
    return float(own.sum()) / size if size > 0 else 0.0


@looks_at_rows
def follow_up(evidence: StudyEvidence) -> Check | None:
    """Every row could have been followed to the horizon."""
    event, learnt = evidence.rows.event, evidence.engine.learnt.nuisances
    curves = [learnt[name] for name in CURVES if name in learnt and name.startswith("censoring")]
    if event is None or not curves:
        return None
    horizon, weight = float(curves[0].grid.times[-1]), evidence.rows.weight
    followed = float(np.average(event | (evidence.rows.outcome >= horizon), weights=weight))
    lost = share_lost(curves, weight)
    seen = f"{followed:.0%} of rows followed to the event or to {number(horizon)}"
    figure = f"{seen}, chance of it below {WELL_FOLLOWED} in {lost[-1]:.1%}"
    if lost[-1] <= MOST_LOST:
        return passed("follow-up", figure, "Every row could have been followed to the horizon.")
    enough = curves[0].grid.times[lost <= MOST_LOST]
    advice = (
        f"Choose an earlier time: {number(float(enough[-1]))} would do." if len(enough) else "Get longer follow-up."
    )
    sentence = "Some rows had hardly any probability of being followed to the horizon, so few rows represent them."
    return Check("follow-up", WARNING, figure, sentence, advice)


def instrument_strength(evidence: StudyEvidence) -> Check | None:
    """The instrument moves the treatment: F of the first stage is at least 10."""
    found = evidence.sums.first_stage
    if found is None:
        return None
    total, moved = found.total.tolist()
    mean = moved / total
    squares = found.squares(np.array([-mean, 1.0]))
    strength = moved**2 / squares if squares > 0 else np.inf
    figure = f"F = {strength:.1f}, {mean:.1%} compliers"
    if strength >= STRONG:
        return passed("instrument strength", figure, "The instrument moves the treatment.")
    sentence = f"The instrument is weak: it hardly moves the treatment (F below {STRONG:g})."
    return Check(
        "instrument strength", WARNING, figure, sentence, "Read every interval with care; use a stronger instrument."
    )


def few_clusters(evidence: StudyEvidence) -> Check | None:
    """There are enough clusters for intervals to mean what they say."""
    clusters = evidence.sums.clusters
    if clusters is None:
        return None
    (sizes,) = clusters.sums
    count = float(sizes.sum() ** 2 / (sizes @ sizes))
    figure = f"effective number of clusters {count:.0f}"
    if count >= FEWEST_CLUSTERS:
        return passed("clusters", figure, "There are enough clusters.")
    return Check("clusters", WARNING, figure, "The rows come from few clusters.", "Intervals are rough below about 30.")


def extreme_weights(evidence: StudyEvidence) -> Check | None:
    """No few rows carry most of the sample weight."""
    sums = evidence.sums
    if not sums.weights.high[0] > sums.weights.low[0]:
        return None
    share, heaviest = sums.effective_rows / sums.rows, sums.heaviest
    figure = f"effective sample size {share:.0%} of rows, heaviest row {number(100 * heaviest)}%"
    if share >= LEAST_WEIGHTED and heaviest <= HEAVIEST:
        return passed("weights", figure, "The weight is not concentrated in a few rows.")
    return Check(
        "weights", WARNING, figure, "A few rows carry most of the sample weight.", "Trim or check the weights."
    )
