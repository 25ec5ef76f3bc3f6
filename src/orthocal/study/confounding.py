"""A sensitivity analysis of a study in memory: paths over strengths, benchmarks, and the marginal sensitivity model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from orthocal.arrays import Floats
from orthocal.assessment.bin_edges import settled_order
from orthocal.assessment.loss_pair import LossPair
from orthocal.assessment.omitted_variable import (
    ConfoundingScale,
    average_path,
    error_path,
    robustness_value,
    scale_of,
    value_path,
)
from orthocal.assessment.parts import Robustness
from orthocal.assessment.records import Settings
from orthocal.assessment.robustness import BY_DESIGN, robustness_in_words
from orthocal.effects.arms import is_binary
from orthocal.effects.bound import BoundedCATE, tails_nuisance
from orthocal.engines.memory import MemoryEngine
from orthocal.errors import OrthocalError, is_number, require_one_of
from orthocal.folds import LEARNERS, row_order
from orthocal.formats import shown
from orthocal.losses import Overlap, QuadraticLoss, rows_that_count, without_overlap
from orthocal.nuisances import Fitted
from orthocal.nuisances.cross_fit import cross_fit
from orthocal.sensitivity import Benchmark, MarginalBounds, Sensitivity

if TYPE_CHECKING:
    from orthocal.study.memory_rows import MemoryStudyRows

SIDES = ("lower", "upper")


def require_bounds(effect: Any) -> None:
    """An effect has bounds under unmeasured confounding."""
    if not hasattr(effect, "bounded"):
        raise OrthocalError(
            f"Sensitivity to unmeasured confounding must be that of the effect 'cate', for which bounds are known; "
            f"{shown(effect)} is another. Use effect='cate'."
        )


def sensitivities(
    rows: Any,
    predictions: Mapping[str, Any],
    strengths: Sequence[float],
    benchmarks: Sequence[str] | None,
    settings: Settings,
) -> dict[str, Sensitivity]:
    """Return the analysis of each prediction, of rows in memory; what is learnt again is learnt once for all."""
    _require_strengths(strengths)
    engine: MemoryEngine = rows.engine
    columns = {name: rows.predicted(given, name) for name, given in predictions.items()}
    ends = {float(strength): bounded_pair(engine.effect, float(strength)) for strength in strengths}
    if "propensity" in engine.to_learn[1]:
        return {name: _left_out(name, len(engine), settings) for name in columns}
    named = _benchmarked(rows, benchmarks)
    losses = marginal_losses(engine, ends)
    marks = tuple(sorted((benchmark(rows, name) for name in named), key=lambda one: -one.outcome - one.treatment))
    return {
        name: replace(_analysed(engine, name, own, losses, settings), benchmarks=marks) for name, own in columns.items()
    }


def _require_strengths(strengths: Any) -> None:
    """Strengths of confounding are a few numbers."""
    is_list = isinstance(strengths, Sequence | np.ndarray) and not isinstance(strengths, str | bytes)
    if not is_list or np.ndim(strengths) != 1 or not all(is_number(one) for one in strengths):
        raise OrthocalError(f"`strengths` must be a list of numbers; it is {shown(strengths)}.")


def _left_out(name: str, rows: int, settings: Settings) -> Sensitivity:
    """Say why there is no analysis of an experiment."""
    return Sensitivity(
        name=name, level=settings.level, rows=rows, robustness=Robustness(text=BY_DESIGN), reason=BY_DESIGN
    )


def bounded_pair(effect: Any, strength: float) -> tuple[BoundedCATE, BoundedCATE]:
    """Return both ends of the interval of an effect at a strength."""
    lower, upper = (effect.bounded(strength, side) for side in SIDES)
    return lower, upper


def _benchmarked(rows: MemoryStudyRows, benchmarks: Sequence[str] | None) -> list[str]:
    """Return the covariates to leave out in turn: all unless some are named; none where nuisances are known, and stay so."""
    covariates = list(rows.study.roles.covariates)
    if benchmarks is not None and not isinstance(benchmarks, list | tuple):
        raise OrthocalError(
            f"`benchmarks` must be a list of covariates; it is {shown(benchmarks)}. Pass [{shown(benchmarks)}]."
        )
    for name in benchmarks or ():
        require_one_of(name, covariates, "benchmarks")
    if rows.engine.to_learn[1] and benchmarks:
        raise OrthocalError("`benchmarks` must go with nuisances that are learnt again; some are known. Leave it out.")
    return [] if rows.engine.to_learn[1] else covariates if benchmarks is None else list(benchmarks)


def benchmark(rows: MemoryStudyRows, covariate: str) -> Benchmark:
    """Return how strong a confounder a covariate would be had it not been measured."""
    with_it, without = (_sizes(engine) for engine in (rows.engine, rows.engine_without(covariate)))
    return Benchmark(
        covariate=covariate,
        outcome=max(1 - with_it[0] / without[0], 0.0),
        treatment=max(1 - without[1] / with_it[1], 0.0),
        change=without[2] - with_it[2],
    )


def _sizes(engine: MemoryEngine) -> tuple[float, float, float]:
    """Return the variance of the outcome that is left, the mean squared representer, and the average effect."""
    loss = cast("QuadraticLoss", engine.learnt.loss)
    scale = cast("ConfoundingScale", scale_of(loss.overlap))
    outcome, treatment = scale.means(np.zeros(len(loss), dtype=np.int64), 1)
    return float(outcome[0]), float(treatment[0]), float(loss.numerator.sum() / loss.denominator.sum())


def marginal_losses(
    engine: MemoryEngine, ends: Mapping[float, tuple[BoundedCATE, BoundedCATE]]
) -> dict[float, tuple[QuadraticLoss, QuadraticLoss]]:
    """Return the losses of both ends at every strength; the tails of all of them are learnt at once."""
    learnt, known = engine.learnt, [one for pair in ends.values() for one in pair]
    clipped = dict(cast("Overlap", learnt.loss.overlap).clipped)
    tails = {} if is_binary(engine.observations.outcome) or not known else _tails(engine, known)
    found = {}
    for place, (strength, pair) in enumerate(ends.items()):
        own = [
            {
                f"{kind}_{arm}": tails[f"{kind}_{arm}_{2 * place + side}"]
                for kind in ("quantile", "tail")
                for arm in pair[0].tails
            }
            if tails
            else {}
            for side in (0, 1)
        ]
        found[strength] = tuple(
            without_overlap(one.loss(engine.observations, _fitted(engine, clipped, more)))
            for one, more in zip(pair, own, strict=True)
        )
    return cast("dict[float, tuple[QuadraticLoss, QuadraticLoss]]", found)


def _fitted(engine: MemoryEngine, clipped: dict[str, float], more: Mapping[str, Any]) -> Fitted:
    """Return the nuisances of the study, with more; what was clipped has been warned of."""
    return Fitted({**engine.learnt.nuisances, **more}, engine.recipe.clip, clipped, is_part=True)


def _tails(engine: MemoryEngine, ends: Sequence[BoundedCATE]) -> dict[str, Any]:
    """Learn the tails of both arms for all ends, in the folds of the other nuisances, which are as they were learnt."""
    rows, recipe, learnt = engine.observations, engine.recipe, engine.learnt
    effect: Any = engine.effect
    got = {"treated": rows.treatment == effect.arm, "control": rows.treatment == effect.control}
    wanted = [tails_nuisance(arm, rows.outcome, who, [end.tails[arm] for end in ends]) for arm, who in got.items()]
    fitted = cross_fit(
        [*effect.nuisances(rows), *wanted],
        rows.covariates,
        cast("Any", learnt.fold),
        given=learnt.nuisances,
        learners=recipe.learners,
        weight=None if np.ptp(rows.weight) == 0 else rows.weight,
        clip=recipe.clip,
        order=row_order(rows, recipe.random_state),
        random_state=[recipe.random_state, LEARNERS],
        n_jobs=recipe.n_jobs,
    )
    return fitted.values


def _analysed(
    engine: MemoryEngine,
    name: str,
    prediction: Floats,
    ends: Mapping[float, tuple[QuadraticLoss, QuadraticLoss]],
    settings: Settings,
) -> Sensitivity:
    """Return the analysis of one prediction, without benchmarks."""
    loss, level, cost = cast("QuadraticLoss", engine.learnt.loss), settings.level, settings.cost
    counting = np.flatnonzero(loss.weight > 0)
    own, loss = cast("tuple[Floats, QuadraticLoss]", rows_that_count(prediction, loss))
    order = np.arange(len(own))[settled_order(own, without_overlap(loss))[0]]
    scale = cast("ConfoundingScale", scale_of(loss.overlap)).of(order)
    own, loss = own[order], cast("QuadraticLoss", without_overlap(loss)[order])
    error, average = error_path(own, loss, scale, settings.bins), average_path(own, loss, scale, level)
    pairs = {strength: LossPair(own, *(one[counting[order]] for one in pair)) for strength, pair in ends.items()}
    products = (error.product_to_zero(level), average.product_to_zero)
    values = [robustness_value(product) if product > 0 else None for product in products]
    return Sensitivity(
        name=name,
        robustness=robustness_in_words(error.interval(0.0, level), *values),
        level=level,
        rows=len(own),
        cost=cost,
        average=average,
        error=error,
        value=None if cost is None else value_path(own, loss, scale, cost, level),
        marginal=tuple(_marginal(strength, pair, settings) for strength, pair in pairs.items()),
    )


def _marginal(strength: float, pair: LossPair, settings: Settings) -> MarginalBounds:
    bins, level, cost = settings.bins, settings.level, settings.cost
    return MarginalBounds(
        strength=strength,
        average=pair.average(level),
        error=pair.error(bins, level),
        value=None if cost is None else pair.value(cost, level),
        bins=pair.bins(bins),
    )
