"""How to train an effect model and how to ask it for its prediction, whichever library it comes from."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import _safe_indexing

from orthocal.arrays import Floats, Integers
from orthocal.errors import HonestyWarning, OrthocalError
from orthocal.formats import first_words, shown
from orthocal.observations import Observations, as_matrix, as_numbers, column_names

REMEMBERED_ROWS = ("X_train_", "X_fit_", "_fit_X")
"""Where scikit-learn's Gaussian processes, kernel machines and neighbours keep their training rows."""


def prediction_of(model: Any, X: Any, effect: Any = None) -> Floats:
    """Return the model's effect on each row.

    Parameters
    ----------
    model : object
        With ``.effect(X)`` (EconML), ``.predict(X)`` (CausalML, metalearners, scikit-learn) or ``.confint(basis)`` (DoubleML's
        best linear predictor), or a callable. `X` reaches it as it is.
    effect : Effect, optional
        Its ``arm`` and ``control``, where it has them, say which effect is meant when the model knows several.
    """
    ask = _way_to_ask(model)
    try:
        with said_of_model(model, "predict"):
            answer = ask(model, X, effect)
    except NotFittedError:
        raise OrthocalError(
            f"`estimator` must be fitted, on other rows than these; this {type(model).__name__} is not. Fit it first, and wrap "
            "it in sklearn.frozen.FrozenEstimator where it would be cloned."
        ) from None
    return as_numbers(_one_column(answer, model, effect), "prediction", len(X))


@contextmanager
def said_of_model(model: Any, what: str) -> Iterator[None]:
    """Say which effect model failed at what; that it is not fitted is for others to say."""
    try:
        yield
    except (OrthocalError, NotFittedError):
        raise
    except Exception as error:  # models of other libraries have errors of their own
        raise OrthocalError(
            f"The effect model {type(model).__name__} must {what} on rows like these; it failed: {first_words(error)} "
            "Fix the covariates, or pass its predictions."
        ) from error


def train_in_words(train: Callable[..., Any], estimator: Any, *rows: Any) -> Any:
    """Train an effect model, and say where it fails."""
    with said_of_model(estimator, "be trained"):
        return train(estimator, *rows)


def given_or_asked(prediction: Any, model: Any, X: Any, effect: Any) -> Floats:
    """Return the predictions as given; where none are, ask the model, which must not have been trained on these rows."""
    if prediction is not None:
        return as_numbers(prediction, "prediction")
    if model is None:
        raise OrthocalError(
            "`prediction` must be given, or an `estimator` that predicts it; both are None. "
            "Pass the effect model's predictions on rows it was not trained on."
        )
    warn_if_trained_on(model, X)
    return prediction_of(model, X, effect)


def warn_if_trained_on(model: Any, X: Any) -> None:
    """Warn when the model remembers its training rows and these are they."""
    for name in REMEMBERED_ROWS:
        remembered = getattr(model, name, None)
        if isinstance(remembered, np.ndarray) and np.array_equal(remembered, as_matrix(X)):
            warnings.warn(
                f"The {type(model).__name__} was trained on exactly these rows, so the verdict would be too optimistic. "
                "Judge it on rows it never saw, or use predictions made out of fold.",
                HonestyWarning,
                stacklevel=3,
            )


def _ask_effect(model: Any, X: Any, effect: Any) -> Any:
    """EconML asks back: between which two treatments?"""
    between = {"T0": getattr(effect, "control", None), "T1": getattr(effect, "arm", None)}
    return model.effect(X, **_taken_by(model.effect, between))


def _ask_predict(model: Any, X: Any, effect: Any) -> Any:
    """The package metalearners asks back whether the rows are new to the model, which they must be."""
    del effect
    return model.predict(X, **_taken_by(model.predict, {"is_oos": True}))


def _ask_confint(model: Any, X: Any, effect: Any) -> Any:
    """DoubleML's best linear predictor gives the effect at a basis beside its interval."""
    del effect
    return model.confint(basis=X)["effect"]


def _ask_call(model: Any, X: Any, effect: Any) -> Any:
    del effect
    return model(X)


def _way_to_ask(model: Any) -> Callable[[Any, Any, Any], Any]:
    """Return the first way to ask that the model offers."""
    offers = {
        _ask_effect: callable(getattr(model, "effect", None)),
        _ask_predict: callable(getattr(model, "predict", None)),
        _ask_confint: "basis" in _parameters(getattr(model, "confint", None)),
        _ask_call: callable(model),
    }
    for ask, offered in offers.items():
        if offered and not isinstance(model, type):
            return ask
    shown = f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__name__}"
    raise OrthocalError(
        f"`estimator` must have .effect(X) or .predict(X), or be callable; it is {shown}. "
        "Pass the predictions themselves as `prediction`."
    )


def way_to_train(estimator: Any, *, censored: bool = False) -> Callable[[Any, Any, Observations, Integers], Any] | None:
    """Return ``train(estimator, X, observations, rows)`` for a model that is trained on treatment and outcome; else None.

    A scikit-learn regressor has no place for a treatment: it is trained on pseudo-outcomes, which is the caller's to do. Of the
    models of other libraries none has a place for censored times.
    """
    names = set(_parameters(getattr(estimator, "fit", None)))
    for needed, train in TRAINING:
        if needed <= names:
            if censored:
                raise OrthocalError(
                    f"`estimator` must accept `event`; {type(estimator).__name__} would take censored times for "
                    "outcomes. Pass a scikit-learn regressor, or a function of (X, y, treatment, event) that trains a model."
                )
            return train
    return None if hasattr(estimator, "fit") else _train_call


def _train_econml(estimator: Any, X: Any, observations: Observations, rows: Integers) -> Any:
    """EconML: outcome and treatment first, covariates by name, the instrument as Z."""
    model, own = copy.deepcopy(estimator), observations[rows]
    further = _taken_by(model.fit, {"Z": own.instrument, "sample_weight": _uneven(own.weight)})
    model.fit(own.outcome, own.treatment, X=selected_rows(X, rows), **further)
    return model


def _train_causalml(estimator: Any, X: Any, observations: Observations, rows: Integers) -> Any:
    """CausalML's meta-learners and uplift forests."""
    model, own = copy.deepcopy(estimator), observations[rows]
    further = _taken_by(model.fit, {"sample_weight": _uneven(own.weight)})
    model.fit(X=selected_rows(X, rows), treatment=own.treatment, y=own.outcome, **further)
    return model


def _train_metalearners(estimator: Any, X: Any, observations: Observations, rows: Integers) -> Any:
    """The package metalearners calls the treatment w."""
    model, own = copy.deepcopy(estimator), observations[rows]
    further = _taken_by(model.fit, {"sample_weight": _uneven(own.weight)})
    model.fit(X=selected_rows(X, rows), y=own.outcome, w=own.treatment, **further)
    return model


def selected_rows(X: Any, rows: Any) -> Any:
    """Return some rows of covariates of any kind, as that kind; scikit-learn before 1.7 cannot do it with pyarrow's."""
    return X.take(rows) if nw.dependencies.is_pyarrow_table(X) else _safe_indexing(X, rows)


def _train_call(estimator: Any, X: Any, observations: Observations, rows: Integers) -> Any:
    """A function of (X, y, treatment), and of event where times are censored, that returns the fitted model."""
    own = observations[rows]
    further = () if own.event is None else (own.event,)
    model = estimator(selected_rows(X, rows), own.outcome, own.treatment, *further)
    if model is None:
        raise OrthocalError("`estimator` as a function must return the fitted model; it returned None.")
    return model


TRAINING: tuple[tuple[set[str], Callable[[Any, Any, Any, Any], Any]], ...] = (
    ({"Y", "T", "X"}, _train_econml),
    ({"X", "treatment", "y"}, _train_causalml),
    ({"X", "y", "w"}, _train_metalearners),
)
"""What the arguments of a model's `fit` are called, and how it is trained."""


def _uneven(weight: Floats) -> Floats | None:
    """Return weights, or nothing where all are the same: some models refuse any."""
    return None if np.ptp(weight) == 0 else weight


def _parameters(function: Any) -> Mapping[str, Any]:
    """Return the parameters of a function, or none where it does not tell."""
    with suppress(TypeError, ValueError):
        return inspect.signature(function).parameters
    return {}


def _taken_by(function: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that have a value and a place in the function."""
    parameters = _parameters(function)
    return {name: value for name, value in arguments.items() if value is not None and name in parameters}


ARMS: tuple[Callable[[Any], Sequence[Any]], ...] = (
    lambda model: (model.control_name, *model.t_groups),
    lambda model: tuple(model.classes_),
    lambda model: range(model.n_variants),
)
"""Where CausalML's meta-learners, its uplift forests and metalearners keep their arms; the first is the control."""


def _one_column(answer: Any, model: Any, effect: Any) -> Any:
    """Return the column that is meant, of an answer that may have one column per arm."""
    names = column_names(answer)
    if names is None and np.ndim(answer) == 1:
        return answer
    columns = np.asarray(answer)
    if columns.ndim == 3 and columns.shape[2] <= 2:  # metalearners: one number, or one per class
        columns = columns[:, :, -1]
    if columns.ndim != 2 or columns.shape[1] == 1:
        return columns
    arms = names or _arms_against_control(model, columns.shape[1], effect)
    arm = getattr(effect, "arm", None)
    if arm is None or not arms:
        raise OrthocalError(
            f"`estimator` must give one effect per row; this {type(model).__name__} gives {columns.shape[1]} columns and nothing "
            "says which is meant. Pass a function that selects one, such as lambda X: model.predict(X)[:, 0]."
        )
    if arm not in arms:
        known = ", ".join(map(repr, np.array(arms).tolist()))
        raise OrthocalError(
            f"The arm of `effect` must be one the estimator knows, {known}; it is {shown(arm)}. "
            "Name it, as in CATE(arm=..., control=...)."
        )
    return columns[:, arms.index(arm)]


def _arms_against_control(model: Any, count: int, effect: Any) -> tuple[Any, ...]:
    """Return the arm of each of `count` columns, whose effects must be against the control that is meant."""
    for find in ARMS:
        with suppress(AttributeError, TypeError):
            control, *arms = find(model)
            if len(arms) == count:
                return _checked_against(control, arms, effect)
    return ()


def _checked_against(control: Any, arms: list[Any], effect: Any) -> tuple[Any, ...]:
    meant = getattr(effect, "control", control)
    if meant != control:
        raise OrthocalError(
            f"The estimator's effects are against {shown(control)}, so the control of `effect` must be that; it is "
            f"{shown(meant)}. Pass a function that subtracts one column from another."
        )
    return tuple(arms)
