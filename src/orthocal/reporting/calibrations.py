"""What a calibration shows, from one list: as text, as JSON, and to notebook and page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from orthocal import __version__
from orthocal.assessment.parts import Check
from orthocal.assessment.records import Comparison
from orthocal.formats import estimate, number
from orthocal.reporting.figures import Figure, as_text

if TYPE_CHECKING:
    from orthocal.study import Calibration


def calibration_figures(done: Calibration) -> list[Figure]:
    """Return the figures of a calibration that stand above its verdicts."""
    return list(_figures(done))


def _figures(done: Calibration) -> Iterator[Figure]:
    yield Figure("recommendation", done.recommendation.action, " ".join(done.recommendation.reasons))
    yield Figure("status before", done.before.status, f"error {estimate(done.before.error, done.before.interval)}")
    if done.after is None or done.comparison is None:
        yield Figure("status after", "not verified", "no rows were held out")
        return
    yield Figure("status after", done.after.status, f"error {estimate(done.after.error, done.after.interval)}")
    change = done.comparison
    yield Figure("mean loss, after - before", _difference(change), f"{change.verdict}; negative is better")
    pairs = {"prediction": done.prediction_over_average, "calibrated": done.calibrated_over_average}
    for name, gain in pairs.items():
        if gain is not None and not (name == "calibrated" and done.after.is_constant):
            average = f"the average effect of the rows that maps are fitted on, {number(done.average)}"
            meaning = f"mean loss minus that of {average}; negative is better"
            yield Figure(f"{name} - average", _difference(gain), meaning)
    if done.distance is not None:
        ships = "which ships" if done.map is not done.verified_map else "too far: the verified one ships"
        meaning = f"root mean square distance of the map fitted on all rows from the verified one; {ships}"
        yield Figure("refitted on all rows", number(done.distance), meaning)
    if done.redraws:
        errors = ", ".join(f"{number(before)} to {number(after)}" for before, after in done.redraws)
        yield Figure("error before to after", errors, f"over {len(done.redraws)} draws of the folds")


def _difference(change: Comparison) -> str:
    return estimate(change.risk_difference, change.interval)


def checks_in_words(checks: Sequence[Check]) -> str:
    """Return how many checks passed, and every one that did not."""
    counts = Counter(check.result for check in checks)
    first = ", ".join(f"{counts[result]} {result}" for result in ("passed", "warning", "failed") if counts[result])
    return "\n".join([f"Checks: {first or 'none'}.", *(f"  {check}" for check in checks if check.result != "passed")])


def calibration_summary(done: Calibration) -> str:
    """Return recommendation, checks and verdicts as text."""
    return "\n\n".join(_paragraphs(done))


def _paragraphs(done: Calibration) -> Iterator[str]:
    yield str(done.recommendation)
    yield checks_in_words(done.checks)
    yield as_text(calibration_figures(done)[1:])
    yield f"BEFORE ({len(done.judged):,} rows)\n{done.before.summary()}"
    for when, audit in {"before": done.audit_before, "after": done.audit_after}.items():
        if audit is not None:
            yield f"SUBGROUPS, {when}: {audit}"
    if done.after is None:
        yield "AFTER: not verified on unseen rows; no rows were held out."
        return
    yield f"AFTER (the same {len(done.judged):,} rows, which the map never saw)\n{done.after.summary()}"
    if done.reason:
        yield f"Method: {done.reason}"
    yield done.story


def calibration_record(done: Calibration) -> dict[str, Any]:
    """Return a calibration as plain numbers, strings, lists and dicts, ready for JSON."""
    return {
        **shared_record(done, calibration_figures(done)),
        "average_effect": done.average,
        "errors_by_seed": [list(pair) for pair in done.redraws],
        "audit_before": None if done.audit_before is None else done.audit_before.to_dict(),
        "audit_after": None if done.audit_after is None else done.audit_after.to_dict(),
    }


def shared_record(done: Any, figures: Sequence[Figure]) -> dict[str, Any]:
    """Return what calibrations of one contrast and of several arms have in common."""

    def plain(record: Any) -> Any:
        return None if record is None else record.to_dict()

    return {
        "orthocal": __version__,
        "map": dict(done.about),
        "status": done.status,
        "recommendation": {
            "action": done.recommendation.action,
            "reasons": list(done.recommendation.reasons),
            "rows_needed": done.recommendation.rows_needed,
        },
        "checks": [vars(check) for check in done.checks],
        "figures": [line._asdict() for line in figures],
        "before": plain(done.before),
        "after": plain(done.after),
        "comparison": plain(done.comparison),
        "prediction_over_average": plain(done.prediction_over_average),
        "calibrated_over_average": plain(done.calibrated_over_average),
        "verified_on_unseen_rows": done.after is not None,
        "reason": done.reason,
    }
