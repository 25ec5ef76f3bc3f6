"""How nuisances are learnt: everything that is not data, and the learners by default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from orthocal.arrays import Floats
from orthocal.errors import OrthocalError, is_whole, require_inside, require_one_of, require_whole
from orthocal.folds import REPEATS, require_seed, seed_of
from orthocal.formats import listed, shown
from orthocal.nuisances.nuisance import Nuisance
from orthocal.nuisances.wrapped import Coarse, Stagewise, Standardised

MOST_ROWS = 10**12
"""That a sample can have."""
MOST_JOBS = 100_000


@dataclass(frozen=True)
class Recipe:
    """How nuisances are learnt: everything that is not data.

    Parameters
    ----------
    learners : mapping of str to scikit-learn estimator, optional
    clip : float
    random_state : int, Generator, RandomState or None
    n_jobs : int, optional
    sample : int, optional
        About how many rows teach, where they are too many for one place; all of them by default.
    """

    learners: Mapping[str, Any] | str | None = None
    clip: float = 0.01
    random_state: Any = None
    n_jobs: int | None = None
    sample: int | None = None

    def __post_init__(self) -> None:
        require_inside(self.clip, 0, 0.5, "clip")
        if self.n_jobs is not None and not (is_whole(self.n_jobs) and 0 < abs(self.n_jobs) <= MOST_JOBS):
            raise OrthocalError(
                f"`n_jobs` must be a whole number other than 0; it is {shown(self.n_jobs)}. Use 1 for one fit at a time, -1 for "
                "all cores."
            )
        if self.sample is not None:
            require_whole(self.sample, 1, "sample", MOST_ROWS)
        require_seed(self.random_state)

    @property
    def seeded(self) -> Recipe:
        """The recipe with a whole number for a seed: drawn, where none was given."""
        return replace(self, random_state=seed_of(self.random_state))

    def again(self, time: int) -> Recipe:
        """Return the recipe for doing the whole job again, with other draws."""
        return replace(self, random_state=seed_of(np.random.default_rng([self.random_state, REPEATS, time])))


SETTINGS: dict[str, Any] = {
    "learning_rate": 0.1,
    "max_iter": 300,
    "max_depth": 3,
    "min_samples_leaf": 20,
    "early_stopping": True,
    "validation_fraction": 0.15,
    "n_iter_no_change": 10,
}
"""Shallow boosted trees that stop early; chosen by the table in benchmarks/learners.md."""
DISTRIBUTION_SETTINGS = {
    "learning_rate": 0.2,
    "min_samples_leaf": 120,
    "validation_fraction": 0.1,
    "n_iter_no_change": 20,
}
"""What trees of a conditional distribution have otherwise (benchmarks/distributions.md); a leaf has 20 rows, each six times."""
LEAF_ROWS = 10
"""Least number of rows in a leaf of the trees of hazards, if each were there in all its periods; most are in about half."""
RARE, RARE_SETTINGS = 20, {"early_stopping": False, "max_iter": 20}
"""With fewer members of a class than this, none can be set aside to stop early by: a few trees, then."""


def default_learner(nuisance: Nuisance) -> Any:
    """Return shallow gradient-boosted trees with early stopping: a classifier for a probability, else a regressor.

    The regressor's target is standardised: its answers scale and shift with it. A nuisance may have a learner of its own.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    if nuisance.learner is not None:
        return nuisance.learner
    stops_by_rows = has_fit_parameter(HistGradientBoostingClassifier, "X_val")  # from scikit-learn 1.7
    settings = {**SETTINGS, **(nuisance.settings if stops_by_rows else {})}
    if nuisance.is_probability:
        return HistGradientBoostingClassifier(**(settings if _has_both(nuisance) else {**settings, **RARE_SETTINGS}))
    return Standardised(HistGradientBoostingRegressor(**settings))


def hazard_learner(periods: int) -> Any:
    """Return boosted trees for rows that are shown in up to so many periods: a leaf must not be one row in its periods."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    leaf = LEAF_ROWS * periods
    return HistGradientBoostingClassifier(**{**SETTINGS, "learning_rate": 0.05, "min_samples_leaf": leaf})


def default_learner_for_weights(nuisance: Nuisance) -> Any:
    """Return the default learner with covariates binned beforehand; one that comes to estimate something else is left."""
    from sklearn.pipeline import make_pipeline

    learner = default_learner(nuisance)
    is_left = nuisance.wrap is not None and nuisance.learner is None
    return learner if is_left else make_pipeline(Coarse(), learner)


def linear_learner(nuisance: Nuisance) -> Any:
    """Return a ridge or logistic regression of standardised covariates, missing ones at their median."""
    from sklearn.linear_model import LogisticRegression, RidgeCV

    model = LogisticRegression(max_iter=1000) if nuisance.is_probability else RidgeCV(np.logspace(-3, 3, 13))
    return _of_standardised(model)


def _of_standardised(model: Any) -> Any:
    """The model of standardised covariates, missing ones at their median."""
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(
        SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True), StandardScaler(), model
    )


def forest_learner(nuisance: Nuisance) -> Any:
    """Return a random forest of 200 trees with leaves of at least 20 rows."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    forest = RandomForestClassifier if nuisance.is_probability else RandomForestRegressor
    return forest(n_estimators=200, min_samples_leaf=20)


SMALL_LEAVES = {"min_samples_leaf": 5}
"""Of trees that learn what a lasso leaves; compared with others in benchmarks/acic.md."""
PENALTIES = np.logspace(0, -2.5, 26)
"""From where a lasso of standardised columns is empty to where it has most of them."""
MOST_STEPS = 20_000
"""Of a lasso: powers and products of the same columns are nearly collinear, and it converges slowly."""


MOST_TERMS, DEGREE = 8, 3
"""Columns whose products a lasso may use, and the most factors of a product; compared with others in benchmarks/acic.md."""


def stagewise_learner(nuisance: Nuisance) -> Any:
    """Return a lasso, then boosted trees with small leaves on its residuals; for a probability the default."""
    return default_learner(nuisance) if nuisance.is_probability else _then_trees(_of_standardised(_lasso()))


def polynomial_learner(nuisance: Nuisance) -> Any:
    """Return a lasso of cubic terms, then boosted trees with small leaves on its residuals; for a probability the default.

    A first lasso chooses the columns, those with the largest coefficients; a second one chooses among their powers and products.
    """
    from sklearn.feature_selection import SelectFromModel
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    if nuisance.is_probability:
        return default_learner(nuisance)
    largest = SelectFromModel(_lasso(), threshold=-np.inf, max_features=_most_terms)
    terms = PolynomialFeatures(DEGREE, include_bias=False)
    return _then_trees(make_pipeline(_of_standardised(largest), terms, StandardScaler(), _lasso()))


def _lasso() -> Any:
    from sklearn.linear_model import LassoCV

    return LassoCV(alphas=PENALTIES, cv=3, max_iter=MOST_STEPS)


def _then_trees(first: Any) -> Any:
    """The regressor, then boosted trees with small leaves on its residuals."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    return Standardised(Stagewise(first, HistGradientBoostingRegressor(**{**SETTINGS, **SMALL_LEAVES})))


def _most_terms(X: Floats) -> int:
    return min(MOST_TERMS, int(X.shape[1]))


NAMED_LEARNERS: dict[str, Any] = {
    "boosting": None,
    "linear": linear_learner,
    "forest": forest_learner,
    "stagewise": stagewise_learner,
    "polynomial": polynomial_learner,
}
"""Kinds of learners by name; None is the default."""


def _has_both(nuisance: Nuisance) -> bool:
    """Whether a probability's two classes are common enough to set some of both aside for early stopping."""
    target = nuisance.target if nuisance.rows is None else nuisance.target[nuisance.rows]
    ones = float(target.sum())
    return nuisance.wrap is not None or min(ones, len(target) - ones) >= RARE


def choose_learners(
    nuisances: Sequence[Nuisance], learners: Mapping[str, Any] | str | None, *, weighted: bool = False
) -> dict[str, Any]:
    """Return the learner of each nuisance: one kind for all, or chosen by exact name, else by role, else the default."""
    if isinstance(learners, str):
        require_one_of(learners, NAMED_LEARNERS, "learners")
        own = NAMED_LEARNERS[learners]
        return {n.name: own(n) for n in nuisances} if own else choose_learners(nuisances, None, weighted=weighted)
    if learners is not None and not isinstance(learners, Mapping):
        raise OrthocalError(
            f"`learners` must map nuisances or roles to estimators; it is a {type(learners).__name__}. Pass a dict."
        )
    chosen = dict(learners or {})
    names = {nuisance.name: nuisance.role for nuisance in nuisances}
    unknown = [key for key in chosen if key not in names and key not in names.values()]
    if unknown:
        raise OrthocalError(
            f"`learners` does not know {shown(unknown[0])}. Its keys may be the nuisances {listed(names)} "
            f"or the roles {listed(sorted(set(names.values())), 50)}."
        )
    for key, learner in chosen.items():
        _require_learner(key, learner)
    found = {n.name: chosen.get(n.name, chosen.get(n.role)) for n in nuisances}
    default = default_learner_for_weights if weighted else default_learner
    return {n.name: default(n) if found[n.name] is None else found[n.name] for n in nuisances}


def _require_learner(key: str, learner: Any) -> None:
    """A learner is a scikit-learn estimator, an instance, and gives probabilities if it is a classifier."""
    from sklearn.base import BaseEstimator, is_classifier

    if not isinstance(learner, BaseEstimator):
        what = f"the class {learner.__name__}" if isinstance(learner, type) else shown(learner)
        raise OrthocalError(
            f"`learners[{shown(key)}]` must be a scikit-learn estimator, such as Ridge(); it is {what}. Pass an instance."
        )
    if is_classifier(learner) and not hasattr(learner, "predict_proba"):
        raise OrthocalError(
            f"`learners[{shown(key)}]` must give probabilities; {type(learner).__name__} has no predict_proba. "
            "Choose another classifier, or a regressor."
        )
