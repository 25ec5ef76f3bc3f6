"""Multicalibration from features: small boosted steps on (X, prediction), as many as held-out rows bear out, perhaps none."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingRegressor

from orthocal.arrays import Floats, Integers, group_sums
from orthocal.calibrators.left_out import validation_folds, value_order
from orthocal.calibrators.multicalibrator import require_quadratic
from orthocal.errors import OrthocalError, is_number, require_length, require_whole
from orthocal.formats import shown
from orthocal.losses import Loss, require_loss
from orthocal.observations import Encoding, as_numbers, encode

STANDARD_ERRORS = 1.645
"""By which the held-out loss must fall in a one-sided test for the model to be changed at all."""
MOST_STEPS = 100_000
BATCH = 10
"""Steps between two looks at the held-out loss."""


class BoostedMulticalibrator(BaseEstimator):  # type: ignore[misc]
    r"""Calibrate predictions in all subgroups that trees on covariates can find, by boosting residuals (multicalibration).

    Trees of the residual on :math:`(X, \hat\theta)` are added in small steps, weighted by mass, so that each step lowers the
    orthogonal loss; how many is decided on held-out rows (clusters whole). Unless the held-out loss falls by more than chance,
    the model is returned **untouched**, as in MCGrad (Tax and others 2025). The fitted model needs the covariates: it has no form
    in SQL or JSON; for named subgroups `Multicalibrator` has.

    Parameters
    ----------
    learning_rate : float, default 0.05
    max_steps : int, default 300
    max_leaf_nodes : int, default 8
    min_samples_leaf : int, default 50
    folds : int, default 3
        One of this many parts of the rows (clusters) is held out to choose the number of steps.
    random_state : int, default 0

    Attributes
    ----------
    steps_ : int
        Steps that are used; 0 leaves predictions as they are.
    gain_ : float
        Fall of the mean held-out loss at that number of steps.

    Examples
    --------
    >>> import numpy as np
    >>> from orthocal import BoostedMulticalibrator, QuadraticLoss
    >>> rng = np.random.default_rng(0)
    >>> X, prediction = rng.standard_normal((4000, 2)), rng.standard_normal(4000)
    >>> effect = prediction + np.where(X[:, 0] > 0, 0.5, -0.5)
    >>> loss = QuadraticLoss(effect + rng.standard_normal(4000), np.ones(4000))
    >>> fitted = BoostedMulticalibrator().fit(prediction, loss, X)
    >>> fitted.predict([0.0, 0.0], [[1.0, 0.0], [-1.0, 0.0]]).round(1)
    array([ 0.5, -0.5])
    >>> BoostedMulticalibrator().fit(effect, loss, X).steps_
    0
    """

    steps_: int
    gain_: float

    def __init__(
        self,
        learning_rate: float = 0.05,
        max_steps: int = 300,
        max_leaf_nodes: int = 8,
        min_samples_leaf: int = 50,
        folds: int = 3,
        random_state: int = 0,
    ) -> None:
        self.learning_rate = learning_rate
        self.max_steps = max_steps
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.folds = folds
        self.random_state = random_state

    def fit(self, prediction: Any, loss: Loss, X: Any) -> Self:
        """Learn the steps from predictions, losses and covariates of the same rows."""
        require_loss(loss)
        self._require_settings(len(loss))
        values = as_numbers(prediction, "prediction", len(loss))
        require_quadratic(values, loss)
        if not (loss.mass[loss.weight > 0] > 0).all():
            raise OrthocalError(
                "Boosting must have a positive mass in every row; this ratio effect does not. Name subgroups: Multicalibrator."
            )
        features, self._encoding = _features(X, values)
        learning, held = _sides(values, loss, self.folds, self.random_state)
        target, mass = values - loss.derivative(values) / np.where(loss.mass > 0, loss.mass, 1.0), loss.mass
        self._model = HistGradientBoostingRegressor(
            learning_rate=self.learning_rate,
            max_iter=self.max_steps,
            max_leaf_nodes=self.max_leaf_nodes,
            min_samples_leaf=self.min_samples_leaf,
            early_stopping=False,
            random_state=self.random_state,
        )
        residual = (target - values)[learning]
        # scikit-learn's trees sum in single precision; a power of two leaves every digit as it is.
        self._unit = float(2.0 ** np.floor(np.log2(np.abs(residual).max(initial=0.0) or 1.0)))
        self._model.fit(features[learning], residual / self._unit, sample_weight=mass[learning])
        self.steps_, self.gain_ = self._chosen(features[held], values[held], loss[held])
        return self

    def predict(self, prediction: Any, X: Any) -> Floats:
        """Calibrated prediction for each prediction, given the covariates."""
        values = as_numbers(prediction, "prediction")
        if self.steps_ == 0:
            return values.copy()
        features, _ = _features(X, values, self._encoding)
        *_, added = (step for _, step in zip(range(self.steps_), self._model.staged_predict(features), strict=False))
        return np.asarray(values + self._unit * added)

    def _require_settings(self, rows: int) -> None:
        require_whole(self.max_steps, 1, "max_steps", MOST_STEPS)
        require_whole(self.folds, 2, "folds", rows)
        require_whole(self.max_leaf_nodes, 2, "max_leaf_nodes", MOST_STEPS)
        require_whole(self.min_samples_leaf, 1, "min_samples_leaf", 2**31 - 1)
        require_whole(self.random_state, 0, "random_state", 2**32 - 1)
        if not (is_number(self.learning_rate) and 0 < self.learning_rate <= 1):
            raise OrthocalError(f"`learning_rate` must be above 0 and at most 1; it is {shown(self.learning_rate)}.")

    def _chosen(self, features: Floats, values: Floats, loss: Loss) -> tuple[int, float]:
        """Return the number of steps with the least held-out loss, and its fall; 0 unless that is more than chance."""
        before, best, found = loss.value(values), 0.0, (0, np.zeros(len(values)))
        for number, added in enumerate(self._model.staged_predict(features), 1):
            if number % BATCH == 0 or number == self.max_steps:
                change = before - loss.value(values + self._unit * added)
                if change.sum() > best:
                    best, found = float(change.sum()), (number, change)
        steps, change = found
        error = np.sqrt((_by_unit(change - change.mean(), loss) ** 2).sum())
        return (steps, best / float(loss.weight.sum())) if best > STANDARD_ERRORS * error else (0, 0.0)


def _features(X: Any, prediction: Floats, like: Encoding | None = None) -> tuple[Floats, Encoding]:
    """Return covariates and the prediction as one matrix, and how covariates became numbers."""
    matrix, encoding = encode(X, like)
    require_length(matrix, len(prediction), "X")
    matrix[:, np.isnan(matrix).all(axis=0)] = 0.0  # scikit-learn's trees cannot bin a column without any value
    return np.column_stack([matrix, prediction]), encoding


def _sides(prediction: Floats, loss: Loss, folds: int, seed: int) -> tuple[Integers, Integers]:
    """Return rows to learn steps on, and rows to decide on their number; clusters are whole, and order does not matter."""
    order = value_order(prediction, loss)
    order = order[loss.weight[order] > 0]
    fold = validation_folds(loss[order], folds, seed)
    return order[fold > 0], order[fold == 0]


def _by_unit(values: Floats, loss: Loss) -> Floats:
    """Return sums over clusters; without them, the rows."""
    return values if loss.groups is None else group_sums(loss.groups, values, int(loss.groups.max()) + 1)
