"""What the public estimators share, so that users of EconML, scikit-learn and notebooks find what they expect."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from orthocal.arrays import Floats
from orthocal.effects import Effect, new_effect
from orthocal.errors import OrthocalError
from orthocal.formats import shown
from orthocal.observations import column_names, require_columns


class UnfittedError(OrthocalError, NotFittedError):  # type: ignore[misc]
    """The object must be fitted first."""


class EffectParameter:
    """The attribute ``effect`` of an estimator: what is set is the parameter, what is read the method of EconML's models."""

    def __get__(self, estimator: Any, owner: type | None = None) -> Callable[..., Any]:
        """Return ``effect(X, T0=None, T1=None)``, bound to an estimator when asked of one."""
        return effect_between if estimator is None else MethodType(effect_between, estimator)

    def __set__(self, estimator: Any, effect: str | Effect) -> None:
        """Keep the parameter under its own name."""
        vars(estimator)["effect"] = effect


def effect_parameter(estimator: Any) -> str | Effect:
    """Return the parameter `effect`, as it was given."""
    given: str | Effect = vars(estimator)["effect"]
    return given


def parameters_of(self: Any, deep: bool = True) -> dict[str, Any]:
    """Return the parameters, `effect` among them, whose attribute is a method."""
    return {**BaseEstimator.get_params(self, deep), "effect": effect_parameter(self)}


def effect_between(estimator: Any, X: Any, T0: Any = None, T1: Any = None) -> Any:
    """Return the calibrated effect of each row, asked for as EconML's models are.

    Parameters
    ----------
    X : array or data frame of shape (rows, columns)
    T0, T1 : treatment value, or one per row, optional
        A map is calibrated for one contrast: they must be the control and the arm of the parameter `effect`.

    Returns
    -------
    Column of the kind of `X`
        The same as ``predict(X)``.
    """
    meant = new_effect(effect_parameter(estimator))
    for name, asked, level in (("T0", T0, getattr(meant, "control", 0)), ("T1", T1, getattr(meant, "arm", 1))):
        if asked is not None and not np.all(np.asarray(asked) == level):
            raise OrthocalError(
                f"`{name}` must be {shown(level)}, the value that was calibrated for; it is {shown(asked)}. "
                "Fit another one for that contrast, with CATE(arm=..., control=...)."
            )
    return estimator.predict(X)


def remember_columns(estimator: Any, X: Any) -> None:
    """Keep number and names of the covariates under the names scikit-learn gives them."""
    names = column_names(X)
    estimator.n_features_in_ = np.shape(X)[1]
    vars(estimator).pop("feature_names_in_", None)
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)


def require_columns_of(estimator: Any, X: Any) -> None:
    """New rows have the columns the estimator was fitted on."""
    names = getattr(estimator, "feature_names_in_", None)
    require_columns(X, None if names is None else tuple(names), estimator.n_features_in_)


def tags_of(estimator: Any) -> Any:
    """Tell scikit-learn that outcomes are needed, and that covariates may be missing, text or categories."""
    tags = BaseEstimator.__sklearn_tags__(estimator)
    tags.target_tags.required = True
    tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
    return tags


def html_of(estimator: Any) -> str:
    """Return what a notebook shows."""
    from orthocal.reporting.notebook import estimator_html

    return estimator_html(estimator)


def mime_bundle_of(estimator: Any, **kwargs: Any) -> dict[str, str]:
    """Return what a notebook shows under the name by which scikit-learn offers it, which notebooks ask for first."""
    del kwargs
    return {"text/plain": repr(estimator), "text/html": html_of(estimator)}


def alike(values: Floats, source: Any, name: str = "effect") -> Any:
    """Return one number per row as the kind of column its rows came in.

    A pandas Series with the index of the rows, a polars Series, a pyarrow array; numpy for everything else. A column keeps its
    name, a table's rows get `name`.
    """
    native = nw.from_native(source, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(native, nw.DataFrame | nw.Series):
        column = nw.new_series(getattr(native, "name", name), values, nw.Float64, backend=native.implementation)
        index = nw.maybe_get_index(native)
        return nw.to_native(column if index is None else nw.maybe_set_index(column, index=index))
    pyarrow = nw.dependencies.get_pyarrow()
    is_arrow = pyarrow is not None and isinstance(source, pyarrow.Array)  # narwhals knows chunked arrays only
    return pyarrow.array(values) if is_arrow else values
