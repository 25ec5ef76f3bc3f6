"""Which column plays which part: one record for the command line and every engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from orthocal.errors import OrthocalError, did_you_mean
from orthocal.formats import listed, shown


@dataclass(frozen=True, kw_only=True)
class Roles:
    """Columns of a table, by the part they play.

    Parameters
    ----------
    outcome, treatment : str
    prediction : str, optional
        None where there may be several.
    instrument, sample_weight, groups, key, fold, event : str, optional
    covariates : tuple of str
    nuisances : dict of str to (str, number or callable)
        Known nuisances: a column, a number, or a function of the covariates.
    by : tuple of str
        Subgroups to judge apart.
    """

    outcome: str
    treatment: str
    prediction: str | None = None
    instrument: str | None = None
    sample_weight: str | None = None
    groups: str | None = None
    key: str | None = None
    fold: str | None = None
    covariates: tuple[str, ...] = ()
    nuisances: Mapping[str, Any] = field(default_factory=dict)
    by: tuple[str, ...] = ()
    event: str | None = None

    def of(self, table: Any, *, key: bool = False) -> dict[str, Any]:
        """Return the arguments of `observe` that are columns of a table, `y` among them; on demand the key as well."""
        names = (
            "treatment",
            "prediction",
            "instrument",
            "event",
            "sample_weight",
            "groups",
            *(("key",) if key else ()),
        )
        found = {"y": self.outcome, **{name: getattr(self, name) for name in names}}
        return {argument: None if name is None else table[name] for argument, name in found.items()}

    @property
    def arguments(self) -> dict[str, Any]:
        """The columns as `orthocal.distributed` takes them; folds and subgroups are another matter."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name not in ("by", "fold")}

    @property
    def parts(self) -> list[str]:
        """The columns of a row itself: outcome, treatment, prediction and the others that are named, but no covariate."""
        roles = ("outcome", "event", "treatment", "prediction", "instrument", "sample_weight", "groups")
        return [name for role in roles if (name := getattr(self, role)) is not None]

    @property
    def needed(self) -> list[str]:
        """Every column that is read."""
        known = [value for value in self.nuisances.values() if isinstance(value, str)]
        names = [*self.parts, self.key, self.fold, *self.covariates, *known, *self.by]
        return list(dict.fromkeys(name for name in names if name is not None))

    @property
    def told_apart_by(self) -> list[str]:
        """Columns that identify rows: the clusters', the key, or all that a row is but its prediction."""
        own = self.groups or self.key
        every = dict.fromkeys(name for name in (*self.parts, *self.covariates) if name != self.prediction)
        return [own] if own else list(every)

    def require_in(self, there: Sequence[str]) -> None:
        """Every column that is asked for is in the table."""
        for name in self.needed:
            if name not in there:
                raise OrthocalError(
                    f"Column {shown(name)} must be in the data; it has {listed(there)}.{did_you_mean(name, there)}"
                )
