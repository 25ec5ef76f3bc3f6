"""Joint calibration of the predictions of several arms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from orthocal.arrays import Floats, group_sums, is_constant
from orthocal.calibrators.decision_shifts import decision_shifts
from orthocal.calibrators.evidence import half_statistic
from orthocal.errors import OrthocalError, require_truth, require_whole
from orthocal.formats import shown
from orthocal.joint_maps import DecisionShifts, JointMap, as_prediction_matrix
from orthocal.losses import ArmScores
from orthocal.losses.arm_scores import require_scores_of_arms
from orthocal.observations import as_numbers

AUTO = "auto"
FOLDS = 5
MOST_ROUNDS = 1000
"""Of decision calibration; it ends when nothing stands out of the noise."""


class Family(NamedTuple):
    """A class of joint maps: its fit, and how much better than by chance it has to be, given the number of arms."""

    fit: Callable[[Floats, Floats, Floats], JointMap]
    handicap: Callable[[int], float]


def _identity(predictions: Floats, gains: Floats, weight: Floats) -> JointMap:
    del gains, weight
    arms = predictions.shape[1]
    return JointMap(np.zeros(arms), np.eye(arms))


def _constant(predictions: Floats, gains: Floats, weight: Floats) -> JointMap:
    arms = predictions.shape[1]
    return JointMap(np.average(gains, axis=0, weights=weight), np.zeros((arms, arms)))


def _shift(predictions: Floats, gains: Floats, weight: Floats) -> JointMap:
    return JointMap(np.average(gains - predictions, axis=0, weights=weight), np.eye(predictions.shape[1]))


def _separate(predictions: Floats, gains: Floats, weight: Floats) -> JointMap:
    """A line for each arm."""
    lines = [_regressed(predictions[:, [k]], gains[:, [k]], weight) for k in range(predictions.shape[1])]
    return JointMap(np.array([a[0] for a, _ in lines]), np.diag([b[0, 0] for _, b in lines]))


def _common(predictions: Floats, gains: Floats, weight: Floats) -> JointMap:
    """One slope for an arm's own prediction and one for the mean of the others, the same for every arm."""
    arms = predictions.shape[1]
    centre, middle = (np.average(values, axis=0, weights=weight) for values in (predictions, gains))
    own = predictions - centre
    others = (own.sum(axis=1, keepdims=True) - own) / max(arms - 1, 1)
    root = np.sqrt(np.repeat(weight, arms))
    design = np.column_stack([own.ravel(), others.ravel()])[:, : min(arms, 2)]
    found = np.linalg.lstsq(root[:, None] * design, root * (gains - middle).ravel(), rcond=1e-9)[0]
    slopes = np.full((arms, arms), found[-1] / max(arms - 1, 1))
    np.fill_diagonal(slopes, found[0])
    return JointMap(middle - slopes @ centre, slopes)


def _linear(predictions: Floats, gains: Floats, weight: Floats) -> JointMap:
    return JointMap(*_regressed(predictions, gains, weight))


FAMILIES: dict[str, Family] = {
    "identity": Family(_identity, lambda arms: 0.0 * arms),
    "constant": Family(_constant, lambda arms: 4.0 * arms),
    "shift": Family(_shift, lambda arms: 2.0 * arms),
    "common": Family(_common, lambda arms: 2.0 * arms + 4.0),
    "separate": Family(_separate, lambda arms: 4.0 * arms),
    "linear": Family(_linear, lambda arms: 2.0 * arms * (arms + 1)),
}
"""Handicaps in half squared standard errors: with one arm those of `Auto`, with more of them the same for each number learnt."""


class JointCalibrator(BaseEstimator):  # type: ignore[misc]
    r"""Calibrate the predictions of several arms together, so that every contrast of two arms is calibrated too.

    The scores :math:`(\chi_k - \chi_0)_k` are regressed jointly on :math:`(1, \theta_1, \ldots, \theta_{K-1})`: the residual of
    any contrast of two arms then has mean zero against any line in the predictions, which calibrating arm by arm does not give
    (mathematics 4.7).

    Parameters
    ----------
    method : {"auto", "linear", "separate", "common", "shift", "constant", "identity"}, default "auto"
        "linear" has every slope free, "separate" a line for each arm, "common" two slopes for all arms: on an arm's own
        prediction, and on the mean of the others. "auto" is a weighted mean of them all: the more numbers a class learns, the
        more the data must speak for it, as in `Auto`.
    decisions : bool, default False
        Add shifts where an arm wins, so that the gain predicted for the chosen arm is the gain delivered (decision calibration).
    costs : array of shape (arms,), optional
        What each arm costs, where decisions depend on it.
    rounds : int, default 3
        Of decision calibration, at most.

    Attributes
    ----------
    map_ : JointMap
    weights_ : dict of str to float
    reason_ : str

    Examples
    --------
    >>> import numpy as np
    >>> from orthocal.losses import ArmScores
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.standard_normal((5000, 2))
    >>> values = np.column_stack([np.zeros(5000), truth]) + rng.standard_normal((5000, 3))
    >>> scores = ArmScores(arms=("none", "mail", "call"), values=values, weight=np.ones(5000))
    >>> np.diag(JointCalibrator("linear").fit(1 + 2 * truth, scores).map_.slopes).round(1)
    array([0.5, 0.5])
    """

    map_: JointMap
    weights_: dict[str, float]
    reason_: str

    def __init__(
        self,
        method: str = AUTO,
        *,
        decisions: bool = False,
        costs: Any = None,
        rounds: int = 3,
    ) -> None:
        self.method = method
        self.decisions = decisions
        self.costs = costs
        self.rounds = rounds

    def fit(self, predictions: Any, scores: ArmScores) -> Self:
        """Learn the map from predictions and scores of the same rows."""
        require_method(self.method)
        require_truth(self.decisions, "decisions")
        require_whole(self.rounds, 0, "rounds", MOST_ROUNDS)
        require_scores_of_arms(scores)
        arms = len(scores.treatments)
        predictions = as_prediction_matrix(predictions, arms)
        if len(predictions) != len(scores):
            raise OrthocalError(
                f"Predictions must cover the {len(scores)} rows of the scores; they have {len(predictions)}."
            )
        predictions, scores = _that_count(predictions, scores)
        self.map_, self.weights_ = _fitted(self.method, predictions, scores)
        parts = ", ".join(f"{name} {share:.0%}" for name, share in self.weights_.items() if share >= 0.01)
        self.reason_ = f"Weights: {parts}." if self.method == AUTO else ""
        if self.decisions:
            self._shift_decisions(predictions, scores)
        return self

    def predict(self, predictions: Any) -> Floats:
        """Calibrated predictions for each row of predictions."""
        return self.map_.predict(predictions)

    def refitted(self, predictions: Any, scores: ArmScores) -> JointMap:
        """Return the map of other rows with the weights of the families as they are; shifts of decisions are learnt anew."""
        predictions, scores = _that_count(as_prediction_matrix(predictions, self.map_.arms), scores)
        maps = {name: FAMILIES[name].fit(predictions, scores.gains, scores.weight) for name in self.weights_}
        again: JointCalibrator = clone(self)
        again.map_, again.reason_ = _mean_map(maps, self.weights_), ""
        if self.decisions:
            again._shift_decisions(predictions, scores)
        return again.map_

    def _shift_decisions(self, predictions: Floats, scores: ArmScores) -> None:
        """Add shifts by winner until none stands out of its noise, or the rounds are over.

        They are learnt from maps that were fitted without the row's fold: who wins under a map of all rows wins partly by the
        noise that the map has followed, which the same rows do not show.
        """
        costs = np.zeros(self.map_.arms) if self.costs is None else as_numbers(self.costs, "costs", self.map_.arms)
        values = _left_out(self.method, predictions, scores)
        steps: list[DecisionShifts] = []
        for _ in range(self.rounds):
            step = decision_shifts(values, scores, costs)
            if not step.shifts.any():
                break
            steps.append(step)
            values = step.predict(values)
        self.map_ = JointMap(self.map_.intercept, self.map_.slopes, tuple(steps))
        self.reason_ = f"{self.reason_} Rounds of decision calibration: {len(steps)}.".strip()


def _fitted(method: str, predictions: Floats, scores: ArmScores) -> tuple[JointMap, dict[str, float]]:
    """Return the map, and the weight of each family in it."""
    names = list(FAMILIES) if method == AUTO else [method]
    maps = {name: FAMILIES[name].fit(predictions, scores.gains, scores.weight) for name in names}
    weights = _weights(maps, predictions, scores) if method == AUTO else {method: 1.0}
    return _mean_map(maps, weights), weights


def _left_out(method: str, predictions: Floats, scores: ArmScores) -> Floats:
    """Return each row's calibrated predictions by a map fitted without its fold, which rows of any order get by their values."""
    order = np.lexsort((*scores.values.T, *predictions.T))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    if scores.groups is not None:  # a cluster is where its first row is
        first = np.full(int(scores.groups.max()) + 1, len(order))
        np.minimum.at(first, scores.groups, place)
        place = np.unique(first[scores.groups], return_inverse=True)[1]
    fold, values = place % FOLDS, np.empty_like(predictions)
    for k in np.unique(fold):
        others = np.flatnonzero(fold != k)
        values[fold == k] = _fitted(method, predictions[others], scores[others])[0].predict(predictions[fold == k])
    return values


def _that_count(predictions: Floats, scores: ArmScores) -> tuple[Floats, ArmScores]:
    """Return the rows of positive weight."""
    counted = scores.weight > 0
    if not counted.any():
        raise OrthocalError("At least one row must have positive weight; all are 0.")
    return predictions[counted], scores[counted]


def require_method(method: Any) -> None:
    """There is such a joint map."""
    if not isinstance(method, str) or method not in {AUTO, *FAMILIES}:
        known = ", ".join(repr(one) for one in (AUTO, *FAMILIES))
        raise OrthocalError(
            f"`method` must be one of {known} where there are several arms, which are calibrated together; it is {shown(method)}."
        )


def _regressed(design: Floats, target: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return intercepts and slopes of weighted least squares; predictions that repeat each other share their slope."""
    centre = np.average(design, axis=0, weights=weight)
    middle = np.average(target, axis=0, weights=weight)
    root = np.sqrt(weight)[:, None]
    slopes = np.linalg.lstsq(root * (design - centre), root * (target - middle), rcond=1e-9)[0].T
    return middle - slopes @ centre, np.asarray(slopes, dtype=np.float64)


def _weights(maps: Mapping[str, JointMap], predictions: Floats, scores: ArmScores) -> dict[str, float]:
    """Return the weight of each family: e to the power of how far it is behind, in half squared standard errors."""
    arms = predictions.shape[1]
    behind = {
        name: half_statistic(_pulls(map_.predict(predictions), predictions, scores)) + FAMILIES[name].handicap(arms)
        for name, map_ in maps.items()
    }
    least = min(behind.values())
    raw = {name: float(np.exp(least - value)) for name, value in behind.items()}
    return {name: value / sum(raw.values()) for name, value in raw.items()}


def _pulls(values: Floats, predictions: Floats, scores: ArmScores) -> Floats:
    """Return the scores of every arm's residual in the average and in every prediction, by row or cluster."""
    varying = [k for k in range(predictions.shape[1]) if not is_constant(predictions[:, k])]
    spread = predictions[:, varying].std(axis=0)
    design = np.column_stack(
        [np.ones(len(predictions)), (predictions[:, varying] - predictions[:, varying].mean(axis=0)) / spread]
    )
    rest = scores.weight[:, None] * (scores.gains - values)
    pulls = np.array([design[:, j] * rest[:, k] for j in range(design.shape[1]) for k in range(rest.shape[1])])
    if scores.groups is None:
        return pulls
    codes, index = np.unique(scores.groups, return_inverse=True)
    return np.array([group_sums(index, pull, len(codes)) for pull in pulls])


def _mean_map(maps: Mapping[str, JointMap], weights: Mapping[str, float]) -> JointMap:
    """Return the weighted mean of maps without decisions."""
    return JointMap(
        np.sum([weights[name] * map_.intercept for name, map_ in maps.items()], axis=0),
        np.sum([weights[name] * map_.slopes for name, map_ in maps.items()], axis=0),
    )
