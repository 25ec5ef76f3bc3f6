"""The error and warning types, and one short function per rule that inputs obey.

Every message gives the rule, the value that broke it and the way out.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Collection, Mapping, Sized
from datetime import date
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.formats import listed, shown

if TYPE_CHECKING:
    from orthocal.arrays import Floats, Labels


class OrthocalError(ValueError):
    """An input breaks a rule; the message says which, where, and what to do.

    Examples
    --------
    >>> import orthocal
    >>> try:
    ...     orthocal.maps.IdentityMap().predict([1.0, float("nan")])
    ... except orthocal.OrthocalError as error:
    ...     print(error)
    `prediction` must be finite in every row; row 1 is nan. Drop such rows or fill them in.
    """


class UnavailableError(OrthocalError):
    """Data that must be downloaded is not available."""


class OverlapWarning(UserWarning):
    """Many rows have hardly any chance of one treatment, so their effect rests on extrapolation.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> import orthocal
    >>> X = np.linspace(-3, 3, 400)[:, None]
    >>> treated = (X[:, 0] > 0).astype(int)  # by the covariate alone
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     _ = orthocal.orthogonal_loss("cate", X, X[:, 0], treatment=treated, random_state=0)
    >>> said[0].category.__name__
    'OverlapWarning'
    """


class SkewWarning(UserWarning):
    """Residuals are so skewed for their number that a test rejects too often.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> import orthocal
    >>> rng = np.random.default_rng(0)
    >>> prediction = rng.standard_normal(500)
    >>> effects = orthocal.QuadraticLoss(prediction + rng.lognormal(0, 1, 500), np.ones(500))
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     _ = orthocal.assess(prediction, effects)
    >>> said[0].category.__name__
    'SkewWarning'
    """


class HonestyWarning(UserWarning):
    """The predictions seem to come from a model that was trained on the rows it is judged on.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> import orthocal
    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, y, treatment = rng.standard_normal((200, 2)), rng.standard_normal(200), rng.integers(0, 2, 200)
    >>> model = KNeighborsRegressor().fit(X, y)
    >>> calibrator = orthocal.CausalCalibrator(estimator=model, method="linear", random_state=0)
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     _ = calibrator.fit(X, y, treatment=treatment, nuisances={"propensity": 0.5})
    >>> said[0].category.__name__
    'HonestyWarning'
    """


class AlignmentWarning(UserWarning):
    """Columns come with indexes that disagree, and rows are aligned by their order all the same.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> import pandas as pd
    >>> import orthocal
    >>> X = pd.DataFrame({"age": np.arange(100.0)})
    >>> y = pd.Series(np.arange(100.0), index=np.arange(100)[::-1])
    >>> known = {"propensity": 0.5, "outcome_control": 0.0, "outcome_treated": 0.0}
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     _ = orthocal.orthogonal_loss("cate", X, y, treatment=np.tile([0, 1], 50), nuisances=known)
    >>> said[0].category.__name__
    'AlignmentWarning'
    """


def warn_of_old_name(old: str, new: str) -> None:
    """Say that a name goes with the next release, and what to write instead."""
    warnings.warn(f"{old} is now {new}; the old name will be removed in the next release.", FutureWarning, stacklevel=3)


def require_rows(n: int) -> None:
    """There is something to work on."""
    if n == 0:
        raise OrthocalError("The data must have at least one row; it is empty. Check how it was read or filtered.")


def require_length(values: Sized, n: int, name: str) -> None:
    """Every column has one value per row."""
    if len(values) != n:
        raise OrthocalError(
            f"`{name}` must have one value per row; it has {len(values)} for {n} rows. Pass arrays that cover the same rows."
        )


MOST_WEIGHT = 1e9
"""Of a row, over that of the row in the middle."""
LARGEST, SMALLEST = 1e50, 1e-50
"""Size of numbers whose products of a few are still doubles; and what the largest of a column must reach, if it is not 0."""


def require_finite(values: Floats, name: str, first: int = 0) -> float:
    """No NaN, no infinity, nothing masked or huge; return the largest size. `first` numbers the first row of some of many."""
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    if values.ndim == 1 and values.strides == (0,):  # one number for all rows
        values = values[:1]
    # Half precision has no number as large as the limit, so ends are compared as doubles.
    low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))
    if low >= -LARGEST and high <= LARGEST:  # neither holds of NaN
        return max(high, -low)
    wrong = np.flatnonzero(~(np.abs(values.astype(np.float64)) <= LARGEST))
    if len(wrong) and not np.isfinite(values[wrong[0]]):
        raise OrthocalError(
            f"`{name}` must be finite in every row; row {first + wrong[0]} is {values[wrong[0]]}. "
            "Drop such rows or fill them in."
        )
    raise OrthocalError(
        f"`{name}` must not exceed {LARGEST:g} in size; row {first + wrong[0]} is {values[wrong[0]]}. Use other units."
    )


def require_not_tiny(largest: float, name: str) -> None:
    """The numbers of a column are all 0, or the largest of them is large enough to be squared and divided by."""
    if 0 < largest < SMALLEST:
        raise OrthocalError(
            f"`{name}` must reach {SMALLEST:g} in size somewhere, or be 0; its largest is {largest}. Use other units."
        )


def require_weights(weight: Floats) -> None:
    """Weights are finite, not negative, and not all zero."""
    require_finite(weight, "sample_weight")
    if weight.min() < 0:
        row = int(np.argmin(weight))
        raise OrthocalError(f"`sample_weight` must not be negative; row {row} is {weight[row]}. Drop such rows.")
    if weight.max() == 0:
        raise OrthocalError("`sample_weight` must be positive somewhere; all are 0. Leave it out for equal weights.")
    require_comparable(weight, "sample_weight")


def require_comparable(weight: Floats, name: str) -> None:
    """No row outweighs the others so much that these are lost in rounding."""
    most = weight.max(initial=0.0)
    if most > MOST_WEIGHT * weight.min(initial=most) and most > MOST_WEIGHT * np.median(weight[weight > 0]):
        row = int(np.argmax(weight))
        raise OrthocalError(
            f"`{name}` must not exceed {MOST_WEIGHT:g} times its median, or other rows are lost in rounding; row {row} "
            f"is {weight[row]:g}. Check the weights."
        )


def require_positive_mass(total: float) -> None:
    """The summed mass of a loss is positive, so that an effect is defined."""
    if not total > 0:
        raise OrthocalError(
            f"The summed mass of the loss must be positive; it is {total:.4g}. "
            "The rows carry no information on the effect: use more rows or check the treatment."
        )


def require_known_propensity(propensity: Floats, name: str) -> None:
    """A propensity that is given is the design's: it is used as it is, so it may not be 0 or 1."""
    if not (propensity.min(initial=0.5) > 0 and propensity.max(initial=0.5) < 1):
        row = int(np.flatnonzero(~((propensity > 0) & (propensity < 1)))[0])
        raise OrthocalError(
            f"`{name}` as given must lie strictly inside (0, 1); row {row} is {propensity[row]}. "
            "Drop such rows or give the true design probability."
        )


def require_level(treatment: Labels, level: object, name: str) -> None:
    """A treatment value that is asked for is one value, and occurs."""
    if not (np.isscalar(level) or level is None or isinstance(level, date)):
        raise OrthocalError(f"`{name}` must be one value of the treatment; it is {shown(level)}. Name that value.")
    if not np.any(treatment == level):
        levels = listed(repr(value) for value in np.unique(treatment)[:10].tolist())
        raise OrthocalError(
            f"`{name}`={shown(level)} must occur in the treatment column; its values are {levels}. "
            "Name the two values to compare, as in CATE(arm=..., control=...) or Study(..., arm=..., control=...)."
        )


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number that is not huge; booleans are none."""
    is_real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    size = (
        float(value) if is_real and isinstance(value, np.floating) else value
    )  # whole numbers may not fit into a double
    return is_real and bool(-LARGEST <= size <= LARGEST)


def are_numbers(*arrays: Floats) -> bool:
    """Return whether all numbers of some arrays are finite, and none is huge."""
    return all(bool((np.abs(values) <= LARGEST).all()) for values in arrays)


def require_number(value: Any, name: str, hint: str = "") -> None:
    """A setting is a finite number."""
    if not is_number(value):
        raise OrthocalError(f"`{name}` must be a finite number{hint}; it is {shown(value)}.")


def require_inside(value: Any, low: float, high: float, name: str) -> None:
    """A setting lies strictly between two numbers."""
    if not (is_number(value) and low < value < high):
        raise OrthocalError(f"`{name}` must lie strictly between {low} and {high}; it is {shown(value)}.")


def require_at_least(value: Any, low: float, name: str) -> None:
    """A setting is not smaller than it can be."""
    if not (is_number(value) and value >= low):
        raise OrthocalError(f"`{name}` must be at least {low}; it is {shown(value)}.")


def require_one_of(value: Any, known: Collection[str], name: str) -> None:
    """A name is one of those that exist."""
    if not (isinstance(value, str) and value in known):
        hint = did_you_mean(value, known) if isinstance(value, str) else ""
        raise OrthocalError(f"`{name}` must be one of {listed(map(repr, known))}; it is {shown(value)}.{hint}")


def require_mapping(value: Any, name: str, what: str) -> None:
    """A setting maps names to something; None stands for nothing."""
    if value is not None and not (isinstance(value, Mapping) and all(isinstance(key, str) for key in value)):
        raise OrthocalError(f"`{name}` must map names to {what}; it is {shown(value)}. Pass a dict.")


def require_truth(value: Any, name: str) -> None:
    """A setting is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise OrthocalError(f"`{name}` must be True or False; it is {shown(value)}.")


def require_path(path: Any, name: str) -> None:
    """Something is the path of a file."""
    if not (isinstance(path, str | PathLike) and str(path)) or "\0" in str(path):
        raise OrthocalError(f"`{name}` must be the path of a file; it is {shown(path)}.")


def did_you_mean(name: str, known: Collection[str]) -> str:
    """Return a question that names the nearest of those that exist, or nothing where none is near."""
    lower = {one.lower(): one for one in reversed(list(map(str, known)))}
    near = difflib.get_close_matches(name.lower(), lower, n=1)
    return f" Did you mean {lower[near[0]]!r}?" if near else ""


def is_whole(value: Any) -> bool:
    """Return whether a value is a whole number; booleans are none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def require_whole(value: Any, low: int, name: str, high: int | None = None) -> None:
    """A setting is a whole number, neither smaller nor larger than it can be."""
    if not is_whole(value) or value < low:
        raise OrthocalError(f"`{name}` must be a whole number of at least {low}; it is {shown(value)}.")
    if high is not None and value > high:
        raise OrthocalError(f"`{name}` must be at most {high:,}; it is {shown(value)}.")
