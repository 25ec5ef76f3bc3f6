"""A fitted model as a function of covariates, whose answers are checked."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from threadpoolctl import ThreadpoolController

from orthocal.arrays import Floats
from orthocal.errors import OrthocalError
from orthocal.formats import first_words
from orthocal.nuisances.nuisance import Nuisance


@dataclass(frozen=True, eq=False)
class Learnt:
    """A fitted model as a function of features; a number where there was nothing to learn."""

    model: Any

    def __call__(self, features: Floats) -> Floats:
        """Predict, on one thread."""
        if isinstance(self.model, float):
            return np.full(len(features), self.model)
        with one_thread():
            answered = self.model.predict_proba(features) if is_classifier(self.model) else self.model.predict(features)
        answer: Floats = np.asarray(answered, dtype=np.float64)
        if is_classifier(self.model):
            answer = _second_class(answer)
        if answer.ndim == 0 or len(answer) != len(features):
            raise ValueError(f"it returned the shape {answer.shape} for {len(features)} rows.")
        if not np.isfinite(answer).all():
            raise ValueError("it returned numbers that are not finite.")
        return answer


def _second_class(chances: Floats) -> Floats:
    """Return the probability of the second of two classes."""
    if chances.ndim != 2 or chances.shape[1] != 2:
        raise ValueError(f"it must give probabilities of two classes; their shape is {chances.shape}.")
    return chances[:, 1]


@contextmanager
def said_of(learner: Any, nuisance: Nuisance) -> Iterator[None]:
    """Say which learner failed at what."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, OrthocalError):
            raise
        said = first_words(error)
        raise OrthocalError(
            f"The learner {type(learner).__name__} of nuisance `{nuisance.name}` failed: {said} "
            "Choose another with `learners`, or fix the covariates."
        ) from error


@lru_cache(maxsize=1)
def _controller(modules: int) -> ThreadpoolController:
    """Return what limits threads; finding the libraries takes milliseconds, so it is done again only after new imports."""
    del modules
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """Have numeric libraries use one thread."""
    return _controller(len(sys.modules)).limit(limits=1)  # type: ignore[no-any-return]
