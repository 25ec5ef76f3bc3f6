"""The verdict on predictions of several arms: every contrast of two arms, and all of them together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from orthocal.arrays import Floats
from orthocal.assessment import Assessment
from orthocal.assessment.assess import assess_rows
from orthocal.assessment.parts import Check
from orthocal.assessment.records import Settings
from orthocal.assessment.status import CALIBRATED, INCONCLUSIVE, MISCALIBRATED, SHARE, is_negligible
from orthocal.assessment.subgroups import holm
from orthocal.losses import ArmScores

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, eq=False, kw_only=True)
class ArmsAssessment:
    """Whether predictions of several arms are calibrated: what `Study.assess` returns where there are several arms.

    Parameters
    ----------
    arms : tuple
        The control first.
    contrasts : dict of str to Assessment
        Each arm against the control, then every other pair of arms, whose prediction is a difference of two; named as in
        "mail vs none". Intervals and tests of each are at the study's level.
    p_values : dict of str to float
        Of each contrast, that of its smallest test by the test's share of the level, adjusted for the number of contrasts
        (Holm 1979).
    status : {"calibrated", "miscalibrated", "inconclusive"}
        Of all together: miscalibrated where an adjusted p-value is below 1 - level and the error is not negligible;
        calibrated where none is and every contrast's error is surely within its tolerance.
    level : float
    checks : tuple of Check

    Examples
    --------
    >>> import numpy as np
    >>> from orthocal.losses import ArmScores
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.standard_normal((4000, 2))
    >>> values = np.column_stack([np.zeros(4000), truth]) + 0.5 * rng.standard_normal((4000, 3))
    >>> scores = ArmScores(arms=("none", "mail", "call"), values=values, weight=np.ones(4000))
    >>> verdict = assess_arms(truth, scores, Settings(random_state=0))
    >>> verdict.status, list(verdict.contrasts)
    ('calibrated', ['mail vs none', 'call vs none', 'call vs mail'])
    """

    arms: tuple[Any, ...]
    contrasts: dict[str, Assessment]
    p_values: dict[str, float]
    status: str
    level: float
    checks: tuple[Check, ...] = ()

    def __str__(self) -> str:
        return self.summary()

    def of(self, arm: Any, control: Any = None) -> Assessment:
        """Return the verdict on one arm against another; against the control, where none is named."""
        return self.contrasts[contrast_name(arm, self.arms[0] if control is None else control)]

    @property
    def worst(self) -> str:
        """The contrast whose error is largest beside its tolerance."""
        return max(self.contrasts, key=lambda name: self.contrasts[name].error / self.contrasts[name].tolerance)

    def summary(self) -> str:
        """Return the verdict and the numbers behind it as text."""
        from orthocal.reporting.arms import arms_summary

        return arms_summary(self)

    def report(self, path: str | Path, *, title: str | None = None, how: Any = None, since: Any = None) -> None:
        """Write one self-contained HTML page with every contrast; see `orthocal.report`."""
        from orthocal.reporting.page.document import TITLE
        from orthocal.reporting.page.report import report

        report(self.contrasts, path, title=TITLE if title is None else title, how=how, since=since)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers, strings, lists and dicts, ready for JSON."""
        from orthocal.reporting.arms import arms_record

        return arms_record(self)

    def _repr_html_(self) -> str:
        from orthocal.reporting.arms import arms_html

        return arms_html(self)


def contrast_name(arm: Any, control: Any) -> str:
    """Return the name of a contrast."""
    return f"{arm} vs {control}"


def contrasts_of(arms: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield every pair of arms, the one that comes later in the list first; those with the control come first."""
    control, *others = arms
    yield from ((arm, control) for arm in others)
    yield from ((later, earlier) for earlier, later in combinations(others, 2))


def predicted_contrast(predictions: Floats, arms: Sequence[Any], arm: Any, control: Any) -> Floats:
    """Return what predictions against the first arm say of any contrast."""
    full = {one: predictions[:, place] for place, one in enumerate(arms[1:])}
    return np.asarray(full[arm] if control == arms[0] else full[arm] - full[control])


def assess_arms(
    predictions: Floats, scores: ArmScores, settings: Settings, tolerances: Mapping[str, Assessment] | None = None
) -> ArmsAssessment:
    """Judge every contrast, and all together.

    Parameters
    ----------
    tolerances : mapping of str to Assessment, optional
        Verdicts before a map, whose tolerances hold after it too: no map moves the goal posts.
    """
    found = {}
    for arm, control in contrasts_of(scores.arms):
        name = contrast_name(arm, control)
        goal, note = settings if control == scores.control else replace(settings, cost=None), None
        if tolerances is not None:
            goal, note = replace(goal, tolerance=tolerances[name].tolerance), tolerances[name].tolerance_note
        verdict = assess_rows(
            predicted_contrast(predictions, scores.arms, arm, control), scores.contrast(arm, control), goal
        )
        found[name] = verdict if note is None else replace(verdict, tolerance_note=note)
    p_values = holm(np.array([smallest_p_value(verdict) for verdict in found.values()]))
    adjusted = dict(zip(found, p_values.tolist(), strict=True))
    return ArmsAssessment(
        arms=scores.arms,
        contrasts=found,
        p_values=adjusted,
        status=_status(found, adjusted, settings.level),
        level=settings.level,
    )


def smallest_p_value(verdict: Assessment) -> float:
    """Return the smallest p-value of tests and subgroups, by their share of the level."""
    tests = [test.p_value for test in verdict.tests.values() if test.p_value is not None]
    groups = [group.p_value_adjusted for group in verdict.subgroups if group.p_value_adjusted is not None]
    return min(1.0, min([*tests, *groups], default=1.0) / SHARE)


def _status(found: Mapping[str, Assessment], adjusted: Mapping[str, float], level: float) -> str:
    wrong = [name for name, verdict in found.items() if adjusted[name] < 1 - level and not is_negligible(vars(verdict))]
    if wrong:
        return MISCALIBRATED
    within = all(verdict.interval[1] <= verdict.tolerance for verdict in found.values())
    return CALIBRATED if within else INCONCLUSIVE
