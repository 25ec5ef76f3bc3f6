"""Effects on censored times with known truth: intervals cover, calibration takes the error away, lifelines agrees."""

import time
import tracemalloc
from functools import cache

import numpy as np
import pytest
from lifelines import KaplanMeierFitter
from lifelines.utils import restricted_mean_survival_time
from scipy.stats import binom
from threadpoolctl import threadpool_limits

from orthocal import CausalCalibrator, RestrictedMeanTime, SurvivalProbability, assess, orthogonal_loss
from orthocal.calibrators import Isotonic, Linear
from orthocal.datasets import simulate_survival
from orthocal.nuisances.hazards import CensoringProcess, EventProcess, in_periods, signed_times
from orthocal.nuisances.learners import hazard_learner
from orthocal.nuisances.time_grid import event_grid

PROCESSES = (EventProcess, CensoringProcess)
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::orthocal.OverlapWarning")]
REPEATS, ROWS, TIME = 80, 2000, 0.7
DESIGNS = {
    f"{hazards}, {share} censored": {"hazards": hazards, "censoring_rate": rate}
    for hazards in ("proportional", "crossing")
    for share, rate in (("30%", 0.35), ("60%", 1.25))
}
EFFECTS = {"effect": SurvivalProbability(TIME), "mean_time_effect": RestrictedMeanTime(TIME)}
every_design = pytest.mark.parametrize("design", DESIGNS)
every_effect = pytest.mark.parametrize("truth", EFFECTS)


@cache
def population(design):
    """Fresh rows of a design, many of them."""
    return simulate_survival(200_000, time=TIME, random_state=10**6, **DESIGNS[design])


def error(prediction, truth):
    return float(np.sqrt(np.mean((prediction - truth) ** 2)))


@cache
def draws(design):
    """By effect and draw: whether the interval of the average effect covers it, and true errors before and after two maps."""
    fresh, found = population(design), {truth: [] for truth in EFFECTS}
    for seed in range(REPEATS):
        data = simulate_survival(ROWS, time=TIME, random_state=seed, **DESIGNS[design])
        columns, nuisances = {"treatment": data.treatment, "event": data.event}, None
        for truth, effect in EFFECTS.items():  # both effects have the same nuisances
            prediction, asked = (0.3 + 2 * getattr(rows, truth) for rows in (data, fresh))
            one = CausalCalibrator(effect, Linear(), random_state=seed).fit(
                data.X, data.y, **columns, prediction=prediction, nuisances=nuisances
            )
            nuisances = one.nuisances_
            low, high = assess(prediction, one.loss_, random_state=0).average.interval
            target, maps = getattr(fresh, truth), (one.map_, Isotonic().fit(prediction, one.loss_).map_)
            errors = [error(map_.predict(asked), target) for map_ in maps]
            found[truth].append((low < target.mean() < high, error(asked, target), *errors))
    return {truth: np.array(rows, dtype=float).mean(axis=0) for truth, rows in found.items()}


@every_effect
@every_design
def test_the_interval_of_the_average_effect_covers(design, truth):
    share = draws(design)[truth][0]
    print(f"{design}, {truth}: covers {share:.3f}")
    # The 99% interval of what was counted reaches 93% to 97%.
    low, high = binom.interval(0.99, REPEATS, [0.93, 0.97])
    assert low[0] <= share * REPEATS <= high[1]


@every_effect
@every_design
def test_calibration_takes_most_of_the_true_error_away(design, truth):
    _, before, linear, isotonic = draws(design)[truth]
    print(f"{design}, {truth}: error {before:.3f}, linear {linear:.3f}, isotonic {isotonic:.3f}")
    assert linear <= 0.3 * before
    assert isotonic <= 0.5 * before


def test_it_agrees_with_restricted_mean_times_of_lifelines():
    """A trial with independent censoring: on average over draws the difference is noise."""
    differences = []
    for seed in range(20):
        data = simulate_survival(1000, time=TIME, randomised=True, censoring_rate=0.6, random_state=seed)
        theirs = [
            restricted_mean_survival_time(
                KaplanMeierFitter().fit(data.y[data.treatment == arm], data.event[data.treatment == arm]), t=TIME
            )
            for arm in (0, 1)
        ]
        loss = orthogonal_loss(
            EFFECTS["mean_time_effect"],
            data.X,
            data.y,
            treatment=data.treatment,
            event=data.event,
            nuisances={"propensity": 0.5},
            random_state=seed,
        )
        differences.append(loss.target.mean() - (theirs[1] - theirs[0]))
    mean, noise = np.mean(differences), np.std(differences, ddof=1) / np.sqrt(len(differences))
    print(f"mean difference {mean:.4f}, standard error {noise:.4f}")
    assert abs(mean) < 3 * noise
    assert noise < 0.005


def test_twenty_thousand_rows_take_little_time_and_memory():
    """At most 4 times the time of the bare fits on every period, and 12 times the table of periods in bytes."""
    data = simulate_survival(20_000, random_state=0)
    X = np.column_stack([data.X, np.random.default_rng(1).standard_normal((20_000, 6))])
    columns = {"treatment": data.treatment, "event": data.event, "random_state": 0}
    grid, y = event_grid(data.y, data.event, 1.0, 30), signed_times(data.y, data.event)
    table = max(process(grid).periods(data.y, data.event)[0].sum() for process in PROCESSES) * (X.shape[1] + 1)
    start = time.process_time()
    orthogonal_loss(SurvivalProbability(1.0), X, data.y, **columns)
    taken = time.process_time() - start
    bare = sum(
        bare_time(X[own], y[own], process(grid))
        for process in PROCESSES
        for arm in (0, 1)
        for fold in range(5)
        for own in [(data.treatment == arm) & (np.arange(20_000) % 5 != fold)]
    )
    tracemalloc.start()
    orthogonal_loss(SurvivalProbability(1.0), X, data.y, **columns)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(f"{taken:.1f} seconds, bare fits {bare:.1f}; {peak / 2**20:.0f} MB, {peak / table:.1f} times the table")
    assert taken <= 4 * bare
    assert peak <= 12 * table


def bare_time(X, y, process):
    """Seconds of a classifier on all periods."""
    count, happened = process.periods(np.abs(y), y > 0)
    answer = np.zeros(count.sum(), dtype=int)
    answer[(np.cumsum(count) - 1)[happened]] = 1
    stacked = in_periods(X, count, np.ones(len(answer), dtype=bool))
    start = time.process_time()
    with threadpool_limits(1):
        hazard_learner(30).fit(stacked, answer)
    return time.process_time() - start
