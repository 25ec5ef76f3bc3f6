"""A calibration: the map, the verdicts before and after it, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from orthocal.arrays import Floats, Integers
from orthocal.assessment import Assessment, Comparison
from orthocal.assessment.audit_records import Audit
from orthocal.assessment.effect_band import EffectBand
from orthocal.assessment.parts import Check
from orthocal.assessment.sentences import story
from orthocal.errors import OrthocalError
from orthocal.group_maps import GroupMap
from orthocal.mapfile import save
from orthocal.maps import Map
from orthocal.study.recommendation import Recommendation

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from orthocal.study.definition import StudyDefinition


@dataclass(frozen=True, eq=False, kw_only=True)
class Calibration:
    """A map with the verdicts before and after it, and a recommendation: what `Study.calibrate` returns.

    Parameters
    ----------
    name : str
        Of the prediction.
    map : Map
        The map that ships: fitted again on all rows by the verified method, where it is recommended; else the verified one.
    verified_map : Map
        Fitted on the rows that were not held out, and judged on those that were.
    distance : float or None
        Root mean square distance over the predictions judged of a map fitted on all rows from the verified one; above half the
        tolerance the verified one ships. None where none was fitted.
    before : Assessment
        On the held-out rows; on all rows where nothing was held out.
    after : Assessment or None
        Of the verified map on the held-out rows; None where nothing was held out, for the map has seen every row.
    comparison : Comparison or None
        Of losses after and before.
    prediction_over_average, calibrated_over_average : Comparison or None
        Of losses with that of the average effect for everyone.
    average : float
        The average effect of the rows the map was fitted on.
    audit_before, audit_after : Audit or None
        Of the subgroups that `within` names, on the rows judged; None where it names none, or nothing was held out.
    recommendation : Recommendation
    checks : tuple of Check
    judged : array or range
        The rows the verdict rests on; a range only counts them.
    redraws : tuple of (float, float)
        Error before and after, of the whole job done again with other draws of the folds and the same rows held out.
    reason : str
        Why the method was chosen, where it was chosen from the data.
    bound : float
        Of an isotonic map on a grid: how near its means are to those of the exact map; 0 for a map of all rows.
    fitted_range : (float, float)
        The lowest and the highest prediction that the map which ships was fitted on.
    fitted_rows : int
        How many rows the verified map was fitted on.
    band_edges : array or None
        Edges of the bins whose averages `band` is of; None where the effect must not decrease in the prediction.
    about : dict
        What it is a map of, as `save` writes it into the file.
    prediction : array or str
        What was calibrated: numbers in memory, a column on Dask.

    Examples
    --------
    >>> import pandas as pd
    >>> from orthocal import Study
    >>> from orthocal.datasets import simulate_cate
    >>> data = simulate_cate(n=4000, confounding=0, random_state=0)
    >>> trial = pd.DataFrame({"y": data.y, "a": data.treatment, "tau": 1 + 2 * data.effect})
    >>> done = Study(trial, outcome="y", treatment="a", covariates=[], propensity=0.5).calibrate("tau")
    >>> done.before.status, done.after.status, done.recommendation.action
    ('miscalibrated', 'calibrated', 'use the calibrated prediction')
    """

    name: str
    map: Map
    verified_map: Map
    distance: float | None = None
    before: Assessment
    after: Assessment | None = None
    comparison: Comparison | None = None
    prediction_over_average: Comparison | None = None
    calibrated_over_average: Comparison | None = None
    average: float
    audit_before: Audit | None = None
    audit_after: Audit | None = None
    recommendation: Recommendation
    checks: tuple[Check, ...] = ()
    judged: Integers | range
    redraws: tuple[tuple[float, float], ...] = ()
    reason: str = ""
    bound: float = 0.0
    fitted_range: tuple[float, float]
    fitted_rows: int
    band_edges: Floats | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    prediction: Any = field(default=None, repr=False)
    study: StudyDefinition | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return self.summary()

    @property
    def columns(self) -> tuple[str, ...]:
        """The column of predictions."""
        return (self.name,)

    @property
    def status(self) -> str:
        """The status after calibration; before it, where no rows were held out."""
        return (self.after or self.before).status

    @property
    def story(self) -> str:
        """What calibration did, in a sentence or two."""
        if self.after is None or self.comparison is None:
            return "The calibrated prediction is not verified on unseen rows."
        return story(self.before, self.after, self.comparison)

    def summary(self) -> str:
        """Return recommendation, checks and verdicts as text."""
        from orthocal.reporting.calibrations import calibration_summary

        return calibration_summary(self)

    @cached_property
    def band(self) -> EffectBand:
        """The band of all rows for the average effect of people with the same prediction, never for a person's own effect.

        Refused with a sentence for effects that are no means (quantiles, expectiles, ratios), on Dask, with too few rows,
        and where subgroups have shifts.
        """
        if isinstance(self.map, GroupMap):
            raise OrthocalError(
                "A band must go with a map of the prediction alone; subgroups have shifts in this one. Leave out `within`."
            )
        if self.study is None:
            raise OrthocalError("A band must have the rows of a study; there is none. Call Study.calibrate.")
        return self.study.rows.band(self.prediction, self.band_edges, self.before.level)

    @property
    def band_or_none(self) -> EffectBand | None:
        """The band, or None where it is refused."""
        try:
            return self.band
        except OrthocalError:
            return None

    def table(self) -> Any:
        """Return the study's table with the calibrated predictions, ``<prediction>_calibrated``, and their intervals.

        ``<prediction>_lower`` and ``<prediction>_upper`` are the ends of `band`, for the average effect of people with that
        prediction, never for a person's own effect: missing where an end is open, left out where there is no band.
        """
        assert self.study is not None  # noqa: S101
        return self.study.rows.with_calibrated(self.name, self.map, self.prediction, self.band_or_none)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the map that ships as JSON, with what it is a map of: effect, column, range, rows, date, status, band."""
        band = self.band_or_none
        save(self.map, path, about={**self.about, **({} if band is None else {"band": band.to_dict()})})

    def report(self, path: str | Path, *, title: str | None = None, how: Any = None, since: Any = None) -> None:
        """Write one self-contained HTML page; see `orthocal.report`."""
        from orthocal.reporting.page.document import TITLE
        from orthocal.reporting.page.report import report

        report(self, path, title=TITLE if title is None else title, how=how, since=since)

    def to_dict(self) -> dict[str, Any]:
        """Return the verdicts as plain numbers, strings, lists and dicts, ready for JSON."""
        from orthocal.reporting.calibrations import calibration_record

        return calibration_record(self)

    def _repr_html_(self) -> str:
        from orthocal.reporting.notebook import calibration_html

        return calibration_html(self)
