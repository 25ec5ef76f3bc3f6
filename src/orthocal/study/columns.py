"""From a table and names to columns: which are covariates, which play another part, and what is in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError

from orthocal.errors import OrthocalError, did_you_mean
from orthocal.files.tables import read_table
from orthocal.formats import listed, shown

ALL = "all"
"""What is said for every column without another part."""


class MemoryTable:
    """A table in memory: pandas, polars, pyarrow, or a file of it; kept as it is, not copied."""

    def __init__(self, data: Any) -> None:
        self.path = Path(data) if isinstance(data, str | Path) else None
        native = read_table(self.path) if self.path is not None else data
        try:
            frame = nw.from_native(native, eager_only=True)
        except DuplicateError:
            raise OrthocalError("The columns of `data` must have different names; two are alike. Rename one.") from None
        except TypeError:
            raise OrthocalError(
                f"`data` must be a pandas, polars or pyarrow table, a path, or a dask.dataframe; it is a {type(data).__name__}."
            ) from None
        self.frame: nw.DataFrame[Any] = frame
        self.columns = [name for name in frame.columns if isinstance(name, str)]
        if len(frame) == 0:
            raise OrthocalError("`data` must have rows; it has none. Check how it was read or filtered.")

    def __len__(self) -> int:
        return len(self.frame)

    def column(self, name: str) -> Any:
        """Return a column, found by its name."""
        return nw.to_native(self.frame[name])

    def covariates(self, names: Sequence[str]) -> Any:
        """Return several columns as a table of the same kind; without any, rows without columns."""
        return nw.to_native(self.frame.select(list(names))) if names else np.empty((len(self), 0))

    def with_columns(self, columns: Mapping[str, Any]) -> Any:
        """Return the table with further columns, or with others in place of those of that name."""
        index = nw.maybe_get_index(self.frame)
        series = [
            nw.new_series(name, values, nw.Float64, backend=self.frame.implementation)
            for name, values in columns.items()
        ]
        aligned = series if index is None else [nw.maybe_set_index(one, index=index) for one in series]
        return nw.to_native(self.frame.with_columns(*aligned))


MOST_LISTED = 2000
"""Letters of a list of columns that is there to be pasted."""


def require_name(name: Any, role: str) -> None:
    """A column is named by a text."""
    if not isinstance(name, str):
        raise OrthocalError(f"`{role}` must be the name of a column; it is {shown(name)}.")


def require_columns_in(there: Sequence[str], named: Mapping[str, str]) -> None:
    """Every column is there, or the nearest that is gets named."""
    for name, role in named.items():
        require_name(name, role)
        if name not in there:
            hint = did_you_mean(name, there) or f" There are {listed(there)}."
            raise OrthocalError(f"The {role} column must be in the data; {shown(name)} is not.{hint}")


def named_covariates(
    there: Sequence[str],
    taken: Mapping[str, str],
    *,
    covariates: Sequence[str] | str | None,
    exclude: Sequence[str] | str | None,
    predictions: Sequence[str],
    known_propensity: bool,
) -> tuple[str, ...]:
    """Return the covariates that were named; they are never guessed.

    Parameters
    ----------
    there : sequence of str
        All columns.
    taken : mapping of str to str
        Columns with another part, and which.
    """
    others = [name for name in there if name not in taken and name not in predictions]
    if exclude is not None and covariates is None:
        covariates = ALL
    _require_names(covariates, "covariates")
    _require_names(exclude, "exclude")
    if covariates is None:
        raise OrthocalError(_unnamed(others, known_propensity))
    left_out = [exclude] if isinstance(exclude, str) else list(exclude or ())
    require_columns_in(there, dict.fromkeys(left_out, "exclude"))
    if isinstance(covariates, str) and covariates == ALL:
        if not predictions:
            raise OrthocalError(
                "`predictions` must be named where covariates are all other columns, so that no prediction becomes a covariate. "
                "Pass predictions=[...], or name the covariates."
            )
        return tuple(name for name in others if name not in left_out)
    names = [covariates] if isinstance(covariates, str) else list(covariates)
    require_columns_in(there, dict.fromkeys(names, "covariate"))
    for name in names:
        if name in taken and taken[name] in ("outcome", "treatment", "instrument"):
            raise OrthocalError(
                f"`covariates` must not name the {taken[name]}; {shown(name)} is it. Leave it out: it would give the answer away."
            )
    return tuple(dict.fromkeys(name for name in names if name not in left_out))


def _require_names(names: Any, role: str) -> None:
    """Columns are named one by one; None names none."""
    if names is not None and not isinstance(names, str | list | tuple):
        raise OrthocalError(f"`{role}` must be a list of columns; it is {shown(names)}.")


def _unnamed(others: Sequence[str], known_propensity: bool) -> str:
    none = " With a known propensity, covariates=[] is allowed." if known_propensity else ""
    return (
        "`covariates` must be named: a column measured after treatment, taken for a covariate, biases everything, so none is "
        f"guessed. Choose among covariates=[{listed(map(repr, others), MOST_LISTED)}] those measured before treatment.{none}"
    )


def require_no_covariate(holdout: str, covariates: Sequence[str]) -> None:
    """A column that says which rows are held out is not a covariate."""
    if holdout in covariates:
        raise OrthocalError(
            f"`holdout` must not name a covariate; {shown(holdout)} is one. Leave it out of the covariates."
        )
