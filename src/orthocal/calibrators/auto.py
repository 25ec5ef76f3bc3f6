"""Automatic calibration: a weighted mean of maps, by how well each predicts held-out rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator

from orthocal.arrays import Floats, is_constant
from orthocal.calibrators.evidence import (
    Evidence,
    deciding_rows,
    line_evidence,
    rank_statistic,
    standard_error,
    with_hardest_left_out,
)
from orthocal.calibrators.histogram import Histogram
from orthocal.calibrators.isotonic import Isotonic
from orthocal.calibrators.left_out import LeftOut, by_value, left_out
from orthocal.calibrators.lines import Constant, Identity, Linear, Rising, Shift, Tilt
from orthocal.calibrators.mixture import Mixture
from orthocal.calibrators.platt import Platt
from orthocal.calibrators.spline import Spline
from orthocal.errors import OrthocalError, require_mapping
from orthocal.formats import shown
from orthocal.losses import Loss, counted_rows
from orthocal.maps import Map


class Candidate(NamedTuple):
    """A calibrator that may have a part in the map.

    `member` is the name of that part: lines mix into one line, splines into one spline. `handicap` is how much better than by
    chance it has to be, in half squared standard errors: the more a class of maps can follow noise, the more it must prove.
    `bends` is the number of ways to differ from a line that are tested for it: none for a shape that is nearly a line itself, two
    for smooth ones, more for steps. One that is `for_drops` is considered only where the effect drops from one bin of the
    predictions to a later one. `per_row` is the most handicap for each row that decides the slope: where a handful do, no
    statistic can be large, for or against the model, and forgetting its differences must prove less.
    """

    calibrator: Any
    member: str
    handicap: float
    bends: int = 0
    for_drops: bool = False
    per_row: float = np.inf


LINES = {
    "identity": Candidate(Identity(), "line", 0.0),
    "constant": Candidate(Constant(), "line", 4.0, per_row=0.2),
    "shift": Candidate(Shift(), "line", 2.0),
    "slope": Candidate(Tilt(), "line", 4.0),
    "linear": Candidate(Rising(Linear()), "line", 4.0),
}
"""Judged by tests against the best line, which need no validation."""
SHAPES = {
    "platt": Candidate(Rising(Platt()), "platt", 5.5),
    "smooth spline": Candidate(Spline(smoothings=(1e-3,)), "spline", 6.75, bends=2),
    "rough spline": Candidate(Spline(smoothings=(1e-5,)), "spline", 9.0, bends=2),
    "histogram": Candidate(Histogram(bins=10), "histogram", 7.75, bends=2, for_drops=True),
    "isotonic": Candidate(Isotonic(min_samples=20), "isotonic", 11.25, bends=6),
    "isotonic-100": Candidate(Isotonic(min_samples=100), "isotonic-100", 9.0, bends=6),
}
"""Judged half by their loss on held-out rows, half by tests of how the truth bends; both against the best line."""
OWN_HANDICAP, OWN_BENDS = 7.5, 2
MOST_BENDS, ENOUGH = 6, 30.0
"""Bends that are tested; and half squared standard errors beyond which the truth is no line, and held-out rows say what it is."""
MOST_MEMBERS, LEAST_WEIGHT = 3, 0.02
REPEATS, MANY_ROWS = 3, 20_000
"""Draws of the validation folds, and the rows beyond which one draw is as good."""
FALLS, DROPS = 2.0, 3.5
"""Standard errors by which the best line must fall for a constant, and the effect between two bins for a map that falls."""
FLAT = 0.01
"""Spread of a map, in standard errors of the average, below which it is a constant."""


@dataclass(frozen=True)
class Trial:
    """What one candidate would have lost on held-out rows.

    Parameters
    ----------
    name : str
    weight : float
        Its part in the map.
    excess : float
        Mean loss above that of the map that was chosen; NaN where it could not be fitted.
    standard_error : float
        Of that difference, paired over rows or clusters.
    note : str
        Why it had no chance, if so.
    """

    name: str
    weight: float
    excess: float
    standard_error: float
    note: str = ""

    def in_words(self) -> str:
        """Say how much more or less it loses."""
        side = "less" if self.excess < 0 else "more"
        return f"{abs(self.excess):.3g} {side} (standard error {self.standard_error:.2g})"


class Auto(BaseEstimator):  # type: ignore[misc]
    r"""Combine maps: a candidate's weight is :math:`\propto e^{-c}`, c how far it is behind in half squared standard errors.

    The original prediction, a constant, a shift, a slope about the average and the best line are compared by score tests
    against the best line; other shapes half by their loss on held-out rows against that of the line, in units of the noise, half
    by a score test of whether the truth bends away from the line at all. A wider class has a handicap. Where a handful of rows
    decides the slope, that of a constant is smaller, and lines must also fit the other rows. Weights below 2% are dropped, and
    at most three members remain. (Exponential weights as in Leung and Barron 2006, whose bound does not cover these candidates;
    benchmarks/auto.md has the measurements.)

    The map does not fall unless the effect does: a histogram may have a part only where the effect clearly drops from one bin to
    a later one. Where the best line falls by two standard errors, the map is a constant; ask for ``"linear"``, ``"platt"`` or
    ``"histogram"`` by name to reverse a ranking.

    Parameters
    ----------
    shapes : mapping of str to calibrator, optional
        Tried beside the lines; platt, spline, histogram and isotonic by default.
    folds : int, default 10
    repeats : int, optional
        How often folds are drawn; three times up to 20,000 rows and once beyond, by default. Draws depend on the rows' values
        alone, not on their order, and not on a seed.
    sample : int, default 100_000
        At most this many rows are used to compare shapes.

    Attributes
    ----------
    choice_ : str
        The members, the heaviest first.
    weights_ : dict of str to float
        Of the members.
    trials_ : tuple of Trial
    reason_ : str

    Examples
    --------
    >>> import numpy as np
    >>> from orthocal.losses import QuadraticLoss
    >>> rng = np.random.default_rng(0)
    >>> prediction = rng.standard_normal(2000)
    >>> loss = QuadraticLoss(1 + 2 * prediction + rng.standard_normal(2000), np.ones(2000))
    >>> chosen = Auto().fit(prediction, loss)
    >>> chosen.choice_, [round(value, 1) for value in chosen.predict([0.0, 1.0]).tolist()]
    ('line + spline', [1.0, 3.0])
    """

    choice_: str
    weights_: dict[str, float]
    trials_: tuple[Trial, ...]
    reason_: str
    map_: Map

    def __init__(
        self,
        shapes: Mapping[str, Any] | None = None,
        folds: int = 10,
        repeats: int | None = None,
        sample: int = 100_000,
    ) -> None:
        self.shapes = shapes
        self.folds = folds
        self.repeats = repeats
        self.sample = sample

    def fit(self, prediction: Any, loss: Loss) -> Self:
        """Weigh the candidates, then fit those that remain on all rows."""
        prediction, loss = by_value(*counted_rows(prediction, loss))
        chosen = self.choose(prediction, loss)
        return self.adopt(chosen.fit(prediction, loss), prediction, loss)

    def choose(self, prediction: Floats, loss: Loss, evidence: Evidence | None = None) -> Any:
        """Return the weighted candidates, unfitted, to be fitted to other losses of the same rows.

        Where these are a sample of the rows, `evidence` is that of all; what remains without the rows that pull the slope
        hardest is seen on the sample.
        """
        prediction, loss = by_value(prediction, loss)
        candidates = {**LINES, **self._shapes()}
        if is_constant(prediction):
            return self._constant("All predictions are the same.")
        evidence = with_hardest_left_out(evidence or line_evidence(prediction, loss), prediction, loss)
        seen = left_out(
            {name: candidate.calibrator for name, candidate in candidates.items()},
            prediction,
            loss,
            folds=self.folds,
            repeats=self.repeats or (REPEATS if len(prediction) <= MANY_ROWS else 1),
            sample=self.sample,
        )
        falls = evidence.slope < -FALLS
        most = float(len(np.unique(prediction)))  # with few distinct predictions no map can follow much noise
        rows = deciding_rows(prediction, loss)
        candidates = {
            name: one._replace(handicap=min(one.handicap, most, one.per_row * rows)) for name, one in candidates.items()
        }
        weights = {"constant": 1.0} if falls else _members(_weights(candidates, evidence, seen), candidates)
        self._report(weights, candidates, seen)
        if falls:
            self.reason_ = f"The best line falls, by {-evidence.slope:.1f} standard errors: a constant. {self.reason_}"
        return Mixture([candidates[name].calibrator for name in weights], list(weights.values()))

    def adopt(self, fitted: Any, prediction: Floats, loss: Loss) -> Self:
        """Take over what was chosen and fitted; a map that is flat but for rounding becomes a constant."""
        spread = float(np.std(fitted.predict(prediction)))
        is_flat = spread <= FLAT * standard_error(loss, fitted.predict(prediction))
        if is_flat and self.choice_ != "constant":
            fitted = self._constant(f"The best map is flat, to {FLAT:.0%} of its standard error: a constant.")
            fitted.fit(prediction, loss)
        if is_flat and rank_statistic(prediction, loss) > FALLS:
            self.reason_ += " The order of the predictions still carries information about who gains more."
        self.calibrator_, self.map_ = fitted, fitted.map_
        return self

    def predict(self, prediction: Any) -> Floats:
        """Calibrated prediction for each prediction."""
        return self.map_.predict(prediction)

    def _shapes(self) -> dict[str, Candidate]:
        if self.shapes is None:
            return SHAPES
        require_mapping(self.shapes, "shapes", "calibrators")
        for name, one in self.shapes.items():
            if not (hasattr(one, "fit") and hasattr(one, "get_params")) or isinstance(one, type):
                raise OrthocalError(
                    f"`shapes[{shown(name)}]` must be a calibrator, such as Isotonic(); it is {shown(one)}."
                )
        return {name: Candidate(calibrator, name, OWN_HANDICAP, OWN_BENDS) for name, calibrator in self.shapes.items()}

    def _constant(self, reason: str) -> Constant:
        self.choice_, self.weights_, self.trials_ = "constant", {"constant": 1.0}, ()
        self.reason_ = reason
        return Constant()

    def _report(self, weights: Mapping[str, float], candidates: Mapping[str, Candidate], seen: LeftOut) -> None:
        """Record the members, what every candidate would have lost, and why, in words."""
        total = _by_member(weights, candidates)
        exact = {"line": next(iter(weights))} if len(weights) == 1 and "line" in total else {}
        self.weights_ = {exact.get(name, name): total[name] for name in sorted(total, key=lambda name: -total[name])}
        self.choice_ = " + ".join(self.weights_)
        self.trials_ = tuple(
            Trial(name, weights.get(name, 0.0), *seen.excess(name, weights), seen.notes.get(name, ""))
            for name in candidates
        )
        trials = {trial.name: trial for trial in self.trials_}
        members = ", ".join(f"{name} {weight:.0%}" for name, weight in self.weights_.items())
        self.reason_ = (
            f"Weights: {members}. On {seen.rows:,} held-out rows the original predictions would have lost "
            f"{trials['identity'].in_words()} than this map, a constant effect {trials['constant'].in_words()}."
        )


def _weights(candidates: Mapping[str, Candidate], evidence: Evidence, seen: LeftOut) -> dict[str, float]:
    """Return each candidate's weight; those that cannot be fitted, or fall without need, have none."""
    base = "linear" if evidence.slope > 0 and "linear" in seen.losses else "constant"
    behind = {name: value + candidates[name].handicap for name, value in evidence.lines.items()}
    if evidence.slope <= 0:
        behind["linear"] = behind["slope"] = np.inf
    bends = np.minimum(seen.bends(base, MOST_BENDS), ENOUGH)
    for name, one in candidates.items():
        if name in behind or name not in seen.losses:
            continue
        behind[name] = evidence.lines[base] + (seen.behind(name, base) - bends[one.bends]) / 2 + one.handicap
    behind |= dict.fromkeys(seen.notes, np.inf)
    if evidence.drop < DROPS:
        behind |= {name: np.inf for name in seen.losses if candidates[name].for_drops or not seen.rises(name)}
    best = min(behind.values())
    raw = {name: float(np.exp(best - value)) for name, value in behind.items()}
    return {name: weight / sum(raw.values()) for name, weight in raw.items()}


def _members(weights: Mapping[str, float], candidates: Mapping[str, Candidate]) -> dict[str, float]:
    """Return the weights of the candidates whose members are among the heaviest."""
    total = _by_member(weights, candidates)
    kept = [name for name in sorted(total, key=lambda name: -total[name])[:MOST_MEMBERS] if total[name] >= LEAST_WEIGHT]
    left = {name: weight for name, weight in weights.items() if candidates[name].member in kept and weight > 0}
    return {name: weight / sum(left.values()) for name, weight in left.items()}


def _by_member(weights: Mapping[str, float], candidates: Mapping[str, Candidate]) -> dict[str, float]:
    """Return the weight of each member."""
    total: dict[str, float] = {}
    for name, weight in weights.items():
        member = candidates[name].member
        total[member] = total.get(member, 0.0) + weight
    return total
